"""What cross-validation without refitting says of three models, and what new points and new tasks
say.

Six tasks of 50 labels. By point: Pareto-smoothed importance sampling (Vehtari, Gelman and Gabry
2017) against points that no model has seen. By task: each task is left out in turn and the rest is
fitted again, against tasks that are new; beside it importance sampling from the one fit, whose
k-hat says whether that may be used.

A network that is fitted alone has not seen a task that is left out: its prior is symmetric about 0,
so its probability there is 1/2.
"""

from helpers import common, densities, hierarchical, mcmc
from helpers.common import take

import arviz
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from experiments.methods import network_fits, runs, scoring
from experiments.problems import moons_redrawn

# The number of redraws is no part of what a unit does, so that more can follow.
RUN = {"num_tasks": 6, "num_warmup": 300, "num_samples": 800, "num_new": 200, "seed": 9017}
SETTINGS = {"num_redraws": 8, **RUN}
SIZES = {name: RUN[name] for name in ("num_warmup", "num_samples")}
MODELS = ("flat", "pooled", "hierarchical")
MOST_K = 0.7  # beyond, importance weights tell nothing (Vehtari et al. 2024)
SMALL = {"model": "pooled", "redraw": 0}


def units():
    """A model on a data set each."""
    redrawn = range(SETTINGS["num_redraws"])
    return {
        f"{model}, {i}": {"model": model, "redraw": i}
        for model in reversed(MODELS)
        for i in redrawn
    }


def problem(redraw):
    """Return the tasks, and a test point of each of many tasks that are new."""
    tasks = moons_redrawn.drawn("left out", redraw, num_tasks=RUN["num_tasks"])
    new = moons_redrawn.drawn("left out, new", redraw, num_tasks=RUN["num_new"])
    return tasks, new.x_test[:, 0], new.y_test[:, 0]


def unit(model, redraw):
    """Fit a model, then without each task in turn; probabilities at all that is asked."""
    tasks, x_new, _ = problem(redraw)
    keys = jax.random.split(common.key(RUN["seed"], model, redraw), 4)
    fit, of_tasks, of_left_out = {"flat": flat, "pooled": pooled, "hierarchical": together}[model](
        keys, tasks
    )
    num_train = tasks.x_train.shape[1]
    p = network_fits.flat_probabilities(
        of_tasks, jnp.concatenate([tasks.x_train, tasks.x_test], axis=1)
    )
    found = {
        "p": p[..., :num_train],
        "p_test": p[..., num_train:].mean(axis=1),
        **runs.kept_run(fit),
    }
    if model == "hierarchical":
        found["log_sd"] = fit.draws["log_sd"]
    if of_left_out is not None:
        x_new = jnp.broadcast_to(x_new, (len(tasks.x_train), *x_new.shape))
        p = network_fits.flat_probabilities(
            of_left_out, jnp.concatenate([tasks.x_train, x_new], axis=1)
        ).mean(axis=1)
        found |= {"p_left_out": p[..., :num_train], "p_new": p[..., num_train:]}
    return found


def flat(keys, tasks):
    """Fit each task alone; return the run, weights of each task, and none of those left out."""
    fit = network_fits.fit_flat(
        keys[0], densities.observe(tasks.x_train, tasks.y_train, jnp.ones(3)), **SIZES
    )
    return fit, fit.draws, None


def pooled(keys, tasks):
    """Fit one network to all tasks, and one to all but one, for each in turn."""
    x, y = tasks.x_train, tasks.y_train
    scales = jnp.ones(3)
    fit = network_fits.fit_flat(
        keys[0], densities.observe(x.reshape(1, -1, 2), y.reshape(1, -1), scales), **SIZES
    )
    of_tasks = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(y), *a.shape[1:])), fit.draws)
    x, y = others(x).reshape(len(y), -1, 2), others(y).reshape(len(y), -1)
    return (
        fit,
        of_tasks,
        network_fits.fit_flat(keys[1], densities.observe(x, y, scales), **SIZES).draws,
    )


def together(keys, tasks):
    """Fit the hierarchical network to all tasks; without one, chains go on from there."""
    observed = densities.observe(tasks.x_train, tasks.y_train)
    num_tasks = len(observed.y)
    shapes = hierarchical.shapes(moons_redrawn.NETWORK, num_tasks, 2)
    fit = network_fits.fit_hierarchical(
        keys[0], moons_redrawn.HIERARCHICAL, shapes, observed, **SIZES
    )
    ends = take(fit.draws, np.s_[:, -1])
    offsets = jax.tree.map(
        lambda a: jnp.moveaxis(others(jnp.moveaxis(a, 1, 0)), 1, 2), ends.pop("offset")
    )
    starts = jax.tree.map(lambda a: jnp.broadcast_to(a, (num_tasks, *a.shape)), ends) | {
        "offset": offsets
    }
    parts = densities.Observed(*map(others, observed[:3]))
    without = mcmc.sample(keys[1], moons_redrawn.HIERARCHICAL, starts, tasks=parts, **SIZES).draws
    return (
        fit,
        jax.tree.map(lambda a: jnp.moveaxis(a, 2, 0), weights_of(fit.draws)),
        unseen_weights(keys[2], without),
    )


def others(leaf):
    """Return all tasks but one, for each in turn: [left out, task, ...]."""
    return leaf[np.array([np.delete(np.arange(len(leaf)), out) for out in range(len(leaf))])]


@jax.jit
def weights_of(draws):
    """Return the weights of each task, [chain, draw, task]."""
    num_tasks = jax.tree.leaves(draws["offset"])[0].shape[2]
    return jax.vmap(jax.vmap(lambda position: hierarchical.task_weights(position, num_tasks)))(
        draws
    )


@jax.jit
def unseen_weights(key, draws):
    """Return weights of an unknown task, one set a draw: [left out, chain, draw]."""
    batch = jax.tree.leaves(draws["log_sd"])[0].shape
    offset = mcmc.normal_starts(
        key, hierarchical.shapes(moons_redrawn.NETWORK, 1, 2)["offset"], batch
    )
    found = jax.vmap(weights_of)({**draws, "offset": offset})
    return jax.tree.map(lambda a: a[:, :, :, 0], found)


def log_of(p, y):
    """Return the log probability of labels."""
    p = np.clip(np.asarray(p, np.float64), scoring.LEAST, 1 - scoring.LEAST)
    return np.where(y == 1, np.log(p), np.log1p(-p))


def by_point(log_p):
    """What importance sampling says of each label left out, and its k-hat: [task, point]."""
    draws = np.moveaxis(log_p.reshape(-1, *log_p.shape[2:]), 0, -1)
    log_weights, k_hat = arviz.psislw(-draws)
    return logsumexp(log_weights + draws, axis=-1), k_hat


def score(drawn, model, redraw):
    """Mean log probability a label, by each way of looking, with their Monte Carlo errors."""
    tasks, _, y_new = problem(redraw)
    y = np.asarray(tasks.y_train)
    log_p = log_of(drawn["p"], y)
    estimate, k_hat = by_point(log_p)
    seen = np.logaddexp.reduce(log_p, axis=(0, 1)) - np.log(log_p.shape[0] * log_p.shape[1])
    found = {
        "points": estimate.mean(),
        "points_error": error([by_point(chain[None])[0].mean() for chain in log_p]),
        "points_sd": estimate.std(ddof=1) / np.sqrt(estimate.size),
        "test_points": log_of(drawn["p_test"].mean(axis=0), tasks.y_test).mean(),
        "test_points_error": error(log_of(drawn["p_test"], tasks.y_test).mean(axis=(1, 2))),
        "num_parameters": (seen - estimate).sum(),
        "k_hat": float(k_hat.max()),
        "share_above": float((k_hat > MOST_K).mean()),
    }
    if model == "flat":
        nothing = float(np.log(0.5))
        found |= {
            "tasks": nothing,
            "tasks_error": 0.0,
            "test_tasks": nothing,
            "test_tasks_error": 0.0,
        }
    else:
        found |= {
            "tasks": log_of(drawn["p_left_out"].mean(axis=0), y).mean(),
            "tasks_error": error(log_of(drawn["p_left_out"], y).mean(axis=(1, 2))),
            "test_tasks": log_of(drawn["p_new"].mean(axis=0), y_new).mean(),
            "test_tasks_error": error(log_of(drawn["p_new"], y_new).mean(axis=(1, 2))),
        }
    p = np.asarray(drawn["p"])
    p = p.reshape(*p.shape[:2], 1, -1)[..., ::5] if model == "pooled" else p
    log_sd = {"log_sd": drawn["log_sd"]} if model == "hierarchical" else {}
    of_tasks, k_of_tasks = by_task(log_p)
    found["tasks_by_weights"] = of_tasks
    found = {name: float(value) for name, value in found.items()} | {
        "k_hat_of_tasks": k_of_tasks.tolist()
    }
    return found | {"check": scoring.check_of_run(drawn, p, **log_sd)}


def by_task(log_p):
    """What importance sampling says of a task left out, mean of labels, and k-hat of each."""
    draws = log_p.reshape(-1, *log_p.shape[2:])
    log_weights, k_hat = arviz.psislw(-draws.sum(axis=2).T)
    return logsumexp(log_weights[..., None] + np.moveaxis(draws, 0, 1), axis=1).mean(), k_hat


def error(of_chains):
    """Return the standard error of the mean over chains."""
    return np.std(of_chains, ddof=1) / np.sqrt(len(of_chains))


def rows(scored):
    """A row for each model, with entries over data sets."""
    found = []
    for model in MODELS:
        parts = [scored[f"{model}, {i}"] for i in range(SETTINGS["num_redraws"])]
        found.append({"model": model} | {name: [part[name] for part in parts] for name in parts[0]})
    return found
