"""A curve measured with noise: the data of the pages on regression and on variational inference."""

from helpers import checks

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

REGIONS = ("inside", "outside", "gap")  # of the test points


class Wave(NamedTuple):
    """Measurements; test points by region as in ``REGIONS``, the gap only if there is one."""

    x_train: Float[Array, "point 1"]  # sorted
    y_train: Float[Array, " point"]
    x_test: Float[Array, "region test 1"]
    y_test: Float[Array, "region test"]
    grid: Float[Array, "200 1"]  # from -1.5 to 1.5, for curves


def wave_mean(x: Float[Array, "*point"]) -> Float[Array, "*point"]:
    """Return the curve x sin 5x that ``wave`` measures."""
    return x * jnp.sin(5 * x)


def wave(
    key: Key[Array, ""],
    num_train: int = 40,
    noise: float = 0.1,
    *,
    num_test: int = 200,
    gap: tuple | None = None,
) -> Wave:
    """Measure ``wave_mean`` with normal noise at uniform points on [-1, 1] less a gap (low, high).

    Test points: ``inside`` where training points may lie, ``outside`` on both sides of them as far
    as -1.5 and 1.5, and, if there is a gap, within ``gap``.

    ValueError: no points, a noise that is negative or not finite, a gap that is not inside (-1, 1).
    """
    checks.count(num_train=num_train, num_test=num_test)
    checks.number(noise=noise, closed=True)
    low, high = (1.0, 1.0) if gap is None else gap
    if gap is not None and not -1 < low < high < 1:
        raise ValueError(f"gap: given {gap}, expected two increasing numbers between -1 and 1")
    key_train, key_test, key_noise_train, key_noise_test = jax.random.split(key, 4)

    def inside(u):
        """Spread numbers from [0, 1] over [-1, 1] less the gap."""
        x = -1 + (2 - (high - low)) * u
        return jnp.where(x < low, x, x + (high - low))

    x_train = inside(jnp.sort(jax.random.uniform(key_train, (num_train,))))
    u = jax.random.uniform(key_test, (3, num_test))
    outside = jnp.where(u[1] < 0.5, -1.5 + u[1], 0.5 + u[1])
    regions = [inside(u[0]), outside, low + (high - low) * u[2]]
    x_test = jnp.stack(regions)[: 2 if gap is None else 3]
    y_train = wave_mean(x_train) + noise * jax.random.normal(key_noise_train, x_train.shape)
    y_test = wave_mean(x_test) + noise * jax.random.normal(key_noise_test, x_test.shape)
    grid = jnp.linspace(-1.5, 1.5, 200)[:, None]
    return Wave(x_train[:, None], y_train, x_test[..., None], y_test, grid)
