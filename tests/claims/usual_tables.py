"""Stored rows of the usual tables, as tests of several pages read them."""

import functools

import numpy as np

from experiments.methods import column_scores
from tests.claims.reading import rows

MAIN, SECOND = "learnt scales", "noise by a second output"
MATERN, TREES, FREE = "process, Matern 5/2", "trees", "MC dropout, free precision"
TABLES = ("yacht", "concrete", "energy", "airfoil")


@functools.cache
def arms(table="yacht"):
    """Return the arms on a table, by name."""
    kinds = ["chains", "baselines", "dropout", "trained"]
    found = {name: row for k in kinds for name, row in rows(f"usual_tables/{k}_{table}").items()}
    found["trees"] = rows("usual_tables/trees")[table]  # of a wider grid than the baselines'
    return {name: row for name, row in found.items() if "rmse" in row}


def ends(values):
    """Return both ends of the 95 % interval of a mean over splits that overlap."""
    mean, half = column_scores.interval(values)
    return mean - half, mean + half


def is_level(values):
    """Whether 0 lies within that interval."""
    return np.prod(ends(values)) < 0


def log_density(name, table="yacht"):
    """Return an arm's mean log density on each split."""
    return np.array(arms(table)[name]["log_density"])


def four_chains(table="yacht"):
    """Return the mean log density of four of the sixteen chains on each split."""
    return np.array(arms(table)[MAIN]["by_chains"])[:, 2, -1]
