"""A Gaussian process classifier of odd functions on new tasks: the training tasks tell its scales.

Amplitude and length scale are sampled with the functions of all training tasks, which have them in
common. The normal distribution of these draws of their logarithms is their prior on a new task,
whose labels count for them, too. The process is that of ``gaussian_processes``.
"""

from helpers import common

import jax
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
    num_points, lengths = old.y_train.shape[1], SETTINGS["training"]
    of_group = sample("training", redraw, old, num_points, prior, lengths, together=True)
    at = gaussian_processes.log_scales(of_group.draws["scales"], prior)
    z = np.moveaxis(np.asarray(of_group.draws["z"]), 2, 0)  # [task, chain, draw, function]
    x = old.x_train[:, :: old.y_train.shape[1] // 5]
    p = gaussian_processes.probabilities(at[None], z, x, True)
    prior = gaussian_processes.prior_of(at)
    drawn = {}
    for size in filter(None, sizes):
        fit = sample("new", redraw, new, size, prior, SETTINGS["new"])
        thinned = fit.draws | {"z": fit.draws["z"][:, :, :: SETTINGS["thin"]]}
        drawn[str(size)] = thinned | runs.kept_run(fit)
    of_group = {"p": p, "scales": of_group.draws["scales"], **runs.kept_run(of_group)}
    return {"group": of_group, "new": drawn, "prior": {"centre": prior[0], "spread": prior[1]}}


def sample(name, redraw, given, size, prior, lengths, together=False):
    """Sample processes by the first labels of each task, all with the same scales or each with its
    own.
    """
    keys = jax.random.split(common.key(SETTINGS["seed"], name, redraw, size))
    x, y = given.x_train[:, :size], given.y_train[:, :size]
    lengths = lengths | {"num_chains": SETTINGS["num_chains"]}
    return gaussian_processes.sample(keys, x, y, True, prior, together, **lengths)


def score(drawn, redraw, sizes, num_tasks):
    """Scores by size; whether the chains have mixed, of the new tasks and of the group; the scales
    learnt.
    """
    new = jax.tree.map(lambda a: a[:num_tasks], new_tasks.new("moons", redraw))
    y, prior = np.asarray(new.y_test), drawn["prior"]
    found = [scoring.scored_parts(np.full((1, *y.shape), 0.5), y)] * sizes.count(0)
    checks = {}
    for size, fit in drawn["new"].items():
        scales = fit["scales"][:, :, :: SETTINGS["thin"]]
        at = gaussian_processes.log_scales(scales, (prior["centre"], prior["spread"]))
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
