"""The one free setting of every method, chosen on other tasks before the ladder is climbed.

One rule for all: of three candidates, fixed before any run, that whose predictions are nearest to
long runs of the book's sampler at 10^5 gradients a task, mean over three tasks and two seeds. The
tasks are drawn by another key than those of the ladder and are of the same kind and size, so that
nothing of the ladder's references or labels is seen. That is how one would choose on a simulated
problem before the real one; its gradients are not charged to anybody. Nothing else is tuned: all
other settings are the libraries' own, or the papers'.
"""

from helpers import metrics

import numpy as np

from experiments.methods import catalogue
from experiments.pages.comparing_inference import measures

SETTINGS = {
    "num_seeds": 2,
    "budget": 100_000,
    "methods": {n: list(m.values) for n, m in catalogue.METHODS.items()},
}
SMALL = {"name": "MALA", "value": 1e-2, "seed": 0}


def units() -> dict[str, dict]:
    """Return each method with each of its candidates."""
    return {
        f"{name}, {value:g}, seed {seed}": {"name": name, "value": value, "seed": seed}
        for name, method in catalogue.METHODS.items()
        for value in method.values
        for seed in range(SETTINGS["num_seeds"])
    }


def budget_of(name: str) -> int:
    """Return the budget that a method is tuned at: one path of Pathfinder ends before."""
    return 1000 if name == "Pathfinder" else SETTINGS["budget"]


def unit(name: str, value: float, seed: int) -> dict:
    """Return predictions of one run, as ``catalogue.run``."""
    return catalogue.run(name, "tuning", budget_of(name), value, seed)


def score(drawn: dict, name: str, value: float, seed: int) -> dict:
    """Return the distance from the long runs of these tasks."""
    found = measures.measured(drawn, "tuning")
    found.pop("p", None)
    return found


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return each method's distances by candidate, and the best; one that failed is infinitely far.

    ValueError: a method all of whose candidates failed.
    """
    found, settings = [], units()
    for name, method in catalogue.METHODS.items():
        tv = {value: [] for value in method.values}
        for unit_name, one in scored.items():
            if settings[unit_name]["name"] == name:
                tv[settings[unit_name]["value"]].append(one.get("tv", np.inf))
        mean = [np.mean(tv[value]) for value in method.values]
        if not np.isfinite(mean).any():
            raise ValueError(
                f"{name}: given no candidate of {method.values} that stayed finite, expected one"
            )
        best = int(np.argmin(mean))
        kept = [
            [each if np.isfinite(each) else None for each in tv[value]] for value in method.values
        ]
        row = {"name": name, "setting": method.setting, "values": list(method.values), "tv": kept}
        if all(np.isfinite(tv[method.values[best]])) and len(tv[method.values[best]]) > 1:
            row["half_width"] = float(metrics.interval(tv[method.values[best]])[1])
        found.append(row | {"chosen": method.values[best], "at_end": best in (0, len(mean) - 1)})
    return found
