"""The posterior that all methods are asked for: six tasks, a flat network each; and what is
compared of it.
"""

from helpers import common, data, densities, networks
from helpers.common import take

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

NETWORK = networks.MLP()
SHAPES = networks.parameter_shapes(NETWORK, 2)
SIZE = 40  # weights
OF_LABELS = densities.label_log_likelihood(NETWORK)
NUM_TASKS = 6
NUM_TUNING = 3  # tasks on which settings are chosen
NUM_TEST = 200  # test points of a task at which predictions are compared; all 1000 serve for scores
# points on a circle far from the data, whose coordinates have a standard deviation of 1
NUM_FAR, RADIUS = 32, 6.0
NUM_SPREAD = 20  # test points at which the distribution of p over draws is compared
LEVELS = (np.arange(100) + 0.5) / 100  # of its quantiles
PRIOR_SCALES = (1.0, 1.0, 1.0)


class Problem(NamedTuple):
    """Tasks with their own posterior each, leading axis [task]."""

    observed: densities.Observed
    x: Float[Array, "task point 2"]  # the test points, then the far ones
    y: Int[Array, "task test"]


def tasks(kind: str) -> data.Tasks:
    """Return the sources' first six tasks; for tuning, three alike of another key.

    ValueError: another kind.
    """
    if kind not in ("ladder", "tuning"):
        raise ValueError(f"kind: given {kind!r}, expected 'ladder' or 'tuning'")
    if kind == "ladder":
        return take(data.fresh_moons(), np.s_[:NUM_TASKS])
    return data.rotated_moons(common.key(9001, "tuning tasks"), NUM_TUNING, 50, 1000)


@cache
def problem(kind: str = "ladder") -> Problem:
    """Return what the networks see, and where they are asked. ValueError: as ``tasks``."""
    drawn = tasks(kind)
    angles = jnp.linspace(0, 2 * jnp.pi, NUM_FAR, endpoint=False)
    far = RADIUS * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)
    far = jnp.broadcast_to(far, (len(drawn.x_test), *far.shape))
    x = jnp.concatenate([drawn.x_test, far], axis=1)
    return Problem(densities.observe(drawn.x_train, drawn.y_train, PRIOR_SCALES), x, drawn.y_test)


def params_of(vector: Float[Array, "*batch 40"]) -> dict:
    """Return the network's parameters of a vector in ``ravel_pytree``'s order, any precision."""
    sizes, found, begin = ((2, 5), (5, 5), (5, 1)), {}, 0
    for layer, shape in enumerate(sizes):
        end = begin + shape[0] * shape[1]
        kernel = vector[..., begin:end].reshape(*vector.shape[:-1], *shape)
        found[f"Dense_{layer}"], begin = {"kernel": kernel}, end
    return {"params": found}


def vector_of(params: dict) -> Float[Array, "*batch 40"]:
    """Return the vector of which ``params_of`` makes these parameters, leading axes [*batch]."""
    kernels = [params["params"][f"Dense_{layer}"]["kernel"] for layer in range(3)]
    return jnp.concatenate([kernel.reshape(*kernel.shape[:-2], -1) for kernel in kernels], axis=-1)


def log_prior(vector: Float[Array, " 40"]) -> Float[Array, ""]:
    """Log density of N(0, 1) on every weight."""
    return -0.5 * (vector**2).sum() - SIZE / 2 * np.log(2 * np.pi)


def log_likelihood(vector: Float[Array, " 40"], task: densities.Observed) -> Float[Array, ""]:
    """Log likelihood of a task's labels."""
    return OF_LABELS(params_of(vector), task).sum()


def log_density(vector: Float[Array, " 40"], task: densities.Observed) -> Float[Array, ""]:
    """Log posterior of a task's network, up to a constant, as ``densities.flat_log_density``."""
    return log_prior(vector) + log_likelihood(vector, task)


def logits(vector: Float[Array, " 40"], x: Float[Array, "point 2"]) -> Float[Array, " point"]:
    """Logits of one network."""
    return NETWORK.apply(params_of(vector), x)


@jax.jit
def probabilities(
    vectors: Float[Array, "draw 40"], x: Float[Array, "point 2"]
) -> Float[Array, "draw point"]:
    """Return p of every draw, one draw in memory at a time."""
    return jax.lax.map(lambda vector: jax.nn.sigmoid(logits(vector, x)), vectors)


def compared(p: Float[np.ndarray, "*lead point"]) -> Float[np.ndarray, "*lead kept"]:
    """Keep the points at which predictions are compared: some test points, and all far ones."""
    return np.concatenate([p[..., :NUM_TEST], p[..., -NUM_FAR:]], axis=-1)


def rounded(values: np.ndarray, digits: int = 5) -> list:
    """Return numbers for JSON."""
    return np.asarray(values, np.float64).round(digits).tolist()
