"""What a page says, as plain Markdown, from Sphinx's resolved tree of it.

Numbers, references, captions and titles are in the tree as the site shows them. The Markdown is
what Jupyter, GitHub, VS Code and Colab have in common: CommonMark with tables, TeX between dollars,
``<details>`` and ``<a id>``.
"""

import re
from collections.abc import Callable, Set
from functools import singledispatch
from html import escape
from types import SimpleNamespace
from typing import NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number


class Page(NamedTuple):
    """What the nodes of a page do not say themselves."""

    stem: str  # with which anchors begin that other pages might have, too
    labels: Set[str]  # anchors that links may lead to
    link: Callable[[str, str], str]  # an address on the site and a text -> a link in Markdown
    builder: object  # Sphinx's, while it writes the page


# ---- inline ----


@singledispatch
def inline(node, page: Page) -> str:
    """Return the Markdown of a node within a line."""
    raise ExtensionError(
        f"{type(node).__name__} has no Markdown within a line: {node.astext()[:80]!r}"
    )


def within(node: nodes.Element, page: Page) -> str:
    """Return the Markdown of a node's children, on one line."""
    return re.sub(r"\s*\n\s*", " ", "".join(inline(child, page) for child in node.children))


for kind in (nodes.inline, nodes.title_reference, addnodes.literal_strong):
    inline.register(kind, within)
# raw: tags, of links into the playground
for kind in (nodes.target, addnodes.index, nodes.comment, nodes.raw):
    inline.register(kind, lambda node, page: "")


@inline.register
def _(node: nodes.Text, page):
    text = re.sub(r"([\\`*<~]|\](?=\())", r"\\\1", node.astext())
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)  # within a word it means itself
    return text.replace("$", "<span>$</span>")  # two of them on a line would be a formula


@inline.register
def _(node: nodes.math, page):
    return f"${node.astext().strip()}$"


@inline.register
def _(node: nodes.literal, page):
    text = node.astext().replace("\n", " ")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


@inline.register
def _(node: nodes.emphasis, page):
    return f"*{within(node, page)}*"


@inline.register
def _(node: nodes.strong, page):
    return f"**{within(node, page)}**"


@inline.register
def _(node: nodes.reference, page):
    return page.link(
        node["refuri"] if "refuri" in node else f"#{node['refid']}", within(node, page)
    )


@inline.register
def _(node: addnodes.download_reference, page):
    # the folder of notebooks is beside that of pages
    return f"[{within(node, page)}]({node['reftarget']})"


# ---- blocks ----


@singledispatch
def block(node, page: Page) -> str:
    """Return the Markdown of a node that stands on lines of its own."""
    return guarded(inline(node, page))


def blocks(parts: list[nodes.Node], page: Page, tight: bool = False) -> str:
    """Return the Markdown of nodes one below the other."""
    return ("\n" if tight else "\n\n").join(filter(None, (block(part, page) for part in parts)))


def guarded(text: str) -> str:
    """Return a line that does not begin like a list, a heading or a quotation."""
    return re.sub(r"^(\d+)([.)] )", r"\1\\\2", re.sub(r"^([#>+-])", r"\\\1", text))


def anchors(node: nodes.Element, page: Page) -> str:
    """Return what links to a node lead to."""
    return "".join(f'<a id="{name}"></a>' for name in node["ids"] if name in page.labels)


def folded(title: str, text: str) -> str:
    """Return what is seen after a click on its title, which is text: no Markdown is read there."""
    return f"<details><summary>{escape(title)}</summary>\n\n{text}\n\n</details>"


@block.register
def _(node: nodes.paragraph, page):
    return guarded(within(node, page))


@block.register
def _(node: nodes.literal_block, page):
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", node.astext())), default=0))
    return f"{fence}{node.get('language', '').removesuffix('3')}\n{node.astext()}\n{fence}"


@block.register
def _(node: nodes.math_block, page):
    number = (
        get_node_equation_number(SimpleNamespace(builder=page.builder), node)
        if node["number"]
        else ""
    )
    tag = rf" \tag{{{number}}}" if number else ""
    text = node.astext().strip()
    if r"\\" in text and not text.startswith(r"\begin"):  # as Sphinx does
        text = f"\\begin{{split}}\n{text}\n\\end{{split}}"
    text = f"$$\n{text}{tag}\n$$"
    return "\n\n".join(filter(None, (anchors(node, page), text)))


@block.register(nodes.bullet_list)
@block.register(nodes.enumerated_list)
def _(node, page):
    items = []
    for number, item in enumerate(node.children, node.get("start", 1)):
        mark = "- " if isinstance(node, nodes.bullet_list) else f"{number}. "
        items.append(mark + blocks(item.children, page).replace("\n", "\n" + " " * len(mark)))
    return "\n".join(items)


@block.register
def _(node: nodes.definition_list, page):
    entries = []
    for item in node.children:
        *terms, meaning = item.children
        name = ", ".join(anchors(term, page) + f"**{within(term, page)}**" for term in terms)
        entries.append(f"{name}\n\n{blocks(meaning.children, page)}")
    return "\n\n".join(entries)


@block.register
def _(node: nodes.citation, page):
    entry = next(node.findall(nodes.paragraph))
    return f'- <a id="{page.stem}-{node["ids"][0]}"></a>{within(entry, page)}'


@block.register
def _(node: nodes.table, page):
    def cell(entry):
        text = blocks(entry.children, page).replace("\n", " ")
        # A stroke within a formula would end the cell, in some readers even behind a backslash.
        return re.sub(
            r"\$[^$]*\$", lambda formula: formula[0].replace("|", r"\vert "), text
        ).replace("|", r"\|")

    head, *rows = ([cell(entry) for entry in row.children] for row in node.findall(nodes.row))
    first = next(node.findall(nodes.row)).children
    rule = ["---:" if "text-right" in entry["classes"] else "---" for entry in first]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


@block.register
def _(node: nodes.Admonition, page):
    title, *rest = node.children
    if "dropdown" in node["classes"]:
        return folded(title.astext(), blocks(rest, page))
    lines = f"**{within(title, page)}**\n\n{blocks(rest, page)}".splitlines()
    return "\n".join(f"> {line}".rstrip() for line in lines)


@block.register(nodes.target)
@block.register(nodes.comment)
@block.register(addnodes.index)
# the table of contents, which the notebooks have as a list of their own
@block.register(nodes.compound)
def _(node, page):
    return ""


@block.register(nodes.raw)
def _(node, page):
    """Keep the tags of the choices of a quiz; others are for the site."""
    text = node.astext().strip()
    return text if re.match(r"</?details>", text) else ""


@block.register(addnodes.glossary)
@block.register(nodes.container)
@block.register(addnodes.desc)
@block.register(addnodes.desc_content)
def _(node, page):
    return blocks(node.children, page)


@block.register
def _(node: addnodes.desc_signature, page):
    return f"{anchors(node, page)}\n\n```python\n{node.astext()}\n```"


@block.register
def _(node: nodes.field_list, page):
    fields = ((name, body) for name, body in (field.children for field in node.children))
    return "\n\n".join(
        f"*{within(name, page)}*\n\n{blocks(body.children, page)}" for name, body in fields
    )
