"""What the page on minibatches and its experiments share: the source's data, and schedules of step
sizes.
"""

from helpers.data import Tasks, to_task

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from sklearn.datasets import make_moons


def fisher_source_moons(key: Key[Array, ""]) -> Tasks:
    """Rebuild the points of the PyMC3 notebook on SGFS, as one task: 1000 moons of seed 0, noise
    0.2, half to train.

    The notebook's split has no seed; here the key makes it. Only training points set the scale.
    """
    raw, y = make_moons(n_samples=1000, noise=0.2, random_state=0)
    order = np.asarray(jax.random.permutation(key, 1000))
    raw, y = jnp.asarray(raw[order], jnp.float32), jnp.asarray(y[order], jnp.int32)
    location, scale = raw[:500].mean(axis=0), raw[:500].std(axis=0)
    x = to_task(raw, jnp.float32(0.0), location, scale)
    parts = x[:500], y[:500], x[500:], y[500:], jnp.float32(0.0), location, scale
    return Tasks(*(part[None] for part in parts))


def cyclical(first: float, length: int) -> Callable[[Array], Array]:
    """Return step sizes that fall from ``first`` to 0 as half a cosine every ``length`` steps
    (Zhang et al. 2020).
    """
    return lambda step: first / 2 * (1 + jnp.cos(jnp.pi * (step % length) / length))


def decaying(first: float, offset: float = 1000.0, power: float = 0.55) -> Callable[[Array], Array]:
    """Return ``first (1 + t / offset)^-power``: infinite sum, finite sum of squares (Welling and
    Teh 2011).

    ValueError: a power of 1/2 or less, or above 1, for which one of the two sums fails.
    """
    if not 0.5 < power <= 1:
        raise ValueError(f"power: given {power}, expected a number above 0.5, at most 1")
    return lambda step: first * (1 + step / offset) ** -power
