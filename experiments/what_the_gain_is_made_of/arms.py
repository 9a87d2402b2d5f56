"""What sharing weights adds to well-chosen scales, on redrawn data sets: arms that differ in what tells the scales.

Every arm sees the same data sets and the same 500 test points a task. Scales are chosen by one rule, the NLL of points
left out of five folds of the training points, all three layers' searched.

    N(0, 1)               nothing is chosen or learnt
    chosen per task       from the task's own 50 points
    chosen over tasks     one triple for all tasks
    shared, N+(0, 1)      means and scales learnt of all tasks: the hierarchical network
    shared, N+(0, 5)      the same under a wider hyperprior
"""

from helpers import densities, hierarchical, mcmc

import itertools
from functools import partial

import jax
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments import shared
from experiments.what_the_gain_is_made_of import choice, redraws

SETTINGS = {
    "seed": 3011,
    "num_redraws": 12,
    "num_warmup": 300,
    "num_samples": 800,
    "max_tree_depth": 8,  # of flat fits
    # The part of the grid of ``flat_bnn/prior_scale`` in which good triples lie: a ridge of nearly constant product.
    "input_scales": [0.125, 0.25, 0.5, 1.0],
    "hidden_scales": [0.5, 1.0, 2.0],
    "output_scales": [12.0, 24.0, 48.0],
    # Thousands of fits rank triples, shorter than those that are compared; the best are ranked again by longer ones.
    "short": {"num_chains": 2, "num_warmup": 100, "num_samples": 60, "max_tree_depth": 6},
    "long": {"num_chains": 2, "num_warmup": 150, "num_samples": 200, "max_tree_depth": 8},
    "finalists": 4,
    # A chain that starts in a mode of little mass leaves it where the likelihood has this power: page `modes`.
    "tempered": {"power": 0.8, "num_started": 4, "num_warmup": 300, "num_samples": 300},
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}
WIDE = hierarchical.log_density(redraws.NETWORK, tfd.HalfNormal(5.0))
SHARED = {"shared, N+(0, 1)": redraws.HIERARCHICAL, "shared, N+(0, 5)": WIDE}
FITTED = ("N(0, 1)", *SHARED)
CHOSEN = ("chosen per task", "chosen over tasks")
TRIPLES = [list(t) for t in itertools.product(*(SETTINGS[f"{name}_scales"] for name in ("input", "hidden", "output")))]


def units():
    """A fitted arm on a data set each; the two chosen ones share their folds."""
    sizes = {"num_tasks": 18} | {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
    redrawn = range(SETTINGS["num_redraws"])
    return {f"{arm}, {i}": {"arm": arm, "redraw": i, **sizes} for i in redrawn for arm in ("chosen", *FITTED)}


SMALL = {"arm": "shared, N+(0, 5)", "redraw": 0, "num_tasks": 6, "num_warmup": 200, "num_samples": 300}


def unit(arm, redraw, num_tasks, **sizes):
    """Fit one arm to one data set."""
    tasks = redraws.drawn(redraw, num_tasks=num_tasks)
    key = partial(shared.key, SETTINGS["seed"], arm, redraw)
    if arm == "chosen":
        held_out, scales = search(key, tasks)
        fits = [fit_flat(key(name), tasks, scales[name], **sizes) for name in CHOSEN]
        return {"held_out": held_out, "scales": scales, "fits": dict(zip(CHOSEN, fits, strict=True))}
    if arm == "N(0, 1)":
        return fit_flat(key(), tasks, np.ones(3), **sizes)
    return fit_shared(key(), tasks, SHARED[arm], **sizes)


def fit_flat(key, tasks, scales, **sizes):
    """Fit each task alone, under scales [layer] or [task, layer]."""
    observed = densities.observe(tasks.x_train, tasks.y_train, scales)
    return redraws.kept(redraws.fit_flat(key, observed, max_tree_depth=SETTINGS["max_tree_depth"], **sizes))


def fit_shared(key, tasks, log_density, **sizes):
    """Fit all tasks together: chains from N(0, 1), none left out, spend a stage at a lower power of the likelihood."""
    key_tempered, key_chains = jax.random.split(key)
    shapes = hierarchical.shapes(redraws.NETWORK, len(tasks.y_train), 2)
    observed = densities.observe(tasks.x_train, tasks.y_train)
    starts = shared.tempered_starts(key_tempered, log_density, shapes, observed, **SETTINGS["tempered"])
    return redraws.kept(mcmc.sample(key_chains, log_density, starts, data=observed, **sizes))


def search(key, tasks):
    """Return the NLL of points left out, [triple, task], infinite where no longer fit was made; and what is chosen."""
    short = choice.ranked(key("short"), tasks, partial(of_folds, size="short"), TRIPLES)
    best = np.argsort(short.mean(axis=1))[: SETTINGS["finalists"]]
    long = np.full_like(short, np.inf)
    long[best] = choice.ranked(key("long"), tasks, partial(of_folds, size="long"), [TRIPLES[i] for i in best])
    scales = {
        "chosen per task": np.array(TRIPLES)[short.argmin(axis=0)],
        "chosen over tasks": np.array(TRIPLES)[long.mean(axis=1).argmin()],
    }
    return {"short": short, "long": long}, scales


def of_folds(key, tasks, seen, scales, size):
    """Fit every task without each of its folds: p [chain, draw, fold, task, point]."""
    x, y = (np.concatenate(len(seen) * [a]) for a in (tasks.x_train, tasks.y_train))
    observed = densities.observe(x, y, scales, weight=np.repeat(seen, len(tasks.y_train), axis=0))
    fit = redraws.fit_flat(key, observed, **SETTINGS[size])
    p = np.asarray(redraws.flat_probabilities(fit.draws, x))
    return p.reshape(*p.shape[:2], len(seen), *tasks.y_train.shape)


def score(drawn, arm, redraw, num_tasks, **_):
    """Scores on the test points by arm, with the check of its run; of folds the NLL of points left out."""
    tasks = redraws.drawn(redraw, num_tasks=num_tasks)
    if arm == "chosen":
        more = {
            "chosen per task": {"scales": drawn["scales"]["chosen per task"].tolist()},
            "chosen over tasks": {
                "scales": drawn["scales"]["chosen over tasks"].tolist(),
                "held_out_nll": drawn["held_out"]["short"].mean(axis=1).tolist(),
            },
        }
        return {name: scored_flat(drawn["fits"][name], tasks) | {"more": more[name]} for name in CHOSEN}
    if arm == "N(0, 1)":
        return {arm: scored_flat(drawn, tasks)}
    p = np.asarray(redraws.probabilities(redraws.LOGITS, drawn["draws"], tasks.x_test))
    return {arm: redraws.with_sampler(drawn, p, np.asarray(tasks.y_test))}


def scored_flat(drawn, tasks):
    """Score flat fits."""
    p = np.asarray(redraws.flat_probabilities(drawn["draws"], tasks.x_test))
    return redraws.scored(p, np.asarray(tasks.y_test)) | {"check": redraws.checked(drawn, p)}


def rows(scored):
    """A row for each arm, with entries over data sets."""
    redrawn = range(SETTINGS["num_redraws"])
    found = {name: redraws.row(name, [scored[f"chosen, {i}"][name] for i in redrawn]) for name in CHOSEN}
    found |= {name: redraws.row(name, [scored[f"{name}, {i}"][name] for i in redrawn]) for name in FITTED}
    found["chosen over tasks"]["more"]["triples"] = TRIPLES
    return list(found.values())
