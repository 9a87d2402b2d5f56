"""The site has the licences of what it ships, and the bill of what it was built with."""

import json

import supply
from chapters import ROOT

SITE = ROOT / "_build/html"


def test_licences_and_the_bill_lie_beside_the_pages():
    folder = SITE / "_static/licences"
    assert {path.name for path in folder.iterdir()} == set(supply.licences())
    bill = json.loads((SITE / "_static/bill-of-materials.json").read_text())
    assert bill["bomFormat"] == "CycloneDX" and len(bill["components"]) > 150


def test_fonts_on_the_site_are_those_whose_licence_is_there():
    """A font that the theme did not ship before is found here."""
    names = {path.name for kind in ("woff", "woff2", "ttf") for path in SITE.rglob(f"*.{kind}")}
    known = (
        "fa-brands-400",
        "fa-regular-400",
        "fa-solid-900",
        "MathJax_",
        "source-serif-4-",
        "source-code-pro-",
    )
    assert names and all(name.startswith(known) for name in names), sorted(names)
