"""A page runs the site's own files and nothing else, and everything that it did before still
works.
"""

import re

import pytest
from chapters import pages
from check_site import DESKTOP, SITE

SAMPLE = ["book/index.html", "book/flat-bnn.html", "search.html"]
PLACES = ["address", SITE.as_uri()]  # from a server, and from a folder


@pytest.fixture(params=PLACES, ids=["server", "folder"])
def visit(request, browser, address):
    """Return ``visit(path)`` -> a page, desktop wide, and its ``faults``: what it says on the
    console.
    """
    place = address if request.param == "address" else request.param
    context = browser.new_context(**DESKTOP)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(60_000)

    def load(path):
        page = context.new_page()
        page.faults = []
        page.on("console", lambda m: m.type in ("error", "warning") and page.faults.append(m.text))
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.goto(f"{place}/{path}")
        return page

    yield load
    context.close()


def test_nothing_runs_from_within_a_page():
    """No script, handler or javascript: address stands in a page, and each has the policy before
    anything it loads.
    """
    written = [path for path in SITE.rglob("*.html") if "_static" not in path.parts]
    assert len(written) > len(pages())
    for path in written:
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\b(src|type=\"application/)[^>]*)", text), path
        tags = re.findall(r"<[a-zA-Z][^<>]*>", text)
        assert [
            tag
            for tag in tags
            if re.search(r"\son\w+\s*=|=\s*[\"']?\s*javascript:", tag, flags=re.I)
        ] == [], path
        policy = text.index('<meta http-equiv="Content-Security-Policy"')
        assert policy < min(
            text.find(what) % len(text) for what in ("<script", "<link", "<style", "Refresh")
        ), path


INJECTIONS = {
    "script": "const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
    "document.body.append(s)",
    "handler": "document.body.insertAdjacentHTML("
    "'beforeend', '<b onclick=\"window.broken = 1\">x</b>');"
    "document.body.lastChild.click()",
    "error": "document.body.insertAdjacentHTML("
    "'beforeend', '<img src=none.png onerror=\"window.broken = 1\">')",
    "link": "document.body.insertAdjacentHTML("
    "'beforeend', '<a href=\"javascript:window.broken = 1\">x</a>');"
    "document.body.lastChild.click()",
    "foreign": "const s = document.createElement('script'); s.src = 'http://127.0.0.1:9/x.js';"
    "s.onload = s.onerror = () => {}; document.body.append(s)",
    "data": "const s = document.createElement('script'); "
    "s.src = 'data:text/javascript,window.broken = 1';"
    "document.body.append(s)",
    "eval": "try { setTimeout('window.broken = 1') } catch {}",
    "frame": "document.body.insertAdjacentHTML('beforeend',"
    "'<iframe srcdoc=\"<script>parent.broken = 1</script>\"></iframe>')",
    "base": "document.head.insertAdjacentHTML('beforeend', '<base href=\"http://127.0.0.1:9/\">');"
    "window.broken = document.baseURI.includes(':9/') ? 1 : undefined",
}


@pytest.mark.parametrize("path", SAMPLE)
def test_what_is_injected_does_not_run(visit, path):
    page = visit(path)
    page.evaluate(
        "addEventListener('securitypolicyviolation', e => (window.refused = e.effectiveDirective))"
    )
    asked = []
    page.on("requestfinished", lambda request: asked.append(request.url))
    for injection, code in INJECTIONS.items():
        page.evaluate("window.refused = undefined")
        page.evaluate(f"() => {{ {code} }}")
        page.wait_for_timeout(200)
        assert page.evaluate("window.broken") is None, injection
        # a frame is told itself
        assert page.evaluate("window.refused") or injection == "frame", injection
    assert not [url for url in asked if ":9/" in url]


def test_the_injections_run_without_the_policy(visit):
    """The test above would see it."""
    page = visit("book/index.html")
    html = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", page.content())
    for injection in INJECTIONS.keys() - {"foreign"}:
        page.goto("about:blank")
        page.set_content(html, wait_until="domcontentloaded")
        page.evaluate(f"() => {{ {INJECTIONS[injection]} }}")
        page.wait_for_function("window.broken === 1")


def test_a_page_does_what_it_did(visit):
    """Theme switch, mathematics, folded cells, copy and full-screen buttons, printing; no console
    message.
    """
    page = visit("book/flat-bnn.html")
    page.wait_for_selector("mjx-container")
    modes = set()
    for _ in range(3):
        page.locator(".theme-switch-button").first.click()
        modes.add(page.evaluate("document.documentElement.dataset.mode"))
    assert modes == {"auto", "light", "dark"}
    fold = page.locator("details.hide").first
    assert fold.get_attribute("open") is None
    fold.locator("summary").click()
    assert fold.get_attribute("open") is not None
    cell = page.locator("div.cell_input:not(details *) div.highlight").first
    cell.hover()
    cell.locator("button.copybtn").click()
    page.wait_for_selector("button.copybtn.success")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() and copied.strip() == cell.inner_text().strip()
    solution = page.locator(".dropdown.admonition").first
    assert "toggle-hidden" in solution.get_attribute("class")
    solution.locator(".admonition-title").click()
    assert "toggle-hidden" not in solution.get_attribute("class")
    page.evaluate("window.print = () => (window.printed = true)")
    page.locator(".btn-download-pdf-button").evaluate("button => button.click()")
    assert page.evaluate("window.printed")
    page.locator(".btn-fullscreen-button").click()
    page.locator(":fullscreen").first.wait_for()
    assert page.faults == []


def test_search_and_navigation_work(visit):
    page = visit("index.html")
    page.wait_for_url("**/book/index.html")
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").fill("overconfidence")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=overconfidence")
    link = page.locator("#search-results li a").first
    link.wait_for()
    assert "overconfidence" in link.get_attribute("href")
    link.click()
    page.wait_for_url("**/book/overconfidence.html*")
    assert not [fault for fault in page.faults if "Security Policy" in fault]
