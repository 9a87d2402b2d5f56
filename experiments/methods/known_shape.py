"""The exact answer for a new task whose shape is known and whose angle is not: how well could
anyone do?

Known are the generator of ``data.two_moons`` with its noise, the normal distribution of the angles,
and the numbers by which the task was scaled, as ``data.bayes_optimum`` knows them. Given these,
points are taken as independent draws. That fifty of them made the numbers tells a little more of
the angle, which is not used.

A point's position depends on the angle, and so does its label given the position. So the likelihood
of the angle is the joint density p(x, y | angle) of the labelled points, and the position of the
test point counts, too:

    p(y* | x*, D) = sum over angles of p(angle | D) p(x*, y* | angle),

over the same of both classes.

The networks never model positions. What labels alone could tell has p(y | x, angle) in place of the
joint density, and nothing of the test point.
"""

from helpers import data

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

PRIOR_SD = np.pi / 2  # of the angle, as ``data.rotated_moons`` has it
TURNS = 6  # of the circle either way, over which the normal density is wrapped


def grid(num_angles):
    """Return angles that divide the circle, and the log of their prior probabilities."""
    angles = 2 * np.pi * np.arange(num_angles) / num_angles - np.pi
    turns = angles + 2 * np.pi * np.arange(-TURNS, TURNS + 1)[:, None]
    log_prior = logsumexp(-0.5 * (turns / PRIOR_SD) ** 2, axis=0)
    return angles, log_prior - logsumexp(log_prior)


@jax.jit
def log_densities(new, x, angles):
    """Return log p(x | y, angle) at x [task, point, 2] as scaled: [angle, class, task, point].

    The Jacobian of the scaling is left out: it is the same at all angles.
    """

    def at(angle):
        raw = data.to_raw(new._replace(angles=jnp.broadcast_to(angle, new.angles.shape)), x)
        return data.moons_log_density(raw.reshape(-1, 2)).reshape(2, *x.shape[:2])

    return jax.lax.map(at, angles)


def predict(new, sizes, num_angles, positions=True):
    """Return p(y = 1) at the test points given each task's first labels, [size, task, point].

    Args:
        positions: whether points tell of the angle by where they lie, or by their labels alone.
    """
    angles, log_prior = grid(num_angles)
    of_train, of_test = (
        np.asarray(log_densities(new, x, jnp.float32(angles)), np.float64)
        for x in (new.x_train, new.x_test)
    )
    if not positions:
        of_train, of_test = (a - logsumexp(a, axis=1, keepdims=True) for a in (of_train, of_test))
    y = np.asarray(new.y_train)
    of_labels = np.where(y == 1, of_train[:, 1], of_train[:, 0])  # [angle, task, point]
    p = []
    for size in sizes:
        log_weight = log_prior[:, None] + of_labels[..., :size].sum(axis=-1)  # [angle, task]
        of_class = logsumexp(log_weight[:, None, :, None] + of_test, axis=0)
        p.append(np.exp(of_class[1] - logsumexp(of_class, axis=0)))
    return np.array(p)
