"""The numbers of the README are those of the stored results that the pages read, to the digits that it prints."""

import re

import pytest
from chapters import ROOT

from experiments import headlines


def printed():
    """Return accuracy in % and NLL of the README's two tables of scores, by row."""
    text = (ROOT / "README.md").read_text()
    for part in text.split("| accuracy % | NLL |")[1:]:
        table = part.split("\n\n")[0]
        rows = re.findall(r"^\| ([^|]+) \| (\d+\.\d) \| (\d\.\d{3}) \|$", table, flags=re.M)
        yield {name: (float(accuracy), float(nll)) for name, accuracy, nll in rows}


@pytest.mark.parametrize(("table", "stored"), [(0, headlines.fifty_labels), (1, headlines.five_labels)])
def test_readme_prints_what_is_stored(table, stored):
    found, expected = list(printed())[table], stored()
    assert set(found) == set(expected)
    for name, (accuracy, nll) in found.items():
        assert abs(accuracy - expected[name][0]) <= 0.0501, name
        assert abs(nll - expected[name][1]) <= 0.000501, name


def test_readme_prints_the_differences_that_are_stored():
    text = (ROOT / "README.md").read_text()
    for differences in (headlines.tie(), headlines.less()):
        assert headlines.text(differences) in text
