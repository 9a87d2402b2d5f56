"""A page is due when, and only when, something has changed on which its outputs depend."""

import helpers

import execute
import nbformat
import page_inputs
import pytest
from chapters import ROOT

from experiments.engine import fingerprint

FILES = {
    "helpers/__init__.py": 'FLAGS = "--a"\n',
    "helpers/data.py": "from helpers import deep\n\n\ndef draw():\n    return deep.one()\n",
    "helpers/deep.py": "SIZE = 1\n\n\ndef one():\n    return SIZE\n\n\ndef two():\n    return 2\n",
    "helpers/plots.py": "def use():\n    return load('helpers.book')\n",
    "helpers/book.mplstyle": "one",
    "helpers/common.py": (
        "def read_result(name):\n    if not name:\n        raise ValueError('no name')\n"
    ),
    "tables/__init__.py": "",
    "experiments/tells.py": (
        "from helpers.common import read_result\n\n\n"
        "def told(name):\n    return read_result(f'moons/{name}')\n"
    ),
    "experiments/program.py": "from helpers import data\n\nprint(data.draw())\n",
    "book/results/sun/table.json": "one",
    "book/results/sun/other.json": "one",
    "book/results/moons/far.json": "one",
    "book/results/claims.json": "one",
    "requirements.txt": "one",
}
PAGES = {
    "reads": """from helpers import data
from helpers.common import read_result
x = data.draw()
read_result("sun/table")
claims(table)""",
    "tells": "from experiments import tells\ntells.told('far')",
    "draws": "from helpers import plots\nplots.use()",
    "starts": 'run("-m", "experiments.program")',
    "claims": 'from helpers.common import read_result as r\nr("claims")',
    "alone": "import helpers\nother = table = 1",
}


def notebook(source, **metadata):
    """Return a notebook of one cell."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source, metadata=metadata)])


@pytest.fixture
def due(tmp_path):
    """A function that returns which pages are due after files have changed."""

    def hashes():
        code = page_inputs.read(tmp_path)
        return {name: execute.inputs(name, notebook(text), code) for name, text in PAGES.items()}

    def since(**files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        found = hashes()
        return {name for name in PAGES if found[name] != before.get(name)}

    before = {}
    assert since(**FILES) == set(PAGES)
    before |= hashes()
    return since


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("helpers/deep.py", "SIZE = 1", "SIZE = 2", {"reads", "starts"}),
        ("helpers/deep.py", "return 2", "return 3", set()),
        ("helpers/data.py", "def draw():", "def draw():  # a word", set()),
        ("helpers/common.py", "no name", "give a name", {"reads", "tells", "claims"}),
        ("helpers/book.mplstyle", "one", "two", {"draws"}),
        ("book/results/sun/table.json", "one", "two", {"reads"}),
        ("book/results/sun/other.json", "one", "two", set()),
        ("book/results/moons/far.json", "one", "two", {"tells"}),
        ("book/results/claims.json", "one", "two", {"claims"}),
        ("experiments/program.py", "data.draw()", "[data.draw()]", {"starts"}),
        ("requirements.txt", "one", "two", set(PAGES)),
    ],
)
def test_the_pages_that_use_what_has_changed_are_due(due, name, old, new, expected):
    assert old in FILES[name]
    assert due(**{name: FILES[name].replace(old, new)}) == expected


def test_new_files_that_nothing_uses_leave_all_pages(due):
    assert due(**{"helpers/new.py": "x = 1\n", "book/results/sun/new.json": "one"}) == set()


def test_code_tags_and_flags_of_the_caller_count_and_prose_does_not(tmp_path, monkeypatch):
    (tmp_path / "requirements.txt").touch()
    code = page_inputs.read(tmp_path)

    def of(page):
        return execute.inputs("page", page, code)

    page = notebook("x = 1")
    prose = nbformat.v4.new_markdown_cell("New.")
    assert of(nbformat.from_dict({**page, "cells": [prose, *page.cells]})) == of(page)
    found = {of(page), of(notebook("x = 2")), of(notebook("x = 1", tags=["remove-cell"]))}
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_prefer_vector_width=128")
    found.add(of(page))
    # helpers was imported
    monkeypatch.setenv("XLA_FLAGS", f"{helpers.FLAGS} --xla_cpu_prefer_vector_width=128")
    found.add(of(page))
    assert len(found) == 4


@pytest.fixture(scope="module")
def book():
    """A function that returns the hash of every page, given sources that differ from the files."""
    notebooks = execute.sources()

    def hashes(**sources):
        code = fingerprint.read(fingerprint.Project(ROOT, sources=sources), words=True)
        return {name: execute.inputs(name, page, code) for name, page in notebooks.items()}

    return hashes


@pytest.fixture(scope="module")
def before(book):
    """The hashes of the pages as they are."""
    return book()


@pytest.mark.parametrize(
    ("module", "old", "new", "expected"),
    [
        (
            "experiments.methods.network_fits",
            "NUM_CHAINS = 4",
            "NUM_CHAINS = 5",
            {"how-good", "rotation", "status", "what-it-is-worth", "where-the-gain"},
        ),
        (
            "experiments.methods.budgets",
            "SHARE = 0.2",
            "SHARE = 0.3",
            {"comparing-inference", "status", "what-it-is-worth"},
        ),
    ],
)
def test_a_constant_three_imports_deep_makes_the_right_pages_due(
    book, before, module, old, new, expected
):
    text = (ROOT / f"{module.replace('.', '/')}.py").read_text()
    assert old in text
    after = book(**{module: text.replace(old, new)})
    assert {page for page in before if before[page] != after[page]} == expected
