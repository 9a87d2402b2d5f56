"""Pages become Markdown that Jupyter, GitHub, VS Code and Colab read alike."""

from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.core import publish_doctree
from page_pieces import Code, Still, Text, pieces
from plain_markdown import Page, block, inline
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

NUMBERS = {"figure": {"fig-a": (6, 2)}, "exercise": {"ex-a": (6, 1)}}
BUILDER = SimpleNamespace(
    fignumbers={**NUMBERS, "displaymath": {"equation-eq": (6, 3)}},
    config=SimpleNamespace(math_numfig=True, math_numsep=".", numfig=True),
    name="html",
)
PAGE = Page(
    "flat-bnn",
    {"ex-a", "fig-a", "equation-eq", "label"},
    lambda address, text: f"[{text}]({address})",
    BUILDER,
)


def markdown(text):
    """The Markdown of a piece of reStructuredText, block by block."""
    return "\n\n".join(block(node, PAGE) for node in publish_doctree(text).children)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a*b_c", r"a\*b_c"),  # an underscore within a word is one
        ("_c and d_", r"\_c and d\_"),
        ("p < q, [1] and ~x", r"p \< q, [1] and \~x"),
        ("costs $5 or $6", "costs <span>$</span>5 or <span>$</span>6"),  # no formula between them
        ("`", r"\`"),
    ],
)
def test_signs_mean_themselves(text, expected):
    assert inline(nodes.Text(text), PAGE) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("First\nand second.", "First and second."),
        ("*slanted*, **bold**, ``a`` and ``b`c``", "*slanted*, **bold**, `a` and `` b`c ``"),
        ("#. one\n#. two\n\n   - below", "1. one\n2. two\n   \n   - below"),
        (".. note::\n\n   Said.\n\n   Twice.", "> **Note**\n>\n> Said.\n>\n> Twice."),
        ("Term\n  Meaning.", "**Term**\n\nMeaning."),
    ],
)
def test_blocks(text, expected):
    tree = publish_doctree(text)
    for note in tree.findall(nodes.note):  # Sphinx gives them titles
        admonition = nodes.admonition("", nodes.title("", "Note"), *note.children)
        note.parent.replace(note, admonition)
    found = "\n\n".join(block(node, PAGE) for node in tree.children)
    assert [line.rstrip() for line in found.splitlines()] == [
        line.rstrip() for line in expected.splitlines()
    ]


@pytest.mark.parametrize(
    ("text", "expected"), [("1. is", r"1\. is"), ("# of rows", r"\# of rows"), ("- 3", r"\- 3")]
)
def test_a_line_begins_as_no_list_or_heading(text, expected):
    assert block(nodes.paragraph("", text), PAGE) == expected


def test_a_table_keeps_its_columns():
    """A stroke in a formula or a word is no end of a cell; the right side stays right."""
    tree = nodes.table("", nodes.tgroup("", nodes.thead(), nodes.tbody(), cols=2))
    cells = [["a|b", "n"], [nodes.math("|x|", "|x|"), "1"]]
    for part, contents in zip(tree[0].children, cells, strict=True):
        entries = [
            nodes.entry(
                "", nodes.paragraph("", "", c if isinstance(c, nodes.Node) else nodes.Text(c))
            )
            for c in contents
        ]
        entries[1]["classes"] = ["text-right"]
        part += nodes.row("", *entries)
    assert block(tree, PAGE).splitlines() == [
        r"| a\|b | n |",
        "| --- | ---: |",
        r"| $\vert x\vert $ | 1 |",
    ]


def test_formulas_have_their_numbers_and_lines():
    one = nodes.math_block("a", "a = b", number=1, ids=["equation-eq"], label="eq")
    assert block(one, PAGE) == '<a id="equation-eq"></a>\n\n$$\na = b \\tag{6.3}\n$$'
    two = nodes.math_block("a", r"a &= b \\ c &= d", number=None)
    assert block(two, PAGE) == "$$\n\\begin{split}\na &= b \\\\ c &= d\n\\end{split}\n$$"


def test_code_with_fences_is_fenced():
    code = nodes.literal_block("", "```\nx\n```", language="python3")
    assert block(code, PAGE) == "````python\n```\nx\n```\n````"


def test_choices_of_a_quiz_stay_folded_and_other_tags_are_left_out():
    tags = "<details>\n<summary>a < b</summary>"
    parts = [nodes.raw("", text, format="html") for text in (tags, "<div>x</div>", "</details>\n")]
    found = [one.markdown for part in parts for one in pieces(part, PAGE)]
    assert found == [tags, "</details>"]


def test_an_exercise_and_its_solution_with_code_in_it():
    """What the solution says is folded, before and after its code, and the code stays folded."""
    cell = nodes.container(nb_element="cell_code", cell_index=7)
    answer = nodes.section(
        "", nodes.paragraph("", "Run it."), cell, nodes.paragraph("", "Two & three.")
    )
    solution = solution_node(
        "", nodes.title("", "Solution"), answer, title="Solution to Exercise 6.1 <a>", ids=["s"]
    )
    question = nodes.section("", nodes.paragraph("", "Why?"))
    exercise = exercise_enumerable_node(
        "", nodes.title("", "", title="Exercise %s"), question, ids=["ex-a"]
    )
    assert list(pieces(exercise, PAGE)) == [
        Text('<a id="ex-a"></a>\n\n**Exercise 6.1**\n\nWhy?', begins=True)
    ]
    before, code, after = pieces(solution, PAGE)
    assert code == Code(7, "Solution to Exercise 6.1 <a>") and before.begins and after.begins
    assert before.markdown.startswith(
        "<details><summary>Solution to Exercise 6.1 &lt;a&gt;</summary>\n\nRun it.\n\n"
    )
    assert "Two & three." in after.markdown and after.markdown.endswith("</details>")


def test_a_playground_is_its_still_picture():
    html = (
        '<div class="playground"><img src="../_static/playground/curve.svg" alt="A curve."></div>'
    )
    assert list(pieces(nodes.raw("", html, format="html"), PAGE)) == [Still("curve", "A curve.")]


def test_links_to_files_lead_out_of_the_folder_of_notebooks():
    link = addnodes.download_reference(
        "", "", nodes.literal("", "run.py"), reftarget="../experiments/a/run.py"
    )
    assert inline(link, PAGE) == "[`run.py`](../experiments/a/run.py)"


def test_what_has_no_markdown_stops_the_build():
    with pytest.raises(ExtensionError, match="footnote_reference has no Markdown"):
        markdown("A note [#]_.\n\n.. [#] Below.")
