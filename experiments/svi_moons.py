"""SVI on the eighteen rotated moons: the flat network, each task alone, and the hierarchical one.

Scored on the test points of the page hierarchical-bnn, beside NUTS on the flat network; the hierarchical
posterior by NUTS is a result of its own (posteriors.json).
"""

from helpers import data, densities, diagnostics, hierarchical, mcmc, metrics, networks, predict, svi

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import store
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

SETTINGS = {
    "seed": 5001,  # the page's, whose keys are used here too
    "num_starts": 3,
    "flat_steps": 5000,
    "group_steps": 10000,
    "num_draws": 400,
    "num_chains": 4,
    "num_warmup": 300,
    "num_samples": 500,
    "max_tree_depth": 7,
}
NETWORK = networks.MLP()
FLAT, GROUP = partial(densities.flat_numpyro, NETWORK), partial(hierarchical.numpyro_model, NETWORK)
TEN = Trace_ELBO(num_particles=10)
GUIDES = {
    "mean-field": (partial(AutoNormal, init_scale=1e-2), svi.ELBO),
    "full-rank": (partial(AutoMultivariateNormal, init_scale=1e-2), TEN),
}


@partial(jax.jit, static_argnums=1)
def fit_flat(keys, name, observed, x):
    """Probabilities [task, point] of one start, by task alone, and losses."""
    guide, loss = GUIDES[name]

    def one(task):
        key, observed, x = task
        key_fit, key_draw = jax.random.split(key)
        fit = svi.run(key_fit, FLAT, guide, (observed,), num_steps=SETTINGS["flat_steps"], loss=loss)
        draws = svi.draw(key_draw, FLAT, guide, fit.params, (observed,), SETTINGS["num_draws"])
        weights = svi.network_position(draws)
        return jax.nn.sigmoid(jax.vmap(lambda w: NETWORK.apply(w, x))(weights)).mean(axis=0), fit.losses

    return jax.lax.map(one, (keys, observed, x))


@partial(jax.jit, static_argnums=1)
def fit_group(key, name, labelled, x):
    """Probabilities [task, point] of one start, losses and the median group standard deviations."""
    guide, loss = GUIDES[name]
    key_fit, key_draw = jax.random.split(key)
    fit = svi.run(key_fit, GROUP, guide, (labelled,), num_steps=SETTINGS["group_steps"], loss=loss)
    draws = svi.draw(key_draw, GROUP, guide, fit.params, (labelled,), SETTINGS["num_draws"])
    position = hierarchical.from_numpyro(draws)

    def add(total, one):
        return total + jax.nn.sigmoid(hierarchical.logits(NETWORK)(one, x)), None

    total, _ = jax.lax.scan(add, jnp.zeros(x.shape[:-1]), position)
    sd = {name: jnp.median(draws[f"sd/{name}"]) for name in position["log_sd"]}
    return total / SETTINGS["num_draws"], fit.losses, sd


def main():
    source = data.source_moons()
    tasks = data.fresh_moons()
    num_fresh = tasks.y_test.shape[1]
    key_flat, key_group, key_start, key_nuts = jax.random.split(jax.random.key(SETTINGS["seed"]), 20)[16:]
    observed = densities.observe(tasks.x_train, tasks.y_train, [1.0, 1.0, 1.0])
    labelled = hierarchical.labelled(tasks.x_train, tasks.y_train)
    x = jnp.concatenate([tasks.x_test, source.x_test], axis=1)
    rows = []

    def row(model, guide, start, p, seconds, losses=None, sd=None, check=None):
        near = p[:, :num_fresh]
        kept = {
            "model": model,
            "guide": guide,
            "start": start,
            "scores": metrics.scores(jnp.asarray(near), tasks.y_test),
            "task_nll": [float(metrics.negative_log_likelihood(*t)) for t in zip(near, tasks.y_test, strict=True)],
            "p_source": np.asarray(p[:, num_fresh:]).round(4).tolist(),
            "losses": [] if losses is None else np.asarray(losses).reshape(100, -1).mean(axis=1).tolist(),
            "sd": {} if sd is None else {name: float(value) for name, value in sd.items()},
            "check": {} if check is None else check,
            "seconds": seconds,
        }
        rows.append(kept)
        print(model, guide, start, kept["scores"], kept["sd"], kept["check"], seconds, flush=True)

    shapes = jax.eval_shape(NETWORK.init, key_start, tasks.x_train[0])
    starts = mcmc.normal_starts(key_start, shapes, (18, SETTINGS["num_chains"]))
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples", "max_tree_depth")}
    began = time.perf_counter()
    posterior = mcmc.sample(key_nuts, densities.flat_log_density(NETWORK), starts, data=observed, **sizes)
    seconds = time.perf_counter() - began
    p = jax.lax.map(lambda pair: predict.probabilities(NETWORK.apply, *pair), (posterior.draws, x))
    check = diagnostics.check(posterior, p[..., ::200])
    row("flat", "NUTS", 0, p.mean(axis=(1, 2)), seconds, check=store.diagnosed(check))
    for number, name in enumerate(("mean-field", "full-rank")):
        for start in range(SETTINGS["num_starts"]):
            keys = jax.random.split(jax.random.fold_in(key_flat, 10 * number + start), 18)
            began = time.perf_counter()
            p, losses = jax.block_until_ready(fit_flat(keys, name, observed, x))
            svi.check_losses(losses)
            row("flat", name, start, p, time.perf_counter() - began, losses.sum(axis=0))
    for start in range(SETTINGS["num_starts"]):
        key = jax.random.fold_in(key_group, start)
        began = time.perf_counter()
        p, losses, sd = jax.block_until_ready(fit_group(key, "mean-field", labelled, x))
        svi.check_losses(losses)
        row("hierarchical", "mean-field", start, p, time.perf_counter() - began, losses, sd)
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
