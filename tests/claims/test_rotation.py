"""Claims of the page ``rotation``."""

import numpy as np

from tests.claims.reading import mixed, stored
from tests.claims.said import says


def turns():
    """Descriptions of the first layer, one row a data set."""
    return stored("what_the_gain_is_made_of/turns")


@says(
    "rotation",
    """on each of {glue:text}`num-sets` data sets the angles can be read off its weights with an
    error (root mean square) of {glue:text}`angle-errors` degrees""",
)
def test_the_angles_can_be_read_off_the_weights():
    assert len(turns()) == 8 and max(row["angle_error_degrees"] for row in turns()) < 16


@says(
    "rotation",
    """A layer of which a part turns explains {glue:text}`stored-part` of the average first layer
    of a task left out.""",
    """with the share that a part which turns explains, in nineteen trials of twenty at most, if
    the angles are exchanged among the tasks at random.""",
)
def test_a_part_that_turns_explains_most_and_exchanged_angles_nothing():
    for row in turns():
        assert row["part"] > 0.75 and row["exchanged"] < 0.1


@says(
    "rotation",
    """Waves that are tied to nothing explain {glue:text}`stored-waves`, from six numbers a unit
    instead of four: the additional freedom explains no more, so the part that moves does
    rotate.""",
)
def test_waves_tied_to_nothing_explain_no_more():
    for row in turns():
        error = np.hypot(row["waves_error"], row["part_error"])
        assert row["waves"] - row["part"] < 0.03 + 3 * error


@says(
    "rotation",
    """Whether there is a fixed part beside it depends on the data set: without one, a layer that
    turns as a whole explains {glue:text}`stored-whole`, and the values below 0 are
    poorly known.""",
)
def test_whether_the_whole_layer_turns_depends_on_the_data_set():
    whole = [row["whole"] for row in turns()]
    assert max(whole) > 0.7 and min(whole) < 0.5


@says(
    "rotation",
    """The draws of {glue:text}`num-mixed` of {glue:text}`num-sets` fits can be used
    ({ref}`wrong-verdict`); in the others some scales of the means have too few effective draws, so
    their rows are a lead.""",
)
def test_of_fits_that_cannot_be_used_the_scales_are_short_of_draws():
    of_fits = [row["check"] for row in turns()]
    assert 0 < sum(map(mixed, of_fits)) < len(of_fits)
    for check in of_fits:
        assert mixed(check) or check["ess"]["log sd"] < 400
        # their predictions agree
        assert check["rhat"]["predictions"] <= 1.02
