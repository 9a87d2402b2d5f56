"""Of few parameters the metric is the covariance, however correlated; of many it is a diagonal."""

from helpers import common, diagnostics, full_metric, mcmc, warmups

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.problems import peers, stressed


def sampled(density, seed=0, **sizes):
    """Return a run from N(0, 1) at the defaults."""
    starts = mcmc.normal_starts(common.key(seed, "starts"), density.position, (4,))
    return mcmc.sample(common.key(seed, "chains"), density.log_density, starts, **sizes)


@pytest.mark.parametrize("size", [1, 2, 20])
def test_of_a_normal_the_estimate_is_its_covariance(size):
    """Exactly, but for the ridge, since the gradients are linear in the draws."""
    random = np.random.default_rng(size)
    factor = random.normal(size=(size, size)) * np.geomspace(1, 30, size)
    covariance = factor @ factor.T + 0.1 * np.eye(size)
    draws = random.multivariate_normal(np.zeros(size), covariance, (4, 75))
    gradients = -draws @ np.linalg.inv(covariance)
    recent = np.stack([draws, gradients], axis=1)
    diagonal = np.log(np.sqrt(np.diag(covariance) / np.diag(np.linalg.inv(covariance))))
    found, factor = full_metric.estimate(recent, diagonal)
    ratios = np.linalg.eigvals(np.linalg.solve(covariance, found))
    np.testing.assert_allclose(ratios, 1.0, atol=0.05)
    # The step size is one of the diagonal's units, along the narrowest direction.
    scale = np.exp(diagonal / 2)
    least = np.linalg.eigvalsh(found / scale / scale[:, None])[0]
    np.testing.assert_allclose(factor, least**-0.5, rtol=1e-6)


def test_chains_in_modes_far_apart_do_not_make_the_metric_wide():
    random = np.random.default_rng(1)
    draws = random.normal(size=(4, 75, 2))
    recent = np.stack([draws + 20.0 * np.array([0, 1, 0, 1])[:, None, None], -draws], axis=1)
    found, _ = full_metric.estimate(recent, np.zeros(2))
    np.testing.assert_allclose(found, np.eye(2), atol=0.05)


def test_chains_that_stay_in_two_modes_get_the_metric_of_one():
    def two(x):
        return jnp.logaddexp(*(-0.5 * ((x - at) ** 2).sum() for at in (-10.0, 10.0)))

    starts = np.array(jax.random.normal(jax.random.key(0), (4, 3)))
    starts += np.array([10, -10, 10, -10], np.float32)[:, None]
    found = mcmc.sample(jax.random.key(1), two, starts, num_samples=300)
    assert found.warmup.shared.all()
    np.testing.assert_allclose(found.warmup.inverse_metric, [np.eye(3)] * 4, atol=0.01)
    means = np.asarray(found.draws).mean(axis=(1, 2))
    np.testing.assert_allclose(means, [10, -10, 10, -10], atol=0.5)
    np.testing.assert_allclose(found.draws.std(axis=1), 1, atol=0.25)


def test_it_maps_the_covariance_of_the_gradients_to_that_of_the_draws():
    """The condition of the least Fisher divergence, M G M = C, of any draws and gradients."""
    recent = np.random.default_rng(2).normal(size=(4, 2, 75, 3))
    recent[:, 1] += 0.5 * recent[:, 0]
    metric, _ = full_metric.estimate(recent, np.zeros(3))
    of_draws, of_gradients = (
        np.mean([np.cov(chain.T, bias=True) for chain in part], axis=0)
        for part in np.moveaxis(recent, 1, 0)
    )
    np.testing.assert_allclose(metric @ of_gradients @ metric, of_draws, atol=1e-3)


def test_where_draws_do_not_move_it_is_the_diagonal():
    still = np.ones((2, 2, 20, 3), np.float32)
    metric, factor = full_metric.estimate(still, np.log([1e-4, 1.0, 1e4]))
    np.testing.assert_allclose(metric, np.diag([1e-4, 1.0, 1e4]), rtol=1e-5)
    assert metric.dtype == np.float32
    # condition 1 in units of the diagonal
    np.testing.assert_allclose(factor, 1.0, rtol=1e-6)


def test_the_first_guess_is_the_variance_at_a_distance_of_one_from_the_mean():
    sd = jnp.array([1e-6, 1.0, 1e6])
    guess = full_metric.first_guess(lambda x: -((x / sd) ** 2).sum() / 2, jnp.ones(3))
    np.testing.assert_allclose(guess, sd**2, rtol=1e-5)
    np.testing.assert_array_equal(full_metric.first_guess(lambda x: 0 * x.sum(), sd), 1.0)


def test_many_parameters_have_a_diagonal():
    assert full_metric.applies(30, 225) and not full_metric.applies(31, 225)
    assert not full_metric.applies(30, 100)  # few draws to learn it from
    assert stressed.alike(40)[0].position.shape == (40,)
    shapes = {size: sampled(stressed.scales(size, 1.0)[0], num_samples=20) for size in (30, 31)}
    assert {size: run.warmup.inverse_metric.shape for size, run in shapes.items()} == {
        30: (4, 30, 30),
        31: (4, 31),
    }


@pytest.mark.parametrize("name, most_steps", [("years", 64), ("scales", 32)])
def test_correlations_and_scales_cost_little(name, most_steps):
    """Intercept and slope correlated at -0.9998; scales from 1e-6 to 1e6."""
    peer = peers.load(name)
    run = sampled(peer)
    quantities = np.asarray(peers.of_draws(peer.quantities, run.draws), np.float64)
    found = diagnostics.check(run, quantities)
    assert found.ok, found.reasons
    assert found.integration_steps < most_steps
    error = diagnostics.standard_error(quantities)
    assert (np.abs(quantities.mean(axis=(0, 1)) - peer.answers.mean) < 6 * error).all()


def test_a_step_size_that_collapses_does_not_make_trajectories_endless():
    mean = full_metric.mean_steps(jnp.eye(3), jnp.float32(7.0), jnp.float32(1e-6))
    assert mean == 7.0
    mean = full_metric.mean_steps(jnp.eye(3), jnp.float32(7.0), jnp.float32(0.5))
    np.testing.assert_allclose(mean, np.pi, rtol=1e-6)
    assert full_metric.mean_steps(jnp.ones(3), jnp.float32(7.0), jnp.float32(0.5)) == 7.0


def test_at_a_cliff_trajectories_are_no_longer_than_in_warm_up():
    def cliff(x):
        return -1e5 * jnp.maximum(0.0, jnp.abs(x).max() - 1.0)

    sizes = {"num_samples": 200, "max_tree_depth": 4}
    found = mcmc.sample(jax.random.key(0), cliff, jnp.zeros((3, 2)), **sizes)
    found = jax.tree.map(np.asarray, found)
    warmup, most = found.warmup, found.stats.integration_steps.max(axis=1)
    # without the limit they would be
    assert (full_metric.DURATION / warmup.step_size > 2 * found.going.num_steps).any()
    assert (warmup.mean_steps <= found.going.num_steps).all()
    assert (most <= 2 * np.ceil(warmup.mean_steps) - 1).all() and most.max() < 2 * 2**4
    none = np.full(3, -np.inf, np.float32)
    adaptation = found.going.adaptation._replace(log_step_size_avg=none)
    going = found.going._replace(adaptation=adaptation)
    np.testing.assert_array_equal(
        warmups.found(going, *[None] * 4).mean_steps, found.going.num_steps
    )


def test_the_kinetic_energy_of_a_full_metric_is_that_of_the_diagonal():
    momentum, diagonal = jax.random.normal(jax.random.key(0), (2, 4)) ** 2
    np.testing.assert_allclose(
        full_metric.kinetic_energy(jnp.diag(diagonal), momentum),
        full_metric.kinetic_energy(diagonal, momentum),
        rtol=1e-6,
    )
