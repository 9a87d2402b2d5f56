"""What the sources claim of other ways to use eighteen tasks, and never show.

One network for all tasks that does not see the task; one that sees it as 18 indicator inputs; a
hierarchical logistic regression. Four chains each on the sources' training data, scored on 1000
fresh test points a task.
"""

from helpers import common, data, densities, diagnostics, mcmc, metrics, networks, plots, predict
from helpers.common import take

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import runs
from experiments.problems import hierarchical_logistic

SETTINGS = {
    "seed": 2027,
    "num_chains": 4,
    "num_warmup": 1000,
    "num_samples": {
        "one network for all tasks": 500,
        "task as a feature": 3000,
        "hierarchical logistic": 1000,
    },
    "num_kept": 500,  # draws of each chain that predict
    "shown": [0, 2, 3, 5, 9],  # tasks of which surfaces are kept
    "grid": 25,  # points a side
}
NETWORK = networks.MLP()
FLAT = densities.flat_log_density(NETWORK)


def units():
    """A model each."""
    return {
        name: {"name": name, "num_samples": count}
        for name, count in SETTINGS["num_samples"].items()
    }


SMALL = units()["hierarchical logistic"]


def joined(x):
    """Join the tasks' points, [task, point, 2] -> [task * point, 2]."""
    return x.reshape(-1, x.shape[-1])


def with_task(x):
    """The same with 18 indicator inputs of the task."""
    return jnp.concatenate([joined(x), jnp.repeat(jnp.eye(x.shape[0]), x.shape[1], axis=0)], axis=1)


def model(name, tasks):
    """Return density, shapes of a position, what is observed, logits of a position at x_test."""
    if name == "hierarchical logistic":
        observed = densities.observe(tasks.x_train, tasks.y_train)
        return (
            hierarchical_logistic.log_density,
            hierarchical_logistic.shapes(18),
            observed,
            lambda w: hierarchical_logistic.logits(w, tasks.x_test).ravel(),
        )
    inputs = with_task if name == "task as a feature" else joined
    x, x_test = inputs(tasks.x_train), inputs(tasks.x_test)
    observed = densities.observe(x, tasks.y_train.ravel(), jnp.ones(3))
    shapes = networks.parameter_shapes(NETWORK, x.shape[-1])
    return FLAT, shapes, observed, lambda w: NETWORK.apply(w, x_test)


def unit(name, num_samples):
    """Sample a model; keep the draws that predict."""
    log_density, shapes, observed, _ = model(name, data.fresh_moons())
    key_start, key_chains = (
        common.key(SETTINGS["seed"], part, name) for part in ("starts", "chains")
    )
    starts = mcmc.normal_starts(key_start, shapes, (SETTINGS["num_chains"],), scale=0.5)
    sizes = {"num_warmup": SETTINGS["num_warmup"], "num_samples": num_samples}
    posterior = mcmc.sample(key_chains, log_density, starts, data=observed, **sizes)
    thin = max(1, num_samples // SETTINGS["num_kept"])
    kept = take(posterior.draws, np.s_[:, ::thin])
    return {"draws": kept, **runs.kept_run(posterior)}


def score(drawn, name, **_):
    """Scores of the average over all draws, and the NLL of each chain's average."""
    tasks = data.fresh_moons()
    *_, logits = model(name, tasks)
    y = np.asarray(tasks.y_test).ravel()
    # [chain, draw, point]
    p = np.asarray(predict.of_draws(lambda w: jax.nn.sigmoid(logits(w)), drawn["draws"]))
    posterior = runs.run_from(drawn)
    scores = metrics.scores(p.mean(axis=(0, 1)), y)
    return {
        "scores": scores,
        "nll": scores["NLL"],
        "nll_error": diagnostics.nll_error(p, y),
        "nll_by_chain": [
            metrics.negative_log_likelihood(of_chain.mean(axis=0), y) for of_chain in p
        ],
        "nll_by_chain_error": [diagnostics.nll_error(of_chain[None], y) for of_chain in p],
        "check": runs.diagnosis(posterior, p[..., ::100]),
        "surfaces": surfaces(name, tasks, drawn["draws"]),
    }


def surfaces(name, tasks, draws):
    """Mean probability of each chain on a grid, [chain, task, point], three digits."""
    grid = jnp.broadcast_to(
        plots.grid(SETTINGS["grid"]), (len(tasks.y_test), SETTINGS["grid"] ** 2, 2)
    )
    *_, logits = model(name, tasks._replace(x_test=grid))
    p = predict.chain_means(lambda w: jax.nn.sigmoid(logits(w)), draws)
    p = np.asarray(p, np.float64).reshape(len(p), *grid.shape[:2])[:, SETTINGS["shown"]]
    return np.round(p, 3).tolist()
