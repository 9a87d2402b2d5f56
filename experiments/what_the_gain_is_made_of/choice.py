"""One rule for every choice of a prior: five folds of each task's training points.

Whatever is to be chosen, scales or hyperpriors, is what gives the points left out the least NLL. No test point and no
other data set is looked at.
"""

from helpers import densities

import jax
import numpy as np

from experiments.what_the_gain_is_made_of import redraws

FITS = {
    "seed": 3010,
    "folds": 5,
    # The part of the grid of ``flat_bnn/prior_scale`` in which good triples lie, with a margin on each side.
    "input_scales": [0.125, 0.25, 0.5, 1.0],
    "hidden_scales": [0.5, 1.0, 2.0, 4.0],
    "output_scales": [6.0, 12.0, 24.0, 48.0, 96.0],
    "mean_scales": [0.5, 1.0, 2.0],
    # Thousands of fits rank priors, shorter than those that are compared; the best triples are ranked again by longer.
    "fold_sizes": {"num_warmup": 100, "num_samples": 60, "max_tree_depth": 8},
    "finer_sizes": {"num_warmup": 200, "num_samples": 240, "max_tree_depth": 8},
    "finalists": 10,
    "fold_chains": 2,
    "power": 0.8,  # of the likelihood where chains of models with modes begin
    "tempered_sizes": {"num_warmup": 300, "num_samples": 1},
    "num_warmup": 300,
    "num_samples": 800,
}


def ranked(key, tasks, of_folds, candidates):
    """Return the NLL of points left out, [candidate, task]; ``of_folds`` gives p [chain, draw, fold, task, point]."""
    points, found = np.arange(tasks.y_train.shape[1]), []
    seen = np.stack([1.0 - np.isin(points, fold) for fold in in_folds(points)])  # [fold, point]
    y = np.moveaxis(in_folds(tasks.y_train), 0, 1)  # [task, fold, point of the fold]
    for i, candidate in enumerate(candidates):
        p = of_folds(jax.random.fold_in(key, i), tasks, seen, candidate).mean(axis=(0, 1))
        left_out = np.stack([p[k][:, fold] for k, fold in enumerate(in_folds(points))], axis=1)
        found.append([redraws.score_of(*one)["nll"] for one in zip(left_out, y, strict=True)])
    return np.array(found)


def in_folds(values):
    """Return [fold, ..., point of the fold] of [..., point]; the points' order is random, so any folds will do."""
    return np.stack([np.asarray(values)[..., k :: FITS["folds"]] for k in range(FITS["folds"])])


def scales_of_folds(key, tasks, seen, scales, sizes="fold_sizes"):
    """Fit every task without each of its folds under fixed scales: [chain, draw, fold, task, point]."""
    folds, (num_tasks, size) = len(seen), tasks.y_train.shape
    x, y = (np.concatenate(folds * [a]) for a in (tasks.x_train, tasks.y_train))
    observed = densities.observe(x, y, scales, weight=np.repeat(seen, num_tasks, axis=0))
    fit = redraws.fit_flat(key, observed, num_chains=FITS["fold_chains"], **FITS[sizes])
    p = np.asarray(redraws.flat_probabilities(fit.draws, x))
    return p.reshape(*p.shape[:2], folds, num_tasks, size)
