"""Claims of the page ``sgmcmc`` that it does not share with ``fisher-scoring``."""

from helpers import metrics

import numpy as np

from tests.claims.said import says
from tests.claims.test_fisher_scoring import family, ran, samplers, settings


@says(
    "sgmcmc",
    """Where two seeds or more found a step, their mean distances are at most {glue:text}`tv-most`,
    about what the rule was told to accept.""",
    "Chains five times as long, in {ref}`sgmcmc-family`, are too wide as well.",
    "Averages of predictions come near the posterior's long before their spread does.",
)
def test_mean_distances_are_below_the_limit():
    assert max(np.mean(row["tv"]) for row in ran().values()) < settings()["limit"]
    assert all(min(row["spread_ratio"]) > 1.1 for row in ran().values())
    assert settings()["final"]["num_steps"] == 5 * 500 * 240


@says("sgmcmc", "**We cannot tell which member of the family is best.**")
def test_intervals_of_the_nearest_samplers_overlap():
    found = sorted(metrics.interval(row["tv"]) for row in ran().values())
    (first, half), (second, other) = found[:2]
    assert first + half > second - other


@says(
    "sgmcmc",
    """Stochastic variational inference ends farther from NUTS than these samplers, and reads less
    than a tenth of the points that they read ({ref}`fisher-family`).""",
)
def test_svi_is_farther_off_and_costs_less():
    farthest = max(np.mean(row["tv"]) for row in ran().values())
    least = min(row["gradients"][0] for row in samplers().values())
    for name in ("SVI, diagonal", "SVI, full"):
        assert np.mean(family()[name]["tv"]) > 1.5 * farthest
        assert max(family()[name]["gradients"]) < 0.1 * least
