"""Settings of the ladder's methods where no end of three candidates binds, at 10^5 gradients.

``tuning`` took the best of three candidates, at an end of them for half of the methods. Here a walk
starts from what it chose and goes to the better neighbour while that brings predictions nearer by a
share of their distance, on the same tasks, by more seeds; it ends by itself, or where the method is
no longer defined. Then the method runs on the ladder's tasks with that setting. The book's own
sampler keeps its setting, so that nothing is given to it that ``tuning`` did not.
"""

from helpers.common import read_result

import numpy as np

from experiments.methods import catalogue
from experiments.pages.comparing_inference import measures

SETTINGS = {
    "budget": 100_000,
    "num_seeds": {"tuning": 4, "ladder": 10},
    "first_seed": 100,  # of both, so that no run is one that chose the start
    "least_gain": 0.03,  # of the distance, for which a walk goes on
    "factor": {"whole": 2, "real": 10**0.5},
    "acceptances": [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
}
NAMES = [
    name
    for name, method in catalogue.METHODS.items()
    if method.kind != catalogue.OTHER and name not in ("Pathfinder", catalogue.BOOK)
]
SMALL = {"name": "ChEES", "num_seeds": {"tuning": 2, "ladder": 3}}


def units() -> dict[str, dict]:
    """A method each."""
    return {name: {"name": name, "num_seeds": SETTINGS["num_seeds"]} for name in NAMES}


def neighbours(name: str, value: float) -> list[float]:
    """Return the settings next to one, those for which the method is defined."""
    method = catalogue.METHODS[name]
    if method.setting == "acceptance":
        known = SETTINGS["acceptances"]
        at = int(np.argmin(np.abs(np.subtract(known, value))))
        found = [known[i] for i in (at - 1, at + 1) if 0 <= i < len(known)]
    elif all(isinstance(one, int) for one in method.values):
        factor = SETTINGS["factor"]["whole"]
        found = [one for one in (int(value) // factor, int(value) * factor) if one]
    else:
        factor = SETTINGS["factor"]["real"]
        found = [float(f"{one:.3g}") for one in (value / factor, value * factor)]
    return [one for one in found if not method.undefined(SETTINGS["budget"], one)]


def distances(name: str, kind: str, value: float, count: int) -> list[dict]:
    """Return what is measured of so many runs; of one that failed, that it did."""
    first = SETTINGS["first_seed"]
    runs = (
        measures.measured(catalogue.run(name, kind, SETTINGS["budget"], value, seed), kind)
        for seed in range(first, first + count)
    )
    return [{entry: one.get(entry) for entry in ("failed", "tv", "tv_by_task")} for one in runs]


def unit(name: str, num_seeds: dict) -> dict:
    """Walk to a setting by the tasks of ``tuning``; return the walk, distances on the ladder."""
    (start,) = (
        row["chosen"]
        for row in read_result("comparing_inference/tuning")["rows"]
        if row["name"] == name
    )
    tried = {}

    def mean(value):
        if value not in tried:
            found = distances(name, "tuning", value, num_seeds["tuning"])
            tried[value] = [None if one["failed"] else one["tv"] for one in found]
        return np.inf if None in tried[value] else np.mean(tried[value])

    best, better = None, start
    while best is None or mean(better) < (1 - SETTINGS["least_gain"]) * mean(best):
        best = better
        better = min([best, *neighbours(name, best)], key=mean)
    runs = distances(name, "ladder", best, num_seeds["ladder"])
    kept = [one for one in runs if not one["failed"]]
    found = {"start": start, "chosen": best, "failed": len(runs) - len(kept)}
    found |= {"tried": [{"value": value, "tv": tv} for value, tv in tried.items()]}
    tv = np.array([one["tv"] for one in kept])
    found |= {"tv": float(tv.mean()), "tv_error": float(tv.std(ddof=1) / np.sqrt(len(tv)))}
    return found | {"tv_by_task": [np.asarray(one["tv_by_task"]).tolist() for one in kept]}
