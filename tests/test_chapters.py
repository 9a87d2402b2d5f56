"""Every chapter, as it stands, was executed by nbmake to its end (`make book` and `make test` do that first)."""

import ast
import json
import re

import claims
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
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    written = [cell.source for cell in SOURCES[name].cells if cell.cell_type == "code"]
    assert [cell.source for cell in code] == written
    assert all(cell.execution_count for cell in code if cell.source.strip())
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]


@pytest.mark.parametrize("name", SOURCES)
def test_every_assertion_of_a_chapter_was_written_down_and_held(name):
    claims = execute.read_claims(execute.EXECUTED, name)
    code = [cell.source for cell in SOURCES[name].cells if cell.cell_type == "code" and cell.source.strip()]
    asserting = {number for number, source in enumerate(code, 1) if re.search(r"\bassert(_\w+\(| )", source)}
    assert {claim["cell"] for claim in claims} == asserting and all(claim["holds"] for claim in claims)
    assert json.loads((execute.EXECUTED / f"{name}.json").read_text())["claims"] == len(claims)


def asserted(name):
    """The comparisons that a chapter asserts, as ``claims`` writes them down."""
    rewrite = claims.Rewrite()
    for cell in SOURCES[name].cells:
        if cell.cell_type == "code":
            rewrite.begin(cell.source)
            for node in ast.walk(rewrite.visit(ast.parse(cell.source))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("book_compare", "book_agree"):
                    yield node.args[0].value[2]


def test_the_table_of_shaken_claims_has_all_of_them_and_all_held():
    table = json.loads((execute.ROOT / "book/results/claims.json").read_text())
    shaken = {(row["chapter"], row["text"]) for row in table["rows"]}
    assert shaken == {(name, text) for name in SOURCES for text in asserted(name)}
    assert {(row["held"], row["runs"]) for row in table["rows"]} == {(len(table["perturbations"]),) * 2}
