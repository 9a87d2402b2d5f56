"""A term of the glossary is linked where a page uses it first, so that nobody has to know where it
is explained.
"""

import re

import pytest
from chapters import ROOT, pages

from tests.test_book_rules import FENCE

GLOSSARY = ROOT / "book" / "glossary.md"
# Also plain English, or a part of other terms: a pattern cannot tell which is meant.
PLAIN = {
    "bias",
    "calibration",
    "chain",
    "copy",
    "coverage",
    "divergence",
    "draw",
    "evidence",
    "guide",
    "mode",
    "prior",
    "score",
}


def blank(match):
    """The same text with every character but line ends a space."""
    return re.sub(r"[^\n]", " ", match[0])


def visible(text):
    """A page's running text, everything else blanked: code, formulas, headings, options, links and
    roles.
    """
    text = re.sub(r"\A---\n.*?^---\n", blank, text, flags=re.S | re.M)
    text = re.sub(FENCE % "(?:code-cell|math)", blank, text, flags=re.S | re.M)
    text = re.sub(r"^\$\$.*?^\$\$", blank, text, flags=re.S | re.M)
    text = re.sub(r"^```(?:python|console)$.*?^```$", blank, text, flags=re.S | re.M)
    text = re.sub(r"^(?:`{3,}|:{3,}|:[\w-]+:|#).*$", blank, text, flags=re.M)
    return re.sub(r"\[[^\]\n]*\]\([^)]*\)|(?:\{[a-z:]+\})?`[^`]+`|\$[^$\n]*\$", blank, text)


def terms():
    """The glossary's terms, longest first."""
    body = GLOSSARY.read_text().split("```{glossary}")[1]
    return sorted(re.findall(r"^(\S.*)$", body.split("```")[0], flags=re.M), key=len, reverse=True)


def unlinked(text, words):
    """Yield the terms that a page uses before it links them, or without."""
    left = visible(text)
    for word in words:
        flags = 0 if word.isupper() else re.IGNORECASE
        pattern = re.compile(
            rf"(?<![\w-]){re.escape(word)}s?(?![\w-])".replace(r"\ ", r"\s"), flags
        )
        used = pattern.search(left)
        left = pattern.sub(blank, left)  # a shorter term within this one is not used here
        link = re.search(
            rf"\{{term\}}`(?:{re.escape(word)}|[^`]*<{re.escape(word)}>)`",
            text,
            flags=re.IGNORECASE,
        )
        if used and word not in PLAIN and not (link and link.start() < used.start()):
            yield word


@pytest.mark.parametrize(
    "path", [path for path in pages() if path.stem not in ("glossary", "notation")], ids=str
)
def test_first_use_is_a_link(path):
    assert list(unlinked((ROOT / path).read_text(), terms())) == []


def test_plain_words_are_terms():
    assert PLAIN - set(terms()) == set()
    assert len(terms()) > 40


@pytest.mark.parametrize(
    ("text", "expected"),
    {
        "A posterior.": ["posterior"],
        "A {term}`posterior`, and the posterior.": [],
        "Posteriors, {term}`posterior`.": ["posterior"],
        "# Posterior\n`posterior` in code, $posterior$": [],
        "The Monte Carlo error.": ["Monte Carlo error"],
        "{term}`Two <NLL>` NLLs and a draw.": [],
    }.items(),
)
def test_rule_can_fail(text, expected):
    words = ["Monte Carlo error", "posterior", "draw", "NLL"]
    assert list(unlinked(text, words)) == expected
