"""Every chapter, as it stands, was executed by nbmake to its end (`make book` and `make test` do that first)."""

import json
import re

import execute
import nbformat
import pytest

SOURCES = execute.sources()


@pytest.mark.parametrize("name", SOURCES)
def test_chapter_was_executed_as_it_stands(name):
    record = execute.on_record(name)
    assert record, f"not executed, or stopped: see {execute.EXECUTED / name}.txt"
    assert record["inputs"] == execute.inputs(SOURCES[name]), "its inputs have changed since: run make test"
    executed = nbformat.read(execute.EXECUTED / f"{name}.ipynb", as_version=4)
    pairs = zip(executed.cells, SOURCES[name].cells, strict=True)
    assert all(done.source == cell.source for done, cell in pairs)
    code = [cell for cell in executed.cells if cell.cell_type == "code" and cell.source.strip()]
    assert all(cell.execution_count for cell in code)
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]


@pytest.mark.parametrize("name", SOURCES)
def test_every_assertion_of_a_chapter_was_written_down_and_held(name):
    claims = execute.read_claims(execute.EXECUTED, name)
    code = [cell.source for cell in SOURCES[name].cells if cell.cell_type == "code" and cell.source.strip()]
    asserting = {number for number, source in enumerate(code, 1) if re.search(r"\bassert(_\w+\(| )", source)}
    assert {claim["cell"] for claim in claims} == asserting and all(claim["holds"] for claim in claims)
    assert json.loads((execute.EXECUTED / f"{name}.json").read_text())["claims"] == len(claims)
