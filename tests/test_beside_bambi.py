"""The benchmark of tables beside Bambi: its tables, its report, and what is stored of it."""

import json

import numpy as np
import pytest
from chapters import ROOT

from benchmarks.tables import __main__ as beside
from benchmarks.tables import report
from benchmarks.tables.data import TABLES


def made_run(program, cpu, ess, mean):
    """A run as it is kept."""
    named = {
        name: {"mean": mean, "sd": 2.0, "ess": size, "rhat": 1.0} for name, size in ess.items()
    }
    fixed = {"table": "ticks", "seed": 0, "diverging": 0, "compiling": 1.0}
    return fixed | {"program": program, "cpu": cpu, "parameters": named}


def test_a_report_has_the_worst_parameter_a_cpu_second_and_differences_in_sd():
    ours = made_run("ours", 10.0, {"h": 900.0, "noise": 400.0}, 1.0)
    bambi = made_run("with_bambi", 20.0, {"h": 200.0, "noise": 700.0}, 1.5)
    said = report.of({"runs": [ours, bambi]})
    assert "| ticks | ours | 10.0 | 1.0 | 400 | `noise` | 0 | 40 | 4 (4 to 4) |" in said
    assert "| ticks | Bambi | 20.0 | 1.0 | 200 | `h` | 0 | 10 |  |" in said
    assert "| ticks | 0.250 | `h` | 0.078 | 4.0 |" in said  # 0.250 / (1 / 400 + 1 / 700)**0.5


@pytest.mark.parametrize("name", TABLES)
def test_priors_of_both_are_finite_numbers(name):
    found = beside.priors(name)
    assert np.isfinite([*found.values()]).all() and all(scale > 0 for _, scale in found.values())


def test_what_is_stored_is_what_the_readme_prints():
    text, stored = (
        (ROOT / "benchmarks/README.md").read_text(),
        json.loads(beside.STORED.read_text()),
    )
    assert report.of(stored) in text and stored["date"] in text
    assert {run["table"] for run in stored["runs"]} == set(TABLES)
