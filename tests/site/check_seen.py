"""What a reader meets on every page, on a desktop, in its dark theme and on a phone: each is opened
once, and all tests look at it.
"""

import gzip

import pytest
from axe_playwright_python.sync_playwright import Axe
from check_site import DESKTOP, PAGES, PHONE

SCREENS = {"desktop": DESKTOP, "dark": DESKTOP | {"color_scheme": "dark"}, "phone": PHONE}
WIDTHS = {"desktop": (1440, 1024, 390), "dark": (1440,), "phone": (390,)}  # of tables
OTHERS = ["index.html", "search.html", "genindex.html", "404.html"]  # which Sphinx makes, or we
MOST = 1500  # kB of 1000 bytes that a page weighs, as a server that compresses sends it
PACKED = (".png", ".jpg", ".woff", ".woff2", ".gz")  # already compressed; sent as they are
# Of the tokens of code that look alike one stays a part of its own: thousands of them, all of a few
# classes, take axe most of its time. On another ground, or where code is folded, they are others:
# axe passes over what is not shown.
ALIKE = """() => {
  const seen = new Set();
  for (const token of document.querySelectorAll(':is(pre, .sig) span:not(:has(a))')) {
    const place = token.closest('.output, .admonition, details')?.className;
    const shown = token.checkVisibility({visibilityProperty: true, opacityProperty: true});
    const kind = `${token.className} in ${token.parentElement.className} in ${place} ${shown}`;
    if (seen.has(kind)) token.replaceWith(...token.childNodes); else seen.add(kind);
  }
  return seen.size;
}"""

TABLES = """() => [...document.querySelectorAll('.bd-article table')].map((table) => {
  const place = table.closest('div.output, .pst-scrollable-table-container') ?? table.parentElement;
  const hint = getComputedStyle(place, '::before').content, box = place.getBoundingClientRect();
  const cells = [...table.querySelectorAll('td')].filter((cell) => cell.closest('table') === table);
  const narrow = cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length;
  return {wide: place.scrollWidth > place.clientWidth + 1, hint, narrow,
          outside: box.right > document.documentElement.clientWidth + 1,
          head: table.textContent.trim().slice(0, 40)};
})"""


@pytest.fixture(
    scope="module",
    params=[(path, screen) for path in [*PAGES, *OTHERS] for screen in SCREENS],
    ids=lambda pair: "-".join(pair),
)
def seen(request, open_pages):
    """Return an open page and the name of its screen; the tests of one follow each other."""
    path, screen = request.param
    with open_pages() as open_page:
        page = open_page(path, **SCREENS[screen])
        page.wait_for_load_state("networkidle")
        page.eval_on_selector_all("img", "all => all.forEach(i => (i.loading = 'eager'))")
        page.wait_for_load_state("networkidle")
        yield page, screen


@pytest.fixture(scope="module")
def weights():
    """Return kilobytes by file: pages share many."""
    return {}


def test_page_is_light(seen, weights):
    """With all that it loads, its pictures included."""
    page, _ = seen
    asked = enumerate(answer.request.is_navigation_request() for answer in page.answers)
    last = max(i for i, leads in asked if leads)  # of a page that leads on: what it leads to
    parts = {answer.url.split("?")[0]: answer for answer in page.answers[last:] if answer.ok}
    for name in parts.keys() - weights.keys():
        body = parts[name].body()
        weights[name] = len(body if name.endswith(PACKED) else gzip.compress(body, 6)) / 1000
    of_page = {name: weights[name] for name in parts}
    assert len(parts) > 10  # the style, scripts and pictures were seen
    assert sum(of_page.values()) < MOST, sorted(of_page.items(), key=lambda item: -item[1])


def test_page_is_clean(seen):
    """No console message, no failed request, none to another host; nothing wider than the
    screen.
    """
    page, _ = seen
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


def test_both_themes_render(seen):
    """A reader who prefers dark gets dark text grounds, with pictures left as they are drawn."""
    page, screen = seen
    theme = "dark" if screen == "dark" else "light"
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ground = sum(int(part) for part in colour.strip("rgba()").split(",")[:3])
    assert ground < 200 if theme == "dark" else ground > 600
    filters = page.eval_on_selector_all(
        ".bd-article img", "all => all.map(i => getComputedStyle(i).filter)"
    )
    assert set(filters) <= {"none"}


def test_page_is_accessible(seen):
    """axe finds no serious or critical fault."""
    page, _ = seen
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(ALIKE)
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response
    assert len(found["passes"]) > 10
    serious = [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
    assert serious == [], "\n".join(serious)


@pytest.mark.parametrize("place", [".highlight pre .n", ".highlight pre .k", "table.dataframe td"])
def test_a_fault_among_what_looks_alike_is_found(open_page, place):
    """The test above would see a token, or a cell, that cannot be read: folded code before it, on
    this page, does not hide it.
    """
    page = open_page("book/flat-bnn.html", **DESKTOP)
    pale = """all => { for (const e of all)
      if (e.checkVisibility()) e.style.setProperty('color', '#ccc', 'important') }"""
    assert not page.locator(".highlight pre .k").first.is_visible()
    page.eval_on_selector_all(place, pale)
    page.evaluate(ALIKE)
    options = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}
    assert [rule["id"] for rule in Axe().run(page, options=options).response["violations"]]


def test_pictures_load_and_speak(seen):
    """Every picture of the article has loaded and has an alt text that a person wrote."""
    page, _ = seen
    pictures = page.eval_on_selector_all(
        ".bd-article img",
        "all => all.map(i => ({src: i.src, alt: i.alt, inside: i.naturalWidth}))",
    )
    for picture in pictures:
        assert picture["inside"] > 0, f"not loaded: {picture}"
        assert len(picture["alt"]) >= 40, picture
        assert not picture["alt"].endswith((".png", ".svg")) and "_build" not in picture["alt"], (
            picture
        )


def test_no_table_is_cut_unsaid(seen):
    """At any width a table fits, or says above that it scrolls; and no cell hides a part of
    itself.
    """
    page, screen = seen  # last, since it changes the size of what is seen
    for width in WIDTHS[screen]:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(200)
        for table in page.evaluate(TABLES):
            assert not table["outside"] and not table["narrow"], (width, table)
            assert ("scroll" in table["hint"]) == table["wide"], (width, table)
