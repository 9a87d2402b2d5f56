"""Claims of the page ``are-the-samplers-right``."""

from helpers import common, full_metric

import jax
import numpy as np

from experiments.problems import peers
from tests.claims.reading import rows, stored
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


PEERS = "are_the_samplers_right/peers"


def gradients_each(sampler, posterior):
    """Median gradients for an effective draw over the runs that were accepted."""
    return np.median(
        [
            row["gradients"] / row["ess_bulk"]
            for row in stored(PEERS)
            if row["accepted"] and (row["sampler"], row["posterior"]) == (sampler, posterior)
        ]
    )


@says(
    "are-the-samplers-right",
    """A check is wrong if it accepts a run with a mean that is off by more than six errors, or by
    more than a third of a standard deviation. It is wrong, too, if it refuses the book's run on one
    of the eleven posteriors that ought to be easy.""",
    """By this rule all of the {glue:text}`peers-runs` verdicts are right but those on "spike",
    which are all wrong, whoever drew.""",
)
def test_no_verdict_on_a_peer_but_the_spike_is_wrong():
    found = stored(PEERS)
    assert len({row["posterior"] for row in found if row["asked"] == peers.EASY}) == 11
    for row in found:
        far = row["distances"]
        off = far["mean"] > 6 or far["mean_in_sds"] > 1 / 3
        assert (row["accepted"] and off) == (row["posterior"] == "spike")
        easy = row["asked"] == peers.EASY and row["sampler"] == "ours"
        assert row["accepted"] or not easy


@says(
    "are-the-samplers-right",
    "Four are refused, whoever drew, and deserve it",
    "The libraries' NUTS is refused on scales from $10^{-6}$ to $10^6$ as well.",
)
def test_what_has_not_met_or_hardly_moves_is_refused():
    scales = [row for row in stored(PEERS) if row["posterior"] == "scales"]
    assert len(scales) == 15
    assert all(row["accepted"] == (row["sampler"] == "ours") for row in scales)
    for name in ("funnel", "eight_schools-eight_schools_centered", "alike", "far modes"):
        runs = [row for row in stored(PEERS) if row["posterior"] == name]
        assert len(runs) == 15 and not any(row["accepted"] for row in runs)


@says(
    "are-the-samplers-right",
    """The book's sampler takes the fewest on every posterior, NUTS
    {glue:text}`peers-least-times` to {glue:text}`peers-most-times` times as many""",
    "The largest ratios are regressions on raw columns",
    "All posteriors of the figure have 30 unknowns or fewer",
)
def test_the_books_sampler_takes_the_fewest_gradients():
    everyone = {row["posterior"]: row["asked"] for row in stored(PEERS)}
    everyone = [name for name, asked in everyone.items() if asked == peers.EASY]
    times = {
        name: min(gradients_each(other, name) for other in ("NumPyro", "BlackJAX"))
        / gradients_each("ours", name)
        for name in [*everyone, "bball_drive_event_0-hmm_drive_0"]
    }
    assert len(times) == 12 and min(times.values()) > 1
    positions = [peers.load(name).position for name in [*times, "scales"]]
    sizes = [sum(leaf.size for leaf in jax.tree.leaves(position)) for position in positions]
    assert max(sizes) <= full_metric.MAX_PARAMETERS == 30
    assert {"years", "kidiq-kidscore_interaction", "earnings-earn_height"} == set(
        sorted(times, key=times.get)[-3:]
    )
