"""Sphinx extension: a search over sections, in the place of Sphinx's over pages.

What is searched is what a page says, without code, its output and the labels of buttons;
``assets/search.js`` ranks. Index entries of a page (``{index}``) are the words under which people
look for what it calls otherwise.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chapters import ROOT
from docutils import nodes
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.search.en import SearchEnglish
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node

# Pages of answers are meant more often than others that have the same words, and some seldom.
WEIGHTS = {
    "book/short-answers": 1.2,
    "book/if-something-goes-wrong": 1.2,
    "book/api": 0.4,
    "book/status": 0.8,
    "book/originals": 0.8,
}
LOOKING_BACK, HEADING_ALONE = 0.7, 0.6
QUESTIONS_FILE, SYNONYMS_FILE = ROOT / "tools/asked.txt", ROOT / "tools/synonyms.txt"
# Words of questions that say nothing of what is looked for.
QUESTION_WORDS = (
    "how do does did i my me we you your what why can could when which where should would has have "
    "had am get use using need want any from an so about some make give vs bayesian neural net "
    "nets network networks bnn bnns"
)
SCRIPTS = ("minisearch/index.js", "stemmer.js", "sections.js", "search.js")


class Section(NamedTuple):
    """What the search knows of a section."""

    address: str  # of the site
    page: str  # title
    heading: str
    keywords: str
    asked: list[str]  # what people type
    passages: list[str]
    weight: float


def within_exercise(section: nodes.section) -> bool:
    """Whether a section is only the frame of an exercise or its solution."""
    return isinstance(section.parent, (exercise_enumerable_node, solution_node))


def own_parts(node: nodes.Element) -> Iterator[nodes.Element]:
    """Yield what a section says itself: not in sections, entries or cells within it, paragraph by
    paragraph.
    """
    for child in node.children:
        if isinstance(child, nodes.section) and not within_exercise(child):
            continue
        if isinstance(
            child, (nodes.definition_list_item, addnodes.desc, nodes.literal_block, nodes.raw)
        ):
            continue
        if isinstance(child, nodes.container) and child.get("nb_element"):
            continue
        if isinstance(child, (nodes.paragraph, nodes.caption, nodes.row, addnodes.index)):
            yield child
        elif isinstance(child, nodes.Element):
            yield from own_parts(child)


def filled_lines(path: Path) -> list[str]:
    """Return the lines of a file that are neither empty nor comments."""
    return [
        line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"
    ]


def asked() -> dict[str, list[str]]:
    """Return what people type when a section is what answers them, by PAGE#ANCHOR."""
    pairs = (line.split(": ", 1) for line in filled_lines(QUESTIONS_FILE))
    return {key: [phrase.strip() for phrase in phrases.split(";")] for key, phrases in pairs}


def plain(node: nodes.Element) -> str:
    """Return a node's text on one line; of formulas the words and signs."""
    text = node.astext()
    for formula in node.findall(nodes.math):
        text = text.replace(formula.astext(), re.sub(r"\\[,;! ]|[\\{}$]", "", formula.astext()))
    return " ".join(text.split())


def keywords_and_passages(node: nodes.Element) -> tuple[str, list[str]]:
    """Return the keywords of a part of a page, and its passages."""
    found, keywords = [], []
    for part in own_parts(node):
        if isinstance(part, addnodes.index):
            keywords += [value.lstrip("! ") for _, value, *_ in part["entries"]]
        else:
            cells = part.children if isinstance(part, nodes.row) else [part]
            found.append(" · ".join(plain(cell) for cell in cells))
    return "; ".join(keywords), list(filter(None, found))


def sections(
    name: str, title: str, tree: nodes.document, phrases: dict[str, list[str]]
) -> Iterator[Section]:
    """Yield the sections of a page; an entry of the glossary or of the helpers is one of its
    own.
    """

    def section(heading, anchor, part, share=1.0):
        key = f"{name.rsplit('/', 1)[-1]}#{anchor}".rstrip("#")
        keywords, passages = keywords_and_passages(part)
        weight = WEIGHTS.get(name, 1.0) * (share if passages else HEADING_ALONE)
        address = f"{name}.html#{anchor}".rstrip("#")
        return Section(address, title, heading, keywords, phrases.get(key, []), passages, weight)

    for node in tree.findall(nodes.section):
        if within_exercise(node):
            continue
        heading = node.children[0].astext()
        anchor = "" if node.parent is tree else node["ids"][-1]  # the label, where it has one
        yield section(
            heading, anchor, node, LOOKING_BACK if heading.startswith("Looking back") else 1.0
        )
    for item in tree.findall(nodes.definition_list_item):
        if "glossary" in item.parent["classes"]:
            *terms, meaning = item.children
            yield section(", ".join(term.astext() for term in terms), terms[0]["ids"][0], meaning)
    for entry in tree.findall(addnodes.desc):
        signature, content = entry.children[-2:]
        yield section(signature["fullname"], signature["ids"][0], content)


def collect(app, pagename, templatename, context, doctree):
    """Take down the sections of a page."""
    if doctree is not None and pagename != "book/references":
        title = app.env.titles[pagename].astext()
        app.builder.book_sections += sections(pagename, title, doctree, asked())


def begin(app):
    """Let the builder make no search of its own."""
    app.builder.search = False
    app.builder.book_sections = []


def add_page(app):
    """Yield the page of the search, by the theme's own template."""
    yield "search", {}, "search.html"


def finish(app, exception):
    """Write what the search reads, and let its page load that."""
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    data = {
        "BookSections": [section._asdict() for section in app.builder.book_sections],
        "BookSynonyms": [
            [word.strip() for word in line.split(",")] for line in filled_lines(SYNONYMS_FILE)
        ],
        "BookStopWords": sorted({*SearchEnglish.stopwords, *QUESTION_WORDS.split()}),
    }
    text = "".join(
        f"const {name} = {json.dumps(value, ensure_ascii=False)};\n" for name, value in data.items()
    )
    (static / "sections.js").write_text(text, encoding="utf-8")
    (static / "stemmer.js").write_text(SearchEnglish.js_stemmer_code, encoding="utf-8")
    # The theme loads Sphinx's search on every page; ours is read where something is searched.
    theirs = (
        r'(?:<script[^>]*src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>'
        r"\s*)+"
    )
    ours = "".join(f'<script defer src="_static/{name}"></script>\n' for name in SCRIPTS)
    for page in Path(app.outdir).rglob("*.html"):
        before = page.read_text(encoding="utf-8")
        text, count = re.subn(theirs, ours if page.name == "search.html" else "", before)
        if page.name == "search.html" and count != 1:
            raise ExtensionError(
                f"search.html: given {count} places of the theme's scripts, expected one"
            )
        if count:
            page.write_text(text, encoding="utf-8")


def setup(app):
    """Register before the policy moves scripts (book_site)."""
    app.connect("builder-inited", begin)
    app.connect("html-page-context", collect)
    app.connect("html-collect-pages", add_page)
    app.connect("build-finished", finish, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
