"""Claims of the page ``learnt-priors-measured``."""

import numpy as np

from tests.claims.reading import lower_end, stored
from tests.claims.said import says


def densities(reference, aligned):
    """Held-out log densities of the fits, a dictionary a redraw, of draws aligned or not."""
    found = stored("informative_priors/transfer")
    (row,) = (one for one in found if (one["name"], one.get("reference")) == ("fits", reference))
    kind = "held_out_density" if aligned else "held_out_density_not_aligned"
    return [one[kind] for one in row["scores"]]


def beyond_scales(found):
    """Nats over the scales alone, by fit and redraw."""
    return {
        name: np.array([np.mean(of[name]) - np.mean(of["scales only"]) for of in found])
        for name in found[0]
        if name != "scales only"
    }


@says(
    "learnt-priors-measured",
    """Not aligned, neither normal is better than the scales beyond its interval, and on most
    redraws it is worse""",
)
def test_not_aligned_no_fit_is_better_than_the_scales():
    for name, nats in beyond_scales(densities("one draw", False)).items():
        assert lower_end(nats) < 0 and nats.mean() < 0 and (nats < 0).sum() >= 4, name


@says(
    "learnt-priors-measured",
    """Aligned, the means, a width for each weight and the correlations within a layer are together
    worth some thirty nats""",
)
def test_aligned_fits_are_worth_some_thirty_nats():
    for name, nats in beyond_scales(densities("their mean", True)).items():
        assert lower_end(nats) > 20, name
