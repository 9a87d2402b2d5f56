"""``make first-hour`` makes a page of the first chapter, figures and all, once it is executed."""

import re
import subprocess
import sys

import first_hour
from chapters import ROOT


def test_the_first_hour_alone_is_a_page_with_its_figures():
    command = [sys.executable, ROOT / "tools/first_hour.py"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert not ran.returncode, ran.stdout + ran.stderr
    assert ran.stdout == f"open {first_hour.SITE.relative_to(ROOT)}\n"
    page = (first_hour.SITE.parent / "book/first-hour.html").read_text(encoding="utf-8")
    images = set(re.findall(r'src="\.\./(_images/[^"]+)"', page))
    source = (ROOT / "book/first-hour.md").read_text(encoding="utf-8")
    assert len(images) >= source.count("```{glue:figure}")
    assert all((first_hour.SITE.parent / image).exists() for image in images)
