"""Claims of the page ``your-fit``."""

import numpy as np

from tests.claims.said import says
from tests.claims.variational import WHOLE, arms, near_nuts


@says(
    "your-fit",
    "a flow found none, and yet had the higher ELBO on two of those four",
    falls=0.2,  # on one of the two by less than a nat
)
def test_a_flow_that_misses_the_wave_may_have_the_higher_elbo():
    flow, full = (np.array(arms()[WHOLE, name]["elbo"]) for name in ("flow", "full-rank"))
    assert (flow > full + 0.5)[near_nuts(WHOLE, "full-rank")].sum() == 2
    assert not near_nuts(WHOLE, "flow").any()
