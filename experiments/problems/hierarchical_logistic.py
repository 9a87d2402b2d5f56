"""Hierarchical logistic regression: one line a task around a common mean, non-centred.

``mean`` [3] ~ N(0, 1), ``offsets`` [task, 3] ~ N(0, 1), ``sd`` ~ N+(0, 1) sampled as ``log_sd`` [].
"""

from helpers.common import float_shapes
from helpers.densities import POSITIVE, Observed, bernoulli_log_likelihood

import jax.numpy as jnp
from jaxtyping import Array, Float
from tensorflow_probability.substrates.jax import distributions as tfd


def shapes(num_tasks: int) -> dict:
    """Return the shapes of one position."""
    return float_shapes({"mean": (3,), "log_sd": (), "offsets": (num_tasks, 3)})


def logits(position: dict, x: Float[Array, "task point 2"]) -> Float[Array, "task point"]:
    """Return the logits of one line per task: weights ``mean + sd * offsets``, biases included."""
    weights = position["mean"][None, :] + POSITIVE.forward(position["log_sd"]) * position["offsets"]
    return jnp.einsum("tpi,ti->tp", x, weights[:, :2]) + weights[:, 2:]


def log_density(position: dict, observed: Observed) -> Float[Array, ""]:
    """Return the log posterior, up to a constant."""
    log_sd = position["log_sd"]
    log_prior = tfd.Normal(0.0, 1.0).log_prob(position["mean"]).sum()
    log_prior += tfd.Normal(0.0, 1.0).log_prob(position["offsets"]).sum()
    of_sd = tfd.HalfNormal(1.0).log_prob(POSITIVE.forward(log_sd))
    log_prior += of_sd + POSITIVE.forward_log_det_jacobian(log_sd)
    of_labels = bernoulli_log_likelihood(logits(position, observed.x), observed.y)
    return log_prior + (observed.weight * of_labels).sum()
