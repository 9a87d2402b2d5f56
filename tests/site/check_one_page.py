"""``make page`` and ``make first-hour`` make a website of one page, figures and all."""

import re
import subprocess
import sys

import one_page
import pytest
from chapters import ROOT


def run(name):
    """What the command says, and how it ends."""
    command = [sys.executable, ROOT / "tools/one_page.py", name]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("name", ["first-hour", "glossary"])
def test_a_page_alone_has_its_figures(name):
    ran, site = run(name), one_page.site(name)
    assert not ran.returncode, ran.stdout + ran.stderr
    assert ran.stdout == f"open {site.relative_to(ROOT)}\n"
    page = (site.parent / f"book/{name}.html").read_text(encoding="utf-8")
    images = set(re.findall(r'src="\.\./(_images/[^"]+)"', page))
    source = (ROOT / f"book/{name}.md").read_text(encoding="utf-8")
    assert len(images) >= source.count("```{glue:figure}")
    assert all((site.parent / image).exists() for image in images)


@pytest.mark.parametrize("name", ["", "nothing"])
def test_a_page_that_is_none_is_refused(name):
    ran = run(name)
    assert ran.returncode and f"page: given {name!r}, expected one of api, " in ran.stderr
