"""Scores of predictions with Monte Carlo errors, checks of the runs that made them, and rows."""

from helpers import diagnostics, metrics

import jax
import numpy as np

from experiments.methods import runs

NAMES = {"nll": "NLL", "accuracy": "accuracy %", "brier": "Brier"}
NAMES |= {"calibration_error": "calibration error"}
LEAST = 1e-7  # probability: in single precision a certain network has a label at 0


def score_of(p, y):
    """Return the four scores of one prediction, p and y of any one shape."""
    found = metrics.scores(np.clip(np.asarray(p, np.float64), LEAST, 1 - LEAST), np.asarray(y))
    return {name: found[of] for name, of in NAMES.items()}


def scored_parts(parts, y, score=score_of):
    """Score the mean of independent predictions of one thing, [part, *point], by four scores.

    Errors are the jackknife's: each part is left out in turn; that of the accuracy is no less than
    one point. Of one part alone there is none.
    """
    parts = np.asarray(parts, np.float64)
    total, others = parts.sum(axis=0), len(parts) - 1
    without = [score((total - part) / others, y) for part in parts if others]
    found = {name: [one[name] for one in without] for name in NAMES}
    errors = {k: np.sqrt(others) * np.std(v) if others else 0.0 for k, v in found.items()}
    errors["accuracy"] = np.hypot(errors["accuracy"], 100 / np.size(y) if others else 0.0)
    errors = {f"{name}_error": float(error) for name, error in errors.items()}
    alone = [score(part, y)["nll"] for part in parts]
    return score(parts.mean(axis=0), y) | errors | {"nll_by_chain": alone}


def scored(p, y):
    """Score the mean of all draws, p [chain, draw, *point].

    The error of the NLL is known from the draws; of the others it is the jackknife's over half
    chains.
    """
    p = np.clip(np.asarray(p, np.float64), LEAST, 1 - LEAST)
    halves = [half.mean(axis=0) for chain in p for half in np.array_split(chain, 2)]
    found = scored_parts(halves, y)
    of_chains = [score_of(chain.mean(axis=0), y)["nll"] for chain in p]
    return found | {"nll_error": diagnostics.nll_error(p, y), "nll_by_chain": of_chains}


def scored_starts(p, y, score=score_of):
    """Score networks p [start, *point], each alone: means over starts, their standard errors."""
    each = [score(one, y) for one in p]
    of = {name: [one[name] for one in each] for name in NAMES}
    means = {name: float(np.mean(values)) for name, values in of.items()}
    errors = {f"{name}_error": float(np.std(v, ddof=1) / np.sqrt(len(v))) for name, v in of.items()}
    return means | errors | {"nll_by_chain": of["nll"]}


def layer_log_sd(log_sd):
    """Return log sd by layer, [chain, draw]: their mean where each weight has its own.

    Weights trade places between copies of a network, so that only what all of a layer have in
    common can mix.
    """
    found = {}
    for name, part in log_sd.items():
        leaves = [np.reshape(leaf, (*np.shape(leaf)[:2], -1)) for leaf in jax.tree.leaves(part)]
        found[name] = np.concatenate(leaves, axis=2).mean(axis=2)
    return found


def check_of_run(drawn, p, **others):
    """Return the check of a run by p [chain, draw, task, point] at five points of each task.

    Of independent tasks it is of [task, chain, draw].
    """
    some = p[..., :: max(1, p.shape[-1] // 5)][..., :5]
    if drawn["stats"]["log_density"].ndim == 3:
        some = np.moveaxis(some, 2, 0)
    return runs.diagnosis(runs.run_from(drawn), some, **others)


def with_sampler(drawn, p, y):
    """Score all draws of a hierarchical fit; median sd of its layers, and its check."""
    log_sd = layer_log_sd(drawn["draws"]["log_sd"])
    check = check_of_run(drawn, p, log_sd=log_sd)
    sampler = {
        "sd_by_chain": {
            name: np.exp(np.median(part, axis=1)).tolist() for name, part in log_sd.items()
        },
        "rhat_log_density": check["rhat"]["log density"],
        "divergences": check["divergences"],
    }
    return scored(p, y) | {"sampler": sampler, "check": check}


def row(name, scores):
    """Return an arm's row of its scores of each data set: lists over these, however deep."""
    checks = {"check": [one["check"] for one in scores]} if "check" in scores[0] else {}
    rest = [{key: value for key, value in one.items() if key != "check"} for one in scores]
    return {"name": name, "sampler": {}, "more": {}} | joined(rest) | checks


def joined(parts):
    """Return lists over parts that are dictionaries, however deep their entries stand."""
    if not isinstance(parts[0], dict):
        return parts
    return {key: joined([part[key] for part in parts]) for key in parts[0]}
