"""The data of the source of stochastic gradient Fisher scoring."""

from helpers.data import Tasks, to_task

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from sklearn.datasets import make_moons


def fisher_source_moons(key: Key[Array, ""]) -> Tasks:
    """Rebuild the points of the PyMC3 notebook on SGFS: 1000 moons of seed 0, noise 0.2, one task.

    Half train. The notebook's split has no seed; here the key makes it. Only training points set
    the scale.
    """
    raw, y = make_moons(n_samples=1000, noise=0.2, random_state=0)
    order = np.asarray(jax.random.permutation(key, 1000))
    raw, y = jnp.asarray(raw[order], jnp.float32), jnp.asarray(y[order], jnp.int32)
    location, scale = raw[:500].mean(axis=0), raw[:500].std(axis=0)
    x = to_task(raw, jnp.float32(0.0), location, scale)
    parts = x[:500], y[:500], x[500:], y[500:], jnp.float32(0.0), location, scale
    return Tasks(*(part[None] for part in parts))
