"""Tables have numbers right and words left; folded cells that touch are one."""

import re

import pandas as pd
import pytest
from book_markup import align, is_number, join_folded


@pytest.mark.parametrize(
    "text",
    [
        "0.31",
        "-1",
        "+0.31 ± 0.02",
        "−0.2",
        "12 of 60",
        "1 to 3",
        "5 (3 to 9)",
        "1.2 million",
        "0.1 / 0.2 / 3",
        "7 %",
    ],
)
def test_numbers(text):
    assert is_number(text)


@pytest.mark.parametrize(
    "text", ["", "mixed model", "N(0, 1)", "not measured", "5 groups", "to", "–"]
)
def test_no_numbers(text):
    assert not is_number(text)


def test_columns_of_words_and_what_is_said_of_no_number():
    frame = pd.DataFrame(
        {"method": ["mixed model", "5 groups"], "NLL": ["0.3 ± 0.1", "not measured"]}, ["A", "C"]
    )
    table = align(re.match(r"(?s).*", frame.to_html()))
    classes = re.findall(r'<t[dh][^>]*?(?: class="(\w+)")?>([^<]*)</t', table)
    head, one, other = (
        [("", ""), ("words", "method"), ("", "NLL")],
        [("", "A"), ("words", "mixed model")],
        [("", "C")],
    )
    one, other = (
        [*one, ("", "0.3 ± 0.1")],
        [*other, ("words", "5 groups"), ("said", "not measured")],
    )
    assert classes == [*head, *one, *other]


def folded(label, output=""):
    """A folded cell as MyST-NB writes it."""
    return (
        '<div class="cell tag_hide-input docutils container">\n'
        '<details class="admonition hide above-input">\n'
        f'<summary>\n<p class="collapsed admonition-title">{label}</p>\n'
        '<p class="expanded admonition-title">Hide</p>\n'
        f'</summary>\n<div class="cell_input">{label[-1]}</div>\n</details>\n{output}</div>\n'
    )


def test_folded_cells_that_touch_are_one():
    body = (
        folded("code: of a")
        + folded("code of the figure: of b", "<p>out</p>\n")
        + "<p>Text.</p>\n"
        + folded("code: of c")
    )
    found = join_folded(body)
    assert re.findall('collapsed admonition-title">(.*?)</p>', found) == [
        "code: of a; figure: of b",
        "code: of c",
    ]
    assert found.count("<details") == found.count("</details>") == 2
    assert found.count("<div") == found.count("</div>") and "\0" not in found
    assert re.findall('cell_input">(.)<', found) == ["a", "b", "c"] and found.index(
        ">b<"
    ) < found.index("out")


def test_a_cell_with_an_output_ends_a_run():
    body = folded("code: of a", "<p>out</p>\n") + folded("code: of b")
    assert join_folded(body) == body
