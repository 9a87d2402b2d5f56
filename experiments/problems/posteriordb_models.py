"""Models of posteriordb as log densities over unconstrained positions.

A function a model: it takes the data of the database and returns a ``Density``. Positive numbers
are sampled as their logarithms, shares as their logits, and what has an order as its first value
and the logarithms of the gaps; the log Jacobian is part of the density. Constants are left out.
Data are cast to the position's type, so that a density is as exact as its position.

Magnusson et al. (2025), posteriordb: testing, benchmarking and developing Bayesian inference
algorithms, AISTATS; data and answers lie in the folder ``posteriordb`` beside this file.
"""

from helpers.common import float_shapes

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float


class Density(NamedTuple):
    """A log density, and what is read off a position."""

    log_density: Callable[[Any], Float[Array, ""]]  # of one position, nats, up to a constant
    position: Any  # the shapes of one position
    quantities: Callable[[Any], Float[Array, " quantity"]]  # of one position


def half_cauchy(log_x, scale):
    """Return the log density of the logarithm of a half-Cauchy number, up to a constant."""
    return log_x - jnp.log1p((jnp.exp(log_x) / scale) ** 2)


def half_normal(log_x, scale):
    """Return the log density of the logarithm of a half-normal number, up to a constant."""
    return log_x - 0.5 * (jnp.exp(log_x) / scale) ** 2


def flat(log_x):
    """Return the log density of the logarithm of a positive number whose prior is flat."""
    return log_x


def linear(design, y, of_log_sigma, of_weights=lambda weights: 0.0) -> Density:
    """A linear regression with normal noise; quantities: weights, sigma.

    Args:
        design: a column a weight, [point, weight].
        y: [point].
        of_log_sigma: log prior of the logarithm of sigma, Jacobian included.
        of_weights: log prior of the weights; flat if none is given.
    """
    design, y = np.asarray(design, np.float64), np.asarray(y, np.float64)
    # a constant that keeps the sum of so many logarithms small, and float32 exact
    log_scale = float(np.log(y.std()))

    def log_density(position):
        weights, log_sigma = position["weights"], position["log_sigma"]
        fitted = jnp.matmul(jnp.asarray(design, weights.dtype), weights, precision="highest")
        residual = (jnp.asarray(y, weights.dtype) - fitted) * jnp.exp(-log_sigma)
        likelihood = -0.5 * (residual**2).sum() - len(y) * (log_sigma - log_scale)
        return likelihood + of_log_sigma(log_sigma) + of_weights(weights)

    def quantities(position):
        return jnp.append(position["weights"], jnp.exp(position["log_sigma"]))

    position = float_shapes({"weights": (design.shape[1],), "log_sigma": ()})
    return Density(log_density, position, quantities)


def of_scale_ten(weights):
    """Return the log density of weights N(0, 10), up to a constant."""
    return -0.5 * ((weights / 10) ** 2).sum()


def columns(data, *names):
    """Return a column of ones and the named columns, [point, 1 + name]."""
    found = [np.asarray(data[name], np.float64) for name in names]
    return np.stack([np.ones(len(found[0])), *found], axis=1)


def kidscore_interaction(data) -> Density:
    """Scores of children given their mother's schooling, her IQ, and the product of both."""
    product = np.multiply(data["mom_hs"], data["mom_iq"])
    design = columns(data | {"product": product}, "mom_hs", "mom_iq", "product")
    return linear(design, data["kid_score"], lambda log_sigma: half_cauchy(log_sigma, 2.5))


def kidscore_momiq(data) -> Density:
    """Scores of children given their mother's IQ."""
    design = columns(data, "mom_iq")
    return linear(design, data["kid_score"], lambda log_sigma: half_cauchy(log_sigma, 2.5))


def earn_height(data) -> Density:
    """Earnings given height, priors flat."""
    return linear(columns(data, "height"), data["earn"], flat)


def mesquite(data) -> Density:
    """Weights of bushes given six measurements, priors flat."""
    names = ("diam1", "diam2", "canopy_height", "total_height", "density", "group")
    return linear(columns(data, *names), data["weight"], flat)


def blr(data) -> Density:
    """A regression on simulated features, weights N(0, 10)."""
    return linear(
        data["X"], data["y"], lambda log_sigma: half_normal(log_sigma, 10.0), of_scale_ten
    )


def ar(data) -> Density:
    """An autoregression of ``K`` lags, given its first ``K`` values."""
    y, order = np.asarray(data["y"], np.float64), data["K"]
    lags = [y[order - lag : len(y) - lag] for lag in range(1, order + 1)]
    design = np.stack([np.ones(len(y) - order), *lags], axis=1)
    return linear(design, y[order:], lambda log_sigma: half_cauchy(log_sigma, 2.5), of_scale_ten)


def garch(data) -> Density:
    """A series whose variance follows its last value and the last variance, GARCH(1, 1)."""
    y, first_variance = np.asarray(data["y"], np.float64), data["sigma1"] ** 2

    def constrained(position):
        alpha1 = jax.nn.sigmoid(position["logit_alpha1"])
        beta1 = (1 - alpha1) * jax.nn.sigmoid(position["logit_share"])
        return position["mu"], jnp.exp(position["log_alpha0"]), alpha1, beta1

    def log_density(position):
        mu, alpha0, alpha1, beta1 = constrained(position)
        squares = (jnp.asarray(y, mu.dtype) - mu) ** 2

        def step(variance, square):
            return alpha0 + alpha1 * square + beta1 * variance, variance

        start = jnp.asarray(first_variance, mu.dtype)
        variance = jax.lax.scan(step, start, squares)[1]
        likelihood = -0.5 * (jnp.log(variance) + squares / variance).sum()
        log_jacobian = position["log_alpha0"] + jax.nn.log_sigmoid(-position["logit_alpha1"])
        for logit in (position["logit_alpha1"], position["logit_share"]):
            log_jacobian += jax.nn.log_sigmoid(logit) + jax.nn.log_sigmoid(-logit)
        return likelihood + log_jacobian

    names = ("mu", "log_alpha0", "logit_alpha1", "logit_share")
    position = float_shapes(dict.fromkeys(names, ()))
    return Density(log_density, position, lambda position: jnp.stack(constrained(position)))


def gauss_mix(data) -> Density:
    """A mixture of two normals, their means in order."""
    y = np.asarray(data["y"], np.float64)

    def means(position):
        low = position["low_mu"]
        return jnp.stack([low, low + jnp.exp(position["log_gap"])])

    def log_density(position):
        mu, log_sigma, logit = means(position), position["log_sigma"], position["logit_theta"]
        log_share = jnp.stack([jax.nn.log_sigmoid(logit), jax.nn.log_sigmoid(-logit)])
        z = (jnp.asarray(y, mu.dtype)[:, None] - mu[None]) * jnp.exp(-log_sigma)[None]
        likelihood = logsumexp((log_share - log_sigma)[None] - 0.5 * z**2, axis=1).sum()
        prior = -0.5 * ((mu / 2) ** 2).sum() + half_normal(log_sigma, 2.0).sum()
        return likelihood + prior + position["log_gap"] + 5 * log_share.sum()

    def quantities(position):
        theta = jax.nn.sigmoid(position["logit_theta"])
        return jnp.append(jnp.append(means(position), jnp.exp(position["log_sigma"])), theta)

    shapes = {"low_mu": (), "log_gap": (), "log_sigma": (2,), "logit_theta": ()}
    return Density(log_density, float_shapes(shapes), quantities)


def gp_regression(data) -> Density:
    """A Gaussian process with a squared-exponential kernel; sigma is the variance of the noise."""
    x, y = np.asarray(data["x"], np.float64), np.asarray(data["y"], np.float64)
    squares = np.subtract.outer(x, x) ** 2

    def log_density(position):
        log_rho, log_alpha, log_sigma = (position[f"log_{name}"] for name in names)
        apart = jnp.asarray(squares, log_rho.dtype) * jnp.exp(-2 * log_rho)
        kernel = jnp.exp(2 * log_alpha - 0.5 * apart)
        root = jnp.linalg.cholesky(kernel + jnp.exp(log_sigma) * jnp.eye(len(y), dtype=apart.dtype))
        white = jax.scipy.linalg.solve_triangular(root, jnp.asarray(y, apart.dtype), lower=True)
        likelihood = -0.5 * (white**2).sum() - jnp.log(jnp.diagonal(root)).sum()
        prior = 25 * log_rho - 4 * jnp.exp(log_rho)  # Gamma(25, 4)
        return likelihood + prior + half_normal(log_alpha, 2.0) + half_normal(log_sigma, 1.0)

    def quantities(position):
        return jnp.exp(jnp.stack([position[f"log_{name}"] for name in names]))

    names = ("rho", "alpha", "sigma")
    position = float_shapes({f"log_{name}": () for name in names})
    return Density(log_density, position, quantities)


def schools(data, centred: bool = False) -> Density:
    """Rubin's (1981) coaching effects; non-centred, effects are mu + tau z."""
    y, sd = np.asarray(data["y"], np.float64), np.asarray(data["sigma"], np.float64)

    def effects(position):
        if centred:
            return position["theta"]
        return position["mu"] + jnp.exp(position["log_tau"]) * position["z"]

    def log_density(position):
        mu, log_tau = position["mu"], position["log_tau"]
        theta = effects(position)
        z = (theta - mu) * jnp.exp(-log_tau) if centred else position["z"]
        of_effects = -0.5 * (z**2).sum() - (len(y) * log_tau if centred else 0.0)
        apart = (jnp.asarray(y, mu.dtype) - theta) / jnp.asarray(sd, mu.dtype)
        return of_effects - 0.5 * (apart**2).sum() - 0.5 * (mu / 5) ** 2 + half_cauchy(log_tau, 5.0)

    def quantities(position):
        others = jnp.stack([position["mu"], jnp.exp(position["log_tau"])])
        return jnp.concatenate([effects(position), others])

    shapes = {"mu": (), "log_tau": (), "theta" if centred else "z": (len(y),)}
    return Density(log_density, float_shapes(shapes), quantities)


def log_forward(
    transition: Float[Array, "state next"], log_emission: Float[Array, "time state"]
) -> Float[Array, ""]:
    """Return log of the sum over all paths of hidden states, the first without a factor of its own.

    Each time is a matrix, and matrices are multiplied in pairs: ten levels for a thousand times,
    which costs a thirtieth of a thousand steps. What a product is divided by is kept as its log.
    """
    top = log_emission.max(axis=1)
    emission = jnp.exp(log_emission - top[:, None])
    matrices, total = transition[None] * emission[1:, None], top.sum()
    while len(matrices) > 1:
        last = matrices[len(matrices) // 2 * 2 :]  # one, where their number is odd
        left, right = matrices[: len(matrices) // 2 * 2 : 2], matrices[1::2]
        matrices = (left[:, :, :, None] * right[:, None]).sum(axis=2)
        size = matrices.sum(axis=(1, 2))
        matrices = jnp.concatenate([matrices / size[:, None, None], last])
        total += jnp.log(size).sum()
    return total + jnp.log((emission[0][:, None] * matrices[0]).sum())


def hmm_drive(data) -> Density:
    """Two hidden states, each with its own exponential distributions of both observations."""
    u, v = np.asarray(data["u"], np.float64), np.asarray(data["v"], np.float64)
    prior_counts = np.asarray(data["alpha"], np.float64)

    def rates(position, name):
        low = jnp.exp(position[f"log_{name}"])
        return jnp.stack([low, low + jnp.exp(position[f"log_{name}_gap"])])

    def log_transition(position):
        """Logarithms of P(next state | state), [state, next]."""
        stay = position["logit_stay"]
        stays, leaves = jax.nn.log_sigmoid(stay), jax.nn.log_sigmoid(-stay)
        return jnp.stack([jnp.stack([stays[0], leaves[0]]), jnp.stack([leaves[1], stays[1]])])

    def log_density(position):
        phi, rate, log_theta = (
            rates(position, "phi"),
            rates(position, "lambda"),
            log_transition(position),
        )
        of_u = jnp.log(phi)[None] - jnp.asarray(u, phi.dtype)[:, None] * phi[None]
        of_v = jnp.log(rate)[None] - jnp.asarray(v, phi.dtype)[:, None] * rate[None]
        of_both = of_u + of_v  # [time, state]

        likelihood = log_forward(jnp.exp(log_theta), of_both)
        prior = (jnp.asarray(prior_counts, phi.dtype) * log_theta).sum()
        centre = jnp.asarray([0.0, 3.0], phi.dtype)
        for name, pair in (("phi", phi), ("lambda", rate)):
            prior -= 0.5 * ((pair - centre) ** 2).sum()
            prior += position[f"log_{name}"] + position[f"log_{name}_gap"]
        return likelihood + prior

    def quantities(position):
        theta = jnp.exp(log_transition(position)).ravel()
        return jnp.concatenate([theta, rates(position, "phi"), rates(position, "lambda")])

    names = ("log_phi", "log_phi_gap", "log_lambda", "log_lambda_gap")
    position = float_shapes({"logit_stay": (2,), **dict.fromkeys(names, ())})
    return Density(log_density, position, quantities)
