"""The slides that `make class` makes of the built site: every figure of a chapter is on one, each
fits, the keyboard turns them, and nothing is asked of a network.
"""

import re

import decks
import pytest
from bs4 import BeautifulSoup
from chapters import ROOT

from tests.test_course import COURSE


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The decks, by the name of their page."""
    found = decks.write(decks.SITE, tmp_path_factory.mktemp("class") / "slides")
    return {path.stem.partition("-")[2]: path for path in found}


def test_every_chapter_of_the_course_has_a_deck(made):
    assert {*COURSE, "first-hour", "second-hour"} == {*made}
    beside = made["svi"].parent / decks.BESIDE
    assert "MIT" in (beside / "reveal.js").read_text()[:300] and (beside / "LICENSE").exists()


@pytest.mark.parametrize("name", ["first-hour", "second-hour", *COURSE])
def test_a_deck_has_the_question_all_figures_and_what_to_remember(made, name):
    text, source = made[name].read_text(), (ROOT / f"book/{name}.md").read_text()
    alts = re.findall(r"^:alt: (.*)$", source, flags=re.M)
    images = BeautifulSoup(text, "html.parser").find_all("img")
    assert [image["alt"] for image in images] == [alt.replace("\\", "") for alt in alts] != []
    assert all((made[name].parent / path).exists() for path in re.findall(r'src="([^"]+)"', text))
    predictions = len(re.findall(r"^```\{admonition\} (?:Before you look|Question)$", source, re.M))
    assert text.count('<div class="ask">') == predictions > 0
    if name in COURSE:
        assert text.count('<p class="ask">') == 1 and text.count("Looking back") == 1
    assert not re.search(r'(?:src|href)="https?:', text)


def refused(asked):
    """What is still on its way as its page is left is aborted, and lacks nothing."""
    return asked.failure != "net::ERR_ABORTED"


def test_slides_fit_and_the_keyboard_turns_them(browser, made):
    page, said = browser.new_page(viewport={"width": 1280, "height": 800}), []
    for event in ("pageerror", "console"):
        page.on(event, lambda what: said.append(str(what)))
    page.on("requestfailed", lambda asked: refused(asked) and said.append(asked.url))
    for name, path in made.items():
        page.goto(path.as_uri())
        page.wait_for_function("() => window.Reveal && Reveal.isReady()")
        count = path.read_text().count("<section>")
        for turn in range(count):
            assert page.evaluate("Reveal.getIndices().h") == turn, name
            high = page.evaluate("Reveal.getCurrentSlide().scrollHeight")
            assert 0 < high <= 760, (name, turn, high)
            page.keyboard.press("ArrowRight")
        assert page.evaluate("Reveal.isLastSlide()")
    page.close()
    assert said == []
