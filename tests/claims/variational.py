"""Fits of the wave by every method, for the claims of two pages."""

import numpy as np

from tests.claims.reading import stored

WHOLE, GAP = "whole", "gap"  # the wave with all of its points, and with a gap
TUNED = ["mean-field", "low-rank", "full-rank", "flow"]
LINEARISED = "Laplace, linearised"


def initial_scales():
    """Rows of five settings of starts and particles: narrow, middle, wide, one particle, many."""
    return stored("svi/initial_scales")


def num_flat(row):
    """Number of starts that end in a flat curve."""
    return (np.ptp(row["curve"], axis=1) < 0.2).sum()


def arms():
    """Methods at equal cost, by kind of data and name."""
    return {(row["data"], row["name"]): row for row in stored("svi/equal_cost")}


def apart(kind, name):
    """Distance from NUTS inside, by redraw."""
    return np.array(arms()[kind, name]["distance_inside"])


def near_nuts(kind, name):
    """On which redraws a method follows both humps of the wave."""
    distance = apart(kind, name)
    assert ((distance < 0.08) | (distance > 0.15)).all()  # two kinds of fits, and nothing between
    return distance < 0.1


def nll_over_nuts(kind, name, region="inside"):
    """NLL of a method less that of the long NUTS, by redraw."""
    found = arms()
    return np.subtract(*(found[kind, one]["nll"][region] for one in (name, "NUTS")))
