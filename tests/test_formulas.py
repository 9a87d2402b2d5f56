"""Formulas are set when the book is built: what MathJax makes of them, and what happens where it
can not.
"""

import re
from types import SimpleNamespace

import pytest
from book_math import set_formulas
from sphinx.errors import ExtensionError

PAGE = (
    "<html><head>\n</head><body>"
    '<p>for <span class="math notranslate nohighlight">\\(a &lt; b\\)</span> and (c)</p>'
    '<div class="math notranslate nohighlight" id="equation-e">\n'
    '<span class="eqno">(1)<a href="#equation-e">#</a></span>\\[%s\\]</div></body></html>'
)


def build(folder, tex):
    """Set the formulas of a page in a subfolder; return its text."""
    (folder / "_static").mkdir()
    page = folder / "book" / "page.html"
    page.parent.mkdir()
    page.write_text(PAGE % tex)
    set_formulas(SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=folder), None)
    return page.read_text()


def test_formulas_are_set_where_they_stand(tmp_path):
    """Both kinds, with MathML, between what stood around them; the style sheet is linked from where
    the page is.
    """
    text = build(tmp_path, r"\sigma^2")
    assert text.count("<mjx-container") == text.count("<math ") == 2
    assert "<mi>a</mi><mo>&lt;</mo><mi>b</mi>" in text and "<mi>σ</mi>" in text
    assert re.search(r'#</a></span><mjx-container.*display="true"[^>]* tabindex="0"', text)
    assert "</span> and (c)</p>" in text
    assert '<link rel="stylesheet" href="../_static/formulas.css" />' in text
    assert "MJXTEX" in (tmp_path / "_static/formulas.css").read_text()


@pytest.mark.parametrize("tex", [r"\no_such_command", r"\frac{1}{2"])
def test_a_formula_that_is_wrong_stops_the_build(tmp_path, tex):
    """Its TeX is named."""
    with pytest.raises(ExtensionError, match=re.escape(repr(tex)[1:-1])):
        build(tmp_path, tex)
