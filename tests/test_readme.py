"""The numbers of the README are those of the stored results that the pages read, to the digits that it prints."""

from helpers import data, metrics
from helpers.common import read_result

import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]


def rows(name):
    """Rows of a stored result."""
    return read_result(name)["rows"]


def printed():
    """Return accuracy in % and NLL of the README's two tables of scores, by table and row."""
    text = (ROOT / "README.md").read_text()
    found = {}
    for table, part in zip(("fifty labels", "five labels"), text.split("| accuracy % | NLL |")[1:], strict=True):
        rows = re.findall(r"^\| ([^|]+) \| (\d+\.\d) \| (\d\.\d{3}) \|$", part, flags=re.M)
        found |= {(table, name): (float(accuracy), float(nll)) for name, accuracy, nll in rows}
    return found


def stored():
    """Return accuracy in % and NLL of the same rows."""
    tasks = data.fresh_moons()
    optimum = metrics.scores(data.bayes_optimum(tasks, tasks.x_test), tasks.y_test)
    scores = {"exact answer (Bayes optimum)": optimum}
    scores["hierarchical network, prior learnt from all tasks"] = rows("hierarchical_bnn/long_runs")[0]["scores"]
    baselines = {row["name"]: row["scores"] for row in rows("flat_bnn/baselines")}
    scores["hierarchical logistic regression"] = baselines["hierarchical logistic"]
    scores["one network for all tasks"] = baselines["one network for all tasks"]
    found = {name: (one["accuracy %"], one["NLL"]) for name, one in scores.items()}
    grid = rows("flat_bnn/prior_scale")
    chosen = min(grid, key=lambda row: row["held_out_nll"])
    (plain,) = (row for row in grid if row["scales"] == [1.0, 1.0, 1.0])
    for name, row in (("a scale per layer chosen on training data", chosen), ("N(0, 1) on every weight", plain)):
        found[f"flat network, {name}"] = 100 * row["test_accuracy"], row["test_nll"]
    return {("fifty labels", name): one for name, one in found.items()} | five_labels()


def five_labels():
    """Return the scores of a new task with five labels, means of redraws."""
    names = {
        "the draws themselves": "draws of a prior learnt from eighteen other tasks, weighted",
        "one normal": "flat network, a normal prior fitted to those draws",
        "N(0, 1)": "flat network, N(0, 1) on every weight",
    }
    found = {}
    for row in rows("informative_priors/transfer"):
        if row["tasks"] == "moons" and row["name"] in names:
            at = row["sizes"].index(5)
            scores = [[one[score][at] for score in ("accuracy", "nll")] for one in row["scores"]]
            found["five labels", names[row["name"]]] = tuple(np.mean(scores, axis=0))
    return found


def test_readme_prints_what_is_stored():
    expected = stored()
    assert set(printed()) == set(expected)
    for name, (accuracy, nll) in printed().items():
        assert abs(accuracy - expected[name][0]) <= 0.0501, name
        assert abs(nll - expected[name][1]) <= 0.000501, name
