"""Data sets, as pure functions of a key, and the best that anyone can do on them.

A moon is half a unit circle: class 0 runs along ``(cos t, sin t)``, class 1 along ``(1 - cos t, 1/2
- sin t)``, for ``t`` uniform on ``[0, pi]``, plus normal noise. So class probabilities are known up
to an integral over ``t``.

    tasks = data.rotated_moons(jax.random.key(1), num_tasks=18, num_train=50)
    p = data.bayes_optimum(tasks, tasks.x_test)
"""

from helpers import checks

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, Key
from sklearn.datasets import make_moons

CENTRES = np.array([[0.0, 0.0], [1.0, 0.5]], dtype=np.float32)
SIGNS = np.array([1.0, -1.0], dtype=np.float32)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(128)


class Points(NamedTuple):
    """Labelled points of one problem."""

    x: Float[Array, "point 2"]  # coordinates
    y: Int[Array, " point"]  # class, 0 or 1


class Tasks(NamedTuple):
    """Rotated moons; a point of task ``t`` is ``rotation(angles[t]) @ ((raw - location[t]) /
    scale[t])``.
    """

    x_train: Float[Array, "task point 2"]
    y_train: Int[Array, "task point"]
    x_test: Float[Array, "task point 2"]
    y_test: Int[Array, "task point"]
    angles: Float[Array, " task"]  # radians, counter-clockwise
    location: Float[Array, "task 2"]  # mean of the raw training points
    scale: Float[Array, "task 2"]  # their standard deviation


def two_moons(key: Key[Array, ""], num_points: int = 1000, noise: float = 0.3) -> Points:
    """Draw independent points of the raw generator, neither scaled nor rotated; labels are fair
    coins.

    ``noise`` is the standard deviation of the normal noise of each coordinate.

    ValueError: no points, or a noise that is negative or not finite.
    """
    checks.count(num_points=num_points)
    checks.number(noise=noise, closed=True)
    key_label, key_arc, key_noise = jax.random.split(key, 3)
    y = jax.random.bernoulli(key_label, shape=(num_points,)).astype(jnp.int32)
    arc = jax.random.uniform(key_arc, (num_points,), maxval=jnp.pi)
    clean = jnp.asarray(CENTRES)[y] + jnp.asarray(SIGNS)[y][:, None] * unit(arc)
    return Points(clean + noise * jax.random.normal(key_noise, (num_points, 2)), y)


def rotated_moons(
    key: Key[Array, ""],
    num_tasks: int = 18,
    num_train: int = 50,
    num_test: int = 50,
    noise: float = 0.3,
) -> Tasks:
    """Draw independent tasks, each scaled by its training points alone, then turned by an angle
    from N(0, 90 degrees).

    Args:
        num_tasks: how many; the leading axis of all that is returned.
        num_train: training points of each task.
        num_test: test points of each task.
        noise: standard deviation of each raw coordinate's noise.

    ValueError: no tasks, fewer than 2 training points, no test points, or a noise that is negative
        or not finite.
    """
    checks.count(num_tasks=num_tasks, num_test=num_test)
    checks.count(least=2, num_train=num_train)
    checks.number(noise=noise, closed=True)
    key_points, key_angle = jax.random.split(key)
    keys = jax.random.split(key_points, num_tasks)
    x, y = jax.vmap(lambda k: two_moons(k, num_train + num_test, noise))(keys)
    angles = jnp.pi / 2 * jax.random.normal(key_angle, (num_tasks,))
    return _tasks(x, y, angles, num_train, slice(num_train))


def source_moons() -> Tasks:
    """Rebuild the 18 tasks of Wiecki (2018): NumPy's seed 31, 50 training and 50 test points a
    task, noise 0.3; each task is scaled by all of its points, as published.
    """
    rng = np.random.RandomState(31)
    x, y, angles = [], [], []
    for _ in range(18):
        points, labels = make_moons(n_samples=100, noise=0.3, random_state=rng)
        x.append(points.astype(np.float32))
        y.append(labels)
        angles.append(-np.radians(rng.randn() * 90.0))  # the source multiplies from the right
    x, y, angles = (
        jnp.array(np.stack(x)),
        jnp.array(np.stack(y), dtype=jnp.int32),
        jnp.array(angles, dtype=jnp.float32),
    )
    return _tasks(x, y, angles, 50, slice(None))


def _tasks(raw, y, angles, num_train, scaled_by):
    location, scale = raw[:, scaled_by].mean(axis=1), raw[:, scaled_by].std(axis=1)
    x = jax.vmap(to_task)(raw, angles, location, scale)
    return Tasks(
        x[:, :num_train],
        y[:, :num_train],
        x[:, num_train:],
        y[:, num_train:],
        angles,
        location,
        scale,
    )


def fresh_moons() -> Tasks:
    """Return the sources' tasks with 1000 fresh test points each, the same at every call: the book
    scores on these.
    """
    return redraw_test(jax.random.key(313), source_moons(), 1000)


def redraw_test(
    key: Key[Array, ""], tasks: Tasks, num_test: int = 1000, noise: float = 0.3
) -> Tasks:
    """Return the same tasks with fresh test points, enough to score a method without much error.

    Args:
        tasks: what the angles, the scaling and the training points are taken from.
        num_test: test points of each task.
        noise: standard deviation of each raw coordinate's noise.

    ValueError: no test points, or a noise that is negative or not finite.
    """
    checks.count(num_test=num_test)
    keys = jax.random.split(key, tasks.angles.shape[0])
    raw, y = jax.vmap(lambda k: two_moons(k, num_test, noise))(keys)
    return tasks._replace(
        x_test=jax.vmap(to_task)(raw, tasks.angles, tasks.location, tasks.scale), y_test=y
    )


def moons_log_density(x: Float[Array, "point 2"], noise: float = 0.3) -> Float[Array, "2 point"]:
    """Return the generator's exact log p(x | y) at raw points, in nats, for y = 0 and 1.

    It is the noise's normal density averaged over the class's arc, by 128 Gauss-Legendre nodes:
    relative error below 1e-4.

    ValueError: a noise below 0.05, where the arc would need more nodes; no points, coordinates that
        are not two or not finite.
    """
    checks.number(0.05, noise=noise, closed=True)
    x = jnp.asarray(checks.array("x", x, ("point", 2)))
    arc = unit(jnp.asarray(np.pi / 2 * (NODES + 1), dtype=x.dtype))
    log_weights = jnp.asarray(np.log(WEIGHTS / 2), dtype=x.dtype)
    curves = jnp.asarray(CENTRES)[:, None, :] + jnp.asarray(SIGNS)[:, None, None] * arc[None]

    def log_density(curve):
        squared = ((x[:, None, :] - curve[None, :, :]) ** 2).sum(axis=-1)
        return logsumexp(log_weights[None, :] - 0.5 * squared / noise**2, axis=1) - np.log(
            2 * np.pi * noise**2
        )

    return jax.lax.map(log_density, curves)


def moons_probability(x: Float[Array, "point 2"], noise: float = 0.3) -> Float[Array, " point"]:
    """Return the generator's exact p(y = 1 | x) at raw points; the classes are equally frequent.

    ValueError: a noise below 0.05.
    """
    first, second = moons_log_density(x, noise)
    return jax.nn.sigmoid(second - first)


def bayes_optimum(
    tasks: Tasks, x: Float[Array, "task point 2"], noise: float = 0.3
) -> Float[Array, "task point"]:
    """Return the exact p(y = 1 | x) at points in each task's own coordinates: nobody's expected
    scores are better.

    ValueError: a noise below 0.05.
    """
    return jax.lax.map(lambda points: moons_probability(points, noise), to_raw(tasks, x))


def to_raw(tasks: Tasks, x: Float[Array, "task point 2"]) -> Float[Array, "task point 2"]:
    """Turn and scale points of each task back to the generator's coordinates.

    ValueError: another number of tasks, no points, coordinates that are not two or not finite.
    """
    x = checks.array("x", x, (len(tasks.angles), "point", 2))

    def one(x, angle, location, scale):
        return (x @ _rotation(angle)) * scale[None, :] + location[None, :]

    return jax.vmap(one)(x, tasks.angles, tasks.location, tasks.scale)


def to_task(
    raw: Float[Array, "point 2"], angle: Array, location: Array, scale: Array
) -> Float[Array, "point 2"]:
    """Scale raw points and turn them, as one task of ``Tasks``.

    Args:
        angle: in radians, counter-clockwise, no axis.
        location: what is subtracted, [2].
        scale: what is divided by after that, [2], positive.

    ValueError: shapes that do not fit, no points, numbers that are not finite, a scale that is not
        positive.
    """
    checks.array("raw", raw, ("point", 2))
    checks.array("angle", angle, ())
    checks.array("location", location, (2,))
    checks.array("scale", scale, (2,), low=np.finfo(np.float32).tiny)
    return ((raw - location[None, :]) / scale[None, :]) @ _rotation(angle).T


def unit(angle: Float[Array, "*point"]) -> Float[Array, "*point 2"]:
    """Return the points of the unit circle at angles in radians."""
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


def _rotation(angle):
    return jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])
