"""The fits of ``equal_cost``: a guide on its whole grid, Laplace's method, and a short NUTS."""

from helpers import densities, mcmc, svi, training
from helpers.common import take

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from numpyro.infer import Trace_ELBO, init_to_value
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import autoguides, runs
from experiments.methods.autoguides import log_weights
from experiments.pages.svi import guides

SETTINGS = {
    "seed": 5011,
    "num_redraws": 6,
    "guides": ["mean-field", "low-rank", "full-rank", "flow"],
    # Of the weights that a guide or a climb starts at. A first grid had U(-2, 2) and N(0, 0.5)
    # alone, three initial scales up to 0.1 and rates from 0.001 to 0.03: nearly all ended in one
    # mode, which NUTS leaves, or at the grid's end. At 0.001 no fit was the best.
    "start_scales": [1.0, 4.0],
    "init_scales": [1e-3, 1e-2, 1e-1, 3e-1],
    "learning_rates": [3e-3, 1e-2, 3e-2, 1e-1],  # falling to 0 along a cosine
    "num_steps": 10_000,
    "num_particles": 10,
    "num_draws": 1000,
    "laplace_starts": 160,  # of each spread: as many gradients as the grid of a guide takes
    "laplace_rate": 1e-2,
    "nuts_start_scale": 0.5,
    "NUTS": {
        # 760 steps a trajectory, as many as the long NUTS took at most: 4 * 1000 * 760 gradients,
        # as a grid of fits
        "short": {"num_warmup": 250, "num_samples": 750, "max_tree_depth": 10},
        # 4 * 196 * 127, as one fit
        "shortest": {"num_warmup": 96, "num_samples": 100, "max_tree_depth": 7},
    },
    "reference_samples": 1500,
}
# where starts are draws of the long NUTS: to tell the search's fault from the guide's, no rival
OF_NUTS = "NUTS"
NUM_FROM_NUTS = 32  # starts of Laplace's method there


def short_nuts(key, observed, sizes):
    """NUTS with no more gradients than a guide has, by all its fits or by one."""
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(
        key_start, guides.SHAPES, (guides.SETTINGS["num_chains"],), SETTINGS["nuts_start_scale"]
    )
    posterior = mcmc.sample(key_chains, guides.LOG_DENSITY, starts, data=observed, **sizes)
    noise = jnp.exp(posterior.draws["log_noise"])
    return {"weights": posterior.draws["params"], "noise": noise, **runs.kept_run(posterior)}


def best_fit(name, key, spreads, drawn, num_steps, observed):
    """Return the fit of the highest ELBO, and the ELBO of all, [spread, init_scale, rate]."""
    axes = spreads, SETTINGS["init_scales"], SETTINGS["learning_rates"]
    grid = list(itertools.product(*axes))
    if spreads == [OF_NUTS]:
        starts = some_of(drawn, len(grid))
    else:
        starts = wide_starts(key("start"), [spread for spread, *_ in grid])
    keys = jnp.stack([key(*place) for place in grid])
    init_scales, rates = (jnp.array([place[i] for place in grid]) for i in (1, 2))
    found = jax.device_get(fits(keys, starts, init_scales, rates, name, num_steps, observed))
    elbo = found["log_weights"].astype(np.float64).mean(axis=1)
    elbo = np.where(np.isfinite(elbo), elbo, -np.inf)  # a fit that failed
    return take(found, elbo.argmax()) | {"elbo": elbo.reshape([len(values) for values in axes])}


def wide_starts(key, scales):
    """Draw starts [start]: weights N(0, scale), each start its own, log noise N(0, 1)."""
    scales = np.array(scales, np.float32)
    starts = mcmc.normal_starts(key, guides.SHAPES, scales.shape)
    wide = jax.tree.map(lambda a: a * scales.reshape(-1, *[1] * (a.ndim - 1)), starts["params"])
    return {"params": wide, "log_noise": starts["log_noise"]}


def some_of(drawn, count):
    """Return draws from all chains as starts, [start]."""
    joined = jax.tree.map(lambda a: np.asarray(a).reshape(-1, *a.shape[2:]), drawn)
    return take(joined, np.linspace(0, len(joined["log_noise"]) - 1, count).astype(int))


@partial(jax.jit, static_argnums=(4, 5))
def fits(keys, starts, init_scales, rates, name, num_steps, observed):
    """Fit a guide for each key; return draws of weights, noise, log weights, [fit, draw]."""
    loss = svi.ELBO if name == "mean-field" else Trace_ELBO(num_particles=SETTINGS["num_particles"])

    def one(place):
        key, start, init_scale, rate = place
        sites = {
            f"net/{layer}.{leaf}": value
            for layer, leaves in start["params"]["params"].items()
            for leaf, value in leaves.items()
        }
        begin = init_to_value(values=sites | {"noise": jnp.exp(start["log_noise"])})

        def guide(model):
            made = autoguides.GUIDES[name](model, init_loc_fn=begin)
            # its own argument has to be a number, and each would be a program
            made._init_scale = init_scale
            return made

        key_fit, key_draw, key_weigh = jax.random.split(key, 3)
        decaying = optax.adam(optax.cosine_decay_schedule(rate, num_steps))
        optimizer = optax.chain(optax.clip_by_global_norm(10.0), decaying)
        settings = {"num_steps": num_steps, "loss": loss, "optimizer": optimizer}
        fitted = svi.run(key_fit, guides.MODEL, guide, (observed,), **settings)
        arguments = guides.MODEL, guide, fitted.params, (observed,), SETTINGS["num_draws"]
        draws = svi.draw(key_draw, *arguments)
        weights = svi.network_position(draws)
        return {
            "weights": weights,
            "noise": draws["noise"],
            "log_weights": log_weights(key_weigh, *arguments),
        }

    return jax.lax.map(one, (keys, starts, init_scales, rates))


def laplace(key, observed, drawn, num_starts, num_steps):
    """Return the best top, and draws by GGN and Hessian there, by arm."""
    key_start, key_draw = jax.random.split(key)
    size = num_starts * len(SETTINGS["start_scales"])
    scales = np.repeat(SETTINGS["start_scales"], num_starts)
    starts = [wide_starts(key_start, scales), some_of(drawn, NUM_FROM_NUTS)]
    starts = jax.tree.map(lambda *parts: jnp.concatenate(parts), *starts)
    tops, height, ggn, hessian = jax.device_get(climb(starts, observed, num_steps))
    evidence = np.array(
        [
            h - 0.5 * np.linalg.slogdet(a.astype(np.float64))[1]
            for h, a in zip(height, ggn, strict=True)
        ]
    )
    evidence = np.where(np.isfinite(evidence), evidence, -np.inf)
    best = int(evidence[:size].argmax())
    mode = take(tops, best)
    top, unravel = ravel_pytree(mode)
    z = np.random.default_rng(np.asarray(jax.random.key_data(key_draw))).normal(
        size=(SETTINGS["num_draws"], top.size)
    )
    found = {}
    for name, precision in (("Laplace, GGN", ggn[best]), ("Laplace, Hessian", hessian[best])):
        values, vectors = np.linalg.eigh(precision.astype(np.float64))
        # Where a direction does not curve down NumPyro's guide has no width at all.
        width = (values > 0).all() / np.sqrt(np.abs(values))
        drawn_here = jax.vmap(unravel)(jnp.asarray(top + (z * width) @ vectors.T, top.dtype))
        noise = jnp.exp(drawn_here["log_noise"])
        found[name] = {"weights": drawn_here["params"], "noise": noise, "least": values.min()}
    more = {
        "mode": mode["params"],
        "top": height,
        "evidence": evidence + 0.5 * top.size * np.log(2 * np.pi),
    }
    more["noise_at_top"] = np.exp(tops["log_noise"])
    return found | {"Laplace, linearised": found["Laplace, GGN"] | more}


@partial(jax.jit, static_argnums=2)
def climb(starts, observed, num_steps):
    """Return Adam's tops, log density, minus curvature there: GGN and Hessian."""
    optimizer = optax.adam(optax.cosine_decay_schedule(SETTINGS["laplace_rate"], num_steps))
    optimizer = optax.chain(optax.clip_by_global_norm(10.0), optimizer)

    def loss(position):
        return -guides.LOG_DENSITY(position, observed)

    tops, _ = jax.vmap(lambda start: training.train(loss, start, optimizer, num_steps))(starts)

    def curved(position):
        vector, unravel = ravel_pytree(position)
        hessian = jax.hessian(lambda v: loss(unravel(v)))(vector)
        return -loss(position), gauss_newton(position, observed), hessian

    return tops, *jax.lax.map(curved, tops)


OF_PRIOR = densities.regression_log_prior(tfd.Normal(0.0, 1.0))


def gauss_newton(position, observed):
    """Return J' F J less the log prior's Hessian; J of curve and log noise, F: Fisher."""
    vector, unravel = ravel_pytree(position)

    def outputs(v):
        given = unravel(v)
        return guides.NETWORK.apply(given["params"], observed.x), given["log_noise"]

    of_curve, of_noise = jax.jacobian(outputs)(vector)
    prior = jax.hessian(lambda v: OF_PRIOR(unravel(v), observed))(vector)
    information = of_curve.T @ of_curve / jnp.exp(2 * position["log_noise"])
    return information + 2 * observed.y.size * jnp.outer(of_noise, of_noise) - prior


@jax.jit
def linearised(mode, weights, x):
    """Return curves [draw, point] to first order round the mode (Immer et al. 2021)."""

    def one(weights):
        move = jax.tree.map(jnp.subtract, weights, mode)
        value, slope = jax.jvp(lambda w: guides.NETWORK.apply(w, x), (mode,), (move,))
        return value + slope

    return jax.lax.map(one, weights)
