"""The metric of posteriors of few parameters: a full matrix, which all chains of a posterior make
together of their last draws of warm-up and the gradients there.

Under it a normal posterior is round, however its parameters are correlated.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# Of so many parameters or fewer, the metric of the draws is a full matrix; of more, a diagonal.
MAX_PARAMETERS = 30
# Mean length of a trajectory, steps times step size: a quarter of the period of a round posterior.
# Lengths between 0 and half a period, each as likely, leave draws of a normal uncorrelated.
DURATION = np.pi / 2
RIDGE = 1e-5  # added to both covariances, in units of the diagonal metric
MAX_CONDITION = 1e6  # of the matrix, in those units: what single precision can factorise


def applies(num_parameters: int, num_draws: int) -> bool:
    """Whether the metric is a full matrix: of few parameters, and few beside warm-up's draws."""
    return num_parameters <= min(MAX_PARAMETERS, num_draws // 4)


def first_guess(
    flat_density: Callable, start: Float[Array, " parameter"]
) -> Float[Array, " parameter"]:
    """Return a diagonal inverse metric to begin warm-up with, one over the absolute gradient.

    Of a normal density it is the variance, whatever its size, over the distance from the mean.
    """
    slope = jnp.abs(jax.grad(flat_density)(start))
    return jnp.where(slope > 0, 1 / jnp.clip(slope, 1e-20, 1e20), 1.0)


def mean_steps(
    inverse_metric: Array, num_steps: Float[Array, "*unit"], step_size: Float[Array, "*unit"]
) -> Float[Array, "*unit"]:
    """Return the mean number of steps of a trajectory: as many as warm-up's, ``num_steps``; under a
    full metric as many as a quarter of a round posterior's period has, but not more than warm-up's.
    """
    if inverse_metric.ndim == num_steps.ndim + 1:
        return num_steps
    return jnp.minimum(jnp.divide(DURATION, step_size), num_steps)


def kinetic_energy(inverse_metric: Array, momentum: Float[Array, " parameter"]) -> Array:
    """Return the kinetic energy of a momentum under a diagonal or full inverse metric, nats."""
    if inverse_metric.ndim == 1:
        return (inverse_metric * momentum**2).sum() / 2
    return momentum @ inverse_metric @ momentum / 2


def estimate(
    recent: Float[np.ndarray, "chain 2 draw parameter"],
    log_diagonal: Float[np.ndarray, " parameter"],
) -> tuple[Float[np.ndarray, "parameter parameter"], float]:
    """Return the full inverse metric that minimises the Fisher divergence (Seyboldt et al. 2026),
    and by how much longer steps may be than under the diagonal.

    It is the geometric mean of the covariance of the draws and the inverse covariance of the
    gradients, both about the mean of their chain, so that chains in modes far apart do not make it
    wide. Of a normal density it is the covariance, exactly, as soon as there are more draws than
    parameters. It is computed in double precision, in units of the diagonal.

    Args:
        recent: draws, and gradients there, of the chains that are shared.
        log_diagonal: logarithm of the diagonal inverse metric of warm-up.
    """
    scale = np.exp(log_diagonal.astype(float) / 2)
    unit = np.eye(len(scale))
    parts = np.moveaxis(recent.astype(float), 1, 0) * np.stack([1 / scale, scale])[:, None, None]
    parts = (parts - parts.mean(axis=2, keepdims=True)).reshape(2, -1, len(scale))
    of_draws, of_gradients = (part.T @ part / len(part) + RIDGE * unit for part in parts)
    half, less = _power(of_gradients, 0.5), _power(of_gradients, -0.5)
    matrix = less @ _power(half @ of_draws @ half, 0.5) @ less
    variances = np.linalg.eigvalsh(matrix)
    least = max(variances[0], variances[-1] / MAX_CONDITION)
    matrix = matrix + (least - variances[0]) * unit
    matrix = (matrix + matrix.T) / 2 * scale * scale[:, None]
    return matrix.astype(recent.dtype), least**-0.5


def _power(matrix, exponent):
    """Return a power of a symmetric positive matrix."""
    sizes, directions = np.linalg.eigh(matrix)
    return directions * np.maximum(sizes, 1e-15 * sizes[-1]) ** exponent @ directions.T
