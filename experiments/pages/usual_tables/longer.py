"""Chains of a million gradients, and chains whose starts were tempered, on two splits of yacht.

All but lengths and starts is the arm *learnt scales* of ``chains_yacht``, with four chains.
"""

from helpers import common, mcmc, tempering

from functools import partial

import numpy as np

from experiments.methods import column_chains, column_networks, runs
from experiments.problems import usual_tables

SEED, TABLE, NUM_CHAINS, NUM_SPLITS = 3310, "yacht", 4, 2
POWERS = {"long": [], "tempered": [0.01, 0.1, 0.3]}  # of the likelihood, in stages before warm-up
SHORT = column_chains.LENGTHS
# Warm-up is longer, too: a step size that is right where 200 draws lead is too long where
# thousands do, and a third of trajectories diverge.
LENGTHS = {"long": SHORT | {"num_warmup": 2000, "num_samples": 6000}, "tempered": SHORT}
SETTINGS = {
    "seed": SEED,
    "table": TABLE,
    "chains": NUM_CHAINS,
    "powers": POWERS,
    "lengths": LENGTHS,
}
SMALL = {"arm": "tempered", "split": 0}
rows = column_chains.rows


def units() -> dict[str, dict]:
    """Return both kinds of chains on both splits."""
    return {
        f"{arm}; split {split}": {"arm": arm, "split": split}
        for arm in POWERS
        for split in range(NUM_SPLITS)
    }


def unit(arm: str, split: int) -> dict:
    """Sample from the starts of an arm; keep what chains say of the rows that test."""
    made, rows = column_chains.model(TABLE, "number"), usual_tables.split(TABLE, split)
    key = partial(common.key, SEED, TABLE, arm, split)
    data = column_networks.observed(rows.x_train, rows.y_train)
    starts = column_chains.starts(key("start"), made.shapes, NUM_CHAINS)
    warmup = {name: SHORT[name] for name in ("num_warmup", "max_tree_depth")}
    for power in POWERS[arm]:
        below = data._replace(weight=np.float32(power) * np.asarray(data.weight))
        starts = tempering.warmed_up(key(power), made.log_density, starts, below, **warmup)
    posterior = mcmc.sample(key("chains"), made.log_density, starts, data=data, **LENGTHS[arm])
    mean, _ = column_chains.said(made, posterior.draws, np.float32(rows.x_test))
    return {
        "mean": mean,
        "base": np.asarray(posterior.draws["log_noise"]),
        **runs.kept_run(posterior),
    }


def score(drawn: dict, arm: str, split: int) -> dict:
    """Return the scores of what was sampled, of its chains alone, and how they agree."""
    return column_chains.score(drawn, TABLE, arm, split, NUM_CHAINS)
