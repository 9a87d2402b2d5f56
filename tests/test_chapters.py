"""Every chapter, as it stands, was executed by nbmake to its end (`make book` and `make test` do
that first).
"""

import ast
import json

import claims
import execute
import nbformat
import page_inputs
import pytest
import shake
from chapters import has_code, pages

NAMES = [page.stem for page in pages() if has_code(page)]


@pytest.fixture(scope="module")
def sources():
    """The notebooks of the chapters, by name."""
    return execute.sources()


@pytest.fixture(scope="module")
def code():
    """The code that chapters use."""
    return page_inputs.read()


def asserted(notebook):
    """The comparisons that a chapter asserts, as ``claims`` writes them down: code cell, line and
    text.
    """
    rewrite = claims.Rewrite()
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.strip():
            rewrite.begin(cell.source)
            for node in ast.walk(rewrite.visit(ast.parse(cell.source))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                    "book_compare",
                    "book_agree",
                    "book_verdict",
                ):
                    yield node.args[0].value


@pytest.mark.parametrize("name", NAMES)
def test_chapter_was_executed_as_it_stands(name, sources, code):
    record = execute.on_record(name)
    assert record, f"not executed, or stopped: see {execute.EXECUTED / name}.txt"
    assert record["inputs"] == execute.inputs(name, sources[name], code), (
        "its inputs have changed since: run make test"
    )
    executed = nbformat.read(execute.EXECUTED / f"{name}.ipynb", as_version=4)
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    written = [cell.source for cell in sources[name].cells if cell.cell_type == "code"]
    assert [cell.source for cell in code] == written
    assert all(cell.execution_count for cell in code if cell.source.strip())
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]


@pytest.mark.parametrize("name", NAMES)
def test_every_assertion_of_a_chapter_was_written_down_and_held(name, sources):
    assert execute.on_record(name), f"not executed, or stopped: see {execute.EXECUTED / name}.txt"
    found = execute.read_claims(execute.EXECUTED, name)
    assert {(claim["cell"], claim["line"], claim["text"]) for claim in found} == set(
        asserted(sources[name])
    )
    assert all(claim["holds"] for claim in found) and execute.on_record(name)["claims"] == len(
        found
    )


def test_the_table_of_shaken_claims_has_all_of_them_and_all_held(sources):
    table = json.loads((execute.ROOT / "book/results/claims.json").read_text())
    assert table["perturbations"] == list(shake.PERTURBATIONS) and len(shake.PERTURBATIONS) >= 12
    shaken = {(row["chapter"], row["text"]) for row in table["rows"]}
    waiting = {tuple(one) for one in table["waiting"]}  # newer than the table, as the page says
    assert not shaken & waiting
    assert shaken | waiting == {
        (name, text) for name in NAMES for *_, text in asserted(sources[name])
    }
    assert {(row["held"], row["runs"]) for row in table["rows"]} == {
        (len(table["perturbations"]),) * 2
    }
