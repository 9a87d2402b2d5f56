"""The numbers of the README are those of the stored results that the pages read, to the digits that
it prints.
"""

import re

import pytest
from chapters import ROOT

from experiments.engine import headlines


def test_readme_prints_what_is_stored():
    """Both tables of scores have these rows, and no others."""
    text = (ROOT / "README.md").read_text()
    _, *tables = text.split("| accuracy % | NLL | gain in NLL | data sets |\n" + "|---" * 5 + "|\n")
    stored = [headlines.as_text(of()) for of in (headlines.fifty_labels, headlines.five_labels)]
    for table, rows in zip(tables, stored, strict=True):
        lines = [f"| {name} | {' | '.join(row.values())} |" for name, row in rows.items()]
        assert table.split("\n\n")[0].splitlines() == lines


def test_readme_prints_the_differences_that_are_stored():
    text = (ROOT / "README.md").read_text()
    both, everywhere = (headlines.paired_differences(unmixed=unmixed) for unmixed in (False, True))
    for differences in (both, everywhere, headlines.less_input_layer()):
        assert headlines.interval_text(differences) in text
    assert f"On the {len(both)} of {len(everywhere)} data sets" in text
    counts = [len(headlines.less_input_layer(unmixed=unmixed)) for unmixed in (False, True)]
    assert "on the {} of {} data sets".format(*counts) in text


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
