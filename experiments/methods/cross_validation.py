"""One rule for every choice of a prior: five folds of each task's training points.

Whatever is to be chosen, scales or hyperpriors, is what gives the points left out the least NLL. No
test point and no other data set is looked at.
"""

from helpers import densities

import jax
import numpy as np

from experiments.methods import network_fits, scoring

FOLDS = 5


def in_folds(values):
    """Return [fold, ..., point of the fold] of [..., point], whose order is random."""
    return np.stack([np.asarray(values)[..., k::FOLDS] for k in range(FOLDS)])


def seen(num_points):
    """Return weights [fold, point]: 0 for the points of the fold, 1 for the others."""
    points = np.arange(num_points)
    return np.stack([1.0 - np.isin(points, fold) for fold in in_folds(points)])


def fit_folds(key, tasks, scales, **sizes):
    """Fit every task without each of its folds under fixed scales.

    Return the run, of independent posteriors [fold and task], and p [chain, draw, fold, task, point
    left out].
    """
    num_tasks, num_points = tasks.y_train.shape
    x, y = (np.concatenate(FOLDS * [a]) for a in (tasks.x_train, tasks.y_train))
    weight = np.repeat(seen(num_points), num_tasks, axis=0)
    observed = densities.observe(x, y, scales, weight=weight)
    fit = network_fits.fit_flat(key, observed, **sizes)
    p = np.asarray(network_fits.flat_probabilities(fit.draws, x))
    p = p.reshape(*p.shape[:2], FOLDS, num_tasks, num_points)
    return fit, np.stack(
        [p[:, :, k][..., fold] for k, fold in enumerate(in_folds(np.arange(num_points)))], axis=2
    )


def nll_by_task(p, tasks):
    """Return the NLL [task] of points left out, of their p [fold, task, point of the fold]."""
    # [p or y, task, fold, point of the fold]
    pairs = np.stack([p, in_folds(tasks.y_train)]).swapaxes(1, 2)
    return np.array([scoring.score_of(*of_task)["nll"] for of_task in zip(*pairs, strict=True)])


def ranked(key, tasks, triples, **sizes):
    """Return the NLL of points left out under each triple of scales, [triple, task]."""
    found = []
    for i, scales in enumerate(triples):
        p = fit_folds(jax.random.fold_in(key, i), tasks, scales, **sizes)[1]
        found.append(nll_by_task(p.mean(axis=(0, 1)), tasks))
    return np.array(found)
