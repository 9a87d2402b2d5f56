"""The six samplers that the ladder found nearest at 10^5 gradients a task, with a hundred times as
many.

Everything else is as in ``ladder``. Of each chain at most ``budgets.MOST`` draws are kept, evenly
spaced.
"""

from helpers.common import read_result

from experiments.methods import catalogue
from experiments.pages.comparing_inference import ladder, measures

# The number of seeds is no part of what a unit does, so that more can follow.
SETTINGS = {"num_seeds": 5, "budget": 10_000_000, "chosen_at": 100_000, "count": 6}
SMALL = {"name": "ChEES", "budget": 100_000, "value": 8, "seed": 0}


def units() -> dict[str, dict]:
    """Return the runs, seed by seed."""
    stored = read_result("comparing_inference/ladder")["rows"]
    rows = [
        row for row in stored if row.get("budget") == SETTINGS["chosen_at"] and not row["empty"]
    ]
    nearest = sorted(rows, key=lambda row: row.get("tv_mean", float("inf")))[: SETTINGS["count"]]
    return {
        f"{row['name']}, seed {seed}": {
            "name": row["name"],
            "value": row["value"],
            "budget": SETTINGS["budget"],
            "seed": seed,
        }
        for seed in range(SETTINGS["num_seeds"])
        for row in nearest
    }


def unit(name: str, value: float, budget: int, seed: int) -> dict:
    """Return predictions of one run, as ``catalogue.run``."""
    return catalogue.run(name, "ladder", budget, value, seed)


def score(drawn: dict, name: str, value: float, budget: int, seed: int) -> dict:
    """Return all measures of one run."""
    return measures.measured(drawn, "ladder")


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each sampler, lists by seed, as those of ``ladder``."""
    settings = units()
    names = dict.fromkeys(one["name"] for one in settings.values())

    def row(name):
        seeds = [found for unit, found in scored.items() if settings[unit]["name"] == name]
        return {"name": name, "budget": SETTINGS["budget"], **ladder.of_cell(seeds)}

    return [row(name) for name in names]
