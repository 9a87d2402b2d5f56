"""Width and depth of the network on yacht: chains of four shapes on five splits.

All but the hidden layers is the arm *learnt scales* of ``chains_yacht``, with four chains.
"""

from helpers import common, mcmc

from functools import partial

import numpy as np

from experiments.methods import column_chains, column_networks, runs
from experiments.problems import usual_tables

SEED, TABLE, NUM_CHAINS, NUM_SPLITS = 3307, "yacht", 4, 5
HIDDEN = {"12": (12,), "50": (50,), "200": (200,), "50 and 50": (50, 50)}  # units of each layer
SETTINGS = {
    "seed": SEED,
    "table": TABLE,
    "hidden": {name: list(units) for name, units in HIDDEN.items()},
    "chains": NUM_CHAINS,
    **column_chains.LENGTHS,
}
SMALL = {"hidden": "12", "split": 0}
rows = column_chains.rows


def units() -> dict[str, dict]:
    """Return every shape on every split, the shortest first."""
    return {
        f"{hidden}; split {split}": {"hidden": hidden, "split": split}
        for hidden in HIDDEN
        for split in range(NUM_SPLITS)
    }


def unit(hidden: str, split: int) -> dict:
    """Sample a shape on a split; keep what it says of the rows that test, and how chains fared."""
    made = column_chains.model(TABLE, "number", hidden=HIDDEN[hidden])
    rows, key = usual_tables.split(TABLE, split), partial(common.key, SEED, TABLE, hidden, split)
    posterior = mcmc.sample(
        key("chains"),
        made.log_density,
        column_chains.starts(key("start"), made.shapes, NUM_CHAINS),
        data=column_networks.observed(rows.x_train, rows.y_train),
        **column_chains.LENGTHS,
    )
    mean, _ = column_chains.said(made, posterior.draws, np.float32(rows.x_test))
    base = np.asarray(posterior.draws["log_noise"])
    return {"mean": mean, "base": base, **runs.kept_run(posterior)}


def score(drawn: dict, hidden: str, split: int) -> dict:
    """Return the scores of what was sampled, of its chains alone, and how they agree."""
    return column_chains.score(drawn, TABLE, hidden, split, NUM_CHAINS)
