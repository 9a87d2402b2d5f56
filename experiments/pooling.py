"""When pooling pays: number of tasks, labels per task, unequal sizes, noise, one alien task.

At every setting 20 redrawn data sets; separate networks under N(0, 1), separate networks under
the scales that cross-validation chooses most often (``attribution.py``), and the hierarchical network.
"""

from helpers import hierarchical

import fits
import jax
import jax.numpy as jnp
import numpy as np
import store

SETTINGS = {
    "seed": 3002,
    "num_redraws": 20,
    "num_tasks": [2, 5, 50],
    "num_train": [5, 15, 200],
    "noise": [0.2, 0.5],
    "sizes": [5, 15, 50, 100, 150],  # four tasks of each, in one fit and alone
    "flat_scales": [0.5, 1.0, 24.0],
    "num_samples": 150,  # of every chain: one for each flat network, two for each hierarchical one
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}
BASE = {"num_tasks": 18, "num_train": 50, "noise": 0.3}
LOG_DENSITY = hierarchical.log_density(fits.NETWORK)
LOGITS = hierarchical.logits(fits.NETWORK)


def fit(key, what, value, x, y, weight, x_test, y_test):
    """Fit the three arms at one setting; return their rows."""
    key_normal, key_scaled, key_hierarchical = jax.random.split(key, 3)
    batch = y.shape[:2]
    rows = []

    def keep(arm, p, posterior=None):
        by_task = np.round(fits.task_nll(np.asarray(p).mean(axis=1), y_test), 5).tolist()
        more = {"what": what, "value": value, "arm": arm, "task_nll": by_task}
        rows.append(fits.row(f"{what} {value}, {arm}", p, y_test, posterior, **more))

    for arm, key_arm, scales in (
        ("N(0, 1)", key_normal, (1.0, 1.0, 1.0)),
        ("chosen scales", key_scaled, tuple(SETTINGS["flat_scales"])),
    ):
        p = np.zeros((*batch, 1, y_test.shape[-1]))
        sizes = np.asarray(weight[0].sum(axis=1)).astype(int)
        for size, key_size in zip(np.unique(sizes), jax.random.split(key_arm, len(np.unique(sizes))), strict=True):
            part = np.flatnonzero(sizes == size)
            points = x[:, part, :size], y[:, part, :size]
            draws = fits.fit_flat(key_size, *points, jnp.array(scales), SETTINGS["num_samples"], chains=1).draws
            means = fits.flat_means(draws, x_test[:, part].reshape(-1, *x_test.shape[2:]))
            p[:, part] = np.asarray(means).reshape(batch[0], len(part), *means.shape[1:])
        keep(arm, np.moveaxis(p, 2, 1))

    shapes = hierarchical.shapes(fits.NETWORK, batch[1])
    labelled = fits.stack_labelled(x, y, weight)
    posterior = fits.fit_hierarchical(
        key_hierarchical, LOG_DENSITY, shapes, labelled, num_samples=SETTINGS["num_samples"]
    )
    keep("hierarchical", fits.hierarchical_means(posterior, x_test, LOGITS), posterior)
    return rows


def equal(key, what, value, **changed):
    """All tasks of one size."""
    key_data, key_fit = jax.random.split(key)
    tasks = fits.redraws(key_data, SETTINGS["num_redraws"], **{**BASE, **changed})
    weight = jnp.ones(tasks.y_train.shape)
    return fit(key_fit, what, value, tasks.x_train, tasks.y_train, weight, tasks.x_test, tasks.y_test)


def unequal(key):
    """Four tasks of each size, each scaled by its own training points, padded to the largest."""
    key_fit, *keys = jax.random.split(key, 1 + len(SETTINGS["sizes"]))
    most = max(SETTINGS["sizes"])
    parts = []
    for key_size, size in zip(keys, SETTINGS["sizes"], strict=True):
        tasks = fits.redraws(key_size, SETTINGS["num_redraws"], num_tasks=4, num_train=size)
        pad = [(0, 0), (0, 0), (0, most - size)]
        x, y = jnp.pad(tasks.x_train, [*pad, (0, 0)]), jnp.pad(tasks.y_train, pad)
        parts.append((x, y, jnp.pad(jnp.ones(tasks.y_train.shape), pad), tasks.x_test, tasks.y_test))
    joined = [jnp.concatenate(leaves, axis=1) for leaves in zip(*parts, strict=True)]
    return fit(key_fit, "unequal sizes", len(SETTINGS["sizes"]), *joined)


def stripes(key, num_points):
    """An alien task: stripes across a random direction, one label in ten wrong."""
    key_x, key_angle, key_flip = jax.random.split(key, 3)
    x = jax.random.normal(key_x, (num_points, 2))
    angle = 2 * jnp.pi * jax.random.uniform(key_angle)
    side = jnp.sin(2.5 * (x @ jnp.array([jnp.cos(angle), jnp.sin(angle)]))) > 0
    return x, (side ^ jax.random.bernoulli(key_flip, 0.1, (num_points,))).astype(jnp.int32)


def alien(key_base, key):
    """The data sets of the base setting with the last task replaced, so that the others can be compared."""
    tasks = fits.redraws(jax.random.split(key_base)[0], SETTINGS["num_redraws"], **BASE)
    key_alien, key_fit = jax.random.split(key)
    num_train = BASE["num_train"]
    x, y = jax.vmap(lambda k: stripes(k, num_train + 500))(jax.random.split(key_alien, SETTINGS["num_redraws"]))
    x_train, y_train = tasks.x_train.at[:, -1].set(x[:, :num_train]), tasks.y_train.at[:, -1].set(y[:, :num_train])
    x_test, y_test = tasks.x_test.at[:, -1].set(x[:, num_train:]), tasks.y_test.at[:, -1].set(y[:, num_train:])
    return fit(key_fit, "alien", 1, x_train, y_train, jnp.ones(y_train.shape), x_test, y_test)


def main():
    keys = iter(jax.random.split(jax.random.key(SETTINGS["seed"]), 20))
    key_base = next(keys)
    rows = equal(key_base, "base", 18)
    for what in ("num_tasks", "num_train", "noise"):
        for value in SETTINGS[what]:
            rows += equal(next(keys), what, value, **{what: value})
    rows += unequal(next(keys))
    rows += alien(key_base, next(keys))
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
