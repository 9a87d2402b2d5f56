"""Arms of a spiral, their redraws by name, the network that fits them, and points far from them."""

from helpers import checks, common, data, networks
from helpers.data import Points, unit

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

# Those of the results ``svi/spiral`` and ``svi/spiral_references``.
SETTINGS = {
    "seed": 5001,
    "points_per_class": 100,
    "test_per_class": 1000,
    "held_out": 0.2,
    "far": 3.0,  # radius of the circle on which entropy is far from the data
    "grid": 5,  # points to a side, near the data, where predictions are compared
}
NETWORK = networks.MLP((100,), nn.relu, True, 3)


def spiral(
    key: Key[Array, ""], points_per_class: int = 100, noise: float = 0.2, num_classes: int = 3
) -> Points:
    """Draw arms of a spiral, a class each: radii up to 1/2, angle 4 y + 8 r + N(0, noise), radians.

    A point is ``r (sin, cos)`` of its angle, so arm y starts at angle 4 y and turns by 4.

    ValueError: no points or classes, a noise that is negative or not finite.
    """
    checks.count(points_per_class=points_per_class, num_classes=num_classes)
    checks.number(noise=noise, closed=True)
    radius = jnp.tile(jnp.linspace(0.0, 0.5, points_per_class), num_classes)
    y = jnp.repeat(jnp.arange(num_classes), points_per_class)
    angle = 4.0 * y.astype(radius.dtype) + 8 * radius + noise * jax.random.normal(key, radius.shape)
    return Points(radius[:, None] * unit(jnp.pi / 2 - angle), y)


def problem(redraw: int) -> tuple[data.Points, data.Points, jax.Array]:
    """Return training points, fresh points, which training points are held out (temperature)."""
    train = _spiral(common.key(SETTINGS["seed"], "train", redraw), SETTINGS["points_per_class"])
    test = _spiral(common.key(SETTINGS["seed"], "test", redraw), SETTINGS["test_per_class"])
    size = train.y.size
    order = jax.random.permutation(common.key(SETTINGS["seed"], "split", redraw), size)
    return train, test, order < SETTINGS["held_out"] * size


_spiral = jax.jit(spiral, static_argnums=1)


def far_points(count):
    """Points of the circle far from the data."""
    angles = jnp.linspace(0, 2 * jnp.pi, count, endpoint=False)
    return SETTINGS["far"] * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)
