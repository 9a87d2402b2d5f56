"""What students are given has every exercise and no solution, what a teacher keeps has them all."""

import re
import symtable
import zipfile

import classroom
import jupytext
import nbformat
import pytest
from book_notebooks import assemble
from chapters import ROOT, has_code, pages
from docutils import nodes
from nbformat.v4 import new_code_cell, new_notebook, new_output
from page_pieces import pieces
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

from tests.test_plain_markdown import PAGE

CODE = ["x = 1", "answer = 42", "y = 2"]
HIDDEN = [
    "It is *forty-two*.",
    "answer = 42",
    "Because.",
    "Nobody knows.",
    "No. Never.",
    "Right. So.",
]
SOLVED = re.compile(r"^```\{solution-start\}.*?^```\{solution-end\}\n```$", flags=re.S | re.M)


def cell(index):
    """A code cell, as a page's tree has it."""
    return nodes.container(nb_element="cell_code", cell_index=index)


def admonition(title, text, *classes):
    """An admonition, folded or not."""
    content = nodes.title("", title), nodes.paragraph("", text)
    return nodes.admonition("", *content, classes=[*classes])


def raw(text):
    """Tags of a page's source."""
    return nodes.raw("", text, format="html")


@pytest.fixture
def notebook():
    """A notebook of the site: a question, an exercise, a quiz, a self-test and an aside."""
    forty_two = nodes.paragraph("", "", nodes.Text("It is "), nodes.emphasis("", "forty-two"))
    forty_two += nodes.Text(".")
    solution = nodes.section("", forty_two, cell(1), nodes.paragraph("", "Because."))
    exercise = nodes.section("", nodes.paragraph("", "What is it?"))
    parts = [
        nodes.title("", "A chapter"),
        cell(0),
        nodes.section("", nodes.title("", "A part"), admonition("Question", "Who knows?")),
        admonition("Answer", "Nobody knows.", "dropdown"),
        exercise_enumerable_node(
            "", nodes.title("", "", title="Exercise %s"), exercise, ids=["ex-a"]
        ),
        solution_node(
            "", nodes.title("", ""), solution, title="Solution to Exercise 6.1", ids=["s"]
        ),
        cell(2),
        nodes.paragraph("", "", nodes.strong("", "1. Ever?")),
        raw("<details>\n<summary>Yes.</summary>"),
        nodes.paragraph("", "No. Never."),
        raw("</details>\n<details>\n<summary>At times.</summary>"),
        nodes.paragraph("", "Right. So."),
        raw("</details>"),
        admonition("2. Is that all?", "It is not.", "dropdown"),
        admonition("How it was made", "By hand.", "dropdown"),
    ]
    output = new_output("stream", name="stdout", text="42")
    code = [new_code_cell(source, execution_count=1, outputs=[output]) for source in CODE]
    page = nodes.document(None, None)
    page += nodes.section("", *parts)
    return new_notebook(cells=assemble([*pieces(page, PAGE)], new_notebook(cells=code)))


def text(notebook):
    """All that a notebook says."""
    return "\n".join(cell.source for cell in notebook.cells)


def test_students_get_questions_and_code_and_no_answer(notebook):
    assert all(said in text(notebook) for said in HIDDEN)  # the fixture has what is to go
    given = classroom.for_students(notebook)
    nbformat.validate(given)
    assert [said for said in [*HIDDEN, "It is not.", "Solution"] if said in text(given)] == []
    kept = ["Who knows?", "**Exercise 6.1**", "What is it?", "**1. Ever?**"]
    kept += ["- Yes.\n- At times.", "**2. Is that all?**", "By hand."]
    assert [said for said in kept if said not in text(given)] == []
    code = [cell for cell in given.cells if cell.cell_type == "code"]
    assert [cell.source for cell in code] == ["x = 1", "y = 2"]
    assert not any(cell.outputs or cell.execution_count for cell in code)


def test_teachers_get_every_answer_below_its_question(notebook):
    solved = classroom.solutions(notebook, "06-a.ipynb")
    nbformat.validate(solved)
    order = ["# Solutions: A chapter", "## A part", "Who knows?", "Nobody knows.", "What is it?"]
    order += ["Solution to Exercise 6.1", "forty-two", "answer = 42", "Because.", "1. Ever?"]
    order += [
        "- **Yes.** No. Never.",
        "- **At times.** Right. So.",
        "2. Is that all?",
        "It is not.",
    ]
    places = [text(solved).find(said) for said in order]
    assert places == sorted(places) and places[0] == 0, [*zip(order, places, strict=True)]
    assert "By hand." not in text(solved) and "x = 1" not in text(solved)
    (code,) = (cell for cell in solved.cells if cell.cell_type == "code")
    assert code.outputs and "jupyter" not in code.metadata


def test_the_notebook_of_the_site_stays_as_it_is(notebook):
    before = nbformat.writes(notebook)
    classroom.for_students(notebook)
    classroom.solutions(notebook, "06-a.ipynb")
    assert nbformat.writes(notebook) == before


def test_a_page_without_exercises_has_no_solutions():
    page = new_notebook(cells=[new_code_cell("x = 1")])
    assert classroom.solutions(page, "06-a.ipynb") is None


@pytest.mark.parametrize(
    "text",
    [
        "<details><summary>Answer</summary>\n\n<details><summary>Answer</summary>\n\na"
        "\n\n</details>\n\nb\n\n</details>",
        "<details><summary>Answer</summary>\n\na",
        "<details open><summary>Answer</summary>\n\na\n\n</details>",
    ],
)
def test_a_fold_that_is_not_understood_stops_it(text):
    with pytest.raises(ValueError, match="given a fold within a fold"):
        classroom.without_answers(text)


def test_links_of_solutions_lead_to_the_notebooks_above():
    links = "[a](#b) [c](07-d.ipynb#e) [f](../experiments/g.py) [h](https://i)"
    assert classroom.led_up(links, "06-a.ipynb") == (
        "[a](../06-a.ipynb#b) [c](../07-d.ipynb#e) [f](../../experiments/g.py) [h](https://i)"
    )


def test_what_is_handed_out_has_the_package_and_no_solutions(notebook, tmp_path):
    derived, target = tmp_path / "derived", tmp_path / "class"
    derived.mkdir()
    nbformat.write(notebook, derived / "06-a.ipynb")
    (derived / "a.whl").write_text("wheel")
    (target / "solutions").mkdir(parents=True)
    (target / "solutions/05-gone.ipynb").touch()  # of an older book
    classroom.write(derived, target)
    with zipfile.ZipFile(target / classroom.HANDED_OUT) as archive:
        assert archive.namelist() == ["class/06-a.ipynb", "class/a.whl"]
        given = nbformat.reads(archive.read("class/06-a.ipynb").decode(), as_version=4)
    assert "forty-two" not in text(given) and "What is it?" in text(given)
    assert [path.name for path in (target / "solutions").iterdir()] == ["06-a.ipynb"]


def scopes(table):
    """A table of symbols and those within it."""
    yield table
    for inner in table.get_children():
        yield from scopes(inner)


def stored(source):
    """Names that code gives to what it makes, outside of functions."""
    symbols = symtable.symtable(source, "code", "exec").get_symbols()
    return {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}


def loaded(source):
    """Names that code looks up outside of functions, be it from within one."""
    top, *inner = scopes(symtable.symtable(source, "code", "exec"))
    found = {one.get_name() for one in top.get_symbols() if one.is_referenced()}
    return found | {
        one.get_name() for table in inner for one in table.get_symbols() if one.is_global()
    }


def code_of(text):
    """The code of a page's source, or of a part of it."""
    cells = jupytext.reads(text, fmt="md:myst").cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def needed_of_solutions(text):
    """Names that code of a chapter loads and only its solutions store."""
    solved = "\n".join(code_of(part[0]) for part in SOLVED.finditer(text))
    left = code_of(SOLVED.sub("", text))
    return (stored(solved) - stored(left)) & loaded(left)


@pytest.mark.parametrize("path", [path for path in pages() if has_code(path)], ids=str)
def test_a_chapter_runs_without_its_solutions(path):
    assert needed_of_solutions((ROOT / path).read_text()) == set()


def test_what_a_solution_alone_defines_is_found():
    block = "```{code-cell} ipython3\n%s\n```\n"
    text = "```{solution-start} ex-a\n```\n" + block % "answer = 42" + "```{solution-end}\n```\n"
    assert needed_of_solutions(text + block % "print(answer)") == {"answer"}
