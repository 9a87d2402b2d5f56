"""Sphinx extension: the pages of helpers, made from docstrings, and links to them wherever a page
names a helper.
"""

import ast
import inspect
import re
import textwrap
from pathlib import Path

from sphinx.ext.autodoc import FunctionDocumenter


def mark_up(app, what, name, obj, options, lines):
    """Turn a docstring as this project writes it into markup: calls are indented, errors begin a
    line, * is a star.
    """

    def part(text):
        if text.startswith("    "):
            language = "python" if re.search(r"^    [\w, ]+ = .*\(|^    [\w.]+\(", text) else "text"
            return f".. code-block:: {language}\n\n{text}"
        if text.startswith(("Args:\n", "Returns:\n")):  # for napoleon
            return plain(text)
        if re.match(r"\w+(Error|Warning): ", text):
            text = re.sub(
                r"\s+", " ", re.sub(r"^(?=\w+(?:Error|Warning): )", "\0", text, flags=re.M)
            )
            return "\n".join(
                f":raises {plain(one.strip())}" for one in text.split("\0") if one.strip()
            )
        return plain(text)

    def plain(text):
        pieces = re.split(r"(``[^`]+``)", text)  # literals between the rest
        pieces[::2] = [
            re.sub(r"([*|`]|_\b)", r"\\\1", re.sub(r"^(?=\w)", r"\\ ", piece))
            for piece in pieces[::2]
        ]
        return "".join(pieces).removeprefix("\\ ")

    parts = [part(text) for text in "\n".join(lines).strip("\n").split("\n\n")]
    if what == "class":
        fields = field_comments(inspect.getsource(obj))
        parts += ["\n".join(f"- ``{field}``: {plain(text)}" for field, text in fields.items())]
    lines[:] = [*"\n\n".join(parts).split("\n"), ""]


def field_comments(source):
    """Return the comments of a class's fields, by field: those above it, or the one beside it."""
    found = re.findall(
        r"^((?:    # .*\n)*)    (\w+): [^#\n]*(?:# +(.*))?$", source, flags=re.MULTILINE
    )
    comments = {
        field: " ".join([*re.findall(r"# (.*)", above), *filter(None, [beside])])
        for above, field, beside in found
    }
    return {field: comment for field, comment in comments.items() if comment}


def sign(app, what, name, obj, options, signature, returned):
    """Show a signature as its source has it, in which shapes are short, without what Flax adds to a
    module.
    """
    if what not in ("class", "function"):
        return None
    node = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(obj)))).body[0]
    if isinstance(node, ast.FunctionDef):
        return f"({ast.unparse(node.args)})", node.returns and ast.unparse(node.returns)
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    return f"({', '.join(ast.unparse(field) for field in fields)})".replace(" = ", "="), None


def leave_out(app, what, name, obj, skip, options):
    """Leave out of a class what its signature says already."""
    return True if what == "class" else None


class CompiledDocumenter(FunctionDocumenter):
    """A function that JAX has compiled is documented as a function."""

    objtype, directivetype, priority = "compiled", "function", FunctionDocumenter.priority + 1

    @classmethod
    def can_document_member(cls, member, membername, isattr, parent):
        """Whether this is one."""
        return hasattr(member, "lower") and hasattr(member, "__wrapped__")


def link_helpers(app, pagename, templatename, context, doctree):
    """Lead from what a page imports from helpers, where its code or its text in backticks names it,
    to its entry.
    """
    if doctree is None or pagename == "book/api" or "body" not in context:
        return
    entries, names = app.env.get_domain("py").objects, {"helpers": "helpers"}
    source = Path(app.env.doc2path(pagename)).read_text()
    for module, imported in re.findall(
        r"^from ((?:helpers|tables)[\w.]*) import ([\w, ]+)$", source, flags=re.M
    ):
        for name, _, alias in (one.strip().partition(" as ") for one in imported.split(",")):
            names[alias or name] = f"{module}.{name}"

    def link(match):
        first, *rest = re.sub(r"<.*?>", "", match["name"]).split(".")
        found = entries.get(".".join([names.get(first, ""), *rest]))
        if not found or (found.objtype == "module") != (first == "helpers"):
            return match[0]
        address = f"{app.builder.get_relative_uri(pagename, found.docname)}#{found.node_id}"
        return f'<a class="helper" href="{address}">{match["name"]}</a>'

    dot, name = '<span class="o">.</span>', r'<span class="n">\w+</span>'
    code = rf'(?<!{dot})(?P<name>{name}(?:{dot}{name})?)(?!<span class="o">=</span>)'
    text = (
        r'(?<=<code class="docutils literal notranslate">)'
        r'<span class="pre">(?P<name>[\w.]+)(?:\(\))?</span>(?=</code>(?!</a>))'
    )
    context["body"] = re.sub(text, link, re.sub(code, link, context["body"]))


def setup(app):
    """Register before napoleon reads docstrings."""
    for extension in ("autodoc", "napoleon"):
        app.setup_extension(f"sphinx.ext.{extension}")
    app.add_autodocumenter(CompiledDocumenter)
    app.connect("autodoc-process-docstring", mark_up, priority=400)
    app.connect("autodoc-process-signature", sign)
    app.connect("autodoc-skip-member", leave_out)
    app.connect("html-page-context", link_helpers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
