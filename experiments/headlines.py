"""The headline numbers, from the stored results that the pages read: the landing page and the README show them."""

from helpers import data, metrics
from helpers.common import read_result

import numpy as np


def fifty_labels() -> dict[str, tuple[float, float]]:
    """Accuracy in % and NLL on fresh test points of the sources' eighteen tasks, by model, the exact answer first."""
    tasks = data.fresh_moons()
    optimum = metrics.scores(data.bayes_optimum(tasks, tasks.x_test), tasks.y_test)
    baselines = {row["name"]: row["scores"] for row in read_result("flat_bnn/baselines")["rows"]}
    grid = read_result("flat_bnn/prior_scale")["rows"]
    chosen = min(grid, key=lambda row: row["held_out_nll"])
    (plain,) = (row for row in grid if row["scales"] == [1.0, 1.0, 1.0])
    flat = {
        name: {"accuracy %": 100 * row["test_accuracy"], "NLL": row["test_nll"]}
        for name, row in (("chosen", chosen), ("plain", plain))
    }
    scores = {
        "exact answer (Bayes optimum)": optimum,
        "hierarchical network, prior learnt from all tasks": read_result("hierarchical_bnn/long_runs")["rows"][0][
            "scores"
        ],
        "flat network, a scale per layer chosen on training data": flat["chosen"],
        "flat network, N(0, 1) on every weight": flat["plain"],
        "hierarchical logistic regression": baselines["hierarchical logistic"],
        "one network for all tasks": baselines["one network for all tasks"],
    }
    return {name: (one["accuracy %"], one["NLL"]) for name, one in scores.items()}


def tie() -> tuple[float, float]:
    """NLL of flat networks with chosen scales less the hierarchical network's, over tasks, and half of its interval."""
    chosen = min(read_result("flat_bnn/prior_scale")["rows"], key=lambda row: row["held_out_nll"])
    shared = read_result("hierarchical_bnn/long_runs")["rows"][0]
    return metrics.interval(np.subtract(chosen["test_nll_by_task"], shared["task_nll"]))


def five_labels() -> dict[str, tuple[float, float]]:
    """Accuracy in % and NLL of a new task with five labels, means of the redraws, by prior."""
    names = {
        "the draws themselves": "draws of a prior learnt from eighteen other tasks, weighted",
        "one normal": "flat network, a normal prior fitted to those draws",
        "N(0, 1)": "flat network, N(0, 1) on every weight",
    }
    found = {}
    rows = {row["name"]: row for row in read_result("informative_priors/transfer")["rows"] if row["tasks"] == "moons"}
    for name, called in names.items():
        at = rows[name]["sizes"].index(5)
        scores = [[one[score][at] for score in ("accuracy", "nll")] for one in rows[name]["scores"]]
        found[called] = tuple(float(mean) for mean in np.mean(scores, axis=0))
    return found
