"""Sphinx extension: from every page a notebook for people, whose prose is what the site shows.

They are numbered in the order of the contents and lie in ``_sources/notebooks`` of the site, beside
the package's wheel. The download button offers them, and ``make lab`` opens copies.
"""

import base64
import re
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urljoin

import nbformat
from chapters import ROOT
from docutils import nodes
from jupyter_cache import get_cache
from myst_nb.sphinx_ import NbMetadataCollector
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from notebook_cells import attached, code_cell, shown
from page_pieces import Code, Still, Text, pieces
from plain_markdown import Page, block
from sources import ARCHIVE, FOLDER, WHEEL, build_wheel, notebooks, write_archive

KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
}
FIRST_CELL = """\
# Numbers in the text are those of the website's run; a cell that you run shows its own. The code
# needs Python 3.11 to 3.13 and the wheel beside this notebook on the website; this installs it:
import importlib.util, os

if importlib.util.find_spec("helpers") is None:
    %pip install --quiet {wheel}
os.environ["BOOK_READER"] = "1"  # long calls then say how far they are"""
STILL_CAPTION = (
    "*On the website this is a playground: you move the points and the prior, "
    "and the posterior is sampled anew.*"
)


class Figure(NamedTuple):
    """A figure that a cell has glued."""

    index: int  # of the cell
    alone: bool  # whether it is the only one of its cell
    output: nbformat.NotebookNode


def stem(name: str) -> str:
    """Return a page's name without its folder."""
    return name.rsplit("/", 1)[-1]


def title_of(env, name: str) -> str:
    """Return a page's number, where it has one, and title."""
    number = "".join(f"{part}. " for part in env.toc_secnumbers.get(name, {}).get("", ()))
    return f"{number}{env.titles[name].astext()}"


def link(env, name, cited, address, text):
    """Return a link of a page: to another notebook, within this one, to the list of what it cites,
    or elsewhere.
    """
    if re.match(r"[a-z]+:", address):
        return f"[{text}]({address})"
    path, _, fragment = urljoin(f"{name}.html", address).partition("#")
    target = path.removesuffix(".html")
    file = notebooks(env.srcdir).get(target)
    if not file:
        return text
    if target == "book/references" and re.fullmatch(r"id\d+", fragment) and name != target:
        cited.setdefault(fragment)
        return f"[{text}](#{stem(name)}-{fragment})"
    if target == name and fragment:
        return f"[{text}](#{fragment})"
    title = title_of(env, target)
    text = title if text == env.titles[target].astext() else text
    hint = title.replace('"', "'")
    return f'[{text}]({quote(file)}{"#" * bool(fragment)}{fragment} "{hint}")'


def labels(env, name: str) -> set[str]:
    """Return the anchors of a page that links of any page may lead to."""
    objects = (entry for domain in env.domains.values() for entry in domain.get_objects())
    found = {anchor for *_, page, anchor, _ in objects if page == name}
    equations = env.get_domain("math").equations.items()
    return found | {f"equation-{label}" for label, (page, _) in equations if page == name}


def executed(app, name: str) -> nbformat.NotebookNode | None:
    """Return a page's notebook with its outputs, None where a page runs nothing."""
    config = app.env.mystnb_config
    path = Path(config.output_folder, f"{name}.ipynb")
    if not path.exists():
        return None
    notebook = nbformat.read(path, as_version=4)
    if NbMetadataCollector.get_exec_data(app.env, name) is None:  # where nothing is to be executed
        return notebook
    # MyST-NB writes it without outputs when they come from the cache of executions.
    return get_cache(config.execution_cache_path).merge_match_into_notebook(notebook)[1]


def figures(notebook: nbformat.NotebookNode) -> dict[str, Figure]:
    """Return the figures that cells have glued, by name."""
    found = {}
    for index, cell in enumerate(notebook.cells):
        made = [
            output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
        ]
        names = [output.metadata.get("scrapbook", {}).get("name", "") for output in made]
        found |= {
            name: Figure(index, len(made) == 1, output)
            for name, output in zip(names, made, strict=True)
        }
    return found


def assemble(parts: list, notebook: nbformat.NotebookNode | None) -> list[nbformat.NotebookNode]:
    """Return the cells of a page. What the site leaves out, and later cells need, follows the code
    that it followed.
    """
    made = figures(notebook) if notebook else {}
    cells, ends, above, prose = [], {-1: 1}, -1, False  # ends: of a code cell and its captions
    for part in parts:
        if isinstance(part, Text) and prose and not part.begins:
            cells[-1].source += f"\n\n{part.markdown}"
        elif isinstance(part, Text):
            cells.append(new_markdown_cell(part.markdown))
        elif isinstance(part, Code):
            cells.append(code_cell(notebook.cells[part.index], part.solution))
        elif isinstance(part, Still):
            picture = (ROOT / f"assets/playground/{part.name}.png").read_bytes()
            cells.append(
                attached(part.name, part.alt, base64.b64encode(picture).decode(), STILL_CAPTION)
            )
        else:
            figure, text = made[part.name], "\n\n".join(filter(None, (part.anchor, part.caption)))
            if figure.index == above and figure.alone:
                cells[-1].outputs[-1] = shown(figure.output, part.alt)
                cells.append(new_markdown_cell(text))
            else:
                cells.append(attached(part.name, part.alt, figure.output.data["image/png"], text))
        prose = isinstance(part, Text)
        above = part.index if isinstance(part, Code) else -1 if prose else above
        if above >= 0:
            ends[above] = len(cells)
    places = {part.index for part in parts if isinstance(part, Code)}
    code = [
        i for i, cell in enumerate(notebook.cells if notebook else ()) if cell.cell_type == "code"
    ]
    for i in reversed([i for i in code if i not in places]):
        cells.insert(ends[max(j for j in ends if j < i)], code_cell(notebook.cells[i]))
    return cells


@lru_cache(maxsize=1)
def works(builder) -> dict[str, nodes.citation]:
    """Return the entries of the page of references, by their anchors."""
    tree = builder.env.get_and_resolve_doctree("book/references", builder)
    return {entry["ids"][0]: entry for entry in tree.findall(nodes.citation)}


def cited_works(cited: dict[str, None], page: Page) -> list[nbformat.NotebookNode]:
    """Return a cell with the works that a page cites, as the page of references has them."""
    if not cited:
        return []
    listed = [block(entry, page) for name, entry in works(page.builder).items() if name in cited]
    return [new_markdown_cell("## Works cited\n\n" + "\n".join(listed))]


def contents(env) -> nbformat.NotebookNode:
    """Return a cell with links to all notebooks."""
    lines = [f"- [{title_of(env, name)}]({file})" for name, file in notebooks(env.srcdir).items()]
    return new_markdown_cell("## All notebooks\n\n" + "\n".join(lines))


def derive(app, pagename, templatename, context, doctree):
    """Write a page's notebook, and let the theme's download button offer it."""
    if doctree is None:
        return
    cited: dict[str, None] = {}
    page = Page(
        stem(pagename),
        labels(app.env, pagename),
        partial(link, app.env, pagename, cited),
        app.builder,
    )
    notebook = executed(app, pagename)
    parts = list(pieces(doctree, page))
    cells = assemble(parts, notebook)
    cells[0].source = cells[0].source.replace(
        app.env.titles[pagename].astext(), title_of(app.env, pagename), 1
    )
    cells += cited_works(cited, page) + [contents(app.env)] * (pagename == app.config.root_doc)
    metadata = KERNEL
    if notebook:
        wheel = (
            urljoin(app.config.html_baseurl, f"{FOLDER}/{WHEEL}")
            if app.config.html_baseurl
            else f"./{WHEEL}"
        )
        cells.insert(0, new_code_cell(FIRST_CELL.format(wheel=wheel)))
        metadata = KERNEL | {
            key: value for key, value in notebook.metadata.items() if key == "language_info"
        }
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    target = Path(app.outdir, FOLDER, notebooks(app.srcdir)[pagename])
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells, metadata=metadata), target)
    context["ipynb_source"] = f"{target.parent.name}/{target.name}"


def offer(app, pagename, templatename, context, doctree):
    """Offer the wheel and the archive where the theme offers downloads, and let Binder open this
    notebook.
    """
    groups = {
        button.get("label"): button.get("buttons") for button in context.get("header_buttons", [])
    }
    for name, text in (
        (WHEEL, "Package for the notebooks"),
        (ARCHIVE, "All notebooks and the source"),
    ):
        address = context["pathto"](f"{FOLDER}/{name}", resource=True)
        link = {"type": "link", "url": address, "text": text, "tooltip": name, "icon": "fas fa-box"}
        groups.get("download-buttons", []).append(link)
    for button in groups.get("launch-buttons", []):  # the theme knows of the pair in book/ alone
        button["url"] = button["url"].replace(
            f"{pagename}.ipynb", f"notebooks/{notebooks(app.srcdir).get(pagename)}"
        )


def pack(app, exception):
    """Put the package and the archive beside the notebooks."""
    if exception is None and app.builder.format == "html":
        folder = Path(app.outdir, FOLDER)
        build_wheel(folder)
        write_archive(folder / ARCHIVE, folder)


def setup(app):
    """Register: notebooks before the theme's header buttons (priority 501), which read
    ``ipynb_source``.
    """
    app.connect("html-page-context", derive, priority=500)
    app.connect("html-page-context", offer, priority=502)
    app.connect("build-finished", pack)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
