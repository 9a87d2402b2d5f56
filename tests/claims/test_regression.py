"""Claims of the page ``regression``."""

from tests.claims.reading import lower_end, upper_end
from tests.claims.said import says
from tests.claims.test_curves_measured import (
    INSIDE,
    LECTURE,
    OUTSIDE,
    held,
    nll_over_the_lectures,
)


@says(
    "regression",
    "Inside, the band holds about what it says; outside it is far too narrow.",
    """Inside, the 95 % interval holds {glue:text}`covered-inside` of measurements; outside,
    {glue:text}`covered-outside`""",
)
def test_the_band_is_right_inside_and_too_narrow_outside():
    assert abs(held(LECTURE, INSIDE).mean() - 0.95) < 0.03
    assert upper_end(held(LECTURE, OUTSIDE)) < 0.6


@says(
    "regression",
    """Outside, 95 % bands of sd 0.1 hold {glue:text}`held-narrow` of measurements, and those of
    ReLU {glue:text}`held-relu`.""",
    "Inside sd 0.1 is the worst: it cannot bend as the curve does, and calls the wave noise.",
)
def test_the_prior_that_holds_most_outside_costs_most_inside():
    assert lower_end(held("sd 0.1", OUTSIDE) - held(LECTURE, OUTSIDE)) > 0.4
    assert lower_end(held(LECTURE, OUTSIDE) - held("ReLU", OUTSIDE)) > 0
    assert lower_end(nll_over_the_lectures("sd 0.1", INSIDE)) > 0.5
    assert upper_end(nll_over_the_lectures("ReLU", INSIDE)) < 0.5
