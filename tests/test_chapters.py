"""Every chapter, as it stands, was executed by nbmake to its end (`make book` and `make test` do
that first).
"""

import ast
import json

import claims
import execute
import nbformat
import pytest
import shake

SOURCES = execute.sources()


def asserted(name):
    """The comparisons that a chapter asserts, as ``claims`` writes them down: code cell, line and
    text.
    """
    rewrite = claims.Rewrite()
    for cell in SOURCES[name].cells:
        if cell.cell_type == "code" and cell.source.strip():
            rewrite.begin(cell.source)
            for node in ast.walk(rewrite.visit(ast.parse(cell.source))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                    "book_compare",
                    "book_agree",
                ):
                    yield node.args[0].value


@pytest.mark.parametrize("name", SOURCES)
def test_chapter_was_executed_as_it_stands(name):
    record = execute.on_record(name)
    assert record, f"not executed, or stopped: see {execute.EXECUTED / name}.txt"
    assert record["inputs"] == execute.inputs(SOURCES[name]), (
        "its inputs have changed since: run make test"
    )
    executed = nbformat.read(execute.EXECUTED / f"{name}.ipynb", as_version=4)
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    written = [cell.source for cell in SOURCES[name].cells if cell.cell_type == "code"]
    assert [cell.source for cell in code] == written
    assert all(cell.execution_count for cell in code if cell.source.strip())
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]


@pytest.mark.parametrize("name", SOURCES)
def test_every_assertion_of_a_chapter_was_written_down_and_held(name):
    assert execute.on_record(name), f"not executed, or stopped: see {execute.EXECUTED / name}.txt"
    found = execute.read_claims(execute.EXECUTED, name)
    assert {(claim["cell"], claim["line"], claim["text"]) for claim in found} == set(asserted(name))
    assert all(claim["holds"] for claim in found) and execute.on_record(name)["claims"] == len(
        found
    )


def test_the_table_of_shaken_claims_has_all_of_them_and_all_held():
    table = json.loads((execute.ROOT / "book/results/claims.json").read_text())
    assert table["perturbations"] == list(shake.PERTURBATIONS) and len(shake.PERTURBATIONS) >= 12
    shaken = {(row["chapter"], row["text"]) for row in table["rows"]}
    assert shaken == {(name, text) for name in SOURCES for *_, text in asserted(name)}
    assert {(row["held"], row["runs"]) for row in table["rows"]} == {
        (len(table["perturbations"]),) * 2
    }
