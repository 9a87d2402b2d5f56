"""The verdict refuses runs that are wrong, and few that are right, and says what to do first."""

from helpers import diagnostics
from helpers.mcmc import Posterior, Stats

import numpy as np
import pytest
from scipy import signal, stats


def chains(random, effective, num_quantities=1, num_draws=1000):
    """Return four stationary normal chains [chain, draw, quantity] with as many effective draws."""
    time = 4 * num_draws / effective
    correlation = (time - 1) / (time + 1)
    steps = random.normal(size=(4, num_draws, num_quantities))
    steps[:, 1:] *= np.sqrt(1 - correlation**2)
    return signal.lfilter([1.0], [1.0, -correlation], steps, axis=1)


def verdict(values):
    return diagnostics.of_quantities({"quantities": values})


@pytest.mark.parametrize(
    "effective, num_quantities, num_runs", [(1000, 1, 200), (1000, 10, 40), (4000, 900, 2)]
)
def test_right_runs_are_seldom_refused(effective, num_quantities, num_runs):
    """By 4000 simulated runs: none in a hundred at 1000 effective draws, six in a hundred at 700 by
    a floor on the ESS of single chains, which is why there is none.
    """
    random = np.random.default_rng(1)
    refused = sum(
        not verdict(chains(random, effective, num_quantities)).ok for _ in range(num_runs)
    )
    assert refused <= stats.binom.isf(1e-5, num_runs, 0.01)


@pytest.mark.parametrize("effective", [500, 1000, 4000])
@pytest.mark.parametrize("length", [1, 2, 5, 10, 20, 40, 60, 100])
def test_a_chain_that_arrives_late_is_refused(effective, length):
    """Its first draws lie so far off that the mean of all is off by a third of its sd. Without the
    drift, chains of 5 to 20 such draws pass nearly always.
    """
    random = np.random.default_rng(length)
    values = chains(random, effective, num_quantities=20)
    values[0, :length] += 4000 / length / 3
    for i in range(20):
        found = verdict(values[..., i])
        assert not found.ok
        # later the effective draws are too few as well
        assert length > 20 or any("it had not arrived" in reason for reason in found.reasons)


@pytest.mark.parametrize(
    "skewed", [np.exp, lambda z: 1 / (1 + np.exp(8 - 3 * z))], ids=["lognormal", "probability"]
)
def test_a_quantity_with_a_long_tail_is_not_taken_for_a_start_that_had_not_arrived(skewed):
    """By 1500 simulated runs of each none is beyond 5."""
    values = skewed(chains(np.random.default_rng(0), 1000, num_quantities=200))
    assert diagnostics.summarize(values).drift.max() < diagnostics.MOST_DRIFT


@pytest.mark.parametrize("length", [150, 250, 500, 1000])
def test_a_chain_that_is_elsewhere_for_longer_is_refused(length):
    values = chains(np.random.default_rng(length), 2000, num_quantities=20)
    values[0, :length] += 4000 / length / 3
    assert not any(verdict(values[..., i]).ok for i in range(20))


def test_a_chain_that_falls_off_in_between_is_refused_if_for_long():
    values = chains(np.random.default_rng(0), 2000, num_quantities=20)
    values[0, 500:560] += 4000 / 60 / 3
    assert not any(verdict(values[..., i]).ok for i in range(20))


def test_of_many_quantities_one_in_a_hundred_may_have_fewer():
    random = np.random.default_rng(3)
    values = np.concatenate([chains(random, 2000, 199), chains(random, 320, 1)], axis=2)
    assert verdict(values).ok and not verdict(values[..., 150:]).ok
    values[..., -1:] = chains(random, 120, 1)
    found = verdict(values)
    assert not found.ok and "fewer than 200" in found.reasons[-1]


@pytest.fixture(scope="module")
def run():
    """Return a made-up run that is right, and its predictions."""
    random = np.random.default_rng(7)
    density, energy, p = (chains(random, 2000, size) for size in (1, 1, 5))
    energy = random.normal(size=energy.shape)
    still = np.zeros((4, 1000), bool)
    stats_of = Stats(density[..., 0], still, still + 0.8, energy[..., 0], still + 7)
    return Posterior(None, stats_of), p


def changed(run, **entries):
    return run[0]._replace(stats=run[0].stats._replace(**entries)), run[1]


def test_a_right_run_can_be_used(run):
    found = diagnostics.check(*run)
    assert found.ok and found.reasons == ()
    assert diagnostics.describe(found).endswith("; can be used")


@pytest.mark.parametrize(
    "change, reason, remedy",
    [
        (
            lambda run: changed(run, diverging=run[0].stats.diverging | (np.arange(1000) < 3)),
            "0.30% of trajectories diverged, more than 0.2%",
            "target_acceptance",
        ),
        (
            lambda run: changed(
                run, energy=np.where(np.arange(4)[:, None] == 2, np.arange(1000.0), run[0].stats[3])
            ),
            "BFMI 0.00 in a chain, less than 0.3",
            "non-centred",
        ),
        (
            lambda run: (run[0], run[1] + np.array([0, 0, 0, 2.0]).reshape(4, 1, 1)),
            "predictions: R-hat 1.",
            "double num_warmup",
        ),
        (
            lambda run: (run[0], chains(np.random.default_rng(1), 200, 5)),
            "effective draws, fewer than 400",
            "mcmc.extend",
        ),
        (lambda run: (run[0], 0 * run[1]), "predictions: one never moves", "leave it out"),
    ],
    ids=["divergences", "BFMI", "R-hat", "ESS", "constant"],
)
def test_what_is_wrong_is_said_with_its_number_and_the_first_thing_to_do(
    run, change, reason, remedy
):
    found = diagnostics.check(*change(run))
    assert not found.ok and reason in found.reasons[0] and remedy in found.reasons[0]
    said, wrong = diagnostics.describe(found).split("NOT to be used")
    assert reason in wrong and "can be used" not in said + wrong


def test_a_divergence_in_a_thousand_is_let_pass(run):
    few = np.zeros((4, 1000), bool)
    few[:, 5] = True
    assert diagnostics.check(*changed(run, diverging=few)).ok


def test_more_draws_are_not_advised_where_they_mend_nothing(run):
    posterior, _ = changed(run, diverging=run[0].stats.diverging | (np.arange(1000) < 3))
    *_, last = diagnostics.check(posterior, chains(np.random.default_rng(1), 200)).reasons
    assert "more draws alone mend nothing" in last


def test_no_bound_is_given_where_there_are_too_few_draws_to_have_one(run):
    found = diagnostics.check(run[0], chains(np.random.default_rng(2), 60))
    first, second, *_ = diagnostics.describe(found).split("; ")
    assert "bound" not in first and "bound" in second
    assert (found.rhat_bound <= 1.05).all()


def test_divergences_of_one_task_among_many_count(run):
    posterior, p = run
    posterior = Posterior(None, Stats(*(np.stack([a] * 5) for a in posterior.stats)))
    diverging = np.zeros((5, 4, 1000), bool)
    diverging[3, :, :4] = True  # fewer than one in a thousand of all draws
    posterior = posterior._replace(stats=posterior.stats._replace(diverging=diverging))
    found = diagnostics.check(posterior, np.stack([p] * 5))
    assert not found.ok and found.divergences == 16 and found.diverging == 0.004
