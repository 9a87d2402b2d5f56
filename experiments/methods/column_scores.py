"""Scores of predictions that are mixtures of normals, of chains that need not have mixed.

Rows are standardized, as `usual_tables.split` gives them; scores are in the outcome's unit.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special, stats

from experiments.methods import crps

LEVELS = (0.5, 0.9, 0.95)
BINS = 10  # of the probability integral transform
FAR = 50.0  # nats by which a chain is below the median chain's log density, if it is far off
NAMES = ("rmse", "log_density", "crps")


class Predicted(NamedTuple):
    """The normals of a prediction at the rows that test: mean and log noise, [chain, draw, row]."""

    mean: Float[np.ndarray, "chain draw row"]
    log_noise: Float[np.ndarray, "chain draw row"]


def log_densities(
    predicted: Predicted, y: Float[np.ndarray, " row"]
) -> Float[np.ndarray, "chain draw row"]:
    """Return the log density of each row's outcome under each draw, standardized, in nats."""
    mean, log_noise = (np.asarray(part, np.float64) for part in predicted)
    z = (y - mean) * np.exp(-log_noise)
    return -0.5 * z**2 - log_noise - 0.5 * np.log(2 * np.pi)


def averaged(values: Float[np.ndarray, "chain draw row"]) -> Float[np.ndarray, " row"]:
    """Return the log of the mean density over chains and draws."""
    return special.logsumexp(values, axis=(0, 1)) - np.log(values.shape[0] * values.shape[1])


def three(predicted: Predicted, y: Float[np.ndarray, " row"], sd: float, seed: int) -> dict:
    """Return RMSE, mean log density and CRPS of the average over all draws."""
    mean, log_noise = (np.asarray(part, np.float64) for part in predicted)
    random = np.random.default_rng(seed)
    draws = (mean + np.exp(log_noise) * random.normal(size=mean.shape)).reshape(-1, y.size)
    return {
        "rmse": float(sd * np.sqrt(((mean.mean(axis=(0, 1)) - y) ** 2).mean())),
        "log_density": float(averaged(log_densities(predicted, y)).mean() - np.log(sd)),
        "crps": sd * crps.crps(draws, y),
    }


def scored(predicted: Predicted, y: Float[np.ndarray, " row"], sd: float, seed: int) -> dict:
    """Return three scores with their errors over chains, coverage, and counts of the transform.

    An error is the jackknife's: each chain is left out in turn. That of a single chain is 0.
    """
    found, count = three(predicted, y, sd, seed), len(predicted.mean)
    without = [
        three(Predicted(*(np.delete(part, i, axis=0) for part in predicted)), y, sd, seed)
        for i in range(count if count > 1 else 0)
    ]
    for name in NAMES:
        values = [one[name] for one in without]
        found[f"{name}_error"] = float(np.sqrt(count - 1) * np.std(values)) if without else 0.0
    below = special.ndtr((y - predicted.mean) * np.exp(-predicted.log_noise)).mean(axis=(0, 1))
    found["coverage"] = [float((np.abs(below - 0.5) <= level / 2).mean()) for level in LEVELS]
    found["below"] = np.histogram(below, BINS, (0, 1))[0].tolist()
    return found


def interval(values: Float[np.ndarray, " split"]) -> tuple[float, float]:
    """Return the mean over the published splits and half of its 95 % interval.

    Any two splits share most of their rows, so the variance of the mean is larger than one over
    their number, by what Nadeau and Bengio (2003, equation 5) add: the rows that test to the rows
    that train, here one ninth.
    """
    count, share = len(values), 1 / 9
    error = np.std(values, ddof=1) * np.sqrt(1 / count + share)
    return float(np.mean(values)), float(stats.t.ppf(0.975, count - 1) * error)


def row(name: str, each: list[dict]) -> dict:
    """Return the row of an arm, whose entries are lists over splits."""
    return {"name": name, **{entry: [one[entry] for one in each] for entry in each[0]}}


def by_chains(
    values: Float[np.ndarray, "chain draw row"], sd: float, parts: tuple[float, ...]
) -> list[list[float]]:
    """Return the mean log density of 1, 2, 4, ... chains by what part of their draws is used:
    [number of chains, part]. Chains that follow each other make a group; groups are averaged.
    """
    count, length, _ = values.shape
    sizes = [2**i for i in range(count.bit_length()) if count % 2**i == 0]

    def of(size, part):
        kept = values[:, : int(part * length)]
        groups = [averaged(group) for group in np.split(kept, count // size)]
        return float(np.mean(groups) - np.log(sd))

    return [[of(size, part) for part in parts] for size in sizes]


def near(log_density: Float[np.ndarray, "chain draw"]) -> np.ndarray:
    """Return which chains are not far off: by a rule that was fixed before any was run, a chain
    whose mean log density is more than 50 nats below the median chain's is.
    """
    means = np.asarray(log_density, np.float64).mean(axis=1)
    return means >= np.median(means) - FAR
