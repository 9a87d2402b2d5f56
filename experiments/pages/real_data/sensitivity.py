"""How much do predictions and standard deviations of the insurance table owe to the prior?

The mixed model and the network that groups shift, on four families a cell, where a prior counts
most: once as in ``predictions``, then with narrower and wider hyperpriors, with kernels that are
not divided by the root of their inputs, and with networks of other sizes.
"""

from helpers import common, metrics

import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.pages.real_data import predictions, table_fits

SETTINGS = {**table_fits.SETTINGS, "size": 4}
AS_IT_IS = "as in the chapter"
CHANGES = {
    AS_IT_IS: {},
    "standard deviations HalfNormal(0.3)": {"sd": 0.3},
    "standard deviations HalfNormal(3)": {"sd": 3.0},
    "kernels not divided": {"fan_in": False},
}
SIZES = {"10 units": {"hidden": [10]}, "5 and 5 units": {"hidden": [5, 5]}}
MODELS = {table_fits.LINES: CHANGES, table_fits.SHIFTED: CHANGES | SIZES}


def units():
    """A model under one change each."""
    lengths = {"num_warmup": SETTINGS["num_warmup"], "num_samples": SETTINGS["num_samples"]}
    return {
        f"{model}: {change}": {"model": model, "change": change, **lengths}
        for model, changes in MODELS.items()
        for change in changes
    }


SMALL = units()[f"{table_fits.LINES}: {AS_IT_IS}"]


def unit(model, change, **lengths):
    """Sample the model with that change."""
    given = MODELS[model][change]
    arm = table_fits.SAMPLED[model]
    arm = arm._replace(hidden=given.get("hidden", arm.hidden))
    key = common.key(SETTINGS["seed"], "sensitivity", model, change)
    hyperprior, fan_in = tfd.HalfNormal(given.get("sd", 1.0)), given.get("fan_in", True)
    train, test = table_fits.split("family", SETTINGS["size"], 0)
    return table_fits.sampled(key, train, test, arm, hyperprior, fan_in, **lengths)


def score(drawn, model, change, **_):
    """Score it as ``predictions`` does."""
    scored = predictions.scores_of(drawn, *table_fits.split("family", SETTINGS["size"], 0))
    return scored | {"model": model, "change": change}


def rows(scored):
    """A row each, with the difference to the same model as in the chapter."""
    found = []
    for name, one in scored.items():
        at, usual = (
            predictions.joined_parts([scored[key]]) for key in (name, f"{one['model']}: {AS_IT_IS}")
        )
        moved = float(np.abs(at["mean"] - usual["mean"]).mean())
        row = {key: one[key] for key in ("model", "change", "nll_error", "seconds", "check", "sd")}
        less = predictions.difference(at, usual)
        row |= {
            "scores": metrics.scores(jnp.float32(at["mean"]), jnp.int32(at["y"])),
            "less_than_usual": less,
        }
        found.append(row | {"moved": moved})
    return found
