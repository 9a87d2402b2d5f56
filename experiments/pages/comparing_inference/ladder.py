"""Distance from the reference posterior against cost, for every method at four budgets and several
seeds.

The unit of cost is one gradient of one task's log density, summed over chains, with what warm-up
and tuning of that very run take (``approximations``, ``samplers``). Settings are those that
``tuning`` chose on other tasks. A cell in which a method is not defined says why and has no run.

The samplers nearest at 10^5 gradients have a hundred times as many, too. Of each of their chains at
most ``budgets.MOST`` draws are kept, evenly spaced.
"""

from helpers import metrics
from helpers.common import read_result

import itertools

from experiments.methods import catalogue
from experiments.pages.comparing_inference import measures

SETTINGS = {
    "num_seeds": 5,
    "budgets": [1000, 10_000, 100_000, 1_000_000],
    "longest": {
        "budget": 10_000_000,
        "chosen_at": 100_000,
        # the nearest of the result's own cells, nearest first
        "names": ["MCLMC", "ChEES", catalogue.BOOK, "MEADS", "MCLMC, adjusted", "MILE"],
    },
}
SMALL = [
    {"name": "MALA", "budget": 10_000, "value": 1e-2, "seed": 0},
    {"name": "ChEES", "budget": 100_000, "value": 8, "seed": 0},
]
MEASURES = [
    "tv",
    "tv_far",
    "within",
    "agreement",
    "wasserstein",
    "nll",
    "brier",
    "calibration",
    "entropy_far",
]


def cells() -> list[tuple[str, int]]:
    """Return method and budget of every cell, defined or not; the longest runs last."""
    longest = SETTINGS["longest"]
    every = itertools.product(catalogue.METHODS, SETTINGS["budgets"])
    return [*every, *((name, longest["budget"]) for name in longest["names"])]


def units() -> dict[str, dict]:
    """Return the cells that are defined, seed by seed."""
    value = catalogue.chosen(read_result("comparing_inference/tuning")["rows"])
    return {
        f"{name}, {budget}, seed {seed}": {
            "name": name,
            "budget": budget,
            "value": value[name],
            "seed": seed,
        }
        for name, budget in cells()
        if not catalogue.METHODS[name].undefined(budget, value[name])
        for seed in range(SETTINGS["num_seeds"])
    }


def unit(name: str, budget: int, value: float, seed: int) -> dict:
    """Return predictions of one run, as ``catalogue.run``."""
    return catalogue.run(name, "ladder", budget, value, seed)


def score(drawn: dict, name: str, budget: int, value: float, seed: int) -> dict:
    """Return all measures of one run."""
    return measures.measured(drawn, "ladder")


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return the two references' own row, then a row a cell, lists by seed; an empty cell has its
    reason.
    """
    settings, chosen = units(), catalogue.chosen(read_result("comparing_inference/tuning")["rows"])
    found = [{"name": "reference", "kind": "reference", "empty": "", **measures.floor("ladder")}]
    for name, budget in cells():
        method = catalogue.METHODS[name]
        head = {"name": name, "kind": method.kind, "budget": budget, "value": chosen[name]}
        reason = method.undefined(budget, chosen[name])
        cell = [
            s
            for n, s in scored.items()
            if (settings[n]["name"], settings[n]["budget"]) == (name, budget)
        ]
        found.append(head | {"empty": reason} | ({} if reason else of_cell(cell)))
    return found


def of_cell(seeds: list[dict]) -> dict:
    """Return lists over seeds, and what they share; of seeds that stayed finite."""
    runs = [one for one in seeds if not one["failed"]]
    cell = {"failed": len(seeds) - len(runs)}
    cell |= {entry: [one[entry] for one in seeds] for entry in ("gradients", "seconds")}
    if not runs:
        return cell
    cell |= {entry: [one[entry] for one in runs] for entry in MEASURES}
    cell["tv_by_task"] = [one["tv_by_task"] for one in runs]
    cell["ess"] = [one["ess"] for one in runs]
    if len(runs) > 1:
        mean, half = metrics.interval(cell["tv"])
        cell |= {"tv_mean": float(mean), "tv_half": float(half)} | measures.together(runs, "ladder")
    return cell
