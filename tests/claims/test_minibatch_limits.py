"""Claims of the page ``minibatch-limits``."""

import numpy as np

from tests.claims.reading import rows
from tests.claims.said import says

PLAIN, CONTROL, FISHER = "SGLD", "SGLD, control variates, from the mode", "SGFS, identity"


def sizes():
    """Rows of growing data, by size."""
    return rows("sgmcmc/data_sizes", "size")


def sampler(size, name):
    """The runs of a sampler at a number of data."""
    return next(found for found in sizes()[size]["samplers"] if found["name"] == name)


def times(name):
    """Median microseconds of a step, by number of data."""
    return {size: np.median(row["microseconds"][name]) for size, row in sizes().items()}


@says(
    "minibatch-limits",
    """A thousand times the data multiply the whole gradient's time by {glue:text}`whole-growth`; a
    minibatch step's times differ at most {glue:text}`flat-growth` times (SGLD)""",
)
def test_a_minibatch_steps_time_hardly_grows_and_a_whole_gradients_does():
    assert max(times("SGLD").values()) < 5 * min(times("SGLD").values())
    whole = times("whole gradient")
    assert whole[1_000_000] > 100 * whole[1000]


@says(
    "minibatch-limits",
    "At 1000 and at 10 000 data that is NUTS, four chains. It mixes, by this book's rule",
)
@says("which-method", "On moons with a thousand points and with ten thousand {term}`NUTS` mixed")
def test_nuts_mixes_at_a_thousand_and_at_ten_thousand_data():
    for size in (1000, 10_000):
        reference = sizes()[size]["reference"]
        assert reference["mixed"] and reference["tv"] < 0.3 * sizes()[size]["limit"]


@says(
    "minibatch-limits",
    "already at a thousand no {term}`minibatch` sampler tried is shown to sample the posterior.",
    "and none of these samplers is shown to sample the posterior at that cost.",
)
@says("which-method", "no {term}`minibatch` sampler tried was shown to sample the posterior")
def test_no_minibatch_sampler_is_shown_to_sample_the_posterior():
    for size in (1000, 10_000):
        found = sizes()[size]["samplers"]
        assert not any(one["samples"] or one["keeps_spread"] for one in found)


@says(
    "minibatch-limits",
    """At 1000 data every sampler has steps at which its averages are near; at 10 000, most chains
    have not yet come together.""",
)
def test_at_a_thousand_data_every_sampler_has_a_step_at_which_averages_are_near():
    for size, near in ((1000, True), (10_000, False)):
        for found in sizes()[size]["samplers"]:
            least = min(at["tv_together"] for at in found["curves"]["0"])
            assert (least < sizes()[size]["limit"]) == near


@says(
    "minibatch-limits",
    """**At 1000 data** SGFS finds a step size in {glue:text}`fisher-chosen-1e3` seeds, SGLD with
    control variates in {glue:text}`control-chosen-1e3`, plain SGLD in
    {glue:text}`langevin-chosen-1e3`: its runs are too noisy to tell a step from half of it.""",
)
def test_at_a_thousand_data_sgfs_finds_a_step_in_every_seed_and_sgld_hardly():
    plain, control, fisher = (
        len(sampler(1000, name)["seeds_with_a_run"]) for name in (PLAIN, CONTROL, FISHER)
    )
    assert plain < 2 < control < fisher == 5


@says(
    "minibatch-limits",
    """at 1000 data averages by SGFS are near those of NUTS, and predictions vary too much from
    draw to draw""",
    "and its chains mixed in {glue:text}`fisher-mixed` seeds.",
)
def test_at_a_thousand_data_averages_by_sgfs_are_near_and_the_spread_is_too_wide():
    found = sampler(1000, FISHER)
    assert found["near"] and min(found["spread_ratio"]) > 1.1 and not all(found["mixed"])


@says(
    "minibatch-limits",
    """**At 10 000 data** the rule takes a step of SGLD in {glue:text}`langevin-chosen-1e4` seeds
    and of SGLD with control variates in {glue:text}`control-chosen-1e4`. Of SGFS it takes one in
    {glue:text}`fisher-chosen-1e4`. In those runs of SGFS mean predictions lie
    {glue:text}`fisher-tv-1e4` from those of NUTS, about the limit, and predictions vary
    {glue:text}`fisher-spread_ratio-1e4` times as much. Chains of that length do not yet agree""",
)
def test_at_ten_thousand_data_sgfs_is_about_the_limit_and_has_not_mixed():
    found = sampler(10_000, FISHER)
    assert not any(sampler(10_000, name)["seeds_with_a_run"] for name in (PLAIN, CONTROL))
    share = np.divide(found["tv"], sizes()[10_000]["limit"])
    assert len(found["seeds_with_a_run"]) < 3 and 0.5 < min(share) < 1 < max(share) < 1.5
    assert min(found["spread_ratio"]) > 1.1 and not any(found["mixed"])


@says(
    "minibatch-limits",
    """{term}`k-hat` forbids it. Of {glue:text}`climbs` climbs at 10 000 to a million data
    {glue:text}`modes-reached` reached a mode in the steps allowed. The least k-hat is
    {glue:text}`least-k`, where 0.7 is the most.""",
)
def test_no_normal_at_a_mode_may_be_a_reference():
    climbs = [found for row in sizes().values() for found in row["laplace"]]
    assert [size for size, row in sizes().items() if row["laplace"]] == [10_000, 100_000, 1_000_000]
    assert min(found["k_hat"] for found in climbs if "k_hat" in found) > 5
    assert all("k_hat" in found for found in climbs if found["least_eigenvalue"] > 0)
