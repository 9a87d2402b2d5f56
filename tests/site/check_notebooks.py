"""The notebooks that the site hands out: in JupyterLab without extensions, in a real browser, to
their last cell.
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import unquote

import lab as lab_folder
import nbformat
import pytest
from chapters import ROOT, has_code, pages
from sources import FOLDER, WHEEL, notebooks

from tests.test_course import COURSE

DERIVED = ROOT / "_build/html" / FOLDER
NAMES = sorted(path.name for path in DERIVED.glob("*.ipynb"))
PAGES = {file: Path(f"{name}.md") for name, file in notebooks().items()}
FLAT, MEASURED, NOTATION = (
    notebooks()[f"book/{name}"] for name in ("flat-bnn", "flat-measured", "notation")
)
# What a person would see as broken: a picture that is not there, a formula or a directive that is
# not understood.
FAULTS = """() => {
  const text = (e) => e.textContent.trim().slice(0, 80);
  const all = (s) => [...document.querySelectorAll(s)];
  const pictures = all('.jp-Notebook img').filter((i) => !(i.complete && i.naturalWidth > 1));
  const errors = 'mjx-merror, .jp-RenderedText[data-mime-type*="error"], .jp-mod-error';
  const wrong = all(`.jp-Notebook :is(${errors})`);
  const rendered = all('.jp-MarkdownOutput').map((e) => {
    const copy = e.cloneNode(true);
    copy.querySelectorAll('code, pre, mjx-container').forEach((part) => part.remove());
    return copy.textContent;
  });
  const markup = /\\{[a-z:]+\\}`|:::|```|Unknown Directive|\\$\\$|\\*\\*|<\\/?(details|a|span)\\b/;
  const left = rendered.filter((text) => markup.test(text));
  const dead = all('.jp-MarkdownOutput a[href^="#"]').map((a) => a.getAttribute('href').slice(1))
    .filter((id) => !document.querySelector(`[data-jupyter-id="${CSS.escape(id)}"]`));
  return [...pictures.map((i) => 'picture ' + i.alt), ...wrong.map((e) => 'error ' + text(e)),
          ...left.map((t) => 'left ' + t.trim().slice(0, 120)),
          ...dead.map((id) => 'no anchor ' + id)];
}"""
OPEN = """(path) => jupyterapp.commands
  .execute('docmanager:open', {path, factory: 'Notebook'}).then(() => 0)"""
# Nothing is run here, and a kernel for each of fifty notebooks takes gigabytes.
NO_KERNEL = """() => {
  const factory = jupyterapp.docRegistry.getWidgetFactory('Notebook');
  Object.defineProperty(factory, 'preferKernel', {value: false});
}"""
# JupyterLab would ask about saving a notebook whose metadata it has completed.
CLOSE = """() => {
  for (const place of jupyterapp.shell.widgets('main'))
    if (place.context) place.context.model.dirty = false;
  return jupyterapp.commands.execute('application:close-all').then(() => 0);
}"""
END = """() => {
  const e = document.querySelector('.jp-WindowedPanel-outer');
  e.scrollBy(0, 0.8 * e.clientHeight);
  return e.scrollTop + e.clientHeight >= e.scrollHeight - 4;
}"""


def said(name):
    """The Markdown of a derived notebook."""
    cells = nbformat.read(DERIVED / name, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("name", COURSE)
def test_the_choices_of_a_quiz_are_folded_in_the_notebook_too(name):
    text = said(notebooks()[f"book/{name}"])
    assert text.count("<details>\n<summary>") == 15


def test_every_page_has_a_notebook_in_its_place():
    assert [name.split("-", 1) for name in NAMES] == [
        [f"{number:02d}", f"{page.stem}.ipynb"] for number, page in enumerate(pages())
    ]
    assert sum(has_code(page) for page in pages()) >= 28


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_plain(name):
    """No role, directive or vector is left; valid, not large, executed; its first cell says what it
    is.
    """
    notebook = nbformat.read(DERIVED / name, as_version=4)
    nbformat.validate(notebook)
    assert (DERIVED / name).stat().st_size < 5e6
    prose = re.sub(r"```.*?```|`[^`\n]*`(?!`)|\$\$.*?\$\$|\$[^$\n]*\$", "", said(name), flags=re.S)
    assert not re.search(r"\{[a-z:-]+\}`?|:::|^%|\bglue:|papermill", prose, flags=re.M)
    assert not re.search(r"^(?:`{3,}|:{3,})\{", said(name), flags=re.M)
    kinds = {
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    }
    kinds |= {
        kind
        for cell in notebook.cells
        for file in cell.get("attachments", {}).values()
        for kind in file
    }
    assert kinds <= {"text/plain", "text/html", "image/png"}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert bool(code) == has_code(PAGES[name])
    if code:
        assert all(cell.execution_count for cell in code[1:] if cell.source.strip())
        assert any(cell.outputs for cell in code)
        assert not [
            output for cell in code for output in cell.outputs if output.output_type == "error"
        ]
        assert notebook.cells[0] is code[0] and f"%pip install --quiet ./{WHEEL}" in code[0].source
        assert "myst_nb" not in "".join(cell.source for cell in code)


def test_links_lead_to_notebooks_and_anchors_that_are_there():
    anchors = {name: re.findall(r'<a id="([^"]*)">', said(name)) for name in NAMES}
    every = [anchor for found in anchors.values() for anchor in found]
    assert len(every) == len(set(every)) > 500  # two notebooks may be open in one window
    links = 0
    for name in NAMES:
        for address in re.findall(r"\]\(([^ )]+)", said(name)):
            file, _, anchor = unquote(address).partition("#")
            if re.match("[a-z]+:", address) or file.startswith("../"):
                continue
            assert file in ("", *NAMES), f"{name}: {address}"
            assert not anchor or anchor in anchors[file or name], f"{name}: {address}"
            links += 1
    assert links > 1500


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory):
    """Start JupyterLab's core, without extensions, on copies of the notebooks; return its
    address.
    """
    folder = tmp_path_factory.mktemp("lab")
    assert lab_folder.copy_notebooks(DERIVED, folder / "notebooks") == []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "jupyter",
        "lab",
        "--core-mode",
        "--expose-app-in-browser",
        "--no-browser",
        "--allow-root",
    ]
    command += [
        f"--ServerApp.port={port}",
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={folder}",
    ]
    own = {
        name: str(folder / name)
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
    }
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            command, env=os.environ | own, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            for _ in range(120):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api")
                    break
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(30)


@pytest.fixture(scope="session")
def window(jupyterlab, browser):
    """JupyterLab, loaded once for all, which reaches nothing else."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(60_000)
    context.route(
        "**/*", lambda r: r.continue_() if r.request.url.startswith(jupyterlab) else r.abort()
    )
    page = context.new_page()
    page.goto(f"{jupyterlab}/lab?reset")
    page.wait_for_function("window.jupyterapp")
    page.evaluate("jupyterapp.restored.then(() => 0)")
    page.evaluate(NO_KERNEL)
    yield page
    assert context.request.get(f"{jupyterlab}/api/kernels").json() == []
    context.close()


@pytest.fixture
def open_notebook(window):
    """Return ``open_notebook(name)`` -> the page, all cells rendered; it ends with the test."""

    def load(name):
        window.evaluate(OPEN, f"notebooks/{name}")
        window.wait_for_selector(".jp-Notebook .jp-Cell")
        count = len(nbformat.read(DERIVED / name, as_version=4).cells)
        window.wait_for_function(
            f"() => document.querySelectorAll('.jp-Notebook .jp-Cell').length >= {count}"
        )
        while not window.evaluate(END):
            window.wait_for_timeout(40)
        return window

    yield load
    window.evaluate(CLOSE)
    window.wait_for_selector(".jp-Notebook", state="detached")


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_whole_in_jupyterlab(open_notebook, name):
    page = open_notebook(name)
    page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-Notebook img')].every((i) => i.complete)"
    )
    page.wait_for_function(
        "() => !document.querySelector('.jp-MarkdownOutput mjx-container:empty')"
    )
    assert page.evaluate(FAULTS) == []


def test_the_faults_are_found(open_notebook, tmp_path):
    """A notebook as the site used to hand them out has many."""
    page = open_notebook(NAMES[1])
    page.evaluate(
        """() => { const place = document.querySelector('.jp-MarkdownOutput');
        const image = Object.assign(new Image(), {src: 'data:,', alt: 'gone'});
        place.append('the optimum has {glue:text}`accuracy` %', image);
        place.innerHTML += '<a href="#nowhere">x</a>' }"""
    )
    page.wait_for_timeout(200)
    kinds = {fault.split()[0] for fault in page.evaluate(FAULTS)}
    assert kinds == {"picture", "left", "no"}


def test_links_lead_to_sections_here_and_in_other_notebooks(open_notebook):
    page = open_notebook(MEASURED)
    link = page.locator(".jp-MarkdownOutput a[href='#flat-baselines']").first
    link.evaluate("a => a.scrollIntoView({block: 'center'})")
    link.click()
    page.wait_for_function(
        """() => { const place = document.querySelector('[data-jupyter-id="flat-baselines"]');
        const box = place.getBoundingClientRect();
        return box.top > 0 && box.top < innerHeight }"""
    )
    other = page.locator(".jp-MarkdownOutput a", has_text="Choosing the prior of a Bayesian").first
    other.evaluate("a => a.scrollIntoView({block: 'center'})")
    other.click()
    (name,) = (name for name in NAMES if name.endswith("-choosing-the-prior.ipynb"))
    page.wait_for_selector(f".lm-TabBar-tab.jp-mod-current:has-text('{name}')")
    page.wait_for_selector(".jp-MarkdownOutput h1:has-text('Choosing the prior of a Bayesian')")


def test_folded_code_is_folded_and_says_what_it_is(open_notebook):
    page = open_notebook(FLAT)
    folded = page.locator(".jp-Notebook .jp-InputPlaceholder").all_text_contents()
    assert any(text.startswith("# code of the figure:") for text in folded)
    cells = nbformat.read(DERIVED / FLAT, as_version=4).cells
    assert len(folded) == sum(
        cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in cells
    )


def test_saved_copies_are_nothing_to_git(open_notebook):
    """What a person runs is in a folder that git ignores; and a notebook that is saved stays a
    notebook.
    """
    ignored = subprocess.run(
        ["git", "check-ignore", f"notebooks/{FLAT}"], cwd=ROOT, capture_output=True
    )
    assert ignored.returncode == 0
    page = open_notebook(NOTATION)
    page.locator(".jp-Notebook .jp-Cell").first.click()
    with page.expect_response(
        lambda r: "/api/contents/" in r.url and r.request.method == "PUT"
    ) as saved:
        page.keyboard.press("Control+s")
    assert saved.value.ok
