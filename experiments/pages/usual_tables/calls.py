"""The networks of two tables by the calls of ``tables``, as a reader makes them, on five splits.

What differs is what is said of the first layer's weights: their standard deviation is fixed at one
of a grid, at 1 by default, or learnt; and of the noise, which is one number or a second output.
Fixed before any run: the choice among the grid is by the log density of training rows that are
left out (PSIS), split by split, whatever k says.
"""

from helpers import common, monte_carlo, networks

import time
import warnings
from functools import partial

import numpy as np
import numpyro.distributions as dist

import tables
from experiments.methods import column_scores, crps
from experiments.problems import usual_tables
from tables import comparisons

SETTINGS = {
    "seed": 3308,
    "tables": ["yacht", "concrete"],
    "num_splits": 5,
    "hidden": 50,
    "grid": [0.5, 1.0, 2.0, 4.0],
    "learnt": 2.0,  # scale of the half normal prior where it is learnt
    "run": {"num_warmup": 100, "num_samples": 150, "num_chains": 4, "max_tree_depth": 7},
}
LEARNT, SECOND = "learnt", "learnt, second output"
SMALL = {"table": "yacht", "arm": "1.0", "split": 0}


def units() -> dict[str, dict]:
    """Return every arm on every split."""
    arms = [LEARNT, SECOND, *map(str, SETTINGS["grid"])]
    return {
        f"{table}; {arm}; split {split}": {"table": table, "arm": arm, "split": split}
        for table in SETTINGS["tables"]
        for split in range(SETTINGS["num_splits"])
        for arm in arms
    }


def model(table: str, arm: str, train: np.ndarray) -> tables.models.Model:
    """Return the model of an arm, of some rows of a table."""
    frame = usual_tables.read(table)
    learns = arm in (LEARNT, SECOND)
    prior = dist.HalfNormal(SETTINGS["learnt"]) if learns else dist.Delta(float(arm))
    return tables.model(
        f"{frame.columns[-1]} ~ .",
        frame.iloc[train],
        network=networks.MLP(hidden=(SETTINGS["hidden"],), use_bias=True),
        noise="network" if arm == SECOND else None,
        priors={f"sd_network[Dense_0.{leaf}]": prior for leaf in ("kernel", "bias")},
    )


def unit(table: str, arm: str, split: int) -> dict:
    """Fit an arm; keep what it says of the rows that test, and of those that train, left out."""
    frame = usual_tables.read(table)
    train, test = usual_tables.published(len(frame))[split]
    made, begun = model(table, arm, train), time.perf_counter()
    key = partial(common.key, SETTINGS["seed"])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not to be used")  # it is kept
        fit = tables.fit(key(table, arm, split), made, **SETTINGS["run"])
    seconds = time.perf_counter() - begun
    found = tables.predict(key("outcomes", table, arm, split), fit, frame.iloc[test])
    loo = comparisons.by_importance(fit)
    return {
        "density": found.log_density,
        "mean": found.mean,
        "outcome": found.outcome.astype(np.float32),
        "loo": loo.elpd_loo,
        "k": float(loo.pareto_k.max()),
        "rhat": float(fit.check.rhat[0]),
        "gradients": float(fit.data.sample_stats.n_steps.values.sum(axis=1).mean()),
        "seconds": seconds,
    }


def score(drawn: dict, table: str, arm: str, split: int) -> dict:
    """Return the scores on the rows that test, with their error over chains, and what was kept."""
    frame = usual_tables.read(table)
    y = frame.iloc[usual_tables.published(len(frame))[split][1], -1].to_numpy()
    parts = [drawn[name] for name in ("density", "mean", "outcome")]
    errors = monte_carlo.jackknife(partial(_three, y), *parts, num_stretches=len(parts[0]))
    found = dict(zip(column_scores.NAMES, _three(y, *parts).tolist(), strict=True))
    found |= {f"{name}_error": float(e) for name, e in zip(found, errors, strict=True)}
    kept = {name: float(drawn[name]) for name in ("loo", "k", "rhat", "gradients", "seconds")}
    return found | kept


def _three(y, density, mean, outcome):
    """Return RMSE, mean log density and CRPS of the average over all draws."""
    error = np.sqrt(((mean.mean(axis=(0, 1)) - y) ** 2).mean())
    return np.array([error, column_scores.averaged(density).mean(), crps.crps(outcome, y)])


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row an arm of a table, whose entries are lists over splits."""
    found = {}
    for name, one in scored.items():
        found.setdefault(name.rsplit("; ", 1)[0], []).append(one)
    return [column_scores.row(name, each) for name, each in found.items()]
