"""The tasks from which priors are learnt, and those on which they are tried, by the keys of their
names.

A redraw is a number, or "sources": the sources' own tasks as training tasks, as the page has them.
"""

from helpers import common, data, densities

import jax
import jax.numpy as jnp
import numpy as np

SEED = 3020
NUM_TASKS, NUM_LABELS, NUM_TEST = 18, 50, 500
ELSEWHERE = ("noise 0.6", "mirrored", "clouds", "spirals")
MORE = 400  # labels of "moons, more labels"
draw_moons = jax.jit(data.rotated_moons, static_argnums=range(1, 5))


def training(redraw):
    """Return the tasks from which a prior is learnt."""
    if redraw == "sources":
        return data.source_moons()
    return draw_moons(common.key(SEED, "training", redraw), NUM_TASKS, NUM_LABELS, 2, 0.3)


def new(kind, redraw):
    """Return tasks never seen; those of other kinds are turned, scaled and sized as the moons."""
    moons = draw_moons(common.key(SEED, "new", redraw), NUM_TASKS, NUM_LABELS, NUM_TEST, 0.3)
    key, num_points = common.key(SEED, kind, redraw), NUM_LABELS + NUM_TEST
    if kind == "moons, more labels":
        further = data.redraw_test(key, moons, MORE - NUM_LABELS)
        x, y = (jnp.concatenate(pair, axis=1) for pair in zip(moons[:2], further[2:4], strict=True))
        return moons._replace(x_train=x, y_train=y)
    if kind == "noise 0.6":
        return draw_moons(key, NUM_TASKS, NUM_LABELS, NUM_TEST, 0.6)
    if kind == "mirrored":
        mirror = jnp.array([-1.0, 1.0])
        return moons._replace(x_train=moons.x_train * mirror, x_test=moons.x_test * mirror)
    if kind in ("clouds", "spirals"):
        x, y = clouds(key, num_points) if kind == "clouds" else spirals(key, num_points)
        return scaled(x, y, moons)
    return moons


def clouds(key, num_points):
    """Two round clouds: the best boundary is straight."""
    key_y, key_x = jax.random.split(key)
    y = jax.random.bernoulli(key_y, shape=(NUM_TASKS, num_points)).astype(jnp.int32)
    centres = jnp.array([[-1.0, 0.0], [1.0, 0.0]])
    return centres[y] + jax.random.normal(key_x, (NUM_TASKS, num_points, 2)), y


def spirals(key, num_points):
    """Two arms of a spiral, which wind the way the moons do."""
    key_y, key_r, key_x = jax.random.split(key, 3)
    y = jax.random.bernoulli(key_y, shape=(NUM_TASKS, num_points)).astype(jnp.int32)
    radius = jax.random.uniform(key_r, (NUM_TASKS, num_points), minval=0.2)
    x = radius[..., None] * data.unit(4.0 * radius + jnp.pi * y)
    return x + 0.08 * jax.random.normal(key_x, x.shape), y


def scaled(x, y, moons):
    """Scale points by the first ones of their task and turn them by its angle."""
    first = x[:, :NUM_LABELS]
    x = jax.vmap(data.to_task)(x, moons.angles, first.mean(axis=1), first.std(axis=1))
    (x, x_test), (y, y_test) = ((a[:, :NUM_LABELS], a[:, NUM_LABELS:]) for a in (x, y))
    return moons._replace(x_train=x, y_train=y, x_test=x_test, y_test=y_test)


def first_labels(new, sizes):
    """Return every task with its first labels seen, leading axes [size, task]."""
    seen = np.arange(new.y_train.shape[1]) < np.array(sizes)[:, None, None]
    observed = densities.observe(new.x_train, new.y_train)
    every = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(sizes), *a.shape)), observed)
    return every._replace(weight=jnp.broadcast_to(jnp.float32(seen), every.y.shape))
