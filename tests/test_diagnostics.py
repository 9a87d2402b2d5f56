"""Diagnostics agree with ArviZ's and with exact results, and see a chain that is stuck."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from helpers import diagnostics
from helpers.mcmc import Posterior, Stats

with warnings.catch_warnings():  # ArviZ announces its version 1 once a day, by the clock
    warnings.filterwarnings("ignore", message="\nArviZ is undergoing a major refactor", category=FutureWarning)
    import arviz


def autoregressive(seed, shape, correlation):
    """Return stationary standard normal chains [chain, draw, ...] of known autocorrelation."""
    random = np.random.default_rng(seed)
    steps = random.normal(size=shape)
    steps[:, 1:] *= np.sqrt(1 - correlation**2)
    for draw in range(1, shape[1]):
        steps[:, draw] += correlation * steps[:, draw - 1]
    return steps.astype(np.float32)


CHAINS = np.stack([autoregressive(i, (4, 500), rho) for i, rho in enumerate((0.0, 0.5, 0.9))], axis=2)
CHAINS[:2, :, 2] += 0.5  # two chains elsewhere


@pytest.fixture(scope="module")
def run():
    """Return three tasks of a made-up run, 4 chains of 500 draws each."""
    draws = {"params": {"Dense_0": {"kernel": jnp.asarray(autoregressive(3, (3, 4, 500, 2, 1), 0.0))}}}
    density = jnp.asarray(autoregressive(4, (3, 4, 500), 0.0))
    energy = -density + jnp.asarray(np.random.default_rng(5).chisquare(3, (3, 4, 500)) / 2, jnp.float32)
    diverging = jnp.zeros((3, 4, 500), bool).at[1, 2, 7:10].set(True)
    stats = Stats(density, diverging, jnp.full((3, 4, 500), 0.8), energy, jnp.full((3, 4, 500), 7))
    p = jax.nn.sigmoid(jnp.asarray(autoregressive(6, (3, 4, 500, 5), 0.0)))
    return Posterior(draws, stats), p


def test_summary_equals_arvizs():
    found = diagnostics.summarize(CHAINS)
    for i in range(3):
        np.testing.assert_allclose(found.rhat[i], arviz.rhat(CHAINS[..., i]), atol=2e-3)
        np.testing.assert_allclose(found.ess_bulk[i], arviz.ess(CHAINS[..., i]), rtol=0.02)
        np.testing.assert_allclose(found.ess_tail[i], arviz.ess(CHAINS[..., i], method="tail"), rtol=0.02)
    assert found.rhat[0] < 1.01 < 1.05 < found.rhat[2]


def test_summary_of_a_tree_keeps_the_order_of_its_leaves():
    tree = {"b": CHAINS[..., 2], "a": CHAINS[..., :2].reshape(4, 500, 2, 1)}
    for found, expected in zip(diagnostics.summarize(tree), diagnostics.summarize(CHAINS), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_effective_sample_size_is_what_the_autocorrelation_implies():
    chains = np.stack([autoregressive(i, (4, 5000), 0.8) for i in range(4)], axis=2)
    expected = 20_000 * (1 - 0.8) / (1 + 0.8)
    np.testing.assert_allclose(diagnostics.summarize(chains).ess_bulk, expected, rtol=0.2)


def test_a_stuck_chain_is_seen():
    assert diagnostics.summarize(np.stack([*CHAINS[:3, :, 0], np.zeros(500, np.float32)])).rhat[0] > 1.1


@pytest.mark.parametrize(
    "values, message",
    [
        (CHAINS[:1], r"values: given shape \(1, 500, 3\), expected \[chain, draw, ...\], 2 chains and 4 draws"),
        (CHAINS[:, :3], r"values: given shape \(4, 3, 3\)"),
        (CHAINS[0, :, 0], r"values: given shape \(500,\)"),
        (np.where(CHAINS > 3, np.nan, CHAINS), "values: given some that are not finite, expected none"),
    ],
)
def test_too_little_to_diagnose_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        diagnostics.summarize(values)


def test_energy_fraction_equals_arvizs():
    energy = autoregressive(0, (3, 2000), 0.9)
    np.testing.assert_allclose(diagnostics.energy_bfmi(jnp.asarray(energy)), arviz.bfmi(energy), rtol=2e-3)
    np.testing.assert_allclose(diagnostics.energy_bfmi(jnp.asarray(energy)), 2 * (1 - 0.9), rtol=0.2)


def test_check_reports_the_worst_task(run):
    posterior, p = run
    good = diagnostics.check(posterior, p)
    assert max(good.rhat_predictions, good.rhat_log_density) < 1.02 and good.ess_predictions > 1000
    assert (good.divergences, good.integration_steps) == (3, 7.0)
    assert good.bfmi == float(diagnostics.energy_bfmi(posterior.stats.energy).min())
    for task in range(3):
        bad = diagnostics.check(posterior, p.at[task, 0].set(0.9 + 0.01 * p[task, 0]))
        assert bad.rhat_predictions > 1.1 and bad.ess_predictions < 100
        assert bad[1:2] + bad[3:] == good[1:2] + good[3:]
        density = posterior.stats.log_density.at[task, 0].add(3.0)
        bad = diagnostics.check(posterior._replace(stats=posterior.stats._replace(log_density=density)), p)
        assert bad.rhat_log_density > 1.1 and bad.ess_log_density < 100 < good.ess_log_density


def test_check_of_one_task_equals_that_task_alone(run):
    first, one = (jax.tree.map(lambda leaf, part=part: leaf[part], run) for part in (0, slice(0, 1)))
    np.testing.assert_allclose(diagnostics.check(*first), diagnostics.check(*one), rtol=1e-6)


@pytest.mark.parametrize("task", range(3))
def test_predictions_that_never_move_are_not_passed_over(run, task):
    posterior, p = run
    assert not diagnostics.check(posterior, p.at[task].set(1.0)).rhat_predictions <= 1.02


def test_predictions_may_be_thinned(run):
    posterior, p = run
    every, thinned = diagnostics.check(posterior, p), diagnostics.check(posterior, p[:, :, ::2])
    assert thinned.rhat_log_density == every.rhat_log_density and thinned.ess_log_density == every.ess_log_density
    assert thinned.ess_predictions < every.ess_predictions


def test_a_check_is_described_in_one_line(run):
    text = diagnostics.describe(diagnostics.check(*run))
    assert "\n" not in text and "divergences: 3;" in text and "steps a draw: 7" in text


def test_leave_one_out_equals_arvizs_and_the_exact_answer():
    """For y ~ N(mu, 1) and mu ~ N(0, 10); the last observation is an outlier."""
    y = np.append(np.random.default_rng(0).normal(size=20), 7.0)
    precision = 0.01 + y.size
    mu = np.random.default_rng(1).normal(y.sum() / precision, precision**-0.5, size=(2, 4000, 1))
    log_likelihood = scipy.stats.norm(mu, 1).logpdf(y).astype(np.float32)
    exact = scipy.stats.norm((y.sum() - y) / (precision - 1), np.sqrt(1 + 1 / (precision - 1))).logpdf(y)
    found = diagnostics.leave_one_out(jnp.asarray(log_likelihood))
    idata = arviz.from_dict(posterior={"mu": mu[..., 0]}, log_likelihood={"y": log_likelihood})
    expected = arviz.loo(idata, pointwise=True, reff=1.0)
    np.testing.assert_allclose(found.log_density, expected.loo_i, atol=2e-3)
    np.testing.assert_allclose(found.pareto_k, expected.pareto_k, atol=0.02)
    np.testing.assert_allclose(found.log_density, exact, atol=0.02)
    assert found.pareto_k[-1] == found.pareto_k.max()


def test_arviz_gets_every_draw_and_statistic_under_its_own_names(run):
    one = jax.tree.map(lambda leaf: leaf[1], run[0])
    idata = diagnostics.to_arviz(one)
    np.testing.assert_array_equal(idata.posterior["params.Dense_0.kernel"], one.draws["params"]["Dense_0"]["kernel"])
    stats = idata.sample_stats
    assert set(stats) == {"lp", "diverging", "acceptance_rate", "energy", "n_steps"}
    for name, field in {"lp": "log_density", "diverging": "diverging", "n_steps": "integration_steps"}.items():
        np.testing.assert_array_equal(stats[name], getattr(one.stats, field))
    np.testing.assert_allclose(arviz.bfmi(idata), diagnostics.energy_bfmi(one.stats.energy), rtol=0.01)
