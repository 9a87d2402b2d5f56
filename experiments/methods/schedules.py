"""Step sizes by step."""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array


def cyclical(first: float, length: int) -> Callable[[Array], Array]:
    """Return steps that fall to 0 as half a cosine every ``length`` (Zhang et al. 2020)."""
    return lambda step: first / 2 * (1 + jnp.cos(jnp.pi * (step % length) / length))


def decaying(first: float, offset: float = 1000.0, power: float = 0.55) -> Callable[[Array], Array]:
    """Return ``first (1 + t / offset)^-power``, its squares summable (Welling and Teh 2011).

    ValueError: a power of 1/2 or less, or above 1, for which one of the two sums fails.
    """
    if not 0.5 < power <= 1:
        raise ValueError(f"power: given {power}, expected a number above 0.5, at most 1")
    return lambda step: first * (1 + step / offset) ** -power
