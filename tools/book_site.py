"""Sphinx extension: what the theme and its companions leave to be mended in the written pages."""

from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from myst_nb.sphinx_ import NbMetadataCollector

PLAYGROUND = Path(__file__).parents[1] / "playground"
PARTS = ("engine", "diagnostics", "group", "tasks", "state", "paint", "page")


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


def join_playground(app):
    """Make one classic script of the playground's parts: it also runs in pages opened from a disk."""
    static = Path(app.outdir, "_static")
    static.mkdir(parents=True, exist_ok=True)
    parts = [(PLAYGROUND / f"{name}.js").read_text() for name in PARTS]
    (static / "playground.js").write_text("\n".join(parts))
    (static / "playground.css").write_text((PLAYGROUND / "page.css").read_text())


def load_playground(app, pagename, templatename, context, doctree):
    """Load it where a page has one."""
    if '<div class="playground"' in context.get("body", ""):
        app.add_js_file("playground.js", loading_method="defer")
        app.add_css_file("playground.css")


def setup(app):
    """Register before the theme's header buttons (priority 501), which read ``ipynb_source``."""
    app.connect("builder-inited", join_playground)
    app.connect("html-page-context", load_playground)
    app.connect("html-page-context", offer_notebook, priority=500)
    app.connect("html-page-context", mend_markup)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
