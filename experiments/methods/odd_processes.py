"""A Gaussian process classifier of odd functions on new tasks: the training tasks tell its scales.

Amplitude and length scale are sampled with the functions of all training tasks, which have them in
common. The normal distribution of these draws of their logarithms is their prior on a new task,
whose labels count for them, too. The process is that of ``gaussian_processes``.
"""

from helpers import common, mcmc

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import gaussian_processes, runs, scoring
from experiments.problems import new_tasks

SETTINGS = {
    "seed": 3024,
    "median": [3.0, 1.5],  # of amplitude and length scale, whose logarithms are normal
    "sd": [1.0, 0.5],
    "num_chains": 4,
    "training": {"num_warmup": 200, "num_samples": 600, "max_tree_depth": 8},
    "new": {"num_warmup": 200, "num_samples": 1000, "max_tree_depth": 8},
    "thin": 5,  # of draws that predict
}


def fitted(redraw, sizes, num_tasks):
    """Sample the training tasks together, and then every new task at every number of labels."""
    old, new = (
        jax.tree.map(lambda a: a[:num_tasks], of)
        for of in (new_tasks.training(redraw), new_tasks.new("moons", redraw))
    )
    prior = np.log(SETTINGS["median"]), np.diag(SETTINGS["sd"])
    of_group = sample(
        "training", redraw, old, old.y_train.shape[1], prior, SETTINGS["training"], together=True
    )
    at = prior[0] + np.asarray(of_group.draws["scales"], np.float64) @ prior[1].T
    z = np.moveaxis(np.asarray(of_group.draws["z"]), 2, 0)  # [task, chain, draw, function]
    p = gaussian_processes.probabilities(
        at[None], z, old.x_train[:, :: old.y_train.shape[1] // 5], True
    )
    found = at.reshape(-1, 2)
    prior = found.mean(axis=0), np.linalg.cholesky(np.cov(found.T))
    fits = {
        size: sample("new", redraw, new, size, prior, SETTINGS["new"]) for size in sizes if size
    }
    drawn = {
        str(size): {
            **fit.draws,
            "z": fit.draws["z"][:, :, :: SETTINGS["thin"]],
            **runs.kept_run(fit),
        }
        for size, fit in fits.items()
    }
    of_group = {"p": p, "scales": of_group.draws["scales"], **runs.kept_run(of_group)}
    return {"group": of_group, "new": drawn, "prior": {"centre": prior[0], "spread": prior[1]}}


def sample(name, redraw, given, size, prior, lengths, together=False):
    """Sample processes by the first labels of each task, all with the same scales or each with its
    own.
    """
    key_start, key_chains = jax.random.split(common.key(SETTINGS["seed"], name, redraw, size))
    centre, spread = (np.float32(part) for part in prior)
    phi, y = gaussian_processes.functions(given.x_train[:, :size], True), given.y_train[:, :size]
    shape = (len(y),) if together else ()
    batch = (SETTINGS["num_chains"],) if together else (len(y), SETTINGS["num_chains"])
    of = {"scales": (2,), "z": (*shape, phi.shape[-1])}
    shapes = {part: jax.ShapeDtypeStruct(shape, jnp.float32) for part, shape in of.items()}
    starts = mcmc.normal_starts(key_start, shapes, batch)
    if not together:
        centre, spread = (np.broadcast_to(a, (len(y), *a.shape)) for a in (centre, spread))
    seen = {"data" if together else "tasks": gaussian_processes.Labelled(phi, y, centre, spread)}
    return mcmc.sample(key_chains, gaussian_processes.DENSITIES[True], starts, **seen, **lengths)


def score(drawn, redraw, sizes, num_tasks):
    """Scores by size; whether the chains have mixed, of the new tasks and of the group; the scales
    learnt.
    """
    new = jax.tree.map(lambda a: a[:num_tasks], new_tasks.new("moons", redraw))
    y, prior = np.asarray(new.y_test), drawn["prior"]
    found = [scoring.scored_parts(np.full((1, *y.shape), 0.5), y)] * sizes.count(0)
    checks = {}
    for size, fit in drawn["new"].items():
        scales = np.asarray(fit["scales"], np.float64)[:, :, :: SETTINGS["thin"]]
        at = prior["centre"] + scales @ prior["spread"].T
        p = gaussian_processes.probabilities(at, fit["z"], new.x_test, True)
        found.append(scoring.scored(p, y))
        checks[size] = scoring.check_of_run(fit, p, scales=fit["scales"])
    group = drawn["group"]
    checks["group"] = runs.diagnosis(runs.run_from(group), group["p"], scales=group["scales"])
    return {
        "sizes": sizes,
        "scores": scoring.joined(found),
        "checks": checks,
        "scales": np.exp(prior["centre"]).tolist(),
    }


def row(scores):
    """Return the row of redraws, with entries over them; its checks are of all sizes and of the
    group.
    """
    own = {part: scores[0][part] for part in ("tasks", "name", "sizes")}
    checks = [{**check, "of": of} for one in scores for of, check in one["checks"].items()]
    over = {part: [one[part] for one in scores] for part in ("scores", "scales")}
    return own | over | {"checks": checks}
