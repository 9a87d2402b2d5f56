"""Sphinx extension: what the theme and its companions leave to be mended in the written pages."""

import hashlib
import re
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from myst_nb.sphinx_ import NbMetadataCollector

# What a page may load and run: files of this site and nothing else, above all no script in the page itself. The theme
# and MathJax set styles in the page, and Bootstrap's style sheet has small pictures in it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'"
)
INLINE = re.compile(r"(?:<script(?![^>]*\b(?:src|type)=)[^>]*>(?:.*?)</script>\s*)+", flags=re.S)


def offer_notebook(app, pagename, templatename, context, doctree):
    """Put the executed notebook of a chapter beside its source, where the theme's button looks.

    The theme does so only when a launch provider is configured, and MyST-NB writes the notebook
    without outputs when they come from the execution cache.
    """
    if doctree is None or NbMetadataCollector.get_exec_data(app.env, pagename) is None:
        return
    config = app.env.mystnb_config
    notebook = nbformat.read(Path(config.output_folder, f"{pagename}.ipynb"), as_version=4)
    _, executed = get_cache(config.execution_cache_path).merge_match_into_notebook(notebook)
    target = Path(app.outdir, "_sources", f"{pagename}.ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(executed, target)
    context["ipynb_source"] = f"{pagename}.ipynb"


def mend_markup(app, pagename, templatename, context, doctree):
    """Make entries of a bibliography items of their list, and figures, which phones scroll, reachable by keyboard."""
    if "body" in context:
        body = context["body"].replace(' role="doc-biblioentry"', ' role="listitem"')
        context["body"] = body.replace("<figure class", '<figure tabindex="0" class')


def keep_policy(app, exception):
    """Give every page the policy; move its scripts to files, run at the same place, and its handlers to site.js."""
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
        text = re.sub(r' onclick="(?:window\.)?(\w+)\(\)"', r' data-click="\1"', text)
        policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />'
        path.write_text(re.sub(r"<head>|\A(?=<meta)", rf"\g<0>\n    {policy}", text, count=1))


def setup(app):
    """Register before the theme's header buttons (priority 501), which read ``ipynb_source``."""
    app.connect("html-page-context", offer_notebook, priority=500)
    app.connect("html-page-context", mend_markup)
    app.connect("build-finished", keep_policy, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
