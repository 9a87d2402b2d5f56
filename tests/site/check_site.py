"""What a reader meets on every page of the built website, offline. Run by `make check-site`."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import nbformat
import pytest
from chapters import ROOT, has_code, pages
from sources import ARCHIVE, FOLDER, WHEEL, notebooks

from tests.test_course import COURSE

SITE = ROOT / "_build/html"
PAGES = [str(page.with_suffix(".html")) for page in pages()]
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 1,
    "has_touch": True,
    "is_mobile": True,
}
DESKTOP = {"viewport": {"width": 1400, "height": 900}}


@pytest.mark.parametrize("name", COURSE)
def test_a_chapter_of_the_course_begins_with_its_picture(open_page, name):
    """The first figure begins within a screen and a half, after the question."""
    page = open_page(f"book/{name}.html", viewport={"width": 1440, "height": 900})
    page.wait_for_load_state("networkidle")
    assert page.locator("figure").first.bounding_box()["y"] < 1.5 * 900


@pytest.mark.parametrize("name", COURSE)
def test_a_quiz_is_answered_from_the_keyboard(open_page, name):
    """Each choice is folded, and opens by Enter."""
    page = open_page(f"book/{name}.html", java_script_enabled=False, **DESKTOP)
    choices = page.locator("#quiz details")
    assert choices.count() == 15
    answer = choices.first.locator("p").first
    assert not answer.is_visible()
    choices.first.locator("summary").focus()
    page.keyboard.press("Enter")
    assert answer.is_visible()


def test_figures_keep_a_size_that_can_be_read_on_a_phone(open_page):
    """Figures scroll in a box of their own, with their caption in view: labels of 7 points have 7
    pixels at least.
    """
    page = open_page("book/sharing-measured.html", **PHONE)
    figures = page.locator("figure[tabindex='0']")
    assert figures.count() == page.locator("figure").count() > 5
    for i in range(figures.count()):
        figures.nth(i).evaluate("figure => figure.scrollLeft = 200")
        assert figures.nth(i).locator("img").bounding_box()["width"] >= 540
        caption = figures.nth(i).locator("figcaption").bounding_box()
        assert caption["x"] >= 0 and caption["x"] + caption["width"] <= 390


@pytest.mark.parametrize("path", PAGES)
def test_mathematics_is_typeset(open_page, path):
    """Every formula of a page is set in MathJax's fonts, and is there to be heard; nothing is left
    as TeX.
    """
    page = open_page(path, java_script_enabled=False)
    formulas = page.locator(".math").count()
    assert page.locator(".math > mjx-container").count() == formulas
    assert page.locator(".math > mjx-container > mjx-assistive-mml > math").count() == formulas
    if formulas:
        assert (
            page.locator("mjx-c")
            .first.evaluate("c => getComputedStyle(c, '::before').fontFamily")
            .startswith("MJX")
        )


def test_some_page_has_mathematics(open_page):
    """The test above looks at something."""
    assert any(open_page(path).locator("mjx-container").count() for path in PAGES)


class Anchors(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Collect what one tag holds."""
        attributes = dict(attributes)
        self.ids.update({attributes.get("id"), attributes.get("name")} - {None})
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]


def broken_links(site):
    """Yield the links of a site's pages that lead to no file or no anchor of it."""
    files = [path.relative_to(site) for path in site.rglob("*.html")]
    parsed = {
        file.as_posix(): Anchors((site / file).read_text())
        for file in files
        if file.parts[0] != "_static"
    }
    for name, page in parsed.items():
        for link in page.links:
            target, anchor = urldefrag(urljoin(f"/{name}", link))
            if urlparse(link).scheme or link.startswith("//"):
                continue
            target = unquote(urlparse(target).path).lstrip("/")
            if not (site / target).is_file():
                yield f"{name}: {link}"
            elif anchor and target in parsed and unquote(anchor) not in parsed[target].ids:
                yield f"{name}: {link}, no such anchor"


def test_links_lead_somewhere(tmp_path):
    """No broken link or anchor within the site; the check finds both kinds."""
    (tmp_path / "a.html").write_text(
        "<a id=x href='#x'></a><a href='a.html#y'></a><img src='b.png'>"
    )
    assert sorted(broken_links(tmp_path)) == ["a.html: a.html#y, no such anchor", "a.html: b.png"]
    assert list(broken_links(SITE)) == []


@pytest.mark.parametrize("page", PAGES)
def test_notebook_wheel_and_archive_are_offered(page):
    """Every page's download menu leads to its notebook, and to what runs it."""
    offered = [notebooks()[page.removesuffix(".html")], WHEEL, ARCHIVE]
    found = re.findall(rf'href="(\.\./{FOLDER}/[^"]*)"', (SITE / page).read_text())
    assert sorted(link.rsplit("/", 1)[-1] for link in found) == sorted(offered)
    assert all((SITE / "book" / link).resolve().is_file() for link in found)


@pytest.mark.parametrize("page", ["book/index.html", "book/flat-bnn.html", "book/glossary.html"])
def test_notebook_can_be_downloaded(open_page, page):
    """From the menu: numbers and outputs in their places."""
    opened = open_page(page, **DESKTOP)
    menu = opened.locator(".dropdown-download-buttons")
    menu.locator("> button").click()
    with opened.expect_download() as download:
        menu.locator("a[href$='.ipynb']").evaluate("a => { a.download = ''; a.click() }")
    notebook = nbformat.read(download.value.path(), as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert bool(code) == has_code(Path(page).with_suffix(".md"))
    assert all(cell.execution_count for cell in code[1:] if cell.source.strip())
    assert not [o for cell in code for o in cell.outputs if o.output_type == "error"]
    assert opened.faults == []


def test_a_table_scrolls_back(open_page):
    """The hint turns round at the end."""
    page = open_page("book/comparing-inference.html", viewport={"width": 390, "height": 900})
    place = page.locator("[data-scrolls=on]").first
    place.evaluate("place => place.scrollTo(place.scrollWidth, 0)")
    page.wait_for_selector("[data-scrolls=back]")


@pytest.mark.parametrize("path", PAGES)
def test_what_is_folded_says_what_it_is(path):
    """Every toggle of code has a label of its own, and toggles that would touch are one."""
    text = (SITE / path).read_text()
    labels = re.findall(r'<p class="collapsed admonition-title">(.*?)</p>', text)
    assert (
        len(labels)
        == len(set(labels))
        == text.count('<details class="admonition hide above-input">')
    )
    assert all(re.match(r"code(?: of the \w+)?: \S.{4,}", label) for label in labels), labels
    assert not re.search(r'</details>\n</div>\n<div class="cell[^>]*>\n<details', text)
    assert 'aria-label="Toggle' not in text


def test_a_switch_unfolds_all_code_here_and_on_the_next_page(open_page):
    page = open_page("book/flat-bnn.html", **DESKTOP)
    assert page.locator(".bd-article details.above-input:not([open])").count() > 5
    page.locator(".code-switch").click()
    assert page.locator(".code-switch").get_attribute("aria-pressed") == "true"
    assert page.locator(".bd-article details.above-input:not([open])").count() == 0
    page.goto(page.url.replace("flat-bnn", "data"))
    page.wait_for_selector(".bd-article details.above-input[open]")
    page.locator(".code-switch").click()
    assert page.locator(".bd-article details.above-input[open]").count() == 0
    page.goto(page.url.replace("data", "glossary"))
    assert page.locator(".code-switch").count() == 0


@pytest.mark.parametrize("path", [*PAGES, "search.html", "genindex.html", "404.html"])
def test_ids_are_used_once(path):
    found = re.findall(r'<[^>]* id="([^"]+)"', (SITE / path).read_text())
    assert sorted({name for name in found if found.count(name) > 1}) == []


def test_the_helpers_fit_a_narrow_phone(open_page):
    page = open_page("book/api.html", viewport={"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_captions_are_as_legible_as_text(open_page):
    """Of its weight and colour, and of 16 pixels, so that a caption is no paragraph."""
    page = open_page("book/flat-bnn.html", **DESKTOP)
    style = "e => { const s = getComputedStyle(e); return [s.fontWeight, s.color, s.fontSize] }"
    text = page.locator(".bd-article section > p").first.evaluate(style)
    captions = page.locator("figcaption p, figcaption .caption-text").evaluate_all(
        f"all => all.map({style})"
    )
    assert {tuple(caption) for caption in captions} == {(*text[:2], "16px")}


def test_which_method_prints_on_one_sheet(open_page):
    page = open_page("book/which-method.html")
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) == 1
