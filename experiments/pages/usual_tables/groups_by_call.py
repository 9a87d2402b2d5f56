"""Five groups of fifty rows by the calls of ``tables``, on data sets of ``pooling``.

Its networks, and the scales that its folds have chosen on the same labels; but learnt scales have
the default priors of ``tables``, and shared weights are deviations from a common network whose
scales are fixed, so only what is *chosen*, and N(0, 1), is the same model as there.
"""

from helpers import common, monte_carlo, networks
from helpers.common import read_result

import warnings
from functools import partial

import numpy as np
import numpyro.distributions as dist
import pandas as pd

import tables
from experiments.methods import column_chains
from experiments.problems import moons_redrawn
from tables import comparisons

SETTING = "5, 50"
SETTINGS = {
    "seed": 3309,
    "setting": SETTING,
    "num_redraws": 2,
    "run": {"num_warmup": 200, "num_samples": 250},
}
ONES, CHOSEN, LEARNT, SHARED = "N(0, 1)", "chosen", "learnt", "shared weights"
SMALL = {"arm": ONES, "redraw": 0}
FORMULA = "label ~ 0 + x + z + ({} | task)"
rows = column_chains.rows
INPUTS = (2, 5, 5)  # of each layer's units, by whose root a kernel's deviation is divided


def units() -> dict[str, dict]:
    """Return every arm on every data set, those that take longest first."""
    return {
        f"{arm}; {redraw}": {"arm": arm, "redraw": redraw}
        for arm in (SHARED, LEARNT, CHOSEN, ONES)
        for redraw in range(SETTINGS["num_redraws"])
    }


def frame(x: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    """Return points [task, point, 2] and their labels as rows of one data frame."""
    x, y = np.asarray(x, np.float64), np.asarray(y)
    task = np.repeat([f"task {i}" for i in range(len(y))], y.shape[1])
    return pd.DataFrame({"x": x[..., 0].ravel(), "z": x[..., 1].ravel(), "task": task}).assign(
        label=y.ravel()
    )


def unit(arm: str, redraw: int) -> dict:
    """Fit an arm; keep the log density that each draw gives to fresh labels, and by importance."""
    moons = moons_redrawn.drawn("pooling", SETTING, redraw, num_tasks=5, num_train=50)
    known, fresh = frame(moons.x_train, moons.y_train), frame(moons.x_test, moons.y_test)
    scales = {ONES: np.ones(3), CHOSEN: scales_chosen(redraw)}
    fixed = scales[arm] * np.sqrt(INPUTS) if arm in scales else ()  # learnt by default
    made = tables.model(
        FORMULA.format("network" if arm == SHARED else "separate"),
        known,
        family="bernoulli",
        network=networks.MLP(),
        priors={f"sd_task[Dense_{i}.kernel]": dist.Delta(sd) for i, sd in enumerate(fixed)},
    )
    key = partial(common.key, SETTINGS["seed"])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not to be used")  # it is kept
        fit = tables.fit(key(arm, redraw), made, **SETTINGS["run"])
    said = tables.predict(key("outcomes", arm, redraw), fit, fresh).log_density
    loo = comparisons.by_importance(fit)
    return {
        "by_chain": np.exp(said).mean(axis=1),
        "loo": loo.elpd_loo,
        "k": float(loo.pareto_k.max()),
        "mixed": fit.check.ok,
    }


def scales_chosen(redraw: int) -> np.ndarray:
    """Return the scales of the layers that the folds of ``pooling`` have chosen."""
    stored = read_result("what_the_gain_is_made_of/pooling")["rows"]
    row = next(r for r in stored if r["more"]["setting"] == SETTING and "chosen" in r["name"])
    return np.array(row["more"]["scales"][redraw])


def score(drawn: dict, arm: str, redraw: int) -> dict:
    """Return the mean negative log density of fresh labels, and its jackknife error."""
    del arm, redraw
    by_chain = drawn["by_chain"]
    error = monte_carlo.jackknife(_nll, by_chain, num_stretches=len(by_chain))
    return {
        "nll": _nll(by_chain),
        "nll_error": float(error),
        "loo": float(drawn["loo"]),
        "k": float(drawn["k"]),
        "mixed": bool(drawn["mixed"]),
    }


def _nll(by_chain):
    return float(-np.log(by_chain.mean(axis=0)).mean())
