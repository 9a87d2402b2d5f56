"""The numbers of the README are those of the stored results that the pages read, to the digits that
it prints.
"""

import re

import pytest
from chapters import ROOT

from experiments.engine import headlines


def printed():
    """Return accuracy in % and NLL of the README's two tables of scores, by row."""
    text = (ROOT / "README.md").read_text()
    for part in text.split("| accuracy % | NLL |")[1:]:
        table = part.split("\n\n")[0]
        rows = re.findall(r"^\| ([^|]+) \| (\d+\.\d) \| (\d\.\d{3}) \|$", table, flags=re.M)
        yield {name: (float(accuracy), float(nll)) for name, accuracy, nll in rows}


@pytest.mark.parametrize(
    ("table", "stored"), [(0, headlines.fifty_labels), (1, headlines.five_labels)]
)
def test_readme_prints_what_is_stored(table, stored):
    found, expected = list(printed())[table], stored()
    assert set(found) == set(expected)
    for name, (accuracy, nll) in found.items():
        assert abs(accuracy - expected[name][0]) <= 0.0501, name
        assert abs(nll - expected[name][1]) <= 0.000501, name


def test_readme_prints_the_differences_that_are_stored():
    text = (ROOT / "README.md").read_text()
    for differences in (
        headlines.chosen_less_hierarchical(),
        headlines.paired_differences(),
        headlines.chosen_less_input_layer(),
    ):
        assert headlines.interval_text(differences) in text


@pytest.mark.usefixtures("as_readers_run")
def test_readmes_code_for_a_table_runs_and_mixes(tmp_path, monkeypatch):
    """As it stands; its last years are predicted as they came, within what 55 forecasts allow."""
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), flags=re.S | re.M
    )
    space = {}
    exec(code, space)
    check, y = space["fit"].check, space["later"].invest.to_numpy()
    assert check.ok, check.reasons
    assert (tmp_path / "posterior.nc").exists()
    below = (space["forecast"].outcome < y).mean(axis=(0, 1))
    assert 20 <= ((below > 0.05) & (below < 0.95)).sum() <= len(y)
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= 12
