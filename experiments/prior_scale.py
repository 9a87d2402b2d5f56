"""A prior scale for each layer of the flat network, chosen by leave-one-out on training data.

For every triple of scales: the 18 tasks of the sources, four chains each; the leave-one-out log
density of the 900 training points (what the choice is made by) and, only to see afterwards
whether the choice was good, the scores on 1000 fresh test points a task.
"""

from helpers import data, densities, diagnostics, mcmc, metrics, networks, predict

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import store

SETTINGS = {
    "seed": 2026,
    "input_scales": [0.25, 0.5, 1.0],
    "hidden_scales": [0.5, 1.0, 2.0],
    "output_scales": [1.0, 3.0, 6.0, 12.0, 24.0],
    "num_chains": 4,
    "num_warmup": 300,
    "num_samples": 400,
    "max_tree_depth": 8,
}


def main():
    key_start, key_chains = jax.random.split(jax.random.key(SETTINGS["seed"]))
    tasks = data.fresh_moons()
    network = networks.MLP()
    log_density = densities.flat_log_density(network)
    shapes = jax.eval_shape(network.init, jax.random.key(0), tasks.x_train[0])
    grid = list(itertools.product(SETTINGS["input_scales"], SETTINGS["hidden_scales"], SETTINGS["output_scales"]))
    rows = []
    for scales, key_row in zip(grid, jax.random.split(key_chains, len(grid)), strict=True):
        observed = densities.observe(tasks.x_train, tasks.y_train, jnp.array(scales))
        start = mcmc.normal_starts(key_start, shapes, (18, SETTINGS["num_chains"]))
        posterior = mcmc.sample(
            key_row,
            log_density,
            start,
            num_warmup=SETTINGS["num_warmup"],
            num_samples=SETTINGS["num_samples"],
            max_tree_depth=SETTINGS["max_tree_depth"],
            data=observed,
        )
        rows.append({"scales": scales, **score(network, posterior, tasks)})
        print(scales, f"leave-one-out {rows[-1]['leave_one_out']:.4f}", flush=True)
    store.write(__file__, SETTINGS, rows)


def score(network, posterior, tasks):
    """Return what one row of the table stores."""
    p = jax.lax.map(lambda a: predict.probabilities(network.apply, *a), (posterior.draws, tasks.x_test))
    p_train = jax.lax.map(lambda a: predict.probabilities(network.apply, *a), (posterior.draws, tasks.x_train))
    log_likelihood = jnp.log(jnp.where(tasks.y_train[:, None, None, :] == 1, p_train, 1 - p_train))
    loo = [diagnostics.leave_one_out(values) for values in log_likelihood]
    mean = p.mean(axis=(1, 2))
    check = diagnostics.check(posterior, p[..., :50:10])
    errors = [diagnostics.nll_error(*one) for one in zip(np.asarray(p), tasks.y_test, strict=True)]
    by_task = [float(-part.log_density.mean()) for part in loo]
    return {
        "leave_one_out": sum(by_task) / len(by_task),
        "leave_one_out_by_task": by_task,
        "bad_pareto_k": int(sum((part.pareto_k > 0.7).sum() for part in loo)),
        "test_accuracy": float(metrics.accuracy(mean, tasks.y_test)),
        "test_nll": float(metrics.negative_log_likelihood(mean, tasks.y_test)),
        "test_nll_error": float(np.sqrt(np.mean(np.square(errors)) / len(errors))),  # of independent tasks
        "test_nll_by_task": [float(metrics.negative_log_likelihood(*a)) for a in zip(mean, tasks.y_test, strict=True)],
        "check": store.diagnosed(check),
        "mixed": bool((check.rhat <= check.rhat_bound).all()),
    }


if __name__ == "__main__":
    main()
