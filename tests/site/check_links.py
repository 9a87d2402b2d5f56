"""Links that the build adds: to the helpers' entries, from a missing page, to the repository once
it has an address.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from chapters import ROOT
from check_site import DESKTOP, SITE

HEADER = """---
jupytext:
  text_representation:
    format_name: myst
kernelspec:
  display_name: Python 3
  name: python3
---

"""


@pytest.mark.parametrize("path", ["gone.html", "book/gone.html", "a/b/c"])
def test_a_missing_page_leads_back(open_page, address, path):
    page = open_page(path, **DESKTOP)
    assert page.locator("article h1").inner_text().startswith("There is no such page")
    assert page.locator("#pst-primary-sidebar a[href]").count() > 20
    assert (
        page.evaluate("getComputedStyle(document.querySelector('article h1')).fontFamily")
        != "serif"
    )
    assert [fault for fault in page.faults if path not in fault and "404" not in fault] == []
    links = page.locator("article ul a").all()
    assert [
        link.evaluate("a => new URL(a.href).pathname + new URL(a.href).hash") for link in links
    ] == [
        "/book/index.html",
        "/book/index.html#what-is-here",
        "/search.html",
    ]
    links[1].click()
    page.wait_for_url(f"{address}/book/index.html#what-is-here")
    assert page.locator("#what-is-here").count() == 1


def test_names_in_code_lead_to_their_entries(open_page, address):
    page = open_page("book/flat-bnn.html", **DESKTOP)
    link = page.locator("div.highlight a.helper", has_text="mcmc.sample").first
    link.evaluate("a => a.closest('details')?.setAttribute('open', '')")
    link.click()
    page.wait_for_url(f"{address}/book/api.html#helpers.mcmc.sample")
    entry = page.locator("[id='helpers.mcmc.sample']")
    assert "initial_positions" in entry.inner_text()
    assert "->" in entry.inner_text() or "→" in entry.inner_text()


def test_every_chapter_leads_to_entries():
    """Most names of helpers in code are links; an argument's name and a method's are none."""
    named = linked = 0
    for path in (SITE / "book").glob("*.html"):
        text = path.read_text()
        linked += len(re.findall(r'<a class="helper" href="api.html#', text))
        named += len(
            re.findall(r'<span class="n">(?:mcmc|predict|metrics)</span><span class="o">\.', text)
        )
        assert not re.search(
            r'class="helper"[^>]*><span class="n">\w+</span></a><span class="o">=<', text
        ), path
    assert linked > named > 100


def build(folder, address):
    """Build two pages with the book's own settings in a folder, the repository's address
    overridden.
    """
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    config["repository"]["url"] = address
    config["execute"] = {"execute_notebooks": "off"}
    (folder / "book").mkdir(parents=True)
    (folder / "_config.yml").write_text(yaml.safe_dump(config))
    (folder / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index.md\nchapters:\n- file: book/a.md\n"
    )
    (folder / "book/index.md").write_text("# First\n")
    (folder / "book/a.md").write_text(HEADER + "# Second\n\n```{code-cell} ipython3\n1\n```\n")
    (folder / "book/a.ipynb").write_text(
        json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    shutil.copy(ROOT / "book/references.bib", folder / "book")
    (folder / "tools").symlink_to(ROOT / "tools")
    (folder / "assets").symlink_to(ROOT / "assets")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", folder]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return folder / "_build/html"


def test_no_address_no_button():
    text = (SITE / "book/flat-bnn.html").read_text()
    assert not re.search(
        r"mybinder|colab\.research|source-repository|source-edit|rel=\"canonical\"|og:url", text
    )


def test_one_address_switches_all_links_on(tmp_path):
    site = build(tmp_path, "https://github.com/someone/something")
    links = re.findall(r'href="(https://[^"]*)"', (site / "book/a.html").read_text())
    assert {
        "https://github.com/someone/something",
        "https://github.com/someone/something/edit/main/book/a.md",
        "https://mybinder.org/v2/gh/someone/something/main?urlpath=lab/tree/notebooks/01-a.ipynb",
        "https://someone.github.io/something/book/a.html",
    } <= set(links)
    assert 'property="og:url" content="https://someone.github.io/something/book/a.html"' in (
        (site / "book/a.html").read_text()
    )
    first = (site / "book/index.html").read_text()
    assert "/edit/main/book/index.md" in first and "mybinder" not in first
    missing = (site / "404.html").read_text()
    assert 'href="/something/book/index.html"' in missing and 'src="/something/_static/' in missing
    assert not re.search(r'(?:href|src|action)="(?!/something/|#|https?:)', missing)
