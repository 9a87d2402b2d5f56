"""Hierarchical logistic regression: NumPyro's density and gradient, and a scale that keeps its
prior.
"""

from helpers import densities, mcmc
from helpers.densities import Observed

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import potential_energy

from experiments.problems import hierarchical_logistic

random = np.random.default_rng(0)
X, Y = (
    random.normal(size=(3, 12, 2)).astype(np.float32),
    random.integers(0, 2, size=(3, 12)).astype(np.int32),
)
OBSERVED = densities.observe(X, Y)


def position_of(seed):
    return mcmc.normal_starts(jax.random.key(seed), hierarchical_logistic.shapes(3), ())


def numpyro_model(x, y):
    """State the model in NumPyro."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    sd = numpyro.sample("sd", dist.HalfNormal(1.0))
    with numpyro.plate("task", x.shape[0]):
        offsets = numpyro.sample("offsets", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    weights = mean + sd * offsets
    logits = (x * weights[:, None, :2]).sum(axis=-1) + weights[:, 2:]
    numpyro.sample("y", dist.BernoulliLogits(logits).to_event(2), obs=y)


@pytest.mark.parametrize("seed", range(3))
def test_hierarchical_posterior_equals_numpyros(seed):
    position = position_of(seed)

    def ours(position):
        return hierarchical_logistic.log_density(position, OBSERVED)

    def theirs(position):  # NumPyro's own coordinate of a positive site is its logarithm too
        sites = {"mean": position["mean"], "sd": position["log_sd"], "offsets": position["offsets"]}
        return -potential_energy(numpyro_model, (X, Y), {}, sites)

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        expected = jax.jit(jax.value_and_grad(theirs))(position)
    found = jax.jit(jax.value_and_grad(ours))(position)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4), found, expected)


def test_scale_keeps_its_half_normal_prior_through_the_logarithm():
    log_sd = jnp.linspace(-12, 3, 3001)
    position = {"mean": jnp.zeros(3), "offsets": jnp.zeros((1, 3))}

    def density(log_sd):  # of no points: the prior alone
        nothing = Observed(jnp.zeros((1, 0, 2)), jnp.zeros((1, 0), jnp.int32), jnp.zeros((1, 0)))
        return jnp.exp(hierarchical_logistic.log_density({**position, "log_sd": log_sd}, nothing))

    values = np.asarray(jax.vmap(density)(log_sd)) * (2 * np.pi) ** 3  # six standard normals at 0
    np.testing.assert_allclose(np.trapezoid(values, log_sd), 1, rtol=1e-4)
    below_one = np.asarray(log_sd) <= 0
    np.testing.assert_allclose(
        np.trapezoid(values[below_one], log_sd[below_one]), 0.682689, rtol=1e-3
    )


def test_linear_logits_are_one_line_per_task():
    position = position_of(0)
    weights = position["mean"][None] + np.exp(position["log_sd"]) * position["offsets"]
    expected = [X[t] @ weights[t, :2] + weights[t, 2] for t in range(3)]
    np.testing.assert_allclose(
        hierarchical_logistic.logits(position, X), expected, rtol=1e-4, atol=1e-5
    )
