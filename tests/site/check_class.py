"""The notebooks that `make class` makes of the built site, held against the sources of the pages:
no solution leaks to students, and none is missing for the teacher.
"""

import re

import classroom
import jupytext
import nbformat
import pytest
from chapters import ROOT, pages
from sources import FOLDER, notebooks

from tests.test_class import SOLVED, text

DERIVED = ROOT / "_build/html" / FOLDER
FILES = {path: notebooks()[str(path.with_suffix(""))] for path in pages()}
ASKED = [path for path in FILES if SOLVED.search((ROOT / path).read_text())]
SECRET = SOLVED.pattern, r"^```\{admonition\} Answer\n:class: dropdown\n.*?^```$"
SECRET += (r"</summary>\n.*?</details>",)  # of a quiz


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of the class."""
    target = tmp_path_factory.mktemp("class")
    classroom.write(DERIVED, target)
    return target


def read(path):
    """A notebook, which is valid."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def phrases(text):
    """Runs of four plain words or more, and the lines of code cells."""
    cells = jupytext.reads(text, fmt="md:myst").cells
    for cell in cells:
        if cell.cell_type == "code":
            yield from (line.strip() for line in cell.source.splitlines() if len(line) > 20)
    prose = re.sub(r"^(`{3,})\{.*?^\1$", "", text, flags=re.S | re.M)
    for run in re.split(r"[^A-Za-z ,;]", prose):
        if len(run.split()) >= 4:
            yield run.strip()


def secrets(source):
    """Phrases of a page's answers that it says nowhere else."""
    hidden = [part[0] for pattern in SECRET for part in re.finditer(pattern, source, re.S | re.M)]
    left = source
    for part in hidden:
        left = left.replace(part, "")
    return {phrase for part in hidden for phrase in phrases(part) if phrase not in left}


@pytest.mark.parametrize("path", ASKED, ids=str)
def test_no_answer_leaks_and_none_is_missing(made, path):
    found = secrets((ROOT / path).read_text())
    assert len(found) >= 3
    given, solved = (text(read(made / part / FILES[path])) for part in ("", "solutions"))
    assert {phrase for phrase in found if phrase in given} == set()
    assert {phrase for phrase in found if phrase not in solved} == set()
    asked, answered = (
        re.findall(pattern, what, flags=re.M)
        for pattern, what in (
            (r"^\*\*Exercise ([\d.]+)", given),
            (r"^(?:# |\*\*)Solution to Exercise ([\d.]+)", solved),
        )
    )
    assert asked and sorted({*answered}) == sorted(asked)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_students_have_the_code_of_the_chapter_and_no_outputs(made, path):
    source = SOLVED.sub("", (ROOT / path).read_text())
    cells = jupytext.reads(source, fmt="md:myst").cells
    expected = [cell.source for cell in cells if cell.cell_type == "code"]
    code = [cell for cell in read(made / FILES[path]).cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    given = [cell.source for cell in code[1:]]  # the first one installs
    assert len(given) == len(expected)
    for cell, chapter in zip(given, expected, strict=True):
        assert cell.partition("\n")[2] == chapter or cell == chapter  # the label of a fold above


def test_no_other_page_has_solutions(made):
    answered = {path.name for path in (made / "solutions").iterdir()}
    assert {FILES[path] for path in ASKED} <= answered
    assert len(answered) >= 25
