"""The headline numbers, from the stored results that the pages read: the landing page and the
README show them.
"""

from helpers import data, metrics
from helpers.common import read_result

import numpy as np
from jaxtyping import ArrayLike


def chosen_network() -> dict:
    """Return the row of the flat network whose scales leave the least NLL of held-out points."""
    return min(read_result("flat_bnn/prior_scale")["rows"], key=lambda row: row["held_out_nll"])


def fifty_labels() -> dict[str, tuple[float, float]]:
    """Accuracy in % and NLL on fresh test points of the sources' tasks, by model, optimum first."""
    tasks = data.fresh_moons()
    optimum = metrics.scores(data.bayes_optimum(tasks, tasks.x_test), tasks.y_test)
    baselines = {row["name"]: row["scores"] for row in read_result("flat_bnn/baselines")["rows"]}
    shared = read_result("hierarchical_bnn/long_runs")["rows"][0]
    flat = read_result("flat_bnn/prior_scale")["rows"]
    (plain,) = (row for row in flat if row["scales"] == [1.0, 1.0, 1.0])
    of_chosen, of_plain = (
        {"accuracy %": 100 * row["test_accuracy"], "NLL": row["test_nll"]}
        for row in (chosen_network(), plain)
    )
    scores = {
        "exact answer (Bayes optimum)": optimum,
        "hierarchical network, prior learnt from all tasks": shared["scores"],
        "flat network, a scale per layer chosen on training data": of_chosen,
        "flat network, N(0, 1) on every weight": of_plain,
        "hierarchical logistic regression": baselines["hierarchical logistic"],
        "one network for all tasks": baselines["one network for all tasks"],
    }
    return {name: (one["accuracy %"], one["NLL"]) for name, one in scores.items()}


def chosen_less_hierarchical() -> np.ndarray:
    """NLL of flat networks with chosen scales less the hierarchical network's, [task]."""
    return np.subtract(
        chosen_network()["test_nll_by_task"],
        read_result("hierarchical_bnn/long_runs")["rows"][0]["task_nll"],
    )


def nll_on_redraws(name: str) -> tuple[np.ndarray, np.ndarray]:
    """NLL of an arm on redrawn data sets, and whether it has mixed, both [redraw]; some arms have
    more of them.
    """
    (row,) = (
        row for row in read_result("what_the_gain_is_made_of/arms")["rows"] if row["name"] == name
    )
    return np.array(row["nll"]), np.array([check["mixed"] for check in row["check"]])


def paired_differences(
    one: str = "chosen over tasks", other: str = "shared, N+(0, 1)", unmixed: bool = False
) -> np.ndarray:
    """NLL of one arm less another's on the redraws of both; ``unmixed``: of all of these."""
    of_both = [nll_on_redraws(name) for name in (one, other)]
    common = min(len(nll) for nll, _ in of_both)
    (nll_one, mixed_one), (nll_other, mixed_other) = (
        (nll[:common], mixed[:common]) for nll, mixed in of_both
    )
    return (nll_one - nll_other)[mixed_one & mixed_other | unmixed]


def chosen_less_input_layer() -> np.ndarray:
    """NLL of the scales chosen over tasks less that of a network whose input layer alone differs.

    The common weights of its layers have learnt scales, all scales N+(0, 5). On the redrawn data
    sets of both.
    """
    rows = {row["name"]: row for row in read_result("what_the_gain_is_made_of/attribution")["rows"]}
    found = np.array(rows["input layer alone, means' scale learnt, HalfNormal(5)"]["nll"])
    return nll_on_redraws("chosen over tasks")[0][: len(found)] - found


def interval_text(differences: ArrayLike, form: str = "{:.3f} ± {:.3f}") -> str:
    """Return mean and half 95 % interval of paired differences, without a negative 0."""
    return form.format(*np.round(metrics.interval(differences), 3) + 0.0)


def five_labels() -> dict[str, tuple[float, float]]:
    """Accuracy in % and NLL of a new task with five labels, means of the redraws, by prior."""
    names = {
        "known shape, unknown angle": "exact answer, where only the angle is unknown",
        "32 shared features, trained heads": (
            "32 features of eighteen other tasks, a logistic head trained on this one"
        ),
        "the draws themselves": "draws of a prior learnt from those tasks, weighted",
        "one normal": "flat network, a normal prior fitted to those draws",
        "scales chosen for as many labels": (
            "flat network, a scale per layer chosen for five labels on those tasks"
        ),
        "N(0, 1)": "flat network, N(0, 1) on every weight",
    }
    found = {}
    every = [
        row
        for name in ("transfer", "rivals")
        for row in read_result(f"informative_priors/{name}")["rows"]
    ]
    # Of priors fitted to aligned draws those whose draws are aligned to their own mean.
    rows = {
        row["name"]: row
        for row in every
        if row["tasks"] == "moons" and row.get("reference") != "one draw"
    }
    for name, called in names.items():
        at = rows[name]["sizes"].index(5)
        scores = [[one[score][at] for score in ("accuracy", "nll")] for one in rows[name]["scores"]]
        found[called] = tuple(float(mean) for mean in np.mean(scores, axis=0))
    return found
