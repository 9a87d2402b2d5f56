"""What the page for teachers says of chapters and tables is what they say and hold."""

import re

import execute
import pandas as pd
import pytest
import yaml
from chapters import ROOT
from sklearn.datasets import load_diabetes, load_digits
from statsmodels import datasets

from experiments.problems import health, public_tables

TEXT = (ROOT / "book/for-instructors.md").read_text()
COURSE = [
    entry["file"]
    for part in yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    if part["caption"] == "Start" or part["caption"].startswith("The course")
    for entry in part["chapters"]
]
ROW = r"^\| \{ref\}`([\w-]+)` \| ([\w ]+) \| ([\w ]+) \| (\d+) \|"
TIMES = {name: row for name, *row in re.findall(ROW, TEXT, flags=re.M)}
STATED = r"^\*(\d+) minutes to read(?: and run)?, (\d+) more for the exercises"


def source(name):
    """The name of a chapter, and its text, by the label at its top."""
    for file in COURSE:
        text = (ROOT / file).read_text()
        if re.search(rf"^\({re.escape(name)}\)=\n# ", text, flags=re.M):
            return file.removeprefix("book/").removesuffix(".md"), text
    raise LookupError(name)


def section(heading, level):
    """The text below a heading, as far as the next of its level."""
    return re.split(rf"^#{{2,{level}}} ", TEXT.split(f"\n{heading}\n")[1], flags=re.M)[0]


@pytest.mark.parametrize("name", TIMES)
def test_minutes_are_those_of_the_chapter_or_called_a_guess(name):
    file, text = source(name)
    read, exercises, seconds = TIMES[name]
    said = re.search(STATED, text, flags=re.M)
    if said:
        assert (read, exercises) == said.groups()
    else:
        assert read.startswith("about ") and exercises.startswith("about ")
    assert int(seconds) == execute.SECONDS[file]


def test_most_chapters_say_their_minutes():
    said = [name for name in TIMES if re.search(STATED, source(name)[1], flags=re.M)]
    assert len(said) >= 7 and len(TIMES) >= 12


@pytest.mark.parametrize("file", [file for file in COURSE if "playground" not in file])
def test_every_chapter_of_the_course_has_its_minutes_its_week_and_its_question(file):
    label, title = re.search(
        r"^\(([\w-]+)\)=\n# (.*)$", (ROOT / file).read_text(), flags=re.M
    ).groups()
    names = f"{{ref}}`{label}`", f"*{title}*", f"*{title.split(':')[0]}*"
    for heading in ("## How long each chapter takes", "## A term of twelve weeks"):
        assert any(name in section(heading, 2) for name in names), (file, heading)
    assert any(name in section("## A question to open each session with", 2) for name in names)


def test_the_weeks_and_the_minutes_add_up():
    weeks = re.findall(r"^\| (\d+) \|", section("## A term of twelve weeks", 2), flags=re.M)
    assert weeks == [str(week) for week in range(1, 13)]
    hours = section("## Two hours: what a posterior is, and when to doubt it", 2)
    assert sum(map(int, re.findall(r"^\| (\d+) \|", hours, flags=re.M))) == 120
    day = section("## A day: from one network to many tasks", 2)
    times = re.findall(r"^\| (\d+)\.(\d\d) \| (\d+) \|", day, flags=re.M)
    begins = [60 * int(hour) + int(minute) for hour, minute, _ in times]
    ends = [begin + int(minutes) for begin, (*_, minutes) in zip(begins, times, strict=True)]
    assert len(times) == 8 and all(
        end <= begin for end, begin in zip(ends[:-1], begins[1:], strict=True)
    )


def shapes():
    """The rows and columns of each table, by words with which its card names them."""
    loaded = {name: getattr(datasets, name).load_pandas().data for name in ("spector", "grunfeld")}
    smoking, births, affairs, pupils = (
        getattr(datasets, name).load_pandas().data
        for name in ("china_smoking", "fertility", "fair", "star98")
    )
    tables = {
        name: pd.read_csv(ROOT / f"tests/tables/{name}.csv", index_col=0)
        for name in ("sleepstudy", "grouseticks", "Penicillin", "cbpp")
    }
    raw = health.load().drop(columns=["family", "cell"])
    return [
        ("Diabetes", load_diabetes().data.shape),
        ("Digits", load_digits().data.shape),
        ("RAND health insurance", raw.shape),
        ("Grades", loaded["spector"].shape),
        ("Firms", loaded["grunfeld"].shape),
        ("Smoking in eight cities", smoking.shape),
        *(("Births, affairs, pupils", table.shape) for table in (births, affairs, pupils)),
        *(("Sleep and ticks", tables[name].shape) for name in ("sleepstudy", "grouseticks")),
        *(("Penicillin and cattle", tables[name].shape) for name in ("Penicillin", "cbpp")),
    ]


def test_cards_count_rows_and_columns_as_they_are():
    for card, (rows, columns) in shapes():
        text = section(f"### {card}", 3)
        assert re.search(rf"\b{rows} rows(?:,| and) {columns} columns", text), (card, rows, columns)
    assert len(public_tables.TABLES) == 6


def test_every_card_says_all_that_a_card_says():
    cards = re.findall(r"^### (.*)$", TEXT.split("\n## Cards of the data sets\n")[1], flags=re.M)
    assert len(cards) >= 14
    for card in cards:
        text = section(f"### {card}", 3)
        for part in ("- *What*: ", "- *From*: ", "- *Good for*: ", "*Trap*: ", "- *Used*: "):
            assert text.count(part) == 1, (card, part)
