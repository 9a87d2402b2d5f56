"""Claims of the page ``are-the-samplers-right``."""

from helpers import common

import numpy as np

from tests.claims.reading import rows
from tests.claims.said import says


def growth(what):
    """Size, unknowns and time of a gradient, each relative to the book's size, [size]."""
    result = common.read_result("are_the_samplers_right/gradient_time")
    found = [row for row in result["rows"] if row["what"] == what]
    return np.array(
        [
            (row["value"] / found[0]["value"], row["unknowns"] / 763, row["times_slower"])
            for row in found
        ]
    ).T


@says(
    "are-the-samplers-right",
    """The book's sampler stays within the band in every quantity; the other two are beyond it in
    the log likelihood, at twice its width at least""",
)
def test_calibration_passes_the_books_sampler_and_finds_two_broken_ones():
    book, weakened, prior_only = rows("are_the_samplers_right/calibration").values()
    assert max(book["distance"].values()) < book["band"]
    for broken in (weakened, prior_only):
        assert broken["distance"]["log likelihood"] > 2 * broken["band"]


@says("are-the-samplers-right", "Tasks cost in proportion to their number. So, nearly, do points")
def test_time_grows_with_tasks_and_points():
    for what, most in (("tasks", 1.2), ("points", 1.4)):
        size, _, time = growth(what)
        assert np.abs(np.log(time / size)).max() < np.log(most)


@says(
    "are-the-samplers-right",
    """Up to twenty units time grows nearly as the number of unknowns does. From there to a hundred
    units it grows faster than the width and more slowly than the number of unknowns.""",
)
def test_time_grows_with_width_between_units_and_unknowns():
    size, unknowns, time = growth("width")
    assert np.abs(np.log(time / unknowns))[:3].max() < np.log(1.4)
    assert size[4] / size[2] < time[4] / time[2] < unknowns[4] / unknowns[2]
