"""How much a reader downloads: no page weighs more than 1.5 MB, as a server that compresses sends
it.
"""

import gzip

from chapters import ROOT, pages
from check_site import DESKTOP

MOST = 1500  # kB of 1000 bytes
PACKED = (".png", ".jpg", ".woff", ".woff2", ".gz")  # already compressed; sent as they are


def weigh(context, address, path, known):
    """Kilobytes of a page and of all that it loads, by what is loaded, with an empty cache; what is
    ``known`` was weighed with another page, which loads the same files.
    """
    page = context.new_page()
    answers = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(f"{address}/{path}")
    page.evaluate("document.querySelectorAll('img').forEach(image => (image.loading = 'eager'))")
    page.wait_for_load_state("networkidle")
    parts = {}
    for answer in answers:
        if answer.url.startswith(address) and answer.ok:
            name = answer.url.removeprefix(f"{address}/").split("?")[0]
            if name not in known:
                body = answer.body()
                known[name] = len(body if name.endswith(PACKED) else gzip.compress(body, 6)) / 1000
            parts[name] = known[name]
    page.close()
    return parts


def test_pages_are_light(browser, address):
    """The list is written to _build/page-weights.txt, heaviest first."""
    names = [str(page.with_suffix(".html")) for page in pages()]
    weights, known = {}, {}
    for path in [*names, "search.html", "genindex.html", "404.html"]:
        context = browser.new_context(**DESKTOP)
        weights[path] = weigh(context, address, path, known)
        context.close()
    rows = [f"{'kB':>7}  page, and the heaviest that it loads"]
    for path, parts in sorted(weights.items(), key=lambda item: -sum(item[1].values())):
        heaviest = sorted(parts, key=parts.get)[:-4:-1]
        of_it = ", ".join(f"{name.rsplit('/', 1)[-1]} {parts[name]:.0f}" for name in heaviest)
        rows.append(f"{sum(parts.values()):7.0f}  {path}: {of_it}")
    (ROOT / "_build/page-weights.txt").write_text("\n".join(rows) + "\n")
    # the style, scripts and pictures were seen
    assert all(len(parts) > 10 for parts in weights.values())
    assert {
        path: sum(parts.values()) for path, parts in weights.items() if sum(parts.values()) > MOST
    } == {}
