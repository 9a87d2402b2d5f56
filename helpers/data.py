"""Data sets, as pure functions of a key, and the best that anyone can do on them.

A moon is half a unit circle: class 0 runs along ``(cos t, sin t)``, class 1 along
``(1 - cos t, 1/2 - sin t)``, for ``t`` uniform on ``[0, pi]``, plus normal noise. So
the class probabilities at any point are known up to an integral over ``t``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int, Key
from sklearn.datasets import make_moons

CENTRES = np.array([[0.0, 0.0], [1.0, 0.5]], dtype=np.float32)
SIGNS = np.array([1.0, -1.0], dtype=np.float32)
REGIONS = ("inside", "outside", "gap")  # of a wave's test points
NODES, WEIGHTS = np.polynomial.legendre.leggauss(128)


class Points(NamedTuple):
    """Labelled points of one problem."""

    x: Float[Array, "point 2"]
    y: Int[Array, " point"]


class Tasks(NamedTuple):
    """Rotated two-moons tasks, train and test apart.

    A point of task ``t`` is ``rotation(angles[t]) @ ((raw - location[t]) / scale[t])``.
    """

    x_train: Float[Array, "task point 2"]
    y_train: Int[Array, "task point"]
    x_test: Float[Array, "task point 2"]
    y_test: Int[Array, "task point"]
    angles: Float[Array, " task"]  # radians, counter-clockwise
    location: Float[Array, "task 2"]  # mean of the raw training points
    scale: Float[Array, "task 2"]  # their standard deviation


class Wave(NamedTuple):
    """A curve measured with noise; test points by region, in the order of ``REGIONS``, the gap only if there is one."""

    x_train: Float[Array, "point 1"]  # sorted
    y_train: Float[Array, " point"]
    x_test: Float[Array, "region test 1"]
    y_test: Float[Array, "region test"]
    grid: Float[Array, "200 1"]  # from -1.5 to 1.5, for curves


def two_moons(key: Key[Array, ""], num_points: int = 1000, noise: float = 0.3) -> Points:
    """Draw labelled points of the raw generator: neither scaled nor rotated.

    Labels are fair coins and every point is independent of the others.

    Raises:
        ValueError: no points, or a noise that is negative or not finite.
    """
    _check_size("num_points", num_points)
    _check_noise(noise)
    key_label, key_arc, key_noise = jax.random.split(key, 3)
    y = jax.random.bernoulli(key_label, shape=(num_points,)).astype(jnp.int32)
    arc = jax.random.uniform(key_arc, (num_points,), maxval=jnp.pi)
    clean = jnp.asarray(CENTRES)[y] + jnp.asarray(SIGNS)[y][:, None] * _unit(arc)
    return Points(clean + noise * jax.random.normal(key_noise, (num_points, 2)), y)


def rotated_moons(
    key: Key[Array, ""], num_tasks: int = 18, num_train: int = 50, num_test: int = 50, noise: float = 0.3
) -> Tasks:
    """Draw independent two-moons tasks, each scaled and then turned by its own angle.

    Each task is scaled by the mean and standard deviation of its training points alone,
    and turned by an angle from N(0, 90 degrees).

    Raises:
        ValueError: no tasks, fewer than 2 training points or no test points, bad noise.
    """
    _check_size("num_tasks", num_tasks)
    _check_size("num_train", num_train, least=2)
    _check_size("num_test", num_test)
    _check_noise(noise)
    key_points, key_angle = jax.random.split(key)
    keys = jax.random.split(key_points, num_tasks)
    x, y = jax.vmap(lambda k: two_moons(k, num_train + num_test, noise))(keys)
    angles = jnp.pi / 2 * jax.random.normal(key_angle, (num_tasks,))
    location, scale = x[:, :num_train].mean(axis=1), x[:, :num_train].std(axis=1)
    x = jax.vmap(_to_task)(x, angles, location, scale)
    return Tasks(x[:, :num_train], y[:, :num_train], x[:, num_train:], y[:, num_train:], angles, location, scale)


def source_moons() -> Tasks:
    """Rebuild the 18 tasks of Wiecki (2018): numpy seed 31, 50 + 50 points, noise 0.3.

    As published, each task is scaled by all its 100 points, test points included.
    """
    rng = np.random.RandomState(31)
    x, y, angles = [], [], []
    for _ in range(18):
        points, labels = make_moons(n_samples=100, noise=0.3, random_state=rng)
        x.append(points.astype(np.float32))
        y.append(labels)
        angles.append(-np.radians(rng.randn() * 90.0))  # the source multiplies from the right
    x, y, angles = jnp.array(np.stack(x)), jnp.array(np.stack(y), dtype=jnp.int32), jnp.array(angles, dtype=jnp.float32)
    location, scale = x.mean(axis=1), x.std(axis=1)
    x = jax.vmap(_to_task)(x, angles, location, scale)
    return Tasks(x[:, :50], y[:, :50], x[:, 50:], y[:, 50:], angles, location, scale)


def fresh_moons() -> Tasks:
    """Return the sources' tasks with 1000 fresh test points each, the same at every call: the book scores on these."""
    return redraw_test(jax.random.key(313), source_moons(), 1000)


def fisher_source_moons(key: Key[Array, ""]) -> Tasks:
    """Rebuild the points of the PyMC3 notebook on SGFS, as one task: 1000 moons of seed 0, noise 0.2, half to train.

    The notebook's split has no seed; here the key makes it. Only training points set the scale.
    """
    raw, y = make_moons(n_samples=1000, noise=0.2, random_state=0)
    order = np.asarray(jax.random.permutation(key, 1000))
    raw, y = jnp.asarray(raw[order], jnp.float32), jnp.asarray(y[order], jnp.int32)
    location, scale = raw[:500].mean(axis=0), raw[:500].std(axis=0)
    x = _to_task(raw, jnp.float32(0.0), location, scale)
    parts = x[:500], y[:500], x[500:], y[500:], jnp.float32(0.0), location, scale
    return Tasks(*(part[None] for part in parts))


def redraw_test(key: Key[Array, ""], tasks: Tasks, num_test: int = 1000, noise: float = 0.3) -> Tasks:
    """Return the same tasks with fresh test points, enough to score a method without much error.

    Raises:
        ValueError: no test points, or a noise that is negative or not finite.
    """
    _check_size("num_test", num_test)
    keys = jax.random.split(key, tasks.angles.shape[0])
    raw, y = jax.vmap(lambda k: two_moons(k, num_test, noise))(keys)
    x = jax.vmap(_to_task)(raw, tasks.angles, tasks.location, tasks.scale)
    return tasks._replace(x_test=x, y_test=y)


def first_points(num_points: int, sizes: Sequence[int]) -> Bool[Array, "task point"]:
    """Mark the first ``sizes[t]`` of ``num_points`` points of task ``t``: tasks of unequal size.

    Raises:
        ValueError: a size below 0 or above ``num_points``.
    """
    sizes = np.asarray(sizes)
    whole = sizes.ndim == 1 and sizes.size > 0 and np.issubdtype(sizes.dtype, np.integer)
    if not whole or (sizes < 0).any() or (sizes > num_points).any():
        raise ValueError(f"sizes: given {sizes.tolist()}, expected one integer per task from 0 to {num_points}")
    return jnp.arange(num_points)[None, :] < jnp.asarray(sizes)[:, None]


def moons_log_density(x: Float[Array, "point 2"], noise: float = 0.3) -> Float[Array, "2 point"]:
    """Return the generator's exact log p(x | y) at raw points, for y = 0 and 1.

    The density of a class is the noise's normal density averaged over its arc, here by 128
    Gauss-Legendre nodes (relative error below 1e-4 for a noise of 0.05 or more).

    Raises:
        ValueError: a noise below 0.05, where the arc would need more nodes.
    """
    if not 0.05 <= noise < np.inf:
        raise ValueError(f"noise: given {noise}, expected a finite number of 0.05 or more")
    arc = _unit(jnp.asarray(np.pi / 2 * (NODES + 1), dtype=x.dtype))
    log_weights = jnp.asarray(np.log(WEIGHTS / 2), dtype=x.dtype)
    curves = jnp.asarray(CENTRES)[:, None, :] + jnp.asarray(SIGNS)[:, None, None] * arc[None]

    def log_density(curve):
        squared = ((x[:, None, :] - curve[None, :, :]) ** 2).sum(axis=-1)
        return logsumexp(log_weights[None, :] - 0.5 * squared / noise**2, axis=1) - np.log(2 * np.pi * noise**2)

    return jax.lax.map(log_density, curves)


def moons_probability(x: Float[Array, "point 2"], noise: float = 0.3) -> Float[Array, " point"]:
    """Return the generator's exact p(y = 1 | x) at raw points; the classes are equally frequent."""
    first, second = moons_log_density(x, noise)
    return jax.nn.sigmoid(second - first)


def bayes_optimum(tasks: Tasks, x: Float[Array, "task point 2"], noise: float = 0.3) -> Float[Array, "task point"]:
    """Return the exact p(y = 1 | x) at points given in each task's own coordinates.

    No classifier can have a better expected accuracy, NLL or Brier score.
    """
    return jax.lax.map(lambda points: moons_probability(points, noise), to_raw(tasks, x))


def to_raw(tasks: Tasks, x: Float[Array, "task point 2"]) -> Float[Array, "task point 2"]:
    """Turn and scale points of each task back to the generator's coordinates."""
    return jax.vmap(_to_raw)(x, tasks.angles, tasks.location, tasks.scale)


def spiral(key: Key[Array, ""], points_per_class: int = 100, noise: float = 0.2, num_classes: int = 3) -> Points:
    """Draw arms of a spiral, one a class: radii evenly from 0 to 1/2, angle 4 y + 8 r plus N(0, noise), in radians.

    A point is ``r (sin, cos)`` of its angle, so arm y starts at angle 4 y and turns by 4.

    Raises:
        ValueError: no points or classes, a noise that is negative or not finite.
    """
    _check_size("points_per_class", points_per_class)
    _check_size("num_classes", num_classes)
    _check_noise(noise)
    radius = jnp.tile(jnp.linspace(0.0, 0.5, points_per_class), num_classes)
    y = jnp.repeat(jnp.arange(num_classes), points_per_class)
    angle = 4.0 * y.astype(radius.dtype) + 8 * radius + noise * jax.random.normal(key, radius.shape)
    return Points(radius[:, None] * _unit(jnp.pi / 2 - angle), y)


def wave_mean(x: Float[Array, "*point"]) -> Float[Array, "*point"]:
    """Return the curve x sin 5x that ``wave`` measures."""
    return x * jnp.sin(5 * x)


def wave(
    key: Key[Array, ""],
    num_train: int = 40,
    noise: float = 0.1,
    *,
    num_test: int = 200,
    gap: tuple[float, float] | None = None,
) -> Wave:
    """Measure ``wave_mean`` with normal noise at points uniform on [-1, 1], less the gap if there is one.

    Test points: ``inside`` where training points may lie, ``outside`` on both sides of them as far
    as -1.5 and 1.5, and, if there is a gap, within ``gap``.

    Raises:
        ValueError: no points, a noise that is negative or not finite, a gap that is not inside (-1, 1).
    """
    _check_size("num_train", num_train)
    _check_size("num_test", num_test)
    _check_noise(noise)
    low, high = (1.0, 1.0) if gap is None else gap
    if gap is not None and not -1 < low < high < 1:
        raise ValueError(f"gap: given {gap}, expected two increasing numbers between -1 and 1")
    key_train, key_test, key_noise_train, key_noise_test = jax.random.split(key, 4)

    def inside(u):
        """Spread numbers from [0, 1] over [-1, 1] less the gap."""
        x = -1 + (2 - (high - low)) * u
        return jnp.where(x < low, x, x + (high - low))

    def outside(u):
        return jnp.where(u < 0.5, -1.5 + u, 0.5 + u)

    x_train = inside(jnp.sort(jax.random.uniform(key_train, (num_train,))))
    u = jax.random.uniform(key_test, (3, num_test))
    x_test = jnp.stack([inside(u[0]), outside(u[1]), low + (high - low) * u[2]])[: 2 if gap is None else 3]
    y_train = wave_mean(x_train) + noise * jax.random.normal(key_noise_train, x_train.shape)
    y_test = wave_mean(x_test) + noise * jax.random.normal(key_noise_test, x_test.shape)
    return Wave(x_train[:, None], y_train, x_test[..., None], y_test, jnp.linspace(-1.5, 1.5, 200)[:, None])


def _unit(angle):
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


def _rotation(angle):
    return jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])


def _to_task(raw, angle, location, scale):
    return ((raw - location[None, :]) / scale[None, :]) @ _rotation(angle).T


def _to_raw(x, angle, location, scale):
    return (x @ _rotation(angle)) * scale[None, :] + location[None, :]


def _check_size(name, size, least=1):
    if not np.isfinite(size) or size != int(size) or size < least:
        raise ValueError(f"{name}: given {size}, expected an integer of {least} or more")


def _check_noise(noise):
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise: given {noise}, expected a finite number of 0 or more")
