"""What a reader meets on every page of the built website, offline. Run by `make check-site`."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from chapters import ROOT, has_code, pages

SITE = ROOT / "_build/html"
PAGES = [str(page.with_suffix(".html")) for page in pages()]
CHAPTERS = [page.with_suffix("") for page in pages() if has_code(page)]
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 1, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1400, "height": 900}}
DARK = DESKTOP | {"color_scheme": "dark"}


@pytest.mark.parametrize("path", [*PAGES, "index.html", "search.html", "genindex.html"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_page_is_clean(open_page, path, screen):
    """No console message, no failed request, none to another host; nothing wider than the screen."""
    page = open_page(path, **screen)
    page.wait_for_load_state("networkidle")
    assert page.faults == []
    assert page.title()
    # Not innerWidth: on a phone it grows with what is too wide.
    wide = page.evaluate(
        """() => [...document.querySelectorAll('body *')].filter(e => {
             const box = e.getBoundingClientRect(), edge = document.documentElement.clientWidth
             return box.width && box.right > edge + 1 && box.left < edge
           }).map(e => e.tagName + '.' + e.className).slice(0, 8)"""
    )
    root = page.evaluate_handle("document.documentElement")
    assert root.evaluate("root => root.scrollWidth - root.clientWidth") <= 0, wide


def test_figures_keep_a_size_that_can_be_read_on_a_phone(open_page):
    """Figures scroll in a box of their own, with their caption in view: labels of 7 points have 7 pixels at least."""
    page = open_page("book/hierarchical-bnn.html", **PHONE)
    figures = page.locator("figure[tabindex='0']")
    assert figures.count() == page.locator("figure").count() > 5
    for i in range(figures.count()):
        figures.nth(i).evaluate("figure => figure.scrollLeft = 200")
        assert figures.nth(i).locator("img").bounding_box()["width"] >= 540
        caption = figures.nth(i).locator("figcaption").bounding_box()
        assert caption["x"] >= 0 and caption["x"] + caption["width"] <= 390


@pytest.mark.parametrize("path", PAGES)
def test_mathematics_is_typeset(open_page, path):
    """Every formula of a page is set in MathJax's fonts, and is there to be heard; nothing is left as TeX."""
    page = open_page(path, java_script_enabled=False)
    formulas = page.locator(".math").count()
    assert page.locator(".math > mjx-container").count() == formulas
    assert page.locator(".math > mjx-container > mjx-assistive-mml > math").count() == formulas
    if formulas:
        assert page.locator("mjx-c").first.evaluate("c => getComputedStyle(c, '::before').fontFamily").startswith("MJX")


def test_some_page_has_mathematics(open_page):
    """The test above looks at something."""
    assert any(open_page(path).locator("mjx-container").count() for path in PAGES)


@pytest.mark.parametrize("path", PAGES)
def test_pictures_load_and_speak(open_page, path):
    """Every picture of the article has loaded and has an alt text that a person wrote."""
    page = open_page(path)
    pictures = page.eval_on_selector_all(
        ".bd-article img",
        "all => all.map(i => { i.loading = 'eager'; return {src: i.src, alt: i.alt, inside: i.naturalWidth} })",
    )
    for picture in pictures:
        assert picture["inside"] > 0, f"not loaded: {picture}"
        assert len(picture["alt"]) >= 40, picture
        assert not picture["alt"].endswith((".png", ".svg")) and "_build" not in picture["alt"], picture


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
    parsed = {file.as_posix(): Anchors((site / file).read_text()) for file in files if file.parts[0] != "_static"}
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
    (tmp_path / "a.html").write_text("<a id=x href='#x'></a><a href='a.html#y'></a><img src='b.png'>")
    assert sorted(broken_links(tmp_path)) == ["a.html: a.html#y, no such anchor", "a.html: b.png"]
    assert list(broken_links(SITE)) == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=str)
def test_executed_notebook_can_be_downloaded(open_page, chapter):
    """The page's download menu offers its notebook, every cell executed, outputs and all."""
    page = open_page(f"{chapter}.html", **DESKTOP)
    page.locator(".dropdown-download-buttons > button").click()
    with page.expect_download() as download:
        page.locator(".dropdown-download-buttons a[href$='.ipynb']").evaluate("a => { a.download = ''; a.click() }")
    notebook = nbformat.read(download.value.path(), as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code if cell.source.strip())
    assert any(cell.outputs for cell in code)
    assert not [o for cell in code for o in cell.outputs if o.output_type == "error"]


# What a reader would type, and the page that answers it.
QUERIES = {
    "GPU": "if-something-goes-wrong",
    "install": "if-something-goes-wrong",
    "own data": "if-something-goes-wrong",
    "label noise": "if-something-goes-wrong",
    "missing values": "if-something-goes-wrong",
    "NaN": "if-something-goes-wrong",
    "divergences": "if-something-goes-wrong",
    "slow": "if-something-goes-wrong",
    "own table": "first-hour",
    "which method": "which-method",
    "mixed model": "which-method",
    "new group": "which-method",
    "prior scale": "choosing-the-prior",
    "overconfidence": "overconfidence",
    "R-hat": "glossary",
    "effective sample size": "glossary",
    "posterior": "glossary",
}


@pytest.mark.parametrize("query", QUERIES)
def test_search_finds_the_right_page_first(open_page, query):
    page = open_page(f"search.html?q={query.replace(' ', '+')}")
    page.wait_for_selector("#search-results li a")
    page.wait_for_function("!document.querySelector('#search-progress')?.textContent.includes('...')")
    link = page.locator("#search-results li a").first
    assert link.get_attribute("href").split("?")[0].split("#")[0] == f"book/{QUERIES[query]}.html"
    assert page.faults == []


def test_which_method_prints_on_one_sheet(open_page):
    page = open_page("book/which-method.html")
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) == 1


@pytest.mark.parametrize("path", PAGES)
def test_both_themes_render(open_page, path):
    """A reader who prefers dark gets dark text grounds, with pictures left as they are drawn."""
    grounds = {}
    for theme in ("light", "dark"):
        page = open_page(path, color_scheme=theme, **DESKTOP)
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        grounds[theme] = sum(int(part) for part in colour.strip("rgba()").split(",")[:3])
        filters = page.eval_on_selector_all(".bd-article img", "all => all.map(i => getComputedStyle(i).filter)")
        assert set(filters) <= {"none"}
    assert grounds["light"] > 600 > 200 > grounds["dark"]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "screen", [DESKTOP, PHONE, DESKTOP | {"color_scheme": "dark"}], ids=["desktop", "phone", "dark"]
)
def test_page_is_accessible(open_page, path, screen):
    """axe finds no serious or critical fault."""
    found = Axe().run(open_page(path, reduced_motion="reduce", **screen)).response
    assert len(found["passes"]) > 10
    serious = [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
    assert serious == [], "\n".join(serious)
