"""The built website, served on this machine, and a browser that can reach nothing else."""

import functools
import http.server
import threading
from contextlib import contextmanager
from pathlib import Path

import chromium
import pytest
from chapters import ROOT
from playwright.sync_api import sync_playwright

SITE = ROOT / "_build/html"


class Server(http.server.ThreadingHTTPServer):
    """A server where more connections may wait than the five of Python's: what is turned away on a
    busy machine tries again after 1, 2, 4, 8 seconds, longer than a page may take.
    """

    request_queue_size = 128


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server that logs nothing and sends 404.html for what is missing, as GitHub Pages
    does.
    """

    def log_message(self, *arguments):
        """Say nothing."""

    def send_error(self, code, *arguments, **options):
        """Send the page for what is missing."""
        page = Path(self.directory, "404.html")
        if code != 404 or not page.is_file():
            return super().send_error(code, *arguments, **options)
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page.read_bytes())


def pytest_collection_modifyitems(items):
    """Let a worker have a file of its own, but share the pages that are seen: they are most of the
    time, and one worker would see them alone. They come last, since they are the smallest parts.
    """
    items.sort(key=lambda item: "seen" in item.fixturenames)
    for item in items:
        place = item.path.stem
        if "seen" in item.fixturenames:
            place = item.callspec.params["seen"][0]
        item.add_marker(pytest.mark.xdist_group(place))


@pytest.fixture(scope="session")
def address():
    """Serve the site on a free port."""
    if not (SITE / "index.html").is_file():
        pytest.exit("no website to look at: run `make book` first", returncode=2)
    handler = functools.partial(Quiet, directory=SITE)
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, headless."""
    if not chromium.PATH.exists():
        pytest.exit(chromium.MISSING, returncode=2)
    with sync_playwright() as playwright:
        started = chromium.start(
            playwright, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def open_pages(browser, address):
    """Return ``open_pages()``, within which ``open_page(path, **context)`` is a loaded page with an
    empty cache, its ``answers`` and its ``faults``: console, errors, foreign requests.
    """
    return contextmanager(lambda: _opened(browser, address))


@pytest.fixture
def open_page(open_pages):
    """Return ``open_page(path, **context)`` for one test."""
    with open_pages() as load:
        yield load


def _opened(browser, address):
    contexts = []

    def load(path, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.faults, page.answers = [], []

        def asked(request):
            if not request.url.startswith((address, "data:", "blob:")):
                page.faults.append(f"request to {request.url}")

        context.on("request", asked)
        page.on(
            "console",
            lambda m: m.type in ("error", "warning") and page.faults.append(f"console: {m.text}"),
        )

        def answered(answer):
            page.answers.append(answer)
            if answer.status >= 400:
                page.faults.append(f"{answer.status}: {answer.url}")

        page.on("response", answered)
        page.on("pageerror", lambda error: page.faults.append(f"error: {error}"))
        page.goto(f"{address}/{path}")
        if options.get("java_script_enabled", True):
            page.wait_for_function("async () => await document.fonts.ready")
        return page

    try:
        yield load
    finally:
        for context in contexts:
            context.close()
