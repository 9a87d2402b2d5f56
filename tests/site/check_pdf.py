"""The book as one PDF: outline, links, page numbers, and nothing wider than the paper."""

import re
import zlib
from html import unescape

import pdf
import pytest
import yaml
from chapters import ROOT
from check_site import PAGES, SITE

FOOT = 1070  # of 1123 pixels, where the margin begins that has the number


@pytest.fixture(scope="module")
def book(browser):
    """The PDF that the site offers; it is printed where nobody has done so."""
    offered = SITE / "_static" / pdf.NAME
    if not offered.exists():
        pdf.write(browser)
    return offered.read_bytes()


def text_of(title):
    """A title of the outline: plain, or UTF-16 in hexadecimal digits."""
    if found := re.search(rb"/Title <([0-9A-F]+)>", title):
        return bytes.fromhex(found[1].decode()).decode("utf-16")
    return re.sub(rb"\\(.)", rb"\1", re.search(rb"/Title \((.*?)\)\n", title, re.S)[1]).decode()


def outline(found):
    """Entries of the outline in their order: how deep, what it says, and which object is its
    page.
    """

    def below(content, depth):
        if not (number := re.search(rb"/First (\d+) 0 R", content)):
            return
        while number:
            entry = found[int(number[1])]
            yield depth, text_of(entry), int(re.search(rb"/Dest \[(\d+) 0 R", entry)[1])
            yield from below(entry, depth + 1)
            number = re.search(rb"/Next (\d+) 0 R", entry)

    return list(below(next(one for one in found.values() if b"/Type /Outlines" in one), 0))


def inflated(content):
    """What a compressed stream says."""
    return zlib.decompress(content[content.index(b"stream\n") + 7 :])


def letters(font, found):
    """Which letter each glyph of a font is, as the PDF tells those who copy text."""
    table = inflated(found[pdf.reference(font, b"ToUnicode")])
    known = {}
    for block in re.findall(rb"beginbfrange\n(.*?)endbfrange", table, re.S):
        for first, last, text in re.findall(rb"<(\w+)> <(\w+)> <(\w{4})>", block):
            for i in range(int(first, 16), int(last, 16) + 1):
                known[i] = chr(int(text, 16) + i - int(first, 16))
    for block in re.findall(rb"beginbfchar\n(.*?)endbfchar", table, re.S):
        known |= {int(a, 16): chr(int(b, 16)) for a, b in re.findall(rb"<(\w+)> <(\w{4})>", block)}
    return known


def foot(page, found):
    """What stands below the text of a page."""
    said = ""
    stream = inflated(found[pdf.reference(page, b"Contents")]).split(b"re\nW")[0]
    for font, height, shown in re.findall(rb"BT\n/(F\d+) .*?\S+ (\S+) Tm\n(.*?)ET", stream, re.S):
        if float(height) > FOOT:
            known = letters(found[pdf.reference(page, font)], found)
            said += "".join(known[int(glyph, 16)] for glyph in re.findall(rb"<(\w{4})>", shown))
    return said


def test_the_outline_has_all_parts_and_pages_in_their_order(book):
    found, toc = pdf.objects(book), yaml.safe_load((ROOT / "_toc.yml").read_text())
    expected = [(0, "Contents")]
    for caption, names in pdf.parts(toc):
        expected += [(0, caption)] * bool(caption)
        for name in names:
            title = pdf.title_of((SITE / f"book/{name}.html").read_text(encoding="utf-8"))
            expected.append((1, unescape(title)))
    entries = [(depth, title) for depth, title, _ in outline(found)]
    assert [entry for entry in entries if entry[0] < 2] == expected
    assert sum(depth == 2 for depth, _ in entries) > 5 * len(PAGES)
    assert sum(len(names) for _, names in pdf.parts(toc)) == len(PAGES)


def test_every_link_leads_somewhere(book):
    names, found = pdf.page_numbers(book), pdf.objects(book).values()
    links = [one for one in found if b"/Subtype /Link" in one]
    within = [target[1].decode() for one in links if (target := re.search(rb"/Dest /(\S+)", one))]
    assert len(within) > 20 * len(PAGES) and set(within) <= set(names)
    assert len([one for one in links if b"/URI (" in one]) + len(within) == len(links)
    assert not re.search(rb"/URI \((?!https?://|mailto:)", book)


def test_every_page_has_its_number(book):
    """The first has none: it is the title."""
    found = pdf.objects(book)
    pages = pdf.leaves(found)
    assert len(pages) > 5 * len(PAGES)
    for number, place in enumerate(pages, start=1):
        assert foot(found[place], found) == (str(number) if number > 1 else ""), number
        assert re.search(rb"/MediaBox \[0 0 59[45][\d.]* 84[12][\d.]*\]", found[place])  # A4


def test_the_contents_say_on_which_page_a_page_begins(book):
    found, names = pdf.objects(book), pdf.page_numbers(book)
    pages = pdf.leaves(found)
    begins = {title: pages.index(place) + 1 for depth, title, place in outline(found) if depth == 1}
    for path in PAGES:
        title = unescape(pdf.title_of((SITE / path).read_text(encoding="utf-8")))
        assert names[path.removeprefix("book/").removesuffix(".html")] == begins[title]


def test_the_pages_of_the_site_offer_it(book):
    for path in PAGES:
        text = (SITE / path).read_text(encoding="utf-8")
        assert text.count(f'href="../_static/{pdf.NAME}"') == 1, path
    pdf.offer(SITE, pdf.FOLDER / pdf.NAME)
    assert (SITE / PAGES[0]).read_text().count(f'href="../_static/{pdf.NAME}"') == 1


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<p>A line.</p>", None),
        ("<div style='width: 900px'>wide</div>", "one: DIV"),
        ("<div style='width: 300px; overflow: hidden'><p style='width: 400px'>x</p></div>", "DIV"),
        ("<pre style='white-space: pre !important'>" + "long " * 60 + "</pre>", None),
        ("<table style='min-width: 900px'><tr><td>wide</td></tr></table>", None),
        ("<table style='min-width: 4000px'><tr><td>wide</td></tr></table>", "smaller"),
        ("<a href='#gone'>lost</a>", "one: #gone"),
        ("<a href='one.html#there'>found</a><p id='there'>here</p>", None),
        ("<style>#contents b:not(:empty) { height: 400mm }</style>", "one: 4, 5"),
    ],
)
def test_what_is_too_wide_or_lost_is_not_printed(browser, tmp_path, body, fault):
    page = f'<article class="bd-article"><section><h1>One</h1>{body}</section></article>'
    (tmp_path / "html/book").mkdir(parents=True)
    (tmp_path / "html/book/one.html").write_text(page)
    (tmp_path / "pdf").mkdir()
    document = tmp_path / "pdf/book.html"
    document.write_text(pdf.joined(tmp_path / "html", {"root": "book/one.md", "parts": []}))
    if fault is None:
        assert pdf.numbered(browser, document).startswith(b"%PDF")
        return
    with pytest.raises(RuntimeError, match=fault):
        pdf.numbered(browser, document)
