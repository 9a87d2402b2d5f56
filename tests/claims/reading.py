"""Stored results as claims read them, and the intervals by which they judge."""

from helpers import common

import functools

import numpy as np
from jaxtyping import ArrayLike
from scipy import stats

from experiments.methods.runs import check_of

# Of NLL; attribution.py, in experiments/pages/what_the_gain_is_made_of, fixed it before any result.
THRESHOLD = 0.005


def stored(name: str) -> list[dict]:
    """Return the rows of a stored result."""
    return common.read_result(name)["rows"]


def rows(name: str, key: str = "name") -> dict:
    """Return the rows of a stored result, by name."""
    return {row[key]: row for row in stored(name)}


def within_bounds(check: dict) -> bool:
    """Whether every R-hat of a stored check is within its bound."""
    return all(check["rhat"][kind] <= check["rhat_bound"][kind] for kind in check["rhat"])


def mixed(check: dict) -> bool:
    """Whether draws can be used, by the measurements that a stored check has kept."""
    return check_of(check).ok


def arms() -> dict:
    """Return the rows of the arms, by name, on the data sets that all of them have."""
    found = common.read_result("what_the_gain_is_made_of/arms")
    first = slice(found["settings"]["num_redraws"])
    return {
        row["name"]: {k: v[first] if isinstance(v, list) else v for k, v in row.items()}
        for row in found["rows"]
    }


@functools.cache
def quantile(count: int) -> float:
    """Return the 97.5 % quantile of t for the mean of as many values; looking it up is slow."""
    return float(stats.t.ppf(0.975, count - 1))


def lower_end(values: ArrayLike) -> float:
    """Return the lower end of the 95 % t interval of the mean over data sets."""
    values = np.asarray(values)
    half = quantile(len(values)) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half)


def upper_end(values: ArrayLike) -> float:
    """Return the upper end of the 95 % t interval of the mean over data sets."""
    return -lower_end(-np.asarray(values))


def is_open(values: ArrayLike) -> bool:
    """Whether the interval of the mean over data sets holds 0."""
    return lower_end(values) < 0 < upper_end(values)
