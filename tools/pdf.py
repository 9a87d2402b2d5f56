"""Print the whole book as one PDF, from the website that was built, in Debian's Chromium.

    python tools/pdf.py         _build/pdf/NAME.pdf, which the website then offers, too

Pages are joined as they are on the site, formulas set and figures drawn, and shown with
``print.css`` after ``print.js`` has made what paper needs of them: code that is folded on the site
is left out, solutions and answers stand at the end of their page. Chromium writes the outline from
the headings. It is printed twice, since the contents have page numbers.
"""

import re
import shutil
import sys
from html import escape
from pathlib import Path

import chromium
import yaml
from book_identity import AUTHORS, BOOK, DATE, OFFER, PROJECT
from chapters import ROOT
from playwright.sync_api import Browser, sync_playwright
from sources import site_address

NAME = f"{PROJECT['name']}.pdf"
SITE, FOLDER = ROOT / "_build/html", ROOT / "_build/pdf"
TOOLS = Path(__file__).resolve().parent
# all of them before anything is measured
LOAD_FACES = "Promise.all([...document.fonts].map((face) => face.load())).then(() => 0)"
ROOM = 658  # pixels that the margins of print.css leave of A4's width: 174 mm
STYLES = re.compile(r'<link(?=[^>]*stylesheet)[^>]*?href="([^"]+)"[^>]*>')

NUMBER_CONTENTS = """numbers => document.querySelectorAll('#contents a').forEach((link) => {
  link.querySelector('b').textContent = numbers[link.hash.slice(1)] ?? '';
})"""
HEAD = """<!DOCTYPE html>
<html lang="en" data-theme="light" data-content_root="../">
<head><meta charset="utf-8"><title>{title}</title><meta name="author" content="{authors}">
{styles}<style>{style}</style></head>
<body data-site="{site}"><main>
"""
FRONT = """<section class="front">
<p class="title">{title}</p><p class="subtitle">{subtitle}</p>
<p>{authors}</p><p>Version {version}, {date}</p><p>{about}.</p>
<p>Text and figures: CC BY 4.0. Code: Apache-2.0.</p>
<p>This is the website on paper. Code that is folded there is left out here, and the
playground is a picture: the notebooks, which the website offers, have all code. Solutions of
exercises and answers to a quiz stand at the end of their chapter.</p>
</section>
"""


def parts(toc: dict) -> list[tuple[str, list[str]]]:
    """Return the parts of the contents, each with the names of its pages; the first has the first
    page.
    """
    found = [("", [Path(toc["root"]).stem])]
    for part in toc.get("parts", [toc]):
        names = [Path(entry["file"]).stem for entry in part["chapters"]]
        found.append((part.get("caption", ""), names))
    return found


def article(page: str) -> str:
    """Return what a page of the site says, between its menus."""
    start, end = '<article class="bd-article">', "</article>"
    return page[page.index(start) + len(start) : page.rindex(end)]


def title_of(page: str) -> str:
    """Return a page's title with its number, as text that may stand in HTML."""
    heading = re.search(r"<h1>(.*?)(?:<a class=\"headerlink\".*?)?</h1>", article(page), re.S)[1]
    return re.sub(r"<[^>]*>", "", heading).strip()


def joined(site: Path, toc: dict) -> str:
    """Return one document of all pages of a site, to lie in a folder beside the site's."""
    found = parts(toc)
    texts = {
        name: (site / f"book/{name}.html").read_text(encoding="utf-8")
        for _, names in found
        for name in names
    }
    there = f"../{site.name}/"  # pages lie in book/, so what they load begins with ../
    hrefs = dict.fromkeys(href for text in texts.values() for href in STYLES.findall(text))
    styles = [f'<link rel="stylesheet" href="{href}">\n' for href in hrefs if href[:3] == "../"]
    heads = "".join(
        f'@page {name} {{ @top-left {{ content: "{css_string(title_of(text))}"; }} }}\n'
        f'article[data-page="{name}"] {{ page: {name}; }}\n'
        for name, text in texts.items()
    )
    about = {"title": BOOK["title"], "subtitle": BOOK["subtitle"], "authors": ", ".join(AUTHORS)}
    about |= {"version": PROJECT["version"], "date": DATE, "about": PROJECT["description"]}
    about = {key: escape(value) for key, value in about.items()}
    about |= {"styles": "".join(styles), "site": site_address()}
    about["style"] = (TOOLS / "print.css").read_text(encoding="utf-8") + heads
    lines, body = [], []
    for caption, names in found:
        if caption:
            lines.append(f'<li class="of-part">{escape(caption)}</li>')
            body.append(f'<section class="part"><h1>{escape(caption)}</h1></section>\n')
        for name in names:
            lines.append(f'<li><a href="#{name}"><span>{title_of(texts[name])}</span><b></b></a>')
            body.append(
                f'<article class="bd-article" data-page="{name}" id="{name}">'
                f"{article(texts[name])}</article>\n"
            )
    contents = '<nav id="contents"><h1>Contents</h1><ol>' + "\n".join(lines)
    text = HEAD.format(**about) + FRONT.format(**about) + contents + "</ol></nav>\n"
    text += "".join(body) + "</main></body></html>\n"
    return re.sub(r'( src="|<link rel="stylesheet" href=")\.\./', rf"\g<1>{there}", text)


def css_string(text: str) -> str:
    """Return a text as it may stand in quotes in a style sheet within a page."""
    text = text.replace("&amp;", "&").replace("\\", r"\5c ").replace('"', r"\22 ")
    return text.replace("<", r"\3c ").replace("\n", " ")


def objects(pdf: bytes) -> dict[int, bytes]:
    """Return the objects of a PDF by Chromium, which compresses streams alone."""
    found = re.findall(rb"^(\d+) 0 obj\n(.*?)\nendobj", pdf, flags=re.M | re.S)
    return {int(number): content for number, content in found}


def leaves(found: dict[int, bytes]) -> list[int]:
    """Return the numbers of the objects that are pages, in their order."""

    def below(number: int) -> list[int]:
        kids = re.search(rb"/Kids \[(.*?)\]", found[number], re.S)
        if not kids:
            return [number]
        return [leaf for kid in re.findall(rb"(\d+) 0 R", kids[1]) for leaf in below(int(kid))]

    return below(reference(catalogue(found), b"Pages"))


def catalogue(found: dict[int, bytes]) -> bytes:
    """Return the object from which all others are reached."""
    return next(one for one in found.values() if b"/Type /Catalog" in one)


def page_numbers(pdf: bytes) -> dict[str, int]:
    """Return the page, counted from 1, of every place to which links lead, by its name."""
    found = objects(pdf)
    order = {number: i for i, number in enumerate(leaves(found), start=1)}
    places = found[reference(catalogue(found), b"Dests")]
    return {
        name.decode(): order[int(number)]
        for name, number in re.findall(rb"/(\S+) \[(\d+) 0 R /XYZ", places)
    }


def reference(content: bytes, key: bytes) -> int:
    """Return the number of the object to which a key of another leads."""
    return int(re.search(rb"/" + key + rb" (\d+) 0 R", content)[1])


def printed(browser: Browser, document: Path, numbers: dict[str, int]) -> bytes:
    """Return the PDF of a joined document, with numbers of pages in its contents.

    RuntimeError: something is wider than the paper or would be too small on it, or a link leads
        nowhere.
    """
    with browser.new_page(viewport={"width": ROOM, "height": 950}, color_scheme="light") as page:
        page.set_default_timeout(300_000)
        page.emulate_media(media="print")
        page.goto(document.as_uri())
        page.evaluate(LOAD_FACES)
        found = page.evaluate((TOOLS / "print.js").read_text(encoding="utf-8"))
        faults = [*found["wide"], *found["lost"], *found["small"]]
        if faults:
            raise RuntimeError("\n".join(["too wide, too small, or lost:", *faults]))
        page.evaluate(NUMBER_CONTENTS, numbers)
        return page.pdf(prefer_css_page_size=True, outline=True, tagged=True)


def numbered(browser: Browser, document: Path) -> bytes:
    """Return the PDF of a joined document whose contents have the numbers of their pages.

    Each print opens the document anew: of a document that was printed before, Chromium breaks
    some pages elsewhere.

    RuntimeError: as ``printed``; or something stands on another page with the numbers than
        without them.
    """
    numbers = page_numbers(printed(browser, document, {}))
    pdf = printed(browser, document, numbers)
    again = page_numbers(pdf)
    moved = [
        f"{name}: {numbers.get(name)}, {again.get(name)}"
        for name in numbers | again
        if again.get(name) != numbers.get(name)
    ]
    if moved:
        raise RuntimeError("\n".join(["page, without numbers and with them:", *moved]))
    return pdf


def offer(site: Path, pdf: Path) -> None:
    """Put the PDF beside the pages of a site, and a link to it at their foot."""
    shutil.copyfile(pdf, site / "_static" / NAME)
    megabytes = pdf.stat().st_size / 1e6
    for path in (site / "book").glob("*.html"):
        link = f'<a href="../_static/{NAME}">The book as PDF</a> ({megabytes:.0f} MB). '
        text = path.read_text(encoding="utf-8")
        beside = path.with_suffix(".new")
        text = re.sub(rf"{OFFER}(<a .*? MB\). )?", OFFER + link, text, count=1)
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)  # whole at any time: tests may be reading it


def write(browser: Browser) -> None:
    """Join the built pages, print them, and offer what came of it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    document = FOLDER / "book.html"
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    document.write_text(joined(SITE, toc), encoding="utf-8")
    (FOLDER / NAME).write_bytes(numbered(browser, document))
    offer(SITE, FOLDER / NAME)


def main() -> None:
    """Start Chromium, write the PDF, say where it is."""
    if not (SITE / "index.html").is_file():
        sys.exit("no website to print: run `make book` first")
    if not chromium.PATH.exists():
        sys.exit(chromium.MISSING)
    with sync_playwright() as playwright:
        # Letters are as wide as their font has them, not as a screen's pixels allow.
        write(chromium.start(playwright, "--font-render-hinting=none"))
    print(f"open {(FOLDER / NAME).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
