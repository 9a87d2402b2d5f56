"""What the gain of the hierarchical network is made of, on 20 redrawn data sets.

Every arm sees the same data sets and the same 500 test points a task. The scale per layer is
chosen by five-fold cross-validation on training points, one triple a data set.
"""

from helpers import data, hierarchical

import itertools

import fits
import jax
import jax.numpy as jnp
import numpy as np
import store
from tensorflow_probability.substrates.jax import distributions as tfd

SETTINGS = {
    "seed": 3001,
    "num_redraws": 20,
    "num_tasks": 18,
    "num_train": 50,
    "input_scales": [0.25, 0.5],
    "output_scales": [1.0, 3.0, 6.0, 12.0, 24.0],
    "folds": 5,
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}
INPUT, HIDDEN, OUTPUT = "Dense_0", "Dense_1", "Dense_2"
NEAR_ONE = {INPUT: 0.0, HIDDEN: 0.0, OUTPUT: 0.0}  # log standard deviations where chains start
BELOW_ONE = {INPUT: -1.0, HIDDEN: -1.0}
ARMS = {
    "learnt scales, means 0": {"means": (), "centre": NEAR_ONE},
    "learnt scales, means 0, HalfNormal(5)": {
        "means": (),
        "centre": NEAR_ONE,
        "hyperprior": tfd.HalfNormal(5.0),
    },
    "learnt means and scales": {},
    "learnt means and scales, HalfNormal(5)": {"hyperprior": tfd.HalfNormal(5.0)},
    "learnt means and scales, HalfCauchy(1)": {"hyperprior": tfd.HalfCauchy(0.0, 1.0)},
    "input layer shared": {"special": (HIDDEN, OUTPUT)},
    "hidden layer shared": {"special": (INPUT, OUTPUT)},
    "output layer shared": {"special": (INPUT, HIDDEN), "centre": BELOW_ONE},
    "input layer special alone": {"special": (INPUT,), "centre": BELOW_ONE},
    "output layer special alone": {"special": (OUTPUT,)},
    "a scale per weight": {"sd_per_weight": True},
}


def as_the_sources_report(tasks, p_test, p_train):
    """Accuracy on the training points and on 50 test points a task, by redraw."""
    right = (np.asarray(p_test)[..., :50] > 0.5) == (np.asarray(tasks.y_test)[..., :50] == 1)
    right_train = (np.asarray(p_train) > 0.5) == (np.asarray(tasks.y_train) == 1)
    return {
        "accuracy_train": (100 * right_train.mean(axis=(1, 2))).tolist(),
        "accuracy_900": (100 * right.mean(axis=(1, 2))).tolist(),
    }


def flat_arm(key, name, tasks, scales, **more):
    """Fit every task alone with the same scales."""
    draws = fits.fit_flat(key, tasks.x_train, tasks.y_train, jnp.array(scales)).draws
    batch = tasks.y_train.shape[:2]

    def means(x):
        p = fits.flat_means(draws, x.reshape(-1, *x.shape[2:]))
        return np.moveaxis(np.asarray(p).reshape(*batch, *p.shape[1:]), 2, 1)

    p_chains = means(tasks.x_test)
    sources = as_the_sources_report(tasks, p_chains.mean(axis=1), means(tasks.x_train).mean(axis=1))
    return p_chains, fits.row(name, p_chains, tasks.y_test, **sources, **more)


def cross_validated(key, tasks, scales):
    """Mean held-out NLL of every redraw under one triple of scales."""
    folds = SETTINGS["folds"]
    held = np.arange(SETTINGS["num_train"]).reshape(-1, folds).T  # point order is random, so any partition will do
    kept = np.stack([np.setdiff1d(np.arange(SETTINGS["num_train"]), part) for part in held])
    x, y = (jnp.moveaxis(a[:, :, kept], 2, 0) for a in (tasks.x_train, tasks.y_train))
    x_held, y_held = (jnp.moveaxis(a[:, :, held], 2, 0) for a in (tasks.x_train, tasks.y_train))
    draws = fits.fit_flat(key, x, y, jnp.array(scales), num_samples=100, chains=1).draws
    p = fits.flat_means(draws, x_held.reshape(-1, *x_held.shape[-2:]))[:, 0].reshape(y_held.shape)
    return fits.task_nll(p, y_held).mean(axis=(0, 2))


def main():
    key_data, key_folds, key_flat, key_chosen, *keys = jax.random.split(jax.random.key(SETTINGS["seed"]), 4 + len(ARMS))
    tasks = fits.redraws(key_data, SETTINGS["num_redraws"], num_train=SETTINGS["num_train"])
    optimum = np.stack(
        [
            data.bayes_optimum(one, one.x_test)
            for one in (jax.tree.map(lambda a, i=i: a[i], tasks) for i in range(SETTINGS["num_redraws"]))
        ]
    )
    rows = [fits.row("Bayes optimum", optimum[:, None], tasks.y_test)]
    rows.append(flat_arm(key_flat, "N(0, 1)", tasks, (1.0, 1.0, 1.0))[1])

    labelled = fits.stack_labelled(tasks.x_train, tasks.y_train)
    for key, (name, arm) in zip(keys, ARMS.items(), strict=True):
        arm = dict(arm)
        centre = arm.pop("centre", fits.OUTPUT_SPECIAL)
        log_density = hierarchical.log_density(fits.NETWORK, arm.pop("hyperprior", None))
        shapes = hierarchical.shapes(fits.NETWORK, SETTINGS["num_tasks"], **arm)
        posterior = fits.fit_hierarchical(key, log_density, shapes, labelled, centre)
        logits = hierarchical.logits(fits.NETWORK)
        p = fits.hierarchical_means(posterior, tasks.x_test, logits)
        p_train = fits.hierarchical_means(posterior, tasks.x_train, logits)
        sources = as_the_sources_report(tasks, p.mean(axis=1), p_train.mean(axis=1))
        rows.append(fits.row(name, p, tasks.y_test, posterior, **sources))

    triples = [(a, 1.0, b) for a, b in itertools.product(SETTINGS["input_scales"], SETTINGS["output_scales"])]
    held_out = np.stack(
        [cross_validated(k, tasks, t) for k, t in zip(jax.random.split(key_folds, len(triples)), triples, strict=True)]
    )
    choice = held_out.argmin(axis=0)
    print("chosen", [triples[i] for i in choice], flush=True)
    p = np.zeros((SETTINGS["num_redraws"], fits.CHAINS, *tasks.y_test.shape[1:]))
    parts = {}
    for i in sorted(set(choice.tolist())):
        key_chosen, key = jax.random.split(key_chosen)
        arm = flat_arm(key, f"scales {triples[i]}", tasks, triples[i])
        p[choice == i] = arm[0][choice == i]
        parts[i] = arm[1]
    chosen = {"scales": [triples[i] for i in choice], "held_out_nll": held_out.T.tolist(), "triples": triples}
    for name in ("accuracy_train", "accuracy_900"):
        chosen[name] = [parts[i]["more"][name][redraw] for redraw, i in enumerate(choice.tolist())]
    rows.insert(2, fits.row("a scale per layer, chosen", p, tasks.y_test, **chosen))
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
