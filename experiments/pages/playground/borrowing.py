"""Six tasks of fifty labels each, turned by a little, at some scales of the group, or with the
scales learnt.

Tasks and model are those of the playground's six tasks of ten labels: a weight is its mean plus the
scale times an offset, all of them N(0, 1), and a scale that is learnt is half-normal, one a layer.
The first task has its labels, or none.
"""

from helpers import (
    common,
    data,
    densities,
    diagnostics,
    hierarchical,
    mcmc,
    networks,
    plots,
    predict,
)
from helpers.common import take

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import runs

SETTINGS = {
    "seed": 3031,
    "angles": [-25, 10, -5, 20, -15, 15],  # degrees, by task
    "num_points": 50,
    "sds": [0.01, 0.03, 0.1, 0.3, 1, 3],
    "num_chains": 8,
    "num_warmup": 1000,
    "num_samples": 1600,
    "start_scale": 0.3,
    "predict_every": 8,
    "side": 13,  # points of the grid's
}
NETWORK = networks.MLP()
LOG_DENSITY, LOGITS = hierarchical.log_density(NETWORK), hierarchical.logits(NETWORK)
AT = (1, 4, 6, 8, 11)  # of a side of the grid, points that are compared
SMALL = {"sd": 0.3, "without": False}


def units():
    """A posterior at each scale, with the first task's labels and without them."""
    return {
        f"{sd}{', task 1 without labels' * without}": {"sd": sd, "without": without}
        for without in (False, True)
        for sd in (*SETTINGS["sds"], "learnt")
    }


def tasks():
    """Return points [task, point, 2], to hundredths, and labels [task, point]."""
    angles = jnp.radians(jnp.asarray(SETTINGS["angles"], float))
    keys = jax.random.split(common.key(SETTINGS["seed"], "points"), len(angles))
    raw, y = jax.vmap(lambda key: data.two_moons(key, SETTINGS["num_points"]))(keys)
    return jax.vmap(data.to_task)(raw, angles, raw.mean(axis=1), raw.std(axis=1)).round(2), y


def unit(sd, without):
    """Sample; keep p on the grid, [chain, draw, task, point], and what diagnostics need."""
    points, labels = tasks()
    num_tasks = len(labels)
    observed = densities.observe(
        points, labels, weight=jnp.ones(labels.shape).at[0].set(0.0 if without else 1.0)
    )
    shapes = hierarchical.shapes(NETWORK, num_tasks, 2)
    # of the whole position, a part
    known = {} if sd == "learnt" else dict.fromkeys(shapes["mean"], jnp.log(sd))
    if known:
        del shapes["log_sd"]
    key_starts, key_chains = jax.random.split(common.key(SETTINGS["seed"], sd, without))
    starts = mcmc.normal_starts(
        key_starts, shapes, (SETTINGS["num_chains"],), SETTINGS["start_scale"]
    )
    sizes = {"num_warmup": SETTINGS["num_warmup"], "num_samples": SETTINGS["num_samples"]}
    posterior = mcmc.sample(key_chains, density, starts, data=(known, observed), **sizes)
    some = take(posterior.draws, np.s_[:, :: SETTINGS["predict_every"]])
    grid = plots.grid(SETTINGS["side"])
    x = jnp.broadcast_to(grid, (num_tasks, *grid.shape))
    p = predict.of_draws(lambda position: jax.nn.sigmoid(LOGITS(whole(position, known), x)), some)
    return {"p": p, **runs.kept_run(posterior)}


def whole(position, known):
    """Return a position that has scales: its own, or those that are known."""
    return position | {"log_sd": position.get("log_sd", known)}


def density(position, given):
    """Return the log posterior; where scales are known, their hyperprior is a constant."""
    known, observed = given
    return LOG_DENSITY(whole(position, known), observed)


def score(drawn, sd, without):
    """Surfaces in hundredths; the first task's at 25 points, with errors; diagnostics."""
    p = np.asarray(drawn["p"], np.float64)
    mean = p.mean(axis=(0, 1))
    side = SETTINGS["side"]
    at = [side * j + i for j in AT for i in AT]
    error = diagnostics.standard_error(p[:, :, 0, at])
    return {
        "sd": sd,
        "without": without,
        "surfaces": "".join(f"{min(round(100 * v), 99):02d}" for v in mean.ravel()),
        "first": mean[0, at].round(4).tolist(),
        "first_error": error.round(5).tolist(),
        "check": runs.diagnosis(runs.run_from(drawn), p[..., ::10].reshape(*p.shape[:2], -1)),
    }


def rows(scored):
    """The points, "x1,x2,label,task;" of each, and a row for each posterior."""
    points, labels = (np.asarray(part) for part in tasks())
    listed = [
        f"{x1:.2f},{x2:.2f},{label},{task}"
        for task in range(len(labels))
        for (x1, x2), label in zip(points[task], labels[task], strict=True)
    ]
    return [
        {"name": "points", "points": ";".join(listed)},
        *({"name": name, **found} for name, found in scored.items()),
    ]
