"""Red wine with each row once: chains of five times the draws on two splits, by the book's verdict.

All but the lengths is the arm *learnt scales* of ``wine_once``.
"""

from helpers import common, mcmc

from functools import partial

import numpy as np

from experiments.methods import (
    column_chains,
    column_networks,
    column_once,
    column_scores,
    column_tails,
    runs,
)
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables

SEED, NUM_SPLITS = 3313, 2
LENGTHS = column_chains.LENGTHS | {"num_samples": 1500}
SETTINGS = {"seed": SEED, "table": "wine", "chains": column_tails.NUM_CHAINS, **LENGTHS}
SMALL = {"split": 0}


def units() -> dict[str, dict]:
    """Return both splits."""
    return {f"split {split}": {"split": split} for split in range(NUM_SPLITS)}


def unit(split: int) -> dict:
    """Sample; keep what chains say of the rows that test, and how they fared."""
    made, key = column_chains.model("wine", "number"), partial(common.key, SEED, split)
    rows = usual_tables.standardized(*column_once.parts("wine", split))
    posterior = mcmc.sample(
        key("chains"),
        made.log_density,
        column_chains.starts(key("start"), made.shapes, column_tails.NUM_CHAINS),
        data=column_networks.observed(rows.x_train, rows.y_train),
        **LENGTHS,
    )
    mean, _ = column_chains.said(made, posterior.draws, np.float32(rows.x_test))
    base = np.asarray(posterior.draws["log_noise"])
    return {"mean": mean, "base": base, **runs.kept_run(posterior)}


def score(drawn: dict, split: int) -> dict:
    """Return the scores, and the verdict on predictions, log noise and log density."""
    rows = usual_tables.standardized(*column_once.parts("wine", split))
    noise = np.broadcast_to(drawn["base"][..., None], drawn["mean"].shape)
    found = column_scores.three(Predicted(drawn["mean"], noise), rows.y_test, rows.sd, split)
    found["noise"] = float(rows.sd * np.exp(drawn["base"].astype(np.float64)).mean())
    run = runs.run_from(drawn)
    return found | {"check": runs.diagnosis(run, drawn["mean"], log_noise=drawn["base"])}
