"""Preconditioned stochastic gradient Langevin dynamics (Li, Chen, Carlson and Carin 2016), in
BlackJAX's shape.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.base import SamplingAlgorithm


class PSGLDState(NamedTuple):
    """A position, and the running mean of each coordinate's squared gradient."""

    position: Any
    square: Any


def psgld(
    grad_estimator: Callable, *, memory: float = 0.99, damping: float = 1.0
) -> SamplingAlgorithm:
    """Return preconditioned Langevin dynamics (Li et al. 2016): each coordinate has its own step.

    With ``V`` the running mean of the squared gradient and ``G = 1 / (damping + sqrt(V))`` a step
    of size ``e`` is ``position + e G gradient + sqrt(2 e G) noise``. The term with the derivative
    of ``G`` is left out, as in the paper's experiments; what that costs is a bias.

    Args:
        grad_estimator: ``grad_estimator(position, minibatch)``, of the log posterior, as BlackJAX
            builds it.
        memory: share of ``V`` that is kept at each step.
        damping: in units of the gradient.

    Raises:
        ValueError: a memory outside [0, 1), or a damping that is not positive.
    """
    if not 0 <= memory < 1:
        raise ValueError(f"memory: given {memory}, expected a number from 0 to below 1")
    if not 0 < damping < np.inf:
        raise ValueError(f"damping: given {damping}, expected a positive number")

    def init(position, rng_key=None):
        del rng_key
        return PSGLDState(position, jax.tree.map(jnp.zeros_like, position))

    def step(rng_key, state, minibatch, step_size):
        slope = grad_estimator(state.position, minibatch)
        square = jax.tree.map(lambda v, g: memory * v + (1 - memory) * g**2, state.square, slope)
        leaves, structure = jax.tree.flatten(state.position)
        keys = jax.tree.unflatten(structure, list(jax.random.split(rng_key, len(leaves))))

        def move(x, g, v, key):
            rate = step_size / (damping + jnp.sqrt(v))
            return x + rate * g + jnp.sqrt(2 * rate) * jax.random.normal(key, x.shape, x.dtype)

        return PSGLDState(jax.tree.map(move, state.position, slope, square, keys), square)

    return SamplingAlgorithm(init, step)
