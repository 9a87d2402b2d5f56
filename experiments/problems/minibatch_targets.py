"""Posteriors known exactly, in the parts that a minibatch sampler asks for: prior, likelihood of
one datum, data.
"""

from helpers.common import float_shapes
from helpers.verify import Target

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.problems.exact_targets import conjugate_regression, moments


class MinibatchTarget(NamedTuple):
    """Its log density: ``log_prior(position) + sum of log_likelihood(position, datum)``."""

    target: Target
    log_prior: Callable[[Any], Float[Array, ""]]
    log_likelihood: Callable[[Any, Any], Float[Array, ""]]
    data: Any  # pytree, leading axis [datum]


def _joined(name, log_prior, log_likelihood, data, standardized, size):
    """A target in one array whose ``standardized`` quantities have mean 0 and variance 1."""

    def log_density(position):
        return log_prior(position) + jax.vmap(log_likelihood, (None, 0))(position, data).sum()

    target = moments(name, log_density, float_shapes((size,)), standardized, size)
    return MinibatchTarget(target, log_prior, log_likelihood, data)


def gaussian_mean(
    size: int = 1,
    num_data: int = 500,
    variance: float = 1.0,
    prior_precision: float = 0.0,
    ddof: int = 0,
) -> MinibatchTarget:
    """Mean of N(., 1) from data whose covariance is exactly ``variance`` times the identity.

    Scores then have the Fisher information as their covariance if ``variance`` is 1: ``ddof`` 0 for
    minibatches drawn with replacement, 1 for those without, whose covariance has one degree of
    freedom less.
    """
    raw = np.random.default_rng(12).normal(size=(num_data, size))
    centred = raw - raw.mean(axis=0)
    root = np.linalg.cholesky(np.cov(centred.T, ddof=ddof).reshape(size, size))
    x = jnp.asarray(np.sqrt(variance) * np.linalg.solve(root, centred.T).T, jnp.float32)
    precision = num_data + prior_precision

    def log_prior(position):
        return -0.5 * prior_precision * (position**2).sum()

    def log_likelihood(position, datum):
        return -0.5 * ((datum - position) ** 2).sum()

    scale = np.sqrt(precision)
    return _joined("Gaussian mean", log_prior, log_likelihood, x, lambda p: scale * p, size)


def linear_regression(num_data: int = 500, size: int = 5, noise: float = 0.5) -> MinibatchTarget:
    """Weights N(0, 1), known noise; the posterior is normal."""
    x, y, mean, whiten = conjugate_regression(13, num_data, size, noise)

    def log_likelihood(w, datum):
        return tfd.Normal((datum[0] * w).sum(), noise).log_prob(datum[1])

    return _of_weights("linear regression", log_likelihood, (x, y), mean, whiten)


def logistic_regression(num_data: int = 500) -> MinibatchTarget:
    """Two weights N(0, 1), labels of a steep slope; moments by sums over a grid."""
    random = np.random.default_rng(14)
    x = random.normal(size=(num_data, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    y = (random.random(num_data) < special.expit(x @ [2.0, -1.0])).astype(np.int32)
    axes = np.linspace(0.5, 4.0, 351), np.linspace(-3.0, 0.5, 351)
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    log_weight = -0.5 * (grid**2).sum(axis=1)
    for point, label in zip(x, y, strict=True):  # one after the other: a tenth of the memory
        logits = grid @ point
        log_weight += label * logits - np.logaddexp(0, logits)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ grid
    covariance = (weight[:, None] * (grid - mean)).T @ (grid - mean)
    whiten = jnp.asarray(np.linalg.inv(np.linalg.cholesky(covariance)), jnp.float32)
    x, y, mean = jnp.asarray(x, jnp.float32), jnp.asarray(y), jnp.asarray(mean, jnp.float32)

    def log_likelihood(w, datum):
        return tfd.Bernoulli(logits=(datum[0] * w).sum()).log_prob(datum[1])

    return _of_weights("logistic regression", log_likelihood, (x, y), mean, whiten)


def _of_weights(name, log_likelihood, data, mean, whiten):
    """A target of weights N(0, 1)."""

    def log_prior(w):
        return tfd.Normal(0.0, 1.0).log_prob(w).sum()

    def standardized(w):
        return whiten @ (w - mean)

    return _joined(name, log_prior, log_likelihood, data, standardized, len(mean))
