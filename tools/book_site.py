"""Sphinx extension: what the theme and its companions leave to be mended in the written pages."""

import hashlib
import json
import re
from pathlib import Path
from urllib.parse import urlparse

from sources import pages_address

# What a page may load and run: files of this site and nothing else, above all no script in the page
# itself. The theme and formulas set styles in the page, and Bootstrap's style sheet has small
# pictures in it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'"
)
PLAYGROUND = Path(__file__).parents[1] / "playground"
SERIES = PLAYGROUND.parent / "book/results/playground/borrowing.json"
PARTS = (
    *("engine", "diagnostics", "group", "methods", "tasks", "data", "presets", "state"),
    *("paint", "work", "page"),
)
INLINE = re.compile(r"(?:<script(?![^>]*\b(?:src|type)=)[^>]*>(?:.*?)</script>\s*)+", flags=re.S)

NO_SUCH_PAGE = """<h1>There is no such page</h1>
<p>The address may be mistyped, or the page may have moved since it was linked.</p>
<ul><li><a href="{home}.html">Start at the first page</a>,</li>
<li><a href="{home}.html#what-is-here">see what is here</a>,</li>
<li>or <a href="search.html">search the book</a>.</li></ul>"""


def switch_on_links(app, config):
    """Offer what needs the repository's address, when ``repository.url`` in _config.yml says it,
    and only then.

    Jupyter Book refuses the buttons without an address. The site's own address is that of GitHub
    Pages, unless ``html.baseurl`` says another.
    """
    options = config.html_theme_options
    if not (url := options.get("repository_url", "").rstrip("/")):
        return
    options |= {
        "use_repository_button": True,
        "use_edit_page_button": True,
        "use_issues_button": True,
    }
    options["launch_buttons"] = {
        "notebook_interface": "jupyterlab",
        "binderhub_url": "https://mybinder.org",
    }
    config.html_baseurl = config.html_baseurl or pages_address(url)


def add_missing_page(app):
    """Yield the page that servers send for an address that the site has not."""
    yield (
        "404",
        {"title": "No such page", "body": NO_SUCH_PAGE.format(home=app.config.root_doc)},
        "page.html",
    )


def join_playground(app):
    """Make one classic script of the playground's parts: it also runs in pages opened from a
    disk.
    """
    static = Path(app.outdir, "_static")
    static.mkdir(parents=True, exist_ok=True)
    rows = json.loads(SERIES.read_text(encoding="utf-8"))["rows"]
    kept = [
        {key: row[key] for key in ("points", "sd", "without", "surfaces", "check") if key in row}
        for row in rows
    ]
    page = json.dumps((PLAYGROUND / "page.html").read_text(encoding="utf-8"))
    parts = [f"const BookSeries = {json.dumps(kept)};", f"const PlaygroundParts = {page};"]
    parts += [(PLAYGROUND / f"{name}.js").read_text(encoding="utf-8") for name in PARTS]
    (static / "playground.js").write_text("\n".join(parts), encoding="utf-8")
    draws = (PLAYGROUND.parent / "assets/playground/draws.json").read_text(encoding="utf-8")
    (static / "playground-draws.js").write_text(f"const PlaygroundDraws = {draws};\n", "utf-8")
    (static / "playground.css").write_text((PLAYGROUND / "page.css").read_text())


def load_playground(app, pagename, templatename, context, doctree):
    """Load it where a page has one."""
    if '<div class="playground"' in context.get("body", ""):
        if '<div class="playground" data-preset' in context["body"]:  # a whole one
            app.add_js_file("playground-draws.js", loading_method="defer")
        app.add_js_file("playground.js", loading_method="defer")
        app.add_css_file("playground.css")


def keep_policy(app, exception):
    """Give every page the policy; move its scripts to files, run at the same place, and its
    handlers to site.js.
    """
    if exception or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        static = "../" * (len(path.relative_to(app.outdir).parts) - 1) + "_static"
        if "_static" in path.parts:
            continue

        def move(match, static=static):
            code = "\n".join(re.findall(r"<script[^>]*>(.*?)</script>", match[0], flags=re.S))
            name = f"inline/{hashlib.sha256(code.encode()).hexdigest()[:16]}.js"
            target = Path(app.outdir, "_static", name)
            target.parent.mkdir(exist_ok=True)
            target.write_text(code)
            return f'<script src="{static}/{name}"></script>\n'

        text = INLINE.sub(move, path.read_text())
        # Half a megabyte of icons as paths; the theme's style sheet has all of them as a font,
        # which pages load anyway.
        text = re.sub(r'<script defer src="[^"]*/fontawesome.js[^"]*"></script>\n?', "", text)
        text = re.sub(r' onclick="(?:window\.)?(\w+)\(\)"', r' data-click="\1"', text)
        policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />'
        text = re.sub(r"<head>|\A(?=<meta)", rf"\g<0>\n    {policy}", text, count=1)
        # it stands for pages at any depth, so its links begin at the site's root
        if path.name == "404.html":
            root = urlparse(app.config.html_baseurl or "").path or "/"
            text = re.sub(
                r'\b(href|src|action|data-content_root)="(?![a-z]+:|[#/])(?:\./)?',
                rf'\1="{root}',
                text,
            )
        path.write_text(text)


def setup(app):
    """Register."""
    app.connect("config-inited", switch_on_links)
    app.connect("html-collect-pages", add_missing_page)
    app.connect("builder-inited", join_playground)
    app.connect("html-page-context", load_playground)
    app.connect("build-finished", keep_policy, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
