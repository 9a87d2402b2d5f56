"""What parts chains on red wine, rows that train twice or a small noise: four chains of each of the
four combinations, the noise held at one of two values.

Both values are what chains with learnt scales find, with copies and with each row once
(``chains_wine``: 0.40 points of taste, ``wine_longer``: 0.60). Rows that test are those of the
published splits.
"""

from helpers import common, mcmc

from functools import cache, partial

import jax
import numpy as np

from experiments.methods import column_chains, column_networks, runs
from experiments.methods.column_networks import Model
from experiments.problems import usual_tables

SEED, TABLE, NUM_CHAINS, NUM_SPLITS = 3315, "wine", 4, 3
NOISES = {"small noise": 0.50, "large noise": 0.74}  # by the standard deviation of tastes
ROWS = ["with copies", "distinct rows"]
SETTINGS = {"seed": SEED, "table": TABLE, "chains": NUM_CHAINS, **column_chains.LENGTHS}
SETTINGS |= {"splits": NUM_SPLITS, "noises": NOISES, "rows": ROWS}
SMALL = {"kind": "with copies", "noise": "large noise", "split": 0}


def units() -> dict[str, dict]:
    """Return every combination on each of three splits."""
    return {
        f"{kind}, {noise}; split {split}": {"kind": kind, "noise": noise, "split": split}
        for kind in ROWS
        for noise in NOISES
        for split in range(NUM_SPLITS)
    }


@cache
def held(noise: float) -> Model:
    """Return the arm *learnt scales* with a noise that is given and no part of a position: the same
    functions for all splits, so that they compile once.
    """
    made = column_chains.model(TABLE, "number")
    given = {"log_noise": np.float32(np.log(noise))}
    return Model(
        lambda position, observed: made.log_density(position | given, observed),
        lambda position, x: made.predict(position | given, x)[0],
        {name: shape for name, shape in made.shapes.items() if name not in given},
    )


def unit(kind: str, noise: str, split: int) -> dict:
    """Sample; keep what chains say of the rows that test, and how they fared."""
    made, key = held(NOISES[noise]), partial(common.key, SEED, kind, noise, split)
    parts = usual_tables.split(TABLE, split)
    train = np.column_stack([parts.x_train, parts.y_train])
    if kind == "distinct rows":
        train = train[np.sort(np.unique(train, axis=0, return_index=True)[1])]
    posterior = mcmc.sample(
        key("chains"),
        made.log_density,
        column_chains.starts(key("start"), made.shapes, NUM_CHAINS),
        data=column_networks.observed(train[:, :-1], train[:, -1]),
        **column_chains.LENGTHS,
    )
    x = np.float32(parts.x_test)
    mean = jax.jit(jax.vmap(jax.vmap(lambda draw: made.predict(draw, x))))(posterior.draws)
    return {"mean": np.asarray(mean), **runs.kept_run(posterior)}


def score(drawn: dict, kind: str, noise: str, split: int) -> dict:
    """Return the verdict on predictions and log density."""
    return {"check": runs.diagnosis(runs.run_from(drawn), drawn["mean"])}
