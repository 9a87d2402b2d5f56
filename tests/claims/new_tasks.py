"""Arms of the held-out experiment, which two files of claims of the page ``new-tasks`` read."""

import numpy as np

from tests.claims.reading import stored

PLAIN, ONE_NORMAL, DRAWS = "N(0, 1)", "one normal", "the draws themselves"
BY_LABELS, MAML = "scales chosen for as many labels", "first-order MAML"


def arms():
    """Rows of the arms, by kind of tasks and name; of fits those to draws aligned to their mean."""
    found = [row for name in ("transfer", "rivals") for row in stored(f"informative_priors/{name}")]
    found = [row for row in found if row.get("reference") != "one draw"]
    return {(row["tasks"], row["name"]): row for row in found}


def scores(name, score, tasks="moons"):
    """One score of an arm, [redraw, size]."""
    return np.array([one[score] for one in arms()[tasks, name]["scores"]])


def nll(name, tasks="moons"):
    """NLL of an arm, [redraw, size]."""
    return scores(name, "nll", tasks)


def gain(name, over=PLAIN, tasks="moons"):
    """NLL of one arm below another's, [redraw, size]."""
    found = arms()
    over, name = ([one["nll"] for one in found[tasks, arm]["scores"]] for arm in (over, name))
    return np.subtract(over, name)
