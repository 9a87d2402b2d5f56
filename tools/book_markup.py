"""Sphinx extension: what is to be mended in the HTML of a page before it is written."""

import re
from html import unescape
from itertools import count

# What a cell of a column of numbers holds: 0.31 ± 0.02, -1 to 3, 12 of 60, 1.2 million, 0.1 / 0.2,
# 5 (3 to 9) %.
NUMBER = re.compile(r"(?:[-+−±(]*\d(?:[\d.,]|e[-+]?\d)*|±|to|of|million|[\s/(),%–;])+")
ROW, CELL = re.compile(r"<tr[^>]*>.*?</tr>", re.S), re.compile(r"<t([hd])([^>]*)>(.*?)</t\1>", re.S)
FOLDED = r'<details class="admonition hide above-input">\n<summary[^>]*>\n'
LABEL = (
    r'<p class="collapsed admonition-title">(?P<label>.*?)</p>\n'
    r'<p class="expanded [^\n]*</p>\n</summary>\n'
)
CELL_DIV = r'<div class="cell (?:tag_[\w-]+ )*docutils container">\n'


def text_of(cell: str) -> str:
    """Return the text of a piece of HTML."""
    return unescape(re.sub(r"<[^>]*>", "", cell)).strip()


def is_number(text: str) -> bool:
    """Whether a cell holds a number, or several, with what belongs to them."""
    return bool(re.search(r"\d", text) and NUMBER.fullmatch(text))


def columns_of_words(rows: list[list[tuple[str, str, str]]]) -> set[int]:
    """Return which columns of a table hold words: most of their cells that are filled hold no
    number.
    """
    found = set()
    body = [[text_of(text) for kind, _, text in row if kind == "d"] for row in rows]
    for i, column in enumerate(zip(*filter(None, body), strict=False)):
        filled = [text for text in column if text not in ("", "-", "–", "NaN", "none")]
        if 2 * sum(map(is_number, filled)) < len(filled):
            found.add(i)
    return found


def align(table: re.Match) -> str:
    """Mark the columns of words of a data frame, and in columns of numbers the cells that say why
    there is none.
    """
    rows = [CELL.findall(row) for row in ROW.findall(table[0])]
    words, width = (
        columns_of_words(rows),
        max(sum(kind == "d" for kind, _, _ in row) for row in rows),
    )

    def marked_row(row):
        cells = CELL.findall(row[0])
        columns = count(width - len(cells))  # what names the rows comes before the first, column 0

        def marked(cell):
            kind, attributes, content = cell.groups()
            column, text = next(columns), text_of(content)
            # it breaks where it has to
            said = kind == "d" and (not is_number(text) or ", " in text)
            name = "words" if column in words else "said" if said else ""
            attributes += f' class="{name}"' if name else ""
            return f"<t{kind}{attributes}>{content}</t{kind}>"

        return CELL.sub(marked, row[0])

    return ROW.sub(marked_row, table[0])


def join_folded(body: str) -> str:
    """Make one of folded cells that follow each other with nothing to be seen between them."""

    def joined(match):
        label, rest = match.groups()
        if others := re.findall("\0(.*?)\0", rest):
            kinds = (
                re.fullmatch(r"code(?: of the (\w+))?: (.*)", one).groups()
                for one in (label, *others)
            )
            label = "code: " + "; ".join(": ".join(filter(None, kind)) for kind in kinds)
        return label + re.sub("\0.*?\0", "", rest)

    body = re.sub(rf"</details>\n</div>\n{CELL_DIV}{FOLDED}{LABEL}", "\0\\g<label>\0", body)
    return re.sub(
        r'(?<=<p class="collapsed admonition-title">)(.*?)(</p>.*?</details>)',
        joined,
        body,
        flags=re.S,
    )


def mend(app, pagename, templatename, context, doctree):
    """Mend the body of a page."""
    if "body" not in context:
        return
    # Entries of a bibliography are items of their list; figures, which phones scroll, are reachable
    # by keyboard.
    body = context["body"].replace(' role="doc-biblioentry"', ' role="listitem"')
    body = body.replace("<figure class", '<figure tabindex="0" class')
    # A signature of several lines is a list of definitions without terms.
    lines = r"<dl>\n((?:<dd><em class=\"sig-param.*?</dd>\n)+)</dl>"
    body = re.sub(
        lines, lambda m: re.sub(r"<(/?)dd>", lambda d: "</div>" if d[1] else "<div>", m[1]), body
    )
    body = re.sub(r' id="(?:exercise|solution)-content"', "", body)  # of every exercise of a page
    # it says what it hides
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    body = re.sub(r'<table border="1" class="dataframe">.*?</table>', align, body, flags=re.S)
    context["body"] = join_folded(body)


def setup(app):
    """Register."""
    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
