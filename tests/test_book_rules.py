"""Static rules of the book: what a pattern can tell about every page, without executing it.

A rule is a function from a `Page` to the places that break it; ``BAD`` holds, for each, pages that
do.
"""

import ast
import re
import statistics
import subprocess
import sys
from typing import NamedTuple

import jupytext
import pytest
from chapters import ROOT, pages

FENCE = r"^(?P<fence>`{3,}|:{3,})\{%s\}(?P<argument>[^\n]*)\n(?P<body>.*?)^(?P=fence)[ ]*$"


class Page(NamedTuple):
    """A page's text, the text outside its cells; of these the sources, tags, those seen unfolded,
    and labels.
    """

    text: str
    prose: str
    cells: list[str]
    tags: list[set[str]]
    shown: list[str]
    labels: list[str]

    @property
    def code(self):
        """The sources of all cells as one text."""
        return "\n".join(self.cells)


def read(text):
    """Parse a page as Jupytext does."""
    cells = [cell for cell in jupytext.reads(text, fmt="md:myst").cells if cell.cell_type == "code"]
    prose = re.sub(
        FENCE % "code-cell", lambda match: "\n" * match[0].count("\n"), text, flags=re.S | re.M
    )
    tags = [{*cell.metadata.get("tags", [])} for cell in cells]
    return Page(
        text,
        prose,
        [cell.source for cell in cells],
        tags,
        [
            cell.source
            for cell, of in zip(cells, tags, strict=True)
            if not {"hide-input", "remove-cell"} & of
        ],
        [cell.metadata.get("mystnb", {}).get("code_prompt_show", "") for cell in cells],
    )


def directives(text, name):
    """Yield (position, argument, options, content) of each directive ``name``."""
    for match in re.finditer(FENCE % name, text, flags=re.S | re.M):
        options = dict(re.findall(r"^:([\w-]+):[ ]*(.*)$", match["body"], flags=re.M))
        content = re.sub(r"^:[\w-]+:.*\n", "", match["body"], flags=re.M).strip()
        yield match.start(), match["argument"].strip(), options, content


def length(source):
    """Lines of a cell that are not blank."""
    return sum(bool(line.strip()) for line in source.splitlines())


def cells_are_short(page):
    """No cell over 30 lines, and half of those that a reader sees unfolded no longer than 6."""
    yield from (f"a cell of {length(s)} lines: {s[:40]!r}" for s in page.cells if length(s) > 30)
    if page.shown and (median := statistics.median(map(length, page.shown))) > 6:
        yield f"the median cell has {median} lines, more than 6"


def folded_cells_say_what_they_are(page):
    """What is folded has a label of its own, on the page and as the first line in the notebook."""
    folded = [
        label for label, tags in zip(page.labels, page.tags, strict=True) if "hide-input" in tags
    ]
    for label in folded:
        if (
            not re.fullmatch(r"code(?: of the (?:figure|check))?: \S.{4,50}", label)
            or folded.count(label) > 1
        ):
            yield f"a folded cell with the label {label!r}"


def can_be_finished(page):
    """No more than 3000 words of prose, 5000 with the cells that show, and 45 of those; nothing
    folded is counted, nor the look back, of which ``test_course`` counts the words.
    """
    unfolded = re.sub(r"\A---\n.*?^---\n", "", page.text, flags=re.S | re.M)
    unfolded = re.sub(
        r"^```\{solution-start\}.*?^```\{solution-end\}", "", unfolded, flags=re.S | re.M
    )
    unfolded, *_ = unfolded.split("\n## Looking back\n")
    unfolded = read(
        re.sub(r"^(`{3,})\{[^\n]*\n:class: dropdown\n.*?^\1$", "", unfolded, flags=re.S | re.M)
    )
    text = re.sub(r"^(?:`{3,}|:{3,}|:[\w-]+:|\([\w-]+\)=).*$", "", unfolded.prose, flags=re.M)
    prose, *code = (len(re.findall(r"\S*\w\S*", part)) for part in (text, *unfolded.shown))
    for count, most, what in (
        (prose, 3000, "words of prose"),
        (prose + sum(code), 5000, "visible words"),
    ):
        if count > most:
            yield f"{count} {what}, more than {most}"
    if len(code) > 45:
        yield f"{len(code)} cells that show, more than 45"


def figures_are_glued(page):
    """A cell that draws glues its figure, so that caption and alt text can change without executing
    it.
    """
    for source in page.cells:
        if "plt.subplots" in source and "glue(" not in source:
            yield f"a figure that is not glued: {source[:40]!r}"
        if "glue(" in source and re.search(r"\bfig\b", source) and "plt.close(" not in source:
            yield f"a glued figure that is not closed: {source[:40]!r}"


def figures_speak(page):
    """A glued figure has a name, a caption, an alt text of its own, and is cited before it
    appears.
    """
    for position, argument, options, caption in directives(page.prose, "glue:figure"):
        name, alt = options.get("name", ""), options.get("alt", "")
        if not name:
            yield f"{argument}: no :name:"
        elif not re.search(rf"\{{numref\}}`(?:[^`]*<)?{re.escape(name)}>?`", page.prose[:position]):
            yield f"{argument}: not cited by {{numref}} before it appears"
        if len(alt) < 40:
            yield f"{argument}: an alt text of {len(alt)} characters, fewer than 40"
        if not caption:
            yield f"{argument}: no caption"
        if alt and alt.rstrip(".") in " ".join(caption.split()):
            yield f"{argument}: the alt text repeats the caption"


def glued_keys_exist(page):
    """A key that the text shows is a string of the page's code; of an f-string, the constant parts
    must fit.
    """
    made = []
    for f, string in re.findall(r"(f?)\"([^\"\n]*)\"", page.code):
        if not f or len(re.sub(r"\{.*?\}", "", string)) >= 2:
            made.append(re.sub(r"\\\{.*?\\\}", ".+", re.escape(string)) if f else re.escape(string))
    used = [argument for _, argument, _, _ in directives(page.prose, "glue:figure")]
    used += re.findall(r"\{glue:text\}`([^`]+)`", page.prose)
    yield from (
        f"{key}: not glued" for key in used if not any(re.fullmatch(one, key) for one in made)
    )


def pictures_speak(page):
    """A picture from a file has an alt text too."""
    yield from (
        f"{m[0]}: an alt text under 40 characters"
        for m in re.finditer(r"!\[(.{0,39})\]\(", page.prose)
    )
    for name in ("image", "figure"):
        for _, argument, options, _ in directives(page.prose, name):
            if len(options.get("alt", "")) < 40:
                yield f"{argument}: an alt text under 40 characters"


def every_cell_runs(page):
    """No cell is skipped, and none is allowed to fail."""
    yield from sorted({"skip-execution", "raises-exception"} & set().union(*page.tags))


def helpers_come_first(page):
    """`helpers` is imported before BlackJAX, whose import starts JAX: after that XLA's flags are
    ignored.
    """
    before = re.split(r"^(?:from|import) helpers\b", page.code, maxsplit=1, flags=re.M)[0]
    if re.search(
        r"^\s*(?:from|import) (?:blackjax|jax\.extend)\b|jax\.devices\(", before, flags=re.M
    ):
        yield "JAX is started before helpers is imported"


def header_names_the_kernel(page):
    """A page with cells has the header without which MyST-NB would not execute them."""
    header = re.match(r"---\n.*?\n---\n", page.text, flags=re.S)
    if "{code-cell}" in page.text and not (
        header and "format_name: myst" in header[0] and "name: python3" in header[0]
    ):
        yield "no header with jupytext's format and the kernel python3"


def nothing_needed_is_removed(page):
    """No cell that a reader can see uses a name that only removed cells define."""
    removed, elsewhere = set(), set()
    for source, tags in zip(page.cells, page.tags, strict=True):
        nodes = list(ast.walk(ast.parse(source)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        stored |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        stored |= {
            (alias.asname or alias.name).split(".")[0]
            for alias in nodes
            if isinstance(alias, ast.alias)
        }
        if "remove-cell" in tags:
            removed |= stored - elsewhere
            continue
        own = stored | {node.arg for node in nodes if isinstance(node, ast.arg)}
        if "remove-input" not in tags:
            yield from (
                f"{node.id}, of a removed cell" for node in names if node.id in removed - own
            )
        elsewhere |= stored
        removed -= stored


def one_seed(page):
    """One literal seed a page, from which every key is split; what repeats a stored result reads
    its seed there.
    """
    seeds = re.findall(r"random\.(?:key|PRNGKey)\(\d", page.code)
    if len(seeds) > 1:
        yield f"{len(seeds)} seeds"
    if "PRNGKey(" in page.code:
        yield "jax.random.PRNGKey, where jax.random.key is meant"


def assertions_compare(page):
    """Both sides of an assertion can be written down; no R-hat is held to a number set by hand."""
    for source in page.cells:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Assert) and not any(
                # a verdict has a margin, which is written down
                isinstance(part, ast.Compare) or getattr(part, "attr", "") == "ok"
                for part in ast.walk(node.test)
            ):
                yield f"an assertion that compares nothing: {ast.unparse(node)!r}"
    yield from (
        f"a bound set by hand: {m[0]!r}"
        for m in re.finditer(r"assert [^\n]*rhat\w* *<=? *1\.\d+", page.code)
    )


def exercises_are_solved(page):
    """Every exercise has a label and a folded solution."""
    asked = [
        options.get("label") for _, _, options, _ in directives(page.prose, "exercise(?:-start)?")
    ]
    solved = {
        argument: options
        for _, argument, options, _ in directives(page.prose, "solution(?:-start)?")
    }
    if None in asked:
        yield "an exercise without a label"
    yield from (f"{label}: no solution" for label in asked if label and label not in solved)
    yield from (
        f"{label}: not folded"
        for label, options in solved.items()
        if "dropdown" not in options.get("class", "")
    )


PATTERNS = {
    r"date\.today|datetime\.now|time\.time(_ns)?\(\)\)": "a seed from the clock",
    r"np\.random\.(?!default_rng|Generator|SeedSequence)": "numpy's global random state",
    r"default_rng\(\s*\)": "a generator without a seed",
    r"(filterwarnings|simplefilter)\(.ignore": "all warnings silenced",
    r"data:image": "an embedded picture",
    r"file://": "a file address",
    r"(?<![\w./:~])/(home|root|work|tmp|mnt|opt|usr|Users)/": "an absolute path",
    r"\bTODO\b|\bFIXME\b": "unfinished work",
}


def no_known_trap(page):
    """None of ``PATTERNS``."""
    for pattern, what in PATTERNS.items():
        for match in re.finditer(pattern, page.text):
            yield f"line {page.text.count(chr(10), 0, match.start()) + 1}: {what}"


HEADER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

"""


def cell(source, tags=""):
    """A page of one cell."""
    return f"{HEADER}# Title\n\n```{{code-cell}} ipython3\n{tags}{source}\n```\n"


ALT = "Fifty points in two half moons that overlap."


def figure(cited="{numref}`fig-a`", alt=ALT, caption="They overlap.", name="fig-a", glued='"a"'):
    """A page of one glued figure."""
    drawn = f"fig, ax = plt.subplots()\nglue({glued}, fig)\nplt.close(fig)"
    return (
        cell(drawn)
        + f"\nSee {cited}.\n\n```{{glue:figure}} a\n:name: {name}\n:alt: {alt}\n\n{caption}\n```\n"
    )


def exercise(label=":label: ex", solution="ex", fold=":class: dropdown"):
    """A page of one exercise."""
    return (
        f"# Title\n\n```{{exercise-start}}\n{label}\n```\nWhy?\n```{{exercise-end}}\n```\n\n"
        f"```{{solution-start}} {solution}\n{fold}\n```\nSo.\n```{{solution-end}}\n```\n"
    )


GOOD = [
    cell("key = jax.random.key(1)"),
    cell('fig, ax = plt.subplots()\nglue("a", fig)\nplt.close(fig)'),
    figure(),
    figure(cited="{numref}`Figure %s <fig-a>`"),
    exercise(),
    cell("import helpers\n\nimport blackjax\n\nassert (check.rhat <= check.rhat_bound).all()"),
    cell('key = jax.random.key(1)\nother = jax.random.key(settings["seed"])'),
]
BAD = {
    cells_are_short: [cell("\n".join(["x = 1"] * 31)), cell("\n".join(["x = 1"] * 7))],
    folded_cells_say_what_they_are: [
        cell("x = 1", ":tags: [hide-input]\n\n"),
        cell("x = 1", ':tags: [hide-input]\n:mystnb: {"code_prompt_show": "Show code"}\n\n'),
    ],
    can_be_finished: [
        "word " * 3001,
        cell("x = 1\n" * 1200) + "word " * 2900,
        cell("x = 1\n") * 46,
    ],
    figures_are_glued: [
        cell("fig, ax = plt.subplots()"),
        cell('fig, ax = plt.subplots()\nglue("a", fig)'),
    ],
    figures_speak: [
        figure(cited="below"),
        figure(alt="Points."),
        figure(caption=""),
        figure(name=""),
        figure(caption=ALT),
        figure(cited="below") + "{numref}`fig-a`",
    ],
    glued_keys_exist: [
        figure(glued='"b"'),
        figure(glued='f"{key}-ab"'),
        figure(caption="{glue:text}`share` of it."),
    ],
    pictures_speak: [
        "![moons](a.png)",
        "```{image} a.png\n```\n",
        "```{figure} a.png\n:alt: moons\n\nCaption\n```\n",
    ],
    every_cell_runs: [
        cell("x", ":tags: [skip-execution]\n\n"),
        cell("x", ":tags: [raises-exception]\n\n"),
    ],
    helpers_come_first: [
        cell("import blackjax\nfrom helpers import data"),
        cell("from blackjax.base import State"),
    ],
    header_names_the_kernel: [cell("x = 1").removeprefix(HEADER)],
    nothing_needed_is_removed: [
        cell("x = 1", ":tags: [remove-cell]\n\n") + "\n```{code-cell} ipython3\nx\n```\n"
    ],
    one_seed: [
        cell("a = jax.random.key(1)\nb = jax.random.key(2)"),
        cell("a = jax.random.PRNGKey(1)"),
    ],
    assertions_compare: [
        cell("assert verdict.passed.all()"),
        cell("assert check.rhat_predictions <= 1.02"),
    ],
    exercises_are_solved: [exercise(label=""), exercise(solution="other"), exercise(fold="")],
    no_known_trap: [
        "jax.random.key(int(time.time()))",
        "date.today()",
        "np.random.seed(1)",
        "np.random.default_rng()",
        "warnings.filterwarnings('ignore')",
        "warnings.simplefilter('ignore')",
        "![x](data:image/png;base64,00)",
        "file:///x",
        "`/home/me/data.csv`",
        "TODO",
    ],
}


@pytest.mark.parametrize("rule", BAD, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", pages(), ids=str)
def test_page_keeps_rule(path, rule):
    assert list(rule(read((ROOT / path).read_text()))) == []


@pytest.mark.parametrize("rule", BAD, ids=lambda rule: rule.__name__)
def test_rule_can_fail(rule):
    for text in GOOD:
        assert list(rule(read(text))) == []
    for text in BAD[rule]:
        assert list(rule(read(text))), text


def test_pages_are_those_of_the_table_of_contents():
    written = {path.relative_to(ROOT) for path in (ROOT / "book").rglob("*.md")}
    assert written == set(pages())
    assert len(set(pages())) == len(pages())


def test_seeds_are_unique():
    """No page's keys are those of another, or of the data that ``helpers`` draws."""
    paths = [*(ROOT / path for path in pages()), *(ROOT / "helpers").rglob("*.py")]
    found = [seed for path in paths for seed in re.findall(r"key\((\d{3,})", path.read_text())]
    assert len(found) > 20 and sorted(found) == sorted(set(found))


def test_labels_are_unique():
    label = re.compile(r"^\((\S+)\)=$|^:(?:name|label): (\S+)$", flags=re.M)
    found = [
        one or other for path in pages() for one, other in label.findall((ROOT / path).read_text())
    ]
    assert len(found) > 100
    assert sorted(found) == sorted(set(found))


def test_one_bibliography():
    found = [path for path in pages() if "{bibliography}" in (ROOT / path).read_text()]
    assert [str(path) for path in found] == ["book/references.md"]


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_code_is_in_style(command):
    def ruff(*arguments, **options):
        return subprocess.run(
            [sys.executable, "-m", "ruff", *command, *arguments],
            capture_output=True,
            text=True,
            **options,
        )

    assert ruff("-", input="import os;x = [1,2]\n").returncode == 1
    result = ruff("--quiet", ".", cwd=ROOT)
    assert result.returncode == 0, result.stdout
