"""Variational simulation-based calibration of a regression network: does a guide's centre lie right on average?

Weights and noise from the prior make measurements, a guide is fitted to them, and the true values are ranked among
its draws. Ranked are only quantities that all copies of a network share: the curve at four points, and the noise.
NUTS sees the same measurements.
"""

from helpers import densities, mcmc, networks, svi, verify

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import store
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from tensorflow_probability.substrates.jax import distributions as tfd

SETTINGS = {
    "seed": 5001,  # the page's, whose keys are used here too
    "num_replications": 120,
    "num_points": 20,
    "noise_scale": 0.5,
    "hidden": 5,
    "num_steps": 3000,
    "num_draws": 200,
    "points": [-1.4, -0.5, 0.0, 1.4],  # where the curve is ranked
    "num_chains": 2,
    "num_warmup": 200,
    "num_samples": 500,
    "thin": 5,
    "max_tree_depth": 6,
    "threshold_chance": 0.01,
}
NETWORK = networks.MLP((SETTINGS["hidden"],), use_bias=True)
MODEL = partial(densities.regression_numpyro, NETWORK, noise_scale=SETTINGS["noise_scale"])
QUANTITIES = [*(f"f at {p:g}" for p in SETTINGS["points"]), "noise"]
AT = jnp.array(SETTINGS["points"])[:, None]
GUIDES = {
    "mean-field": (partial(AutoNormal, init_scale=1e-3), svi.ELBO),
    "full-rank": (partial(AutoMultivariateNormal, init_scale=1e-3), Trace_ELBO(num_particles=10)),
}


def quantities(weights, noise):
    """What is ranked."""
    return jnp.append(NETWORK.apply(weights, AT), noise)


@partial(jax.jit, static_argnums=1)
def fit_all(keys, name, measured):
    """Quantities of every guide's draws, [replication, draw, quantity], and losses."""

    def one(pair):
        key, measured = pair
        guide, loss = GUIDES[name]
        key_fit, key_draw = jax.random.split(key)
        fit = svi.run(key_fit, MODEL, guide, (measured,), num_steps=SETTINGS["num_steps"], loss=loss)
        draws = svi.draw(key_draw, MODEL, guide, fit.params, (measured,), SETTINGS["num_draws"])
        return jax.vmap(quantities)(svi.network_position(draws), draws["noise"]), fit.losses

    return jax.lax.map(one, (keys, measured))


def row(name, values, truth):
    """Ranks of the truth, their distance from uniform ones, and their mean: 1/2 where there is no bias."""
    num_draws = values.shape[1]
    found = verify.ranks(values, truth)
    kept = {
        "name": name,
        "num_draws": num_draws,
        "ranks": {q: found[:, i].tolist() for i, q in enumerate(QUANTITIES)},
        "distance": dict(zip(QUANTITIES, verify.rank_distance(found, num_draws).tolist(), strict=True)),
        "band": verify.rank_band(len(found), num_draws, SETTINGS["threshold_chance"]),
    }
    print(name, kept["band"], kept["distance"], (found / num_draws).mean(axis=0), flush=True)
    return kept


def main():
    names = jax.random.split(jax.random.key(SETTINGS["seed"]), 16)[9:]
    key_weights, key_noise, key_x, key_y, key_fit, key_start, key_nuts = names
    count = SETTINGS["num_replications"]
    x = jnp.sort(jax.random.uniform(key_x, (SETTINGS["num_points"], 1), minval=-1.0), axis=0)
    shapes = {"params": jax.eval_shape(NETWORK.init, key_x, x), "log_noise": jax.ShapeDtypeStruct((), jnp.float32)}
    weights = mcmc.normal_starts(key_weights, shapes["params"], (count,))
    noise = jnp.abs(SETTINGS["noise_scale"] * jax.random.cauchy(key_noise, (count,)))
    mean = jax.vmap(lambda w: NETWORK.apply(w, x))(weights)
    y = mean + noise[:, None] * jax.random.normal(key_y, mean.shape)
    measured = densities.measure(jnp.broadcast_to(x, (count, *x.shape)), y, [1.0, 1.0])
    truth = np.asarray(jax.vmap(quantities)(weights, noise))
    keys = jax.random.split(key_fit, (len(GUIDES), count))
    rows = []
    # NumPyro traces on one thread only; compiling and running may share the cores.
    jobs = [(fit_all.lower(key, name, measured), key) for key, name in zip(keys, GUIDES, strict=True)]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda job: jax.tree.map(np.asarray, job[0].compile()(job[1], measured)), jobs)
        for name, (values, losses) in zip(GUIDES, found, strict=True):
            svi.check_losses(losses)
            rows.append(row(name, values, truth))
    density = densities.regression_log_density(NETWORK, tfd.Normal(0.0, 1.0), SETTINGS["noise_scale"])
    starts = mcmc.normal_starts(key_start, shapes, (count, SETTINGS["num_chains"]))
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples", "max_tree_depth")}
    draws = mcmc.sample(key_nuts, density, starts, data=measured, **sizes).draws
    thinned = jax.tree.map(lambda a: a[:, :, :: SETTINGS["thin"]].reshape(count, -1, *a.shape[3:]), draws)
    values = jax.jit(jax.vmap(jax.vmap(quantities)))(thinned["params"], jnp.exp(thinned["log_noise"]))
    rows.append(row("NUTS", np.asarray(values), truth))
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
