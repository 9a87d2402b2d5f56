"""What a chapter of the course has, by count: its first screen, its length, its look back.

A rule is a function from a page to what it lacks; `COURSE` holds the chapters that have been
written to this form.
"""

import re

import pytest
from chapters import ROOT

from tests.test_book_rules import directives, read

COURSE = (
    "regression",
    "data",
    "flat-bnn",
    "choosing-the-prior",
    "from-one-fit",
    "svi",
    "sgmcmc",
    "how-good",
    "hierarchical-bnn",
    "where-the-gain",
    "informative-priors",
    "your-table",
)
BACK = "\n## Looking back\n"
# Of what a reader sees: what is folded is not counted, answers neither.
MOST = {"words": 3000, "words in the look back": 700, "cells": 35, "figures": 5, "tables": 3}
CODE = "```{code-cell} ipython3\n%s\n```\n"


def visible(text):
    """The text without solutions, folded admonitions and the answers of a quiz."""
    for hidden in (
        r"\A---\n.*?^---\n",
        r"^```\{solution-start\}.*?^```\{solution-end\}",
        r"^(`{3,})\{[^\n]*\n:class: dropdown\n.*?^\1$",
        r"</summary>.*?</details>",
    ):
        text = re.sub(hidden, "", text, flags=re.S | re.M)
    return read(text)


def words(page):
    """Words of prose and of the cells that show."""
    prose = re.sub(r"^(?:`{3,}|:{3,}|:[\w-]+:|\([\w-]+\)=).*$", "", page.prose, flags=re.M)
    return len(re.findall(r"\S*\w\S*", prose + "\n".join(page.shown)))


def counts(text):
    """What `MOST` limits."""
    before, _, back = text.partition(BACK)
    page = visible(before)
    frames = sum(
        re.search(r"^pd\.DataFrame|^table\b", s, flags=re.M) is not None for s in page.cells
    )
    return {
        "words": words(page),
        "words in the look back": words(visible(back)),
        "cells": len(page.shown),
        "figures": len([*directives(before, "glue:figure")]),
        "tables": frames + len(re.findall(r"^\|[-|: ]+\|$", page.prose, flags=re.M)),
    }


def lacks(text):
    """Yield what a chapter lacks, or has too much of."""
    for what, count in counts(text).items():
        if count > MOST[what]:
            yield f"{count} {what}, more than {MOST[what]}"
    before, _, back = text.partition(BACK)
    first, *_ = before.split("```{code-cell}")
    for what, pattern in (
        ("question to the reader", r"^\*\*[^*]+\?\*\*$"),
        ("figure", r"^```\{glue:figure\}"),
        (
            "list of what one can do afterwards",
            r"^```\{admonition\} After this chapter you can\n(- .*\n){3}",
        ),
        ("number of minutes", r"\d+ minutes to read"),
    ):
        if not re.search(pattern, first, flags=re.M):
            yield f"no {what} before the first cell"
    if before.count("```{admonition} Before you look\n:class: tip\n") < 3:
        yield "fewer than three predictions"
    sentences, _, quiz = back.partition("\n### Quiz\n")
    if len(re.findall(r"^\d\. ", sentences, flags=re.M)) != 5:
        yield "not five sentences to remember"
    yield from unlike_a_quiz(quiz.partition("\n### Exercises\n")[0])
    said = re.search(r"(\d+) more for the exercises", first)
    asked = [
        int(minutes) for minutes in re.findall(r"^\*[^*]+, (\d+) minutes\.\*", back, flags=re.M)
    ]
    if said and int(said[1]) != sum(asked):
        yield f"{said[1]} minutes said for exercises of {sum(asked)}"
    if len([*directives(back, "exercise")]) < 3 or "### Where the evidence stands" not in back:
        yield "no three exercises, or no word on the evidence"


def unlike_a_quiz(text):
    """Yield what is wrong with five questions of three choices, one of them right."""
    questions = re.split(r"^\*\*\d\. ", text, flags=re.M)[1:]
    if len(questions) != 5:
        yield f"{len(questions)} questions and not five"
    for number, question in enumerate(questions, 1):
        answers = re.findall(
            r"^<summary>[^\n]+</summary>\n\n(.+?)\n\n^</details>", question, flags=re.S | re.M
        )
        if len(answers) != 3 or question.count("<details>") != 3:
            yield f"question {number}: {len(answers)} choices and not three"
        if sum(answer.startswith("Right") for answer in answers) != 1:
            yield f"question {number}: not one right choice"
        if not all(
            "{ref}" in answer or "{numref}" in answer or "{eq}" in answer for answer in answers
        ):
            yield f"question {number}: an answer that does not say where to look"


@pytest.mark.parametrize("name", COURSE)
def test_chapter_has_the_form_of_the_course(name):
    assert [*lacks((ROOT / f"book/{name}.md").read_text())] == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("\n(svi-slope)=", "\nword " * 3001 + "\n(svi-slope)=", "words, more than 3000"),
        ("\n(svi-slope)=", "\n" + (CODE % "1") * 36 + "\n(svi-slope)=", "cells, more than 35"),
        (BACK, BACK + "word " * 701, "words in the look back"),
        ("May you use that band?**", "May you use that band.**", "no question to the reader"),
        ("Right. One equation", "No. One equation", "question 1: not one right choice"),
        ("### Quiz\n", "6. One more.\n\n### Quiz\n", "not five sentences"),
    ],
)
def test_a_chapter_that_is_not_of_that_form_is_told(old, new, complaint):
    text = (ROOT / "book/svi.md").read_text()
    assert old in text
    assert any(complaint in one for one in lacks(text.replace(old, new, 1)))
