"""Notebooks to teach with, from those of the site: for students without outputs, solutions and
answers, and the solutions apart.

    python tools/classroom.py

``_build/class`` then has a notebook of every page, the package's wheel, ``solutions/`` and
``slides/`` (``decks``); ``students.zip`` has the first two, to hand out. A number in a sentence
stays: what computes it prints nothing, so a student would have nothing to find it by.
"""

import re
import shutil
import zipfile
from pathlib import Path

import decks
import nbformat
from chapters import ROOT
from nbconvert.preprocessors import ClearOutputPreprocessor
from nbformat.v4 import new_markdown_cell
from sources import EARLIEST, FOLDER

TARGET = ROOT / "_build/class"
HANDED_OUT = "students.zip"
SOLUTION = "Solution to "
# `plain_markdown` writes the two kinds of fold: of a quiz with its tags on two lines, others on one
CHOICE = r"<details>\n<summary>(?P<choice>[^\n]*)</summary>\n\n(?P<verdict>.*?)\n\n</details>"
FOLD = r"<details><summary>(?P<title>[^\n]*)</summary>\n\n(?P<text>.*?)\n\n</details>"
PLACE = r"^(?P<place>#+ [^\n]*)$"
ASKED = r"^(?P<asked>\*\*\d+\. [^\n]*\*\*|> \*\*Question\*\*(?:\n>[^\n]*)*)$"
EXERCISE = r'(?:<a id="[^"]*"></a>\s*)*\*\*Exercise '
SELF_TEST = r"\d+\. .*\?"
ABOUT = """\
# Solutions: {title}

For teachers: what the students' notebook leaves out, with the outputs of the website's run.
Code of a solution needs the code of [its chapter](../{file}) before it."""


def is_answer(title: str) -> bool:
    """Return whether a fold of this title holds what a student is to find; others are asides."""
    return title.startswith(SOLUTION) or title == "Answer" or bool(re.fullmatch(SELF_TEST, title))


def is_solution(cell: nbformat.NotebookNode) -> bool:
    """Return whether a code cell is a part of a solution."""
    return cell.cell_type == "code" and cell.source.startswith(f"# {SOLUTION}")


def without_answers(text: str) -> str:
    """Return the Markdown of a cell with the questions and choices that it has, and no answer.

    ValueError: a fold is left whose end was not found, such as one within another.
    """

    def question(fold):
        if not is_answer(fold["title"]):
            return fold[0]
        return f"**{fold['title']}**" if re.fullmatch(SELF_TEST, fold["title"]) else ""

    text = re.sub(CHOICE, lambda fold: f"- {fold['choice']}", text, flags=re.S)
    text = re.sub(FOLD, question, text, flags=re.S)
    asides = [fold["title"] for fold in re.finditer(FOLD, text, flags=re.S)]
    tags = len(re.findall(r"</?(?:details|summary)\b", text))
    if tags != 4 * len(asides) or any(map(is_answer, asides)):
        raise ValueError(f"given a fold within a fold, expected one after the other: {text!r}")
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def for_students(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a notebook of the site without outputs, solutions and answers."""
    cells = []
    for cell in nbformat.from_dict(notebook).cells:
        if cell.cell_type == "code" and not is_solution(cell):
            cells.append(cell)
        elif cell.cell_type == "markdown" and (asked := without_answers(cell.source)):
            cell.source = asked
            cells.append(cell)
    cleared = nbformat.from_dict({**notebook, "cells": cells})
    return ClearOutputPreprocessor().preprocess(cleared, {})[0]


def answers(text: str, place: str, asked: str) -> tuple[list[str], str, str]:
    """Return the answers of a Markdown cell, each below its heading and question if these have
    not been said, and what the next cell's are below.
    """
    found = []
    pattern = "|".join((CHOICE, FOLD, PLACE, ASKED))
    for part in re.finditer(pattern, text, flags=re.S | re.M):
        if part["place"]:
            place, asked = f"## {part['place'].lstrip('# ')}", ""
        elif part["asked"]:
            asked = part["asked"]
        elif part["choice"] or is_answer(part["title"]):
            found += [line for line in (place, asked) if line]
            place = asked = ""
            if part["choice"]:
                found.append(f"- **{part['choice']}** {part['verdict']}")
            else:
                found.append(f"**{part['title']}**\n\n{part['text']}")
    return found, place, asked


def led_up(text: str, file: str) -> str:
    """Return Markdown whose links lead to the notebooks one folder higher."""
    text = re.sub(r"\]\((#|\.\./|\d\d-)", r"](../\1", text)
    return text.replace("](../#", f"](../{file}#")


def solutions(notebook: nbformat.NotebookNode, file: str) -> nbformat.NotebookNode | None:
    """Return the solutions of a notebook of the site and its answers, each with its question; None
    where there are none. ``file`` is the notebook's name, to which links lead.
    """
    cells, place, asked, title = [], "", "", ""
    for cell in nbformat.from_dict(notebook).cells:
        if is_solution(cell):
            cell.metadata.pop("jupyter", None)  # nothing is folded here
            cells.append(cell)
        elif cell.cell_type == "markdown":
            if re.match(EXERCISE, cell.source):
                cells.append(new_markdown_cell(led_up(without_answers(cell.source), file)))
            heading = re.search(r"^# (.*)$", cell.source, flags=re.M)
            title = title or (heading[1] if heading else "")
            found, place, asked = answers(cell.source, place, asked)
            if found:
                cells.append(new_markdown_cell(led_up("\n\n".join(found), file)))
    if not cells:
        return None
    cells.insert(0, new_markdown_cell(ABOUT.format(title=title, file=file)))
    for number, cell in enumerate(cells):
        cell["id"] = f"solution-{number}"
    return nbformat.from_dict({**notebook, "cells": cells})


def write(derived: Path, target: Path) -> None:
    """Write both notebooks of each that lies in ``derived``, and what is to be handed out."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "solutions").mkdir(parents=True)
    for path in sorted(derived.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        nbformat.write(for_students(notebook), target / path.name)
        if solved := solutions(notebook, path.name):
            nbformat.write(solved, target / "solutions" / path.name)
    for wheel in derived.glob("*.whl"):
        shutil.copy(wheel, target)
    files = sorted(path for path in target.iterdir() if path.is_file())
    with zipfile.ZipFile(target / HANDED_OUT, "w") as archive:
        for file in files:
            about = zipfile.ZipInfo(f"class/{file.name}", EARLIEST)
            about.external_attr = 0o644 << 16
            archive.writestr(about, file.read_bytes(), zipfile.ZIP_DEFLATED)


def main() -> None:
    """Write them from the site that was built here, and say what is for whom."""
    write(ROOT / "_build/html" / FOLDER, TARGET)
    decks.write(decks.SITE, TARGET / "slides")
    place = TARGET.relative_to(ROOT)
    print(f"for students: {place}/{HANDED_OUT}\nfor you: {place}/solutions, {place}/slides")


if __name__ == "__main__":
    main()
