"""Claims of the page ``guides-measured``."""

import numpy as np

from experiments.pages.svi import guides
from tests.claims.reading import is_open, lower_end, mixed, rows, stored
from tests.claims.said import says
from tests.claims.variational import (
    GAP,
    LINEARISED,
    TUNED,
    WHOLE,
    apart,
    arms,
    initial_scales,
    near_nuts,
    nll_over_nuts,
    num_flat,
)


@says(
    "guides-measured",
    """with 160 units it calls {glue:text}`units-most` of noise what the posterior calls
    {glue:text}`units-nuts`""",
    """With more hidden units and a prior of curves of one size the mean-field guide finds more
    noise, and the posterior hardly any more.""",
    """which the guide's noise exceeds from 40 units on.""",
    "From ten units on no highest ELBO is that of a fit which follows the wave",
    "With five units two of six follow it",
)
@says(
    "svi",
    """with more units, under a prior that keeps the curves of one size, the posterior's noise stays
    nearly where it is. The fit's rises to {glue:text}`units-most` with 160 units""",
)
def test_with_more_units_the_guide_calls_more_noise_and_the_posterior_does_not():
    found = stored("svi/units")
    of_guide, of_nuts = (np.array([row[of] for row in found]) for of in ("noise", "noise_nuts"))
    assert (np.diff(of_guide, axis=0) > 0).all() and (of_guide[-1] > 4 * of_guide[1]).all()
    assert (of_guide[-1] > 1).all() and (of_guide[-1] > 4 * of_guide[0]).all()
    assert (of_nuts < 0.3).all() and (of_guide[1:] > 1.5 * of_nuts[1:]).all()
    assert [(noise < 0.2).sum() for noise in of_guide] == [2, 0, 0, 0]
    assert (of_guide[2:] > [np.std(guides.wave("whole", i).y_train) for i in range(6)]).all()
    assert all(check["mixed"] for row in found[1:] for check in row["check"])


@says(
    "guides-measured",
    """With `init_scale` 1 all ten starts end in a curve that is flat and calls the whole wave
    noise, with 0.1 {glue:text}`tip-flat-middle` of ten do, with 0.001 none.""",
)
def test_the_start_decides_where_the_fit_ends():
    narrow, middle, wide, *_ = initial_scales()
    assert num_flat(narrow) == 0 < num_flat(middle) < num_flat(wide) == 10


@says(
    "guides-measured",
    """the standard deviation of a late loss falls from {glue:text}`tip-wobble-one` with one
    particle to {glue:text}`tip-wobble-ten` with ten""",
)
def test_more_particles_make_a_late_loss_vary_less():
    narrow, _, _, single, _ = initial_scales()
    assert np.mean(single["wobble"]) > 3 * np.mean(narrow["wobble"])


@says(
    "guides-measured",
    """NUTS has mixed, although {glue:text}`at-limit` % of {term}`warm-up`'s trajectories ended at
    their {term}`limit <trajectory limit>`""",
    """by the book's rule it has not mixed, with as few as {glue:text}`shortest-ess` effective
    draws. *NUTS, short* has, on {glue:text}`short-mixed` of twelve""",
)
def test_nuts_has_mixed_and_at_the_gradients_of_one_fit_it_has_not():
    for kind in (WHOLE, GAP):
        for name in ("NUTS", "NUTS, short"):
            assert all(map(mixed, arms()[kind, name]["check"]))
        assert not any(map(mixed, arms()[kind, "NUTS, shortest"]["check"]))


@says(
    "guides-measured",
    """*NUTS, short* has no more than that, *NUTS, shortest* no more than one fit of a guide, 100
    000.""",
)
def test_short_runs_of_nuts_spend_no_more_than_guides():
    for kind in (WHOLE, GAP):
        guide, short, shortest = (
            arms()[kind, name]["gradients"]
            for name in ("mean-field", "NUTS, short", "NUTS, shortest")
        )
        assert max(short) <= min(guide) and max(shortest) <= 100_000


@says(
    "guides-measured",
    """Inside, the linearised Laplace method covers what it should, and NUTS a little more. The
    guides cover too much there""",
)
def test_inside_nuts_and_linearised_laplace_cover_what_they_should_and_guides_too_much():
    held = {
        name: np.mean(arms()[WHOLE, name]["coverage"]["0.5"]["inside"])
        for name in ("NUTS", LINEARISED, *TUNED)
    }
    assert max(abs(held.pop(name) - 0.5) for name in ("NUTS", LINEARISED)) < 0.06
    assert min(held.values()) > 0.55


@says(
    "guides-measured",
    """Outside, the mean-field, low-rank and flow guides predict better than NUTS on all six
    redraws""",
    """Where the full-rank guide follows both humps of the wave, on {glue:text}`full-near`, it does
    not.""",
)
def test_outside_nuts_is_worse_than_guides_that_miss_the_wave():
    for name in ("mean-field", "low-rank", "flow"):
        assert (nll_over_nuts(WHOLE, name, "outside") < 0).all()
    worse = nll_over_nuts(WHOLE, "full-rank", "outside") > 0
    assert (worse == near_nuts(WHOLE, "full-rank")).all()


@says("guides-measured", "Every guide fails, on every data set")
@says("svi", "For both guides of the network it is above, whether they find the wave or not")
def test_no_guide_passes_k_hat():
    for kind in (WHOLE, GAP):
        assert min(min(arms()[kind, name]["k_hat"]) for name in TUNED) > 0.7


@says("guides-measured", "NUTS passes. Both guides place the noise too high")
def test_calibration_passes_nuts_and_finds_the_guides():
    found = rows("svi/calibration")
    assert max(found["NUTS"]["distance"].values()) < found["NUTS"]["band"]
    for name in ("mean-field", "full-rank"):
        assert found[name]["distance"]["noise"] > found[name]["band"]


@says(
    "guides-measured",
    """**Mean-field, low-rank: the guide's fault.** Begun at draws of NUTS, too, the best fit is a
    bump. Their NLL inside is above that of NUTS by {glue:text}`loss-mean-field` and
    {glue:text}`loss-low-rank`.""",
)
def test_mean_field_and_low_rank_prefer_the_bump_wherever_they_start():
    for name in ("mean-field", "low-rank"):
        assert lower_end(nll_over_nuts(WHOLE, name)) > 0.5
        assert not any(near_nuts(WHOLE, arm).any() for arm in (name, f"{name}, from NUTS"))


@says(
    "guides-measured",
    """**Full-rank: the start decides.** It follows both humps on {glue:text}`full-near` redraws,
    from wide starts alone, whose ELBO is {glue:text}`full-by-start` nats higher. On the two
    others the best fit is a bump even from draws of NUTS. One is this page's wave""",
)
@says(
    "your-fit",
    "on six wave data sets the full-rank guide found the wave on four, from wide starts alone",
)
def test_full_rank_follows_the_wave_from_wide_starts_alone():
    near = near_nuts(WHOLE, "full-rank")
    assert near.tolist() == near_nuts(WHOLE, "full-rank, from NUTS").tolist()
    assert near.sum() == 4 and not near[0]  # the page's wave is the first
    tuning = arms()[WHOLE, "full-rank"]["tuning"]
    narrow, wide = np.array([[np.max(spread) for spread in one["elbo"]] for one in tuning]).T
    assert (wide[near] - narrow[near] > 2).all() and (np.abs(wide - narrow)[~near] < 0.5).all()


@says(
    "guides-measured",
    """**Flow: the search's fault.** Begun at draws of NUTS it follows both humps, mostly with a
    much higher ELBO; the search never does.""",
)
def test_search_for_the_flow_misses_what_its_elbo_prefers():
    assert not near_nuts(WHOLE, "flow").any() and near_nuts(WHOLE, "flow, from NUTS").sum() == 5
    found, of_nuts = arms()[WHOLE, "flow"], arms()[WHOLE, "flow, from NUTS"]
    assert (np.subtract(of_nuts["elbo"], found["elbo"]) > 2).sum() == 4


@says(
    "guides-measured",
    """**k-hat sees none of this**: near NUTS the full-rank guide has {glue:text}`k-near`, far from
    it {glue:text}`k-far`.""",
)
def test_k_hat_does_not_tell_whether_the_full_rank_guide_is_near():
    near, k_hat = near_nuts(WHOLE, "full-rank"), np.array(arms()[WHOLE, "full-rank"]["k_hat"])
    assert k_hat[near].min() < k_hat[~near].min() and k_hat[near].max() > k_hat[~near].max()


@says(
    "guides-measured",
    """**With the gap** the dip between the humps is not measured, and all guides lose little
    inside: {glue:text}`gap-least` (flow) to {glue:text}`gap-most` (mean-field).""",
)
def test_with_the_gap_all_guides_lose_little_inside():
    loss = {name: nll_over_nuts(GAP, name) for name in TUNED}
    assert all(lower_end(of) > 0 and of.mean() < 0.1 for of in loss.values())
    assert all(near_nuts(GAP, name).all() for name in TUNED)


@says(
    "guides-measured",
    """*NUTS, shortest* is nearer inside than all these, and without the gap than Laplace's
    method; its NLL differs from the long run's by {glue:text}`shortest-loss`.""",
    """The linearised Laplace method is nearer inside than every guide on all twelve; its NLL
    differs from that of NUTS by {glue:text}`laplace-loss` there and by
    {glue:text}`laplace-outside` outside.""",
)
def test_short_nuts_then_linearised_laplace_are_nearest_inside():
    for kind in (WHOLE, GAP):
        shortest, laplace = apart(kind, "NUTS, shortest"), apart(kind, LINEARISED)
        # with the gap by little more than the error of a distance
        errors = (
            arms()[kind, name]["distance_inside_error"] for name in ("NUTS, shortest", LINEARISED)
        )
        assert (
            shortest - laplace < 3 * np.hypot(*errors)
        ).all() and shortest.mean() < laplace.mean()
        for name in TUNED:
            assert (laplace < apart(kind, name)).all() and (shortest < apart(kind, name)).all()
    assert abs(nll_over_nuts(WHOLE, "NUTS, shortest").mean()) < 0.02
    assert is_open(nll_over_nuts(WHOLE, LINEARISED))
    assert lower_end(nll_over_nuts(WHOLE, LINEARISED, "outside")) > 0


@says(
    "guides-measured",
    """It needs wide starts: with a standard deviation of 4 at least {glue:text}`laplace-wide` %
    climb to the best top, with 1 at most {glue:text}`laplace-narrow` %.""",
    """And it needs the linearisation: through the network itself the same normal has a distance
    inside of {glue:text}`ggn-distance` (median).""",
)
def test_laplace_needs_wide_starts_and_the_linearisation():
    tuning = arms()[WHOLE, LINEARISED]["tuning"]
    assert min(one["N(0, 4)"]["share at the best top"] for one in tuning) > 0.4
    assert max(one["N(0, 1)"]["share at the best top"] for one in tuning) < 0.1
    assert min(min(apart(kind, "Laplace, GGN")) for kind in (WHOLE, GAP)) > 1


@says(
    "guides-measured",
    "NumPyro's Laplace guide takes the whole curvature: {glue:text}`hessian-distance`",
)
def test_linearised_laplace_is_nearer_than_one_with_the_whole_curvature():
    for kind in (WHOLE, GAP):
        assert (apart(kind, LINEARISED) < apart(kind, "Laplace, Hessian")).all()


def moons():
    """Mean-field fits of the hierarchical network, and which are in the output layer's mode."""
    found = [row for row in stored("svi/moons") if row["guide"] == "mean-field"]
    found = [row for row in found if row["model"] == "hierarchical"]
    return found, np.array([max(row["sd"], key=row["sd"].get) == "Dense_2" for row in found])


@says(
    "guides-measured",
    "The {glue:text}`group-in-output` starts ending there predict better on average.",
    """the start with the highest ELBO has an NLL of {glue:text}`group-best-nll`, the worst of
    those in the right mode one of {glue:text}`group-output-nll`. NUTS has
    {glue:text}`group-nuts-nll`.""",
    "where the highest ELBO is in the wrong mode.",
)
def test_the_elbo_prefers_the_mode_that_predicts_worse():
    fits, in_output = moons()
    loss, error = (np.array([row[name][-1] for row in fits]) for name in ("losses", "losses_error"))
    nll = np.array([row["scores"]["NLL"] for row in fits])
    best, best_in_output = loss.argmin(), np.where(in_output, loss, np.inf).argmin()
    assert loss[best_in_output] - loss[best] > 3 * np.hypot(error[best], error[best_in_output])
    # the error of an NLL here is the spread over starts of all modes, so that means are compared
    assert (
        len(fits) == 12 and in_output.sum() == 3 and nll[in_output].mean() < nll[~in_output].mean()
    )
    assert nll.mean() > rows("hierarchical_bnn/long_runs")["every layer"]["scores"]["NLL"] + 0.05


@says(
    "guides-measured",
    """There {glue:text}`many-seconds-small` seconds of minibatches reach the ELBO and the NLL for
    which full batches take {glue:text}`many-seconds`.""",
)
def test_a_step_of_a_minibatch_costs_little_with_many_data():
    found = [row for row in stored("svi/minibatches") if row["problem"] == "many moons"]
    full, small = (min(row["seconds"]) / row["num_steps"] for row in found)
    assert small < 0.1 * full
