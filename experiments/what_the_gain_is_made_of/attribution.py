"""What the gain of the hierarchical network is made of, on 20 redrawn data sets.

Every arm sees the same data sets and the same 500 test points a task. The scale per layer is chosen by five-fold
cross-validation on training points, one triple a data set.
"""

from helpers import densities, hierarchical
from helpers.common import take

import itertools

import jax
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments import shared
from experiments.what_the_gain_is_made_of import choice, redraws

SETTINGS = {
    "seed": redraws.SEED,
    "num_redraws": 20,
    "tempered": redraws.TEMPERED,
    "num_warmup": 300,
    "num_samples": 800,
    "input_scales": [0.25, 0.5],
    "output_scales": [1.0, 3.0, 6.0, 12.0, 24.0],
    "folds": choice.FOLDS,
    # Ninety networks for each triple: fits that rank scales may be shorter than those that are compared.
    "fold_sizes": {"num_warmup": 100, "num_samples": 50, "max_tree_depth": 8},
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}
INPUT, HIDDEN, OUTPUT = "Dense_0", "Dense_1", "Dense_2"
NEAR_ONE = {INPUT: 0.0, HIDDEN: 0.0, OUTPUT: 0.0}  # log standard deviations where chains start without a tempered stage
WIDER = hierarchical.log_density(redraws.NETWORK, tfd.HalfNormal(5.0))
CAUCHY = hierarchical.log_density(redraws.NETWORK, tfd.HalfCauchy(0.0, 1.0))
ARMS = {
    "learnt scales, means 0": {"means": (), "centre": NEAR_ONE},
    "learnt scales, means 0, HalfNormal(5)": {"means": (), "centre": NEAR_ONE, "log_density": WIDER},
    "learnt means and scales": {},
    "learnt means and scales, HalfNormal(5)": {"log_density": WIDER},
    "learnt means and scales, HalfCauchy(1)": {"log_density": CAUCHY},
    "input layer shared": {"special": (HIDDEN, OUTPUT)},
    "hidden layer shared": {"special": (INPUT, OUTPUT)},
    "output layer shared": {"special": (INPUT, HIDDEN), "centre": {INPUT: -1.0, HIDDEN: -1.0}},
    "input layer special alone": {"special": (INPUT,), "centre": {INPUT: -1.0}},
    "output layer special alone": {"special": (OUTPUT,), "centre": {OUTPUT: 1.0}},
    "a scale per weight": {"sd_per_weight": True},
}
OPTIMUM, FLAT, CHOSEN = "Bayes optimum", "N(0, 1)", "a scale per layer, chosen"
ALL = (OPTIMUM, FLAT, CHOSEN, *ARMS)
TRIPLES = [[a, 1.0, b] for a, b in itertools.product(SETTINGS["input_scales"], SETTINGS["output_scales"])]
SMALL = {"arm": "output layer special alone", "redraw": 0, "num_tasks": 6, "num_warmup": 200, "num_samples": 300}


def units():
    """An arm on a data set each."""
    sizes = {"num_tasks": 18} | {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
    return {name: {"arm": arm, "redraw": i, **sizes} for arm in ALL for i, name in enumerate(names_of(arm))}


def names_of(arm):
    """Return the names of an arm's units."""
    return [f"{arm}, {i}" for i in range(SETTINGS["num_redraws"])]


def unit(arm, redraw, num_tasks, **sizes):
    """Fit one arm to one data set."""
    tasks, key = redraws.drawn(redraw, num_tasks=num_tasks), shared.key(SETTINGS["seed"], arm, redraw)
    if arm == OPTIMUM:
        return {"p": redraws.optimum(tasks)}
    if arm in (FLAT, CHOSEN):
        folds = {"folds": cross_validated(tasks, redraw)} if arm == CHOSEN else {}
        scales = best_triple(folds["folds"]["p"], tasks) if folds else np.ones(3)
        observed = densities.observe(tasks.x_train, tasks.y_train, scales)
        return redraws.kept(redraws.fit_flat(key, observed, **sizes)) | folds
    model = {"log_density": redraws.HIERARCHICAL, "centre": None, **ARMS[arm]}
    log_density, centre = model.pop("log_density"), model.pop("centre")
    shapes = hierarchical.shapes(redraws.NETWORK, num_tasks, 2, **model)
    observed = densities.observe(tasks.x_train, tasks.y_train)
    return redraws.kept(redraws.fit_hierarchical(key, log_density, shapes, observed, centre, **sizes))


def cross_validated(tasks, redraw):
    """Fit every task without each of its folds, under every triple: p [triple, chain, draw, fold, task, point]."""
    found = []
    for i, scales in enumerate(TRIPLES):
        key = shared.key(SETTINGS["seed"], "folds", redraw, i)
        fit, p = choice.fit_folds(key, tasks, scales, **SETTINGS["fold_sizes"])
        found.append({"p": p, **shared.kept_of(fit)})
    return jax.tree.map(lambda *leaves: np.stack(leaves), *found)


def best_triple(p, tasks):
    """Return the scales under which held-out points have the least NLL."""
    of_triples = [choice.nll_by_task(one.mean(axis=(0, 1)), tasks).mean() for one in p]
    return TRIPLES[int(np.argmin(of_triples))]


def score(drawn, arm, redraw, num_tasks, **_):
    """Scores on the test points; accuracy also on the training points and on the first 50 test points a task."""
    tasks = redraws.drawn(redraw, num_tasks=num_tasks)
    y = np.asarray(tasks.y_test)
    if arm == OPTIMUM:
        return redraws.scored_parts(drawn["p"][None], y)

    def of_draws(x):
        if arm in ARMS:
            return np.asarray(redraws.probabilities(redraws.LOGITS, {"mean": {}, **drawn["draws"]}, x))
        return np.asarray(redraws.flat_probabilities(drawn["draws"], x))

    p = of_draws(tasks.x_test)
    few, train = redraws.scored(p[..., :50], y[:, :50]), redraws.scored(of_draws(tasks.x_train), tasks.y_train)
    more = {
        "accuracy_train": train["accuracy"],
        "accuracy_train_error": train["accuracy_error"],
        "accuracy_900": few["accuracy"],
        "accuracy_900_error": few["accuracy_error"],
    }
    if arm in ARMS:
        return redraws.with_sampler(drawn, p, y) | {"more": more}
    if arm == CHOSEN:
        more |= of_folds(drawn["folds"], tasks)
    return redraws.scored(p, y) | {"check": redraws.checked(drawn, p), "more": more}


def of_folds(folds, tasks):
    """Return the chosen triple, and the NLL of points held out under each, with the check of those fits."""
    y = choice.in_folds(tasks.y_train)
    scores = [redraws.scored(p, y) for p in folds["p"]]
    some = np.moveaxis(folds["p"][..., 0], (3, 4), (1, 2))  # a point of each fold and task: [triple, fold, task, ...]
    some = some.reshape(len(some), -1, *some.shape[3:], 1)
    runs = [shared.run_of(take({"stats": folds["stats"], "warmup": folds["warmup"]}, i)) for i in range(len(some))]
    return {
        "scales": best_triple(folds["p"], tasks),
        "held_out_nll": [one["nll"] for one in scores],
        "held_out_nll_error": [one["nll_error"] for one in scores],
        "held_out_check": [shared.diagnosed(*pair) for pair in zip(runs, some, strict=True)],
    }


def rows(scored):
    """A row for each arm, with entries over data sets."""
    found = {arm: redraws.row(arm, [scored[name] for name in names_of(arm)]) for arm in ALL}
    found[CHOSEN]["more"]["triples"] = TRIPLES
    return list(found.values())
