"""The book's face as a reader gets it: its typefaces, its measure, its figures in both themes."""

import re

import pytest
from chapters import ROOT, pages
from check_site import DESKTOP

SITE = ROOT / "_build/html"
PAGES = [str(page.with_suffix(".html")) for page in pages()]
WIDE = {"viewport": {"width": 1440, "height": 900}}
# pixels of each line of the paragraphs, and how many characters they have
LINES = """() => [...document.querySelectorAll('.bd-article section > p')].flatMap(p => {
  const range = document.createRange(), found = new Map();
  const texts = document.createTreeWalker(p, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode())
    for (let i = 0; i < text.length; i++) {
      range.setStart(text, i); range.setEnd(text, i + 1);
      const y = Math.round(range.getBoundingClientRect().bottom / 8);
      found.set(y, (found.get(y) ?? 0) + 1);
    }
  return [...found.values()].slice(0, -1);
})"""


def test_the_typefaces_arrive_and_are_used(open_page):
    page = open_page("book/data.html", **WIDE)
    page.wait_for_load_state("networkidle")
    loaded = page.evaluate(
        "[...document.fonts].filter(f => f.status == 'loaded').map(f => f.family)"
    )
    assert {"Source Serif 4", "Source Code Pro"} <= {family.strip('"') for family in loaded}
    for place, family in ((".bd-article section > p", "Serif"), ("div.highlight pre", "Code")):
        found = page.locator(place).first.evaluate("e => getComputedStyle(e).fontFamily")
        assert found.startswith(f'"Source {family}'), (place, found)


def test_a_line_of_text_has_66_to_80_characters(open_page):
    """By the median of the full lines of a page of prose."""
    page = open_page("book/what-it-is-worth.html", **WIDE)
    page.wait_for_load_state("networkidle")
    page.reload()  # with the faces that have arrived
    page.wait_for_load_state("networkidle")
    lengths = sorted(page.evaluate(LINES))
    assert len(lengths) > 100 and 66 <= lengths[len(lengths) // 2] <= 80


def shown(page, theme):
    """Wait until all figures are those of a theme; return what they show, by file."""
    is_dark = "i.currentSrc.endsWith('-dark.svg')"
    page.wait_for_function(
        # a function, since the page's policy lets no string be evaluated while Playwright polls
        "() => [...document.querySelectorAll('.bd-article picture img')].every(i => i.currentSrc"
        f" && {is_dark if theme == 'dark' else f'!{is_dark}'})"
    )
    return page.eval_on_selector_all(
        ".bd-article picture img", "all => all.map(i => i.currentSrc.split('/').pop())"
    )


def test_figures_follow_the_theme_that_a_reader_chooses(open_page):
    page = open_page("book/data.html", color_scheme="dark", **DESKTOP)
    page.wait_for_load_state("networkidle")
    dark = shown(page, "dark")
    assert len(dark) >= 4
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        names = [name.replace("-dark", "") for name in dark] if theme == "light" else dark
        assert shown(page, theme) == names


@pytest.mark.parametrize("path", PAGES)
def test_a_figure_is_not_told_by_a_colour_that_the_dark_theme_turns(path):
    """Where no map is shown, black is not black in the dark."""
    text = (SITE / path).read_text()
    figures = re.findall(r"<figure.*?</figure>", text, flags=re.S)
    assert text.count("<picture>") >= sum("_images/" in figure for figure in figures)
    for figure in figures:
        if name := re.search(r'srcset="[^"]*_images/([^"]*-dark\.svg)"', figure):
            words = re.findall(r"(?i)\b(?:black|white)\b", figure)
            drawn = (SITE / "_images" / name[1]).read_text()
            assert not words or 'fill="#000000"' in drawn, (path, words, figure[-300:])
