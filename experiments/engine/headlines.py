"""The headline numbers, from the stored results that the pages read: the landing page and the
README show them.
"""

from helpers import metrics
from helpers.common import read_result

import numpy as np
from jaxtyping import ArrayLike

from experiments.problems import moons_redrawn

PLAIN = "flat network, N(0, 1) on every weight"
LINE = "Bayesian logistic regression"


def chosen_network() -> dict:
    """Return the row of the flat network whose scales leave the least NLL of held-out points."""
    return min(read_result("flat_bnn/prior_scale")["rows"], key=lambda row: row["held_out_nll"])


def fifty_labels() -> dict[str, dict[str, np.ndarray]]:
    """Accuracy in % and NLL on redrawn data sets of eighteen tasks, [data set], by model.

    The exact answer, which knows each task's angle, centre and scale, comes first.
    """
    stored = {row["name"]: row for row in read_result("what_the_gain_is_made_of/arms")["rows"]}
    called = {
        "hierarchical network, prior learnt from all tasks": "shared, N+(0, 1)",
        "flat network, a scale per layer chosen on training data": "chosen over tasks",
        PLAIN: "N(0, 1)",
    }
    count = len(stored["N(0, 1)"]["nll"])  # data sets that all of them have
    found = {"exact answer (Bayes optimum)": _of_optimum(count)}
    found |= {name: _of_row(stored[of], count) for name, of in called.items()}
    (lines,) = (
        row
        for row in read_result("which_method/recipes")["rows"]
        if (row["situation"], row["recipe"]) == ("18 groups", "A")
    )
    return found | {"logistic regression with a level and slopes a task": _of_row(lines)}


def _of_row(row: dict, count: int | None = None) -> dict[str, np.ndarray]:
    """Accuracy in % and NLL of a stored row's first data sets."""
    return {"accuracy %": np.array(row["accuracy"][:count]), "NLL": np.array(row["nll"][:count])}


def _of_optimum(count: int) -> dict[str, np.ndarray]:
    """The same of the Bayes optimum, computed here."""
    drawn = [moons_redrawn.drawn(i) for i in range(count)]
    each = [metrics.scores(moons_redrawn.optimum(tasks), tasks.y_test) for tasks in drawn]
    return {name: np.array([one[name] for one in each]) for name in ("accuracy %", "NLL")}


def as_text(found: dict[str, dict[str, np.ndarray]]) -> dict[str, dict[str, str]]:
    """Return means over data sets with half their 95 % t intervals, by model, as a page prints.

    The gain is the NLL of `PLAIN` less that of the model, paired over the data sets of both.
    """
    text = {}
    for name, one in found.items():
        gained = found[PLAIN]["NLL"][: len(one["NLL"])] - one["NLL"]
        text[name] = {
            "accuracy %": "{:.1f} ± {:.1f}".format(*metrics.interval(one["accuracy %"])),
            "NLL": interval_text(one["NLL"]),
            "gain in NLL": "-" if name == PLAIN else interval_text(gained, "{:+.3f} ± {:.3f}"),
            "data sets": str(len(gained)),
        }
    return text


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


def less_input_layer(one: str = "chosen over tasks", unmixed: bool = False) -> np.ndarray:
    """NLL of an arm less that of a network whose input layer alone differs between tasks.

    The common weights of its layers have learnt scales, all scales N+(0, 5). On redraws that had no
    part in picking it, where both fits have mixed; ``unmixed``: on all of these.
    """
    stored = read_result("what_the_gain_is_made_of/scaled_later")
    (row,) = stored["rows"]
    found, mixed = np.array(row["nll"]), np.array([check["mixed"] for check in row["check"]])
    first = stored["settings"]["first"]
    nll, mixed_too = (of[first : first + len(found)] for of in nll_on_redraws(one))
    return (nll - found)[mixed & mixed_too | unmixed]


def interval_text(differences: ArrayLike, form: str = "{:.3f} ± {:.3f}") -> str:
    """Return mean and half 95 % interval of paired differences, without a negative 0."""
    return form.format(*np.round(metrics.interval(differences), 3) + 0.0)


def five_labels() -> dict[str, dict[str, np.ndarray]]:
    """Accuracy in % and NLL of new tasks with five labels, [data set], by prior."""
    names = {
        "known shape, unknown angle": "exact answer, where only the angle is unknown",
        "32 shared features, trained heads": (
            "32 features of eighteen other tasks, a logistic head trained on this one"
        ),
        "the draws themselves": "draws of a prior learnt from those tasks, weighted",
        "one normal": "flat network, a normal prior fitted to those draws",
        LINE: "Bayesian logistic regression, its scale chosen for five labels on those tasks",
        "scales chosen for as many labels": (
            "flat network, a scale per layer chosen for five labels on those tasks"
        ),
        "N(0, 1)": PLAIN,
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
    (line,) = (
        row
        for row in read_result("informative_priors/few_labels")["rows"]
        if (row["name"], row["size"]) == (LINE, 5)
    )
    for name, called in names.items():
        if name == LINE:
            found[called] = _of_row(line["scores"])
            continue
        at = rows[name]["sizes"].index(5)
        scores = rows[name]["scores"]
        of = {"accuracy %": "accuracy", "NLL": "nll"}
        found[called] = {
            score: np.array([one[key][at] for one in scores]) for score, key in of.items()
        }
    return found
