"""What a gradient of the ladder costs in seconds of a core, by method, beside a gradient and
nothing else.

A method is timed in turns with a loop of bare gradients of the same density, on the same core
within the same seconds, all compiled before: units may run on different machines, and what is told
are ratios.
"""

from helpers.common import read_result, take

import numpy as np

from experiments.methods import catalogue, gradient_timer
from experiments.pages.comparing_inference import ladder
from experiments.problems import six_tasks

SETTINGS = {"budget": 100_000, "rounds": 5, "longer": 1_000_000, "rounds_of_longer": 3}
SMALL = {"name": "MAP", "budget": 100_000, "value": 0.1, "rounds": 3}


def units() -> dict[str, dict]:
    """Return each method at 10^5 gradients a task, or at the largest budget that it has.

    The nearest, which have the longest runs, are timed at 10^6, too: a gradient may cost more where
    there are more draws to keep.
    """
    cells = [
        row for row in read_result("comparing_inference/ladder")["rows"][1:] if not row["empty"]
    ]
    fit = [row for row in cells if row["budget"] <= SETTINGS["budget"]]
    # budgets rise
    largest = {row["name"]: {k: row[k] for k in ("name", "budget", "value")} for row in fit}
    found = {name: cell | {"rounds": SETTINGS["rounds"]} for name, cell in largest.items()}
    more = {"budget": SETTINGS["longer"], "rounds": SETTINGS["rounds_of_longer"]}
    names = ladder.SETTINGS["longest"]["names"]
    return found | {
        f"{name}, longer": cell | more for name, cell in largest.items() if name in names
    }


def unit(name: str, budget: int, value: float, rounds: int) -> dict:
    """Return of each round seconds and gradients of all tasks, seconds of a bare gradient."""
    bare = gradient_timer.timer(
        six_tasks.log_density,
        np.zeros(six_tasks.SIZE, np.float32),
        take(six_tasks.problem().observed, 0),
    )
    catalogue.run(name, "ladder", budget, value, 0)  # compiles
    found = []
    for seed in range(1, rounds + 1):
        before, run = bare(), catalogue.run(name, "ladder", budget, value, seed)
        found.append((run["seconds"], run["gradients"].sum(), (before + bare()) / 2))
    return {"rounds": np.array(found, np.float64)}


def score(drawn: dict, name: str, budget: int, **_) -> dict:
    """Microseconds a gradient, and how many times a bare one that is, medians over rounds."""
    seconds, gradients, bare = drawn["rounds"].T
    ratio = seconds / gradients / bare
    return {
        "name": name,
        "budget": budget,
        "microseconds": float(1e6 * np.median(seconds / gradients)),
        "bare_microseconds": float(1e6 * np.median(bare)),
        "times_bare": float(np.median(ratio)),
        # of a median: what else the machine does has long tails
        "times_bare_error": float(np.sqrt(np.pi / 2) * ratio.std(ddof=1) / np.sqrt(len(ratio))),
    }
