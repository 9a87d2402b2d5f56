"""Each notebook of the book is its chapter's cells, without outputs, as `make pair` writes it."""

import subprocess
import sys

import jupytext
import nbformat
import pytest
from chapters import ROOT, has_code, pages

CHAPTERS = [ROOT / page for page in pages() if has_code(page)]


def differences(chapter, notebook):
    """Yield where a notebook is not the chapter's text, or carries traces of a run."""
    if (chapter.metadata.kernelspec, len(chapter.cells)) != (
        notebook.metadata.kernelspec,
        len(notebook.cells),
    ):
        yield "another kernel or number of cells"
    for i, (left, right) in enumerate(zip(chapter.cells, notebook.cells, strict=False)):
        if (left.cell_type, left.source, left.metadata) != (
            right.cell_type,
            right.source,
            right.metadata,
        ):
            yield f"cell {i}: {left.source[:40]!r} became {right.source[:40]!r}"
        if right.get("outputs") or right.get("execution_count") is not None:
            yield f"cell {i}: an output or an execution count"
    if len({cell.id for cell in notebook.cells}) < len(notebook.cells):
        yield "a cell id that is used twice"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_notebook_is_its_chapter(path):
    notebook = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(notebook)
    assert list(differences(jupytext.read(path), notebook)) == [], "run `make pair`"


def test_every_notebook_has_a_chapter():
    assert {path.with_suffix(".md") for path in (ROOT / "book").rglob("*.ipynb")} == set(CHAPTERS)


def example():
    """A small pair that agrees."""
    text = (
        "---\nkernelspec:\n  display_name: Python 3\n  name: python3\n---\n\n"
        "# Title\n\n```{code-cell}\nx = 1\n```\n"
    )
    chapter = jupytext.reads(text, fmt="md:myst")
    return chapter, nbformat.from_dict(chapter.copy())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda notebook: notebook.cells.pop(),
        lambda notebook: notebook.cells.reverse(),
        lambda notebook: notebook.cells[1].update(source="x = 2"),
        lambda notebook: notebook.cells[1].update(outputs=[{"output_type": "stream"}]),
        lambda notebook: notebook.cells[1].update(execution_count=1),
        lambda notebook: notebook.cells[1].metadata.update(tags=["skip-execution"]),
        lambda notebook: notebook.cells[1].update(id=notebook.cells[0].id),
        lambda notebook: notebook.metadata.kernelspec.update(name="ir"),
    ],
)
def test_a_difference_is_found(spoil):
    chapter, notebook = example()
    assert list(differences(chapter, notebook)) == []
    spoil(notebook)
    assert list(differences(chapter, notebook))


def test_cell_ids_outlive_an_edit(tmp_path):
    for name in ("jupytext.toml", "book/status.md", "book/status.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    chapter = tmp_path / "book/status.md"
    before = nbformat.read(chapter.with_suffix(".ipynb"), as_version=4)
    chapter.write_text(chapter.read_text() + "\n```{code-cell}\nx = 1\n```\n\nOne more sentence.\n")
    command = [
        sys.executable,
        "-m",
        "jupytext",
        "--quiet",
        "--to",
        "ipynb",
        "--update",
        str(chapter),
    ]
    subprocess.run(command, check=True, cwd=tmp_path)
    after = nbformat.read(chapter.with_suffix(".ipynb"), as_version=4)
    assert len(after.cells) == len(before.cells) + 2
    assert [cell.id for cell in after.cells[: len(before.cells)]] == [
        cell.id for cell in before.cells
    ]
