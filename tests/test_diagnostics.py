"""Diagnostics agree with ArviZ's and with exact results, and see a chain that is stuck."""

from helpers import diagnostics, summaries
from helpers.mcmc import Posterior, Stats, Warmup

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats


def autoregressive(seed, shape, correlation):
    """Return stationary standard normal chains [chain, draw, ...] of known autocorrelation."""
    random = np.random.default_rng(seed)
    steps = random.normal(size=shape)
    steps[:, 1:] *= np.sqrt(1 - correlation**2)
    for draw in range(1, shape[1]):
        steps[:, draw] += correlation * steps[:, draw - 1]
    return steps.astype(np.float32)


CHAINS = np.stack(
    [autoregressive(i, (4, 500), rho) for i, rho in enumerate((0.0, 0.5, 0.9))], axis=2
)
CHAINS[:2, :, 2] += 0.5  # two chains elsewhere


@pytest.fixture(scope="module")
def run():
    """Return three tasks of a made-up run, 4 chains of 500 draws each."""
    draws = {
        "params": {"Dense_0": {"kernel": jnp.asarray(autoregressive(3, (3, 4, 500, 2, 1), 0.0))}}
    }
    density = jnp.asarray(autoregressive(4, (3, 4, 500), 0.0))
    energy = -density + jnp.asarray(
        np.random.default_rng(5).chisquare(3, (3, 4, 500)) / 2, jnp.float32
    )
    diverging = jnp.zeros((3, 4, 500), bool).at[1, 2, 7:10].set(True)
    stats = Stats(density, diverging, jnp.full((3, 4, 500), 0.8), energy, jnp.full((3, 4, 500), 7))
    p = jax.nn.sigmoid(jnp.asarray(autoregressive(6, (3, 4, 500, 5), 0.0)))
    return Posterior(draws, stats), p


def test_chains_taken_alone_do_not_lose_effective_draws_as_they_disagree():
    found = diagnostics.summarize(CHAINS)
    assert found.rhat[0] < 1.01 < 1.05 < found.rhat[2]
    moved = CHAINS.copy()
    moved[0] += 1.0
    again = diagnostics.summarize(moved)
    np.testing.assert_allclose(again.ess_alone[:2], found.ess_alone[:2], rtol=0.1)
    assert (again.ess_bulk[:2] < 0.1 * found.ess_bulk[:2]).all()


def test_summary_of_a_tree_keeps_the_order_of_its_leaves():
    tree = {"b": CHAINS[..., 2], "a": CHAINS[..., :2].reshape(4, 500, 2, 1)}
    for found, expected in zip(
        diagnostics.summarize(tree), diagnostics.summarize(CHAINS), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_effective_sample_size_is_what_the_autocorrelation_implies():
    chains = np.stack([autoregressive(i, (4, 5000), 0.8) for i in range(4)], axis=2)
    expected = 20_000 * (1 - 0.8) / (1 + 0.8)
    found = diagnostics.summarize(chains)
    np.testing.assert_allclose(found.ess_bulk, expected, rtol=0.2)
    np.testing.assert_allclose(found.ess_alone, expected, rtol=0.2)


# R-hat that 1 %, 0.1 % and 0.01 % of 60 000 converged autoregressive runs exceed, 4 x 500 draws, by
# effective draws.
SIMULATED = {400: (1.024, 1.033, 1.041), 1700: (1.0044, 1.0066, 1.0083)}


@pytest.mark.parametrize("ess", SIMULATED)
def test_the_bound_is_what_converged_runs_reach(ess):
    for chance, simulated in zip((1e-2, 1e-3, 1e-4), SIMULATED[ess], strict=True):
        bound = diagnostics.rhat_bound(ess, 1, 500, chance=chance)
        assert simulated < bound < 1 + 1.4 * (simulated - 1) + 1e-3


def converged(num_runs, ess, num_draws=250):
    """R-hat and ESS of simulated runs of four converged chains with about ``ess`` effective
    draws.
    """
    time = 4 * num_draws / ess
    chains = autoregressive(ess, (4, num_draws, num_runs), (time - 1) / (time + 1))
    return diagnostics.summarize(chains)


def test_a_converged_run_breaks_the_bound_as_often_as_it_says():
    found, num_runs = converged(600, 400), 600
    for chance in (0.1, 0.01):
        share = (found.rhat > diagnostics.rhat_bound(found.ess_alone, 1, 250, chance=chance)).mean()
        assert share <= chance + 4.5 * np.sqrt(chance / num_runs)
    # And not never, which a bound that is far too wide would have.
    assert (found.rhat > diagnostics.rhat_bound(found.ess_alone, 1, 250, chance=0.2)).mean() > 0.05


@pytest.mark.parametrize(
    "ess, num_quantities, moved",
    [(1000, 1, 1.0), (500, 1, 1.2), (500, 100, 1.5), (1000, 1000, 1.2)],
)
def test_a_chain_of_four_that_is_elsewhere_breaks_the_bound(ess, num_quantities, moved):
    time = 1000 / ess
    chains = autoregressive(1, (4, 250, 100), (time - 1) / (time + 1))
    chains[0] += moved
    found = diagnostics.summarize(chains)
    assert (found.rhat > diagnostics.rhat_bound(found.ess_alone, num_quantities, 250)).all()
    # A bound from the effective draws of all chains together would pass them all.
    assert (found.rhat < diagnostics.rhat_bound(found.ess_bulk, num_quantities, 250)).all()


@pytest.mark.parametrize(
    "sizes, message",
    [
        ((0, 9), "num_quantities: given 0, expected an integer of 1 or more"),
        ((1, 7), "num_draws: given 7, expected an integer of 8 or more"),
        ((1, 9, 1), "num_chains: given 1, expected an integer of 2 or more"),
        ((1, 9, 4, 0.0), "chance: given 0.0"),
        ((1, 9, 4, 1.0), "chance: given 1.0"),
    ],
)
def test_a_bound_of_nothing_is_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        diagnostics.rhat_bound(400.0, *sizes)


def test_standard_errors_are_those_of_many_runs():
    """Five of them are exceeded by no right run, and a mean that is off by nine of the true ones
    exceeds them.
    """
    means, errors = [], []
    for seed in range(3):
        chains = autoregressive(100 + seed, (4, 500, 400), 0.6)
        means.append(chains.mean(axis=(0, 1)))
        errors.append(diagnostics.standard_error(chains))
    means, errors = np.concatenate(means), np.concatenate(errors)
    np.testing.assert_allclose(np.median(errors), means.std(), rtol=0.1)
    assert np.abs(means / errors).max() < 5
    assert (np.abs(means + 9 * means.std()) > 5 * errors).all()
    assert diagnostics.standard_error(CHAINS[..., 0]).shape == ()


def test_the_error_of_an_nll_is_that_of_many_runs():
    random = np.random.default_rng(3)
    truth, y = random.uniform(0.1, 0.9, 50), random.integers(0, 2, 50)

    def one_run(moved=0.0):
        # all points move together, as weights move them
        shared = random.normal(moved, size=(4, 250, 1))
        p = 1 / (1 + np.exp(-np.log(truth / (1 - truth)) - shared))
        mean = p.mean(axis=(0, 1))
        return -np.log(np.where(y == 1, mean, 1 - mean)).mean(), diagnostics.nll_error(p, y)

    nll, error = np.array([one_run() for _ in range(300)]).T
    np.testing.assert_allclose(np.median(error), nll.std(), rtol=0.2)
    assert (np.abs(nll - nll.mean()) <= 5 * error).all()
    wrong, wrong_error = np.array([one_run(moved=0.5) for _ in range(100)]).T
    assert (np.abs(wrong - nll.mean()) > 5 * wrong_error).all()


def test_the_error_of_a_stored_score_from_how_far_the_chains_of_its_fits_lie_apart():
    """Two chains a fit, twenty fits, as ``what-the-gain-is-made-of`` has them: six errors, and a
    mean that is off.
    """
    chains = np.random.default_rng(4).normal(size=(4000, 20, 2))
    errors = np.sqrt(chains.var(axis=2, ddof=1).mean(axis=1) / 2)
    off = chains[:, 0].mean(axis=1)
    assert (np.abs(off) <= 6 * errors).all()
    assert (np.abs(off + 14 * np.sqrt(0.5)) > 6 * errors).all()


def test_the_error_of_a_share_of_stored_draws():
    """Ranks among 100 draws, as ``are-the-samplers-right`` has them, against a long run: shares
    near 0 and 1, too.
    """
    random, size = np.random.default_rng(5), 100
    for share in (0.001, 0.1, 0.5):
        stored = random.binomial(size, share, 20_000) / size
        here = random.binomial(2000, share, 20_000) / 2000
        smoothed = (size * here + 1) / (size + 2)
        error = np.sqrt(here * (1 - here) / 2000 + smoothed * (1 - smoothed) / size)
        assert (np.abs(here - stored) <= 6 * error).all()
    moved = random.binomial(size, 0.95, 1000) / size  # whose truth is at 0.5
    assert (np.abs(0.5 - moved) > 6 * np.sqrt(0.25 / size)).all()


@pytest.mark.parametrize(
    "num_values, kind", [(1000, "log weights"), (100, "losses"), (1500, "hits")]
)
def test_the_error_of_the_difference_of_two_independent_means(num_values, kind):
    """As ``svi`` compares ELBOs, losses and accuracies with stored ones: five errors, and a mean
    that is off.
    """
    random = np.random.default_rng(6)
    if kind == "hits":
        values = random.random((2, 10_000, num_values)) < 0.97
    elif kind == "losses":  # of ten draws each
        values = random.normal(size=(2, 10_000, num_values)) + random.gamma(
            10.0, 0.6, (2, 10_000, num_values)
        )
    else:
        values = random.normal(size=(2, 10_000, num_values)) - random.exponential(
            2.0, (2, 10_000, num_values)
        )
    gap = np.subtract(*values.mean(axis=2))
    error = np.sqrt(2) * values[0].std(axis=1) / np.sqrt(num_values)
    assert (np.abs(gap) <= 5 * error).all()
    assert (np.abs(gap + 12 * gap.std()) > 5 * error).all()


@pytest.mark.parametrize("seed, correlation, rounded", [(0, 0.6, 0), (1, 0.95, 0), (2, -0.3, 1)])
def test_many_quantities_at_once_are_each_what_arviz_says(seed, correlation, rounded):
    values = autoregressive(seed, (4, 500, 40), correlation).astype(np.float64)
    values[..., 30:] = values[..., 30:].round(rounded)  # ties
    found, error = diagnostics.summarize(values), diagnostics.standard_error(values)
    same = np.zeros(3, int)
    for i, one in enumerate(np.moveaxis(values, 2, 0)):
        np.testing.assert_allclose(found.rhat[i], arviz.rhat(one), rtol=1e-6)
        ours = found.ess_bulk[i], found.ess_tail[i], error[i]
        independent = one.std() / np.sqrt(one.size)  # where draws alternate
        theirs = arviz.ess(one), arviz.ess(one, method="tail"), max(arviz.mcse(one), independent)
        # BlackJAX ends Geyer's sum a little differently where its last pair is nearly 0.
        np.testing.assert_allclose(ours, theirs, rtol=0.05)
        same += np.isclose(ours, theirs, rtol=1e-9)
    assert (same[:2] >= 20).all()


def test_a_stuck_chain_is_seen():
    assert (
        diagnostics.summarize(np.stack([*CHAINS[:3, :, 0], np.zeros(500, np.float32)])).rhat[0]
        > 1.1
    )


@pytest.mark.parametrize(
    "values, message",
    [
        (
            CHAINS[:1],
            "values: given 1 chains of 500 draws, expected 2 of 8 at least",
        ),
        (CHAINS[:, :7], "values: given 4 chains of 7 draws"),
        (CHAINS[0, :, 0], r"values: given leaves that begin \[\(500,\)\]"),
        (
            np.where(CHAINS > 3, np.nan, CHAINS),
            r"values: given \d+ values that are not finite, expected none",
        ),
    ],
)
def test_too_little_to_diagnose_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        diagnostics.summarize(values)


def test_check_reports_the_worst_task(run):
    posterior, p = run
    good = diagnostics.check(posterior, p)
    assert good.kinds == ("predictions", "log density")
    assert (good.rhat <= good.rhat_bound).all() and good.ess.min() > 1000
    assert (good.divergences, good.integration_steps) == (3, 7.0)
    energy = np.asarray(posterior.stats.energy, np.float64)
    by_chain = (np.diff(energy, axis=2) ** 2).sum(axis=2) / (
        (energy - energy.mean(axis=2, keepdims=True)) ** 2
    ).sum(2)
    assert good.bfmi == pytest.approx(by_chain.min(), rel=1e-3)
    for task in range(3):
        bad = diagnostics.check(posterior, p.at[task, 0].set(0.9 + 0.01 * p[task, 0]))
        assert bad.rhat[0] > bad.rhat_bound[0] and bad.rhat[1] <= bad.rhat_bound[1]
        assert bad.bfmi == good.bfmi and bad.divergences == good.divergences
        density = posterior.stats.log_density.at[task, 0].add(3.0)
        bad = diagnostics.check(
            posterior._replace(stats=posterior.stats._replace(log_density=density)), p
        )
        assert bad.rhat[1] > bad.rhat_bound[1] and bad.rhat[0] <= bad.rhat_bound[0]


def test_check_asks_of_whatever_else_is_named(run):
    posterior, p = run
    stuck = {"Dense_0": posterior.stats.energy.at[1, 3].add(20.0)}
    found = diagnostics.check(posterior, p, log_sd=stuck)
    assert found.kinds == ("predictions", "log density", "log sd")
    np.testing.assert_array_equal(found.rhat > found.rhat_bound, [False, False, True])
    # The chance is shared by more quantities.
    assert (found.rhat_bound[:2] > diagnostics.check(posterior, p).rhat_bound).all()


def test_check_of_one_task_equals_that_task_alone(run):
    first, one = (
        jax.tree.map(lambda leaf, part=part: leaf[part], run) for part in (0, slice(0, 1))
    )
    for alone, among in zip(
        diagnostics.check(*first)[1:], diagnostics.check(*one)[1:], strict=True
    ):
        np.testing.assert_allclose(alone, among, rtol=1e-6)


@pytest.mark.parametrize("task", range(3))
def test_predictions_that_never_move_are_not_passed_over(run, task):
    posterior, p = run
    found = diagnostics.check(posterior, p.at[task].set(1.0))
    assert not (found.rhat <= found.rhat_bound).all()


def test_predictions_may_be_thinned(run):
    posterior, p = run
    every, thinned = diagnostics.check(posterior, p), diagnostics.check(posterior, p[:, :, ::2])
    assert (
        thinned.rhat[1] == every.rhat[1]
        and thinned.ess[1] == every.ess[1]
        and thinned.ess[0] < every.ess[0]
    )


def test_a_check_is_described_in_one_line(run):
    text = diagnostics.describe(diagnostics.check(*run))
    assert (
        "\n" not in text
        and "divergences: 3;" in text
        and "steps a draw: 7" in text
        and "limit" not in text
    )


@pytest.mark.parametrize("share, said", [(0.0, False), (0.009, False), (0.25, True)])
def test_trajectories_that_were_cut_off_are_said_where_they_are_many(run, share, said):
    posterior, p = run
    warmup = Warmup(**dict.fromkeys(Warmup._fields, jnp.zeros((3, 4))))
    warmup = warmup._replace(at_limit=jnp.full((3, 4), share))
    found = diagnostics.check(posterior._replace(warmup=warmup), p)
    assert found.at_limit == pytest.approx(share)
    assert ("25% of warm-up's trajectories at their limit" in diagnostics.describe(found)) == said


def test_the_summary_bounds_each_r_hat_by_its_own_effective_draws():
    found = diagnostics.summarize(CHAINS)
    bound = diagnostics.rhat_bound(found.ess_alone, 3, 500, 4)
    np.testing.assert_array_equal(found.rhat_bound, np.minimum(bound, 1.05))
    # fewer effective draws, a wider bound, and none so wide that it bounds nothing
    assert (np.diff(bound) > 0).all() and bound[2] > 1.2


def test_leave_one_out_equals_arvizs_and_the_exact_answer():
    """For y ~ N(mu, 1) and mu ~ N(0, 10); the last observation is an outlier."""
    y = np.append(np.random.default_rng(0).normal(size=20), 7.0)
    precision = 0.01 + y.size
    mu = np.random.default_rng(1).normal(y.sum() / precision, precision**-0.5, size=(2, 4000, 1))
    log_likelihood = scipy.stats.norm(mu, 1).logpdf(y).astype(np.float32)
    exact = scipy.stats.norm(
        (y.sum() - y) / (precision - 1), np.sqrt(1 + 1 / (precision - 1))
    ).logpdf(y)
    found = diagnostics.leave_one_out(jnp.asarray(log_likelihood))
    idata = arviz.from_dict(posterior={"mu": mu[..., 0]}, log_likelihood={"y": log_likelihood})
    expected = arviz.loo(idata, pointwise=True, reff=1.0)
    np.testing.assert_allclose(found.log_density, expected.loo_i, atol=2e-3)
    np.testing.assert_allclose(found.pareto_k, expected.pareto_k, atol=0.02)
    np.testing.assert_allclose(found.log_density, exact, atol=0.02)
    assert found.pareto_k[-1] == found.pareto_k.max()


def test_leaves_of_other_runs_are_refused():
    with pytest.raises(ValueError, match="values: given leaves that begin"):
        summaries.summarize({"a": np.zeros((4, 100)), "b": np.zeros((4, 99, 2))})
