"""Sphinx extension: what is to be mended in the HTML of a page before it is written: tables, folded code, roles, ids."""

import re
from html import unescape

# What a cell of a column of numbers holds: 0.31 ± 0.02, -1 to 3, 12 of 60, 1.2 million, 0.1 / 0.2, 5 (3 to 9) %.
NUMBER = re.compile(r"(?:[-+−±(]*\d(?:[\d.,]|e[-+]?\d)*|±|to|of|million|[\s/(),%–;])+")
ROW, CELL = re.compile(r"<tr[^>]*>.*?</tr>", re.S), re.compile(r"<t([hd])([^>]*)>(.*?)</t\1>", re.S)
FOLDED = r'<details class="admonition hide above-input">\n<summary[^>]*>\n'
LABEL = r'<p class="collapsed admonition-title">(?P<label>.*?)</p>\n<p class="expanded [^\n]*</p>\n</summary>\n'
CELL_DIV = r'<div class="cell (?:tag_[\w-]+ )*docutils container">\n'


def text_of(cell: str) -> str:
    """Return the text of a piece of HTML."""
    return unescape(re.sub(r"<[^>]*>", "", cell)).strip()


def is_number(text: str) -> bool:
    """Whether a cell holds a number, or several, with what belongs to them."""
    return bool(re.search(r"\d", text) and NUMBER.fullmatch(text))


def align(table: re.Match) -> str:
    """Mark the columns of words of a data frame, and in columns of numbers the cells that say why there is none."""
    rows = [CELL.findall(row) for row in ROW.findall(table[0])]
    body = [[text_of(text) for kind, _, text in row if kind == "d"] for row in rows if any(cell[0] == "d" for cell in row)]
    words = set()
    for i, column in enumerate(zip(*body, strict=False)):
        filled = [text for text in column if text not in ("", "-", "–", "NaN", "none")]
        if 2 * sum(map(is_number, filled)) < len(filled):
            words.add(i)
    width = len(body[0]) if body else 0

    def row(found):
        cells, place = CELL.findall(found[0]), iter(range(10**6))
        heads = sum(kind == "h" for kind, _, _ in cells)
        skipped = heads - width if heads == len(cells) else heads  # what names the rows

        def cell(match):
            column = next(place) - skipped
            kind = "words" if column in words else "said" if match[1] == "d" and not is_number(text_of(match[3])) else ""
            return f'<t{match[1]}{match[2]}{f" class={chr(34)}{kind}{chr(34)}" * bool(kind)}>{match[3]}</t{match[1]}>'

        return CELL.sub(cell, found[0])

    return ROW.sub(row, table[0])


def join_folded(body: str) -> str:
    """Make one of folded cells that follow each other with nothing to be seen between them."""

    def joined(match):
        label, rest = match.groups()
        if others := re.findall("\0(.*?)\0", rest):
            kinds = (re.fullmatch(r"code(?: of the (\w+))?: (.*)", one).groups() for one in (label, *others))
            label = "code: " + "; ".join(": ".join(filter(None, kind)) for kind in kinds)
        return label + re.sub("\0.*?\0", "", rest)

    body = re.sub(rf"</details>\n</div>\n{CELL_DIV}{FOLDED}{LABEL}", "\0\\g<label>\0", body)
    return re.sub(r'(?<=<p class="collapsed admonition-title">)(.*?)(</p>.*?</details>)', joined, body, flags=re.S)


def mend(app, pagename, templatename, context, doctree):
    """Mend the body of a page."""
    if "body" not in context:
        return
    # Entries of a bibliography are items of their list; figures, which phones scroll, are reachable by keyboard.
    body = context["body"].replace(' role="doc-biblioentry"', ' role="listitem"')
    body = body.replace("<figure class", '<figure tabindex="0" class')
    # A signature of several lines is a list of definitions without terms.
    lines = r"<dl>\n((?:<dd><em class=\"sig-param.*?</dd>\n)+)</dl>"
    body = re.sub(lines, lambda m: re.sub(r"<(/?)dd>", lambda d: "</div>" if d[1] else "<div>", m[1]), body)
    body = re.sub(r' id="(?:exercise|solution)-content"', "", body)  # of every exercise of a page
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")  # it says what it hides
    body = re.sub(r'<table border="1" class="dataframe">.*?</table>', align, body, flags=re.S)
    context["body"] = join_folded(body)


def setup(app):
    """Register."""
    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
