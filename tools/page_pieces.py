"""A page's parts, in the order in which a notebook has them: text, code cells, figures."""

import re
from collections.abc import Iterator
from functools import singledispatch
from itertools import groupby
from typing import NamedTuple

from docutils import nodes
from plain_markdown import Page, anchors, block, blocks, folded, within
from sphinx_exercise.nodes import exercise_enumerable_node, solution_node


class Text(NamedTuple):
    """Markdown, and whether a cell begins with it."""

    markdown: str
    begins: bool = False


class Code(NamedTuple):
    """The code cell of an index, and of which solution it is a part, which stays folded."""

    index: int
    solution: str = ""


class Picture(NamedTuple):
    """A figure by its name, and what stands under it; ``anchor`` leads to it."""

    name: str
    alt: str
    caption: str
    anchor: str


class Still(NamedTuple):
    """The playground's static picture, by the name of its file."""

    name: str
    alt: str


@singledispatch
def pieces(node, page: Page, depth: int = 1) -> Iterator[Text | Code | Picture | Still]:
    """Yield what a part of a page becomes; ``depth`` is that of its headings."""
    if text := block(node, page):
        yield Text(text)


@pieces.register
def _(node: nodes.document, page, depth=1):
    for child in node.children:
        yield from pieces(child, page, depth)


@pieces.register
def _(node: nodes.section, page, depth=1):
    title, *rest = node.children
    head = f"{'#' * depth} {within(title, page)}"
    yield Text("\n\n".join(filter(None, (anchors(node, page), head))), begins=True)
    for child in rest:
        yield from pieces(child, page, depth + 1)


@pieces.register
def _(node: nodes.container, page, depth=1):
    if node.get("nb_element") == "cell_code":
        yield Code(node["cell_index"])
    elif text := block(node, page):
        yield Text(text)


@pieces.register
def _(node: nodes.figure, page, depth=1):
    image, caption = next(node.findall(nodes.image)), next(node.findall(nodes.caption))
    (name,) = node["names"]
    number = number_of(node, "figure", page)
    alt = " ".join(image["alt"].split())
    yield Picture(name, alt, f"**Fig. {number}.** {within(caption, page)}", anchors(node, page))


@pieces.register
def _(node: nodes.raw, page, depth=1):
    for name, alt in re.findall(
        r'<img src="[^"]*/([\w-]+)\.svg"[^>]* alt="([^"]*)"', node.astext()
    ):
        yield Still(name, alt)
    if text := block(node, page):
        yield Text(text)


@pieces.register
def _(node: exercise_enumerable_node, page, depth=1):
    title, *rest = node.children
    title = title["title"] % number_of(node, "exercise", page)
    name = "\n\n".join(filter(None, (anchors(node, page), f"**{title}**")))
    yield Text(f"{name}\n\n{blocks(contents(rest), page)}", begins=True)


@pieces.register
def _(node: solution_node, page, depth=1):
    _, *rest = node.children
    found = [piece for child in contents(rest) for piece in pieces(child, page, depth)]
    for is_text, run in groupby(found, key=lambda piece: isinstance(piece, Text)):
        if is_text:
            yield Text(
                folded(node["title"], "\n\n".join(piece.markdown for piece in run)), begins=True
            )
        else:
            # an answer is text and code
            yield from (Code(piece.index, node["title"]) for piece in run)


def number_of(node: nodes.Element, kind: str, page: Page) -> str:
    """Return the number of a figure or an exercise, such as 6.2."""
    return ".".join(map(str, page.builder.fignumbers[kind][node["ids"][0]]))


def contents(parts: list[nodes.Node]) -> list[nodes.Node]:
    """Return parts, with those of unnamed sections in the place of these."""
    return [
        child
        for part in parts
        for child in (part.children if isinstance(part, nodes.section) else [part])
    ]
