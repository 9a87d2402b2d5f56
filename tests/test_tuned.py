"""Minibatch samplers tuned by their own runs: the rule, the kernel with centres of its own, equal
costs.
"""

from helpers import data, mcmc, networks

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.sgmcmc import gradients

from experiments.methods import minibatch_samplers, step_size_rule, total_variation
from experiments.pages.sgmcmc.step_sizes import SETTINGS

KEY = jax.random.key(17)


def runs(mean, spread, num_chains=4):
    """Mean predictions of chains about a mean, [chain, point]."""
    return mean + spread * np.random.default_rng(int(1e6 * mean)).normal(size=(num_chains, 200))


def test_the_largest_step_that_matches_half_of_it_is_taken():
    error = 0.001
    steps = [
        runs(0.5, error),
        runs(0.501, error),
        runs(0.502, error),
        runs(0.51, error),
        runs(0.53, error),
    ]
    assert step_size_rule.chosen(steps) == 2
    assert step_size_rule.chosen(steps, margin=0.009) == 3
    # a step at which a chain left the numbers
    assert step_size_rule.chosen([*steps[:2], None, *steps[3:]]) == 1
    assert step_size_rule.chosen([steps[0], steps[3], steps[4]]) == -1


def test_chains_that_stray_match_nothing():
    """Nor do they if their distance is what chance explains: then it would be so whatever the step
    does.
    """
    steps = [runs(0.5, 0.02), runs(0.501, 0.02)]
    apart, chance = total_variation.distance(*steps)
    assert total_variation.beyond(apart, chance) < apart and chance > total_variation.MARGIN
    assert step_size_rule.chosen(steps) == -1


def test_chance_is_what_independent_chains_differ_by():
    pairs = [(runs(0.3 + i * 1e-5, 0.01), runs(0.31 + i * 1e-5, 0.01) - 0.01) for i in range(100)]
    apart, chance = np.array([total_variation.distance(*pair) for pair in pairs]).mean(axis=0)
    # The mean of an estimated standard deviation of 3 + 3 degrees of freedom is 4 % low.
    np.testing.assert_allclose(chance, apart, rtol=0.06)


@pytest.fixture
def points():
    tasks = data.rotated_moons(KEY, 1, 100, 10, 0.2)
    return data.Points(tasks.x_train[0], tasks.y_train[0])


def test_a_step_with_a_centre_of_its_own_is_that_of_blackjax(points):
    shapes = networks.parameter_shapes(minibatch_samplers.NETWORK, 2)
    start, centre = (
        jax.tree.map(lambda a: a[i], mcmc.normal_starts(KEY, shapes, (2,))) for i in range(2)
    )
    slope = gradients.grad_estimator(
        minibatch_samplers.log_prior, minibatch_samplers.log_likelihood, 100
    )
    batch = jax.tree.map(lambda a: a[:20], points)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        kernel = minibatch_samplers.centred_sgld(slope, points)
        ours = kernel.step(KEY, kernel.init((start, centre)), batch, 1e-3).position
        usual = blackjax.sgld(gradients.control_variates(slope, centre, points))
        theirs = usual.step(KEY, usual.init(start), batch, 1e-3)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), ours, theirs)


def test_modes_have_no_slope(points):
    starts = mcmc.normal_starts(KEY, networks.parameter_shapes(minibatch_samplers.NETWORK, 2), (2,))
    slope = jax.grad(
        lambda w: (
            minibatch_samplers.log_prior(w) + minibatch_samplers.log_likelihood(w, points).sum()
        )
    )

    def steepest(weights):
        return max(float(jnp.abs(part).max()) for part in jax.tree.leaves(jax.vmap(slope)(weights)))

    with jax.numpy_dtype_promotion("standard"):  # Optax counts in integers
        found = minibatch_samplers.modes(starts, points)
    assert steepest(found) < 0.01 * steepest(starts)


@pytest.mark.parametrize("name", SETTINGS["step_sizes"])
@pytest.mark.parametrize("kind", ["tuning", "final"])
def test_every_sampler_spends_the_same(name, kind):
    steps, draws = SETTINGS[kind]["num_steps"], SETTINGS[kind]["num_draws"]
    size = minibatch_samplers.lengths(name, steps, draws)
    spent = size["num_cycles"] * (size["num_warmup"] + size["num_samples"] * size["thin"])
    assert spent * minibatch_samplers.GRADIENTS_A_STEP.get(name, 1) == steps
    assert size["num_cycles"] * size["num_samples"] == draws
