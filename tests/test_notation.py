"""One symbol, one meaning: every formula of the book against the tables of ``book/notation.md``."""

import re
from collections import Counter

import pytest
from chapters import ROOT, pages

from tests.test_book_rules import directives, read

NOTATION = ROOT / "book" / "notation.md"
NAMED = r"\\(?:text|mathrm|operatorname)\*?\{[^}]*\}"  # words and names of functions
NORMAL = r"N(?:_\+)?(?:\\!\\left)?\("  # the distribution, which has arguments
CONSTANTS = {"e", r"\pi"}
GREEK = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|varphi|chi|"
    "psi|omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Phi|Psi|Omega"
)
SYMBOL = (
    rf"\\(?:bar|hat|tilde)\s*(?:\\(?:{GREEK})|[A-Za-z])|p\^\*|p_\\mathrm\{{loo\}}|\\(?:{GREEK})(?![a-zA-Z])"
    rf"|(?P<other>{NAMED}|\\[a-zA-Z]+)|[A-Za-z]"
)


def formulas(text):
    """Return what stands between dollars and in math directives, code left out."""
    prose = read(text).prose
    named = [content for *_, content in directives(prose, "math")]
    prose = re.sub(r"`[^`\n]+`", "", prose)
    apart = r"^\$\$\n(.*?)^\$\$"
    displayed = re.findall(apart, prose, flags=re.S | re.M)
    return (
        named
        + displayed
        + re.findall(r"\$([^$\n]+)\$", re.sub(apart, "", prose, flags=re.S | re.M))
    )


def symbols(formula):
    """Return the symbols of a formula in order: a letter with its bar, hat or tilde, but without
    indices' braces.
    """
    formula = re.sub(r"\\(?:begin|end)\{[^}]*\}", "", formula)
    formula = re.sub(NORMAL, "(", formula)
    found = [match[0] for match in re.finditer(SYMBOL, formula) if not match["other"]]
    return [re.sub(r"\s", "", symbol) for symbol in found if symbol not in CONSTANTS]


def explained():
    """Return the symbols that the tables explain: the first one of each formula in a row's first
    cell.
    """
    rows = re.findall(r"^\| (\$.*?\$) \|", NOTATION.read_text(), flags=re.M)
    return [symbols(formula)[0] for row in rows for formula in re.findall(r"\$([^$]+)\$", row)]


def test_a_symbol_is_explained_once():
    found = Counter(explained())
    assert len(found) > 50
    assert [symbol for symbol, count in found.items() if count > 1] == []


@pytest.mark.parametrize("path", pages(), ids=str)
def test_symbols_of_a_page_are_explained(path):
    used = {
        symbol for formula in formulas((ROOT / path).read_text()) for symbol in symbols(formula)
    }
    assert used - set(explained()) == set()


def test_explained_symbols_are_used():
    texts = [(ROOT / path).read_text() for path in pages() if ROOT / path != NOTATION]
    used = {symbol for text in texts for formula in formulas(text) for symbol in symbols(formula)}
    assert set(explained()) - used == set()


@pytest.mark.parametrize(
    ("formula", "expected"),
    {
        r"w_{il} = \mu_i + \sigma_l z": ["w", "i", "l", r"\mu", "i", r"\sigma", "l", "z"],
        r"\hat I \approx N I, \quad N(0, 1), N_+(0, 1), N\!\left(x; 0\right)": [
            r"\hatI",
            "N",
            "I",
            "x",
        ],
        r"\mathrm{Var}\,p^* - p_\mathrm{loo}, e^{-z}": ["p^*", r"p_\mathrm{loo}", "z"],
        r"\begin{aligned} \operatorname{sigmoid}(\eta) \end{aligned}": [r"\eta"],
    }.items(),
)
def test_symbols_of_a_formula(formula, expected):
    assert symbols(formula) == expected
