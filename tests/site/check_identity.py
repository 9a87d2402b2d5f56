"""Every page says what it is of, by whom, and in which version; how to cite it is a step away."""

import re
from html import unescape

import book_identity
import pytest
from book_identity import AUTHORS, BOOK, PROJECT
from check_site import PAGES, SITE
from sources import WHEEL, site_address


@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_what_it_is_of(path):
    text = (SITE / path).read_text(encoding="utf-8")
    title = unescape(re.search(r"<title>(.*?)</title>", text, re.S)[1])
    assert title.split("—")[-1].strip() == BOOK["title"]
    meta = dict(re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)"', text))
    assert PROJECT["description"] in unescape(meta["description"])
    assert meta["og:description"] == meta["description"]
    assert unescape(meta["og:site_name"]) == BOOK["title"]
    assert unescape(meta["og:title"]) == title.split("—")[0].strip()
    assert unescape(meta["author"]) == ", ".join(AUTHORS)
    foot = text[text.index('class="bd-footer-content') :]
    assert f"Version {PROJECT['version']}, {book_identity.DATE}." in foot
    assert ", ".join(AUTHORS) in foot
    assert re.search(r'href="(short-answers\.html)?#short-cite"', foot)


def test_descriptions_differ_from_page_to_page():
    found = [
        re.search(r'<meta name="description" content="([^"]*)"', (SITE / path).read_text())[1]
        for path in PAGES
    ]
    assert len(set(found)) == len(found)


def test_what_is_to_be_copied_is_of_this_version():
    text = re.sub(r"<[^>]*>", "", (SITE / "book/short-answers.html").read_text(encoding="utf-8"))
    assert book_identity.bibtex(site_address()) in unescape(text)
    assert f"pip install {WHEEL}" in unescape(text)
    first = re.sub(r"<[^>]*>", "", (SITE / "book/index.html").read_text(encoding="utf-8"))
    assert book_identity.citation().replace("*", "") in unescape(first)
