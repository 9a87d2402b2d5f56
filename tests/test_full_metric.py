"""Of few parameters the sampler finds a full metric, which is right, and which nothing spoils."""

from helpers import diagnostics, full_metric, mcmc, warmups

import jax
import jax.numpy as jnp
import numpy as np
import pytest

RANDOM = np.random.default_rng(3)
TARGET = RANDOM.normal(size=(4, 4)) @ np.diag([1e-3, 1.0, 10.0, 1e3])
COVARIANCE = TARGET.T @ TARGET
ROOT = np.linalg.cholesky(COVARIANCE)
LOG_DIAGONAL = np.log(np.diag(COVARIANCE))


def recent(centres, noise=0.0, num_draws=75):
    """Return draws of normals about centres, and gradients there, [chain, 2, draw, 4]."""
    z = RANDOM.normal(size=(len(centres), num_draws, 4))
    slopes = -z + noise * RANDOM.normal(size=z.shape)
    draws = np.asarray(centres)[:, None, None] * np.sqrt(np.diag(COVARIANCE)) + z @ ROOT.T
    return np.stack([draws, slopes @ np.linalg.inv(ROOT)], axis=1)


def whitened(metric):
    return np.linalg.solve(ROOT, np.linalg.solve(ROOT, metric.astype(float)).T)


def test_of_a_normal_it_is_the_covariance_and_modes_far_apart_do_not_widen_it():
    for centres in ([0, 0, 0, 0], [-10, 10, 10, -10]):
        metric, factor = full_metric.estimate(recent(centres), LOG_DIAGONAL)
        # but for what is added to both covariances, and to the narrowest direction
        np.testing.assert_allclose(whitened(metric), np.eye(4), atol=1e-2)
        correlations = COVARIANCE / np.exp((LOG_DIAGONAL + LOG_DIAGONAL[:, None]) / 2)
        assert factor == pytest.approx(np.linalg.eigvalsh(correlations)[0] ** -0.5, rel=0.02)
    # other draws, other errors, where gradients say less
    metric, _ = full_metric.estimate(recent([0] * 4, noise=0.5), LOG_DIAGONAL)
    np.testing.assert_allclose(whitened(metric) * np.sqrt(1.25), np.eye(4), atol=0.25)


def test_it_minimises_the_fisher_divergence():
    """It is what maps the covariance of the gradients to that of the draws: M G M = C."""
    found = recent([0] * 4, noise=1.0).astype(np.float64)
    metric, _ = full_metric.estimate(found, LOG_DIAGONAL)
    of_draws, of_gradients = (
        np.mean([np.cov(chain.T, bias=True) for chain in part], axis=0)
        for part in np.moveaxis(found, 1, 0)
    )
    unit = np.sqrt(np.diag(of_draws))
    np.testing.assert_allclose(
        metric @ of_gradients @ metric / unit / unit[:, None],
        of_draws / unit / unit[:, None],
        atol=1e-3,
    )


def test_where_draws_say_nothing_it_is_the_diagonal():
    still = np.ones((2, 2, 20, 3), np.float32)
    metric, factor = full_metric.estimate(still, np.log([1e-4, 1.0, 1e4]))
    np.testing.assert_allclose(metric, np.diag([1e-4, 1.0, 1e4]), rtol=1e-5)
    assert metric.dtype == np.float32 and factor == pytest.approx(1)


def test_the_first_guess_is_the_variance_at_a_distance_of_one_from_the_mean():
    sd = jnp.array([1e-6, 1.0, 1e6])
    guess = full_metric.first_guess(lambda x: -((x / sd) ** 2).sum() / 2, jnp.ones(3))
    np.testing.assert_allclose(guess, sd**2, rtol=1e-5)
    np.testing.assert_array_equal(full_metric.first_guess(lambda x: 0 * x.sum(), sd), 1.0)


@pytest.mark.parametrize(
    "size, num_draws, full", [(30, 225, True), (31, 225, False), (4, 15, False)]
)
def test_it_is_of_few_parameters_and_few_beside_the_draws(size, num_draws, full):
    assert full_metric.applies(size, num_draws) is full


def test_of_more_parameters_the_metric_is_a_diagonal():
    def unit(x):
        return -0.5 * (x**2).sum()

    sizes = {"num_warmup": 100, "num_samples": 20}
    for size, shape in ((18, (2, 18, 18)), (19, (2, 19))):
        starts = mcmc.normal_starts(jax.random.key(0), jnp.zeros(size), (2,))
        found = mcmc.sample(jax.random.key(1), unit, starts, **sizes)
        assert found.warmup.inverse_metric.shape == found.going.inverse_metric.shape == shape


YEAR = np.arange(1900.0, 2021.0)
TREND = 0.02 * (YEAR - 1960) + 0.5 * np.random.default_rng(19).normal(size=len(YEAR))


def of_years(position):
    """A trend over years that are not centred: intercept and slope correlate at -0.9998."""
    log_sigma = position["log_sigma"]
    fitted = position["intercept"] + position["slope"] * jnp.asarray(YEAR, jnp.float32)
    residual = (jnp.asarray(TREND, jnp.float32) - fitted) * jnp.exp(-log_sigma)
    return -0.5 * (residual**2).sum() - len(YEAR) * log_sigma


def test_a_trend_over_years_is_drawn_from_in_a_few_steps():
    starts = mcmc.normal_starts(
        jax.random.key(0), dict.fromkeys(("intercept", "slope", "log_sigma"), jnp.zeros(())), (4,)
    )
    posterior = mcmc.sample(jax.random.key(1), of_years, starts)
    assert np.min(diagnostics.summarize(posterior.draws).ess_bulk) > 1000
    assert posterior.stats.integration_steps.mean() < 64 and not posterior.stats.diverging.any()
    design = np.stack([np.ones(len(YEAR)), YEAR], axis=1)
    best = np.linalg.lstsq(design, TREND)[0]
    draws = np.stack([posterior.draws[name] for name in ("intercept", "slope")], axis=-1)
    sd = draws.std(axis=(0, 1))
    # of 1000 effective draws or more
    assert (np.abs(draws.mean(axis=(0, 1)) - best) < 5 * sd / np.sqrt(1000)).all()


def test_scales_of_twelve_decades_are_drawn_from():
    sd = np.logspace(-6, 6, 20).astype(np.float32)
    starts = mcmc.normal_starts(jax.random.key(0), jnp.zeros(20), (4,))
    posterior = mcmc.sample(
        jax.random.key(1), lambda x: -0.5 * ((x / sd) ** 2).sum(), starts, num_samples=1000
    )
    z = np.asarray(posterior.draws) / sd
    assert np.min(diagnostics.summarize(z).ess_bulk) > 1000
    assert np.abs(z.mean(axis=(0, 1))).max() < 5 / np.sqrt(1000)
    np.testing.assert_allclose(z.std(axis=(0, 1)), 1, atol=5 / np.sqrt(2 * 1000))
    assert posterior.stats.integration_steps.mean() < 10


def test_chains_in_two_modes_get_the_metric_of_one():
    def two(x):
        return jnp.logaddexp(*(-0.5 * ((x - at) ** 2).sum() for at in (-10.0, 10.0)))

    starts = np.array(jax.random.normal(jax.random.key(0), (4, 3)))
    starts[::2] += 10
    starts[1::2] -= 10
    found = mcmc.sample(jax.random.key(1), two, starts, num_samples=300)
    assert found.warmup.shared.all()
    np.testing.assert_allclose(found.warmup.inverse_metric, [np.eye(3)] * 4, atol=0.01)
    means = np.asarray(found.draws).mean(axis=(1, 2))
    np.testing.assert_allclose(means, [10, -10, 10, -10], atol=0.5)
    np.testing.assert_allclose(found.draws.std(axis=1), 1, atol=0.25)


def test_a_step_size_that_collapses_makes_no_longer_trajectories_than_warm_up():
    def cliff(x):
        return -1e5 * jnp.maximum(0.0, jnp.abs(x).max() - 1.0)

    found = mcmc.sample(
        jax.random.key(0), cliff, jnp.zeros((3, 2)), num_samples=200, max_tree_depth=4
    )
    found = jax.tree.map(np.asarray, found)
    step_sizes, most = found.warmup.step_size, found.stats.integration_steps.max(axis=1)
    assert (full_metric.DURATION / step_sizes > 2 * found.going.num_steps).any()
    assert (found.warmup.mean_steps <= found.going.num_steps).all()
    assert (most <= 2 * np.ceil(found.warmup.mean_steps) - 1).all() and most.max() < 2 * 2**4
    given = found.going._replace(num_steps=np.float32(7.0) * np.ones(3, np.float32))
    for log_step_size in (-np.inf, -70.0):
        values = np.full(3, log_step_size, np.float32)
        given = given._replace(adaptation=given.adaptation._replace(log_step_size_avg=values))
        assert (warmups.found(given, *[None] * 4).mean_steps == 7).all()
