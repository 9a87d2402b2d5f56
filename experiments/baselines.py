"""What the sources claim of other ways to use eighteen tasks, and never show.

One network for all tasks that does not see the task; one that sees it as 18 indicator
inputs; a hierarchical logistic regression. Four chains each, on the sources' training data,
scored on 1000 fresh test points a task.
"""

from helpers import data, densities, diagnostics, mcmc, metrics, networks

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import store

SETTINGS = {
    "seed": 2027,
    "num_chains": 4,
    "num_warmup": 1000,
    "num_samples": {"one network for all tasks": 500, "task as a feature": 3000, "hierarchical logistic": 1000},
}


def rows_of(x):
    """Join the tasks' points, [task, point, 2] -> [task * point, 2]."""
    return x.reshape(-1, x.shape[-1])


def with_task(x):
    """The same with 18 indicator inputs of the task."""
    return jnp.concatenate([rows_of(x), jnp.repeat(jnp.eye(x.shape[0]), x.shape[1], axis=0)], axis=1)


def fit(key, name, log_density, shapes, logits, labels):
    """Sample one model and return its row; ``logits(position)`` are at the test points."""
    key_start, key_chains = jax.random.split(key)
    start = mcmc.normal_starts(key_start, shapes, (SETTINGS["num_chains"],), scale=0.5)
    posterior = mcmc.sample(
        key_chains,
        log_density,
        start,
        num_warmup=SETTINGS["num_warmup"],
        num_samples=SETTINGS["num_samples"][name],
    )
    thinned = jax.tree.map(lambda a: a[:, :: max(1, a.shape[1] // 500)], posterior.draws)
    p = jax.vmap(jax.vmap(lambda w: jax.nn.sigmoid(logits(w))))(thinned)
    check = diagnostics.check(posterior, p[..., ::100])
    chain_nll = [float(metrics.negative_log_likelihood(q, labels)) for q in p.mean(axis=1)]
    scores = metrics.scores(p.mean(axis=(0, 1)), labels)
    error = diagnostics.nll_error(np.asarray(p), labels)
    print(name, scores, error, diagnostics.describe(check), chain_nll, flush=True)
    return {
        "name": name,
        "scores": scores,
        "nll_error": error,
        "nll_by_chain": chain_nll,
        "check": store.diagnosed(check),
    }


def main():
    keys = jax.random.split(jax.random.key(SETTINGS["seed"]), 3)
    tasks = data.fresh_moons()
    labels, train_labels = tasks.y_test.ravel(), tasks.y_train.ravel()
    network = networks.MLP()
    networks_of = {"one network for all tasks": rows_of, "task as a feature": with_task}
    rows = []
    for key, (name, inputs) in zip(keys[:2], networks_of.items(), strict=True):
        x, x_new = inputs(tasks.x_train), inputs(tasks.x_test)
        observed = densities.observe(x, train_labels, jnp.ones(3))
        log_density = densities.flat_log_density(network)
        shapes = jax.eval_shape(network.init, jax.random.key(0), x)
        rows.append(
            fit(key, name, partial(log_density, observed=observed), shapes, partial(network.apply, x=x_new), labels)
        )
    rows.append(
        fit(
            keys[-1],
            "hierarchical logistic",
            lambda position: densities.hierarchical_linear_log_density(position, tasks.x_train, tasks.y_train),
            densities.hierarchical_linear_shapes(18),
            lambda position: densities.linear_logits(position, tasks.x_test).ravel(),
            labels,
        )
    )
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
