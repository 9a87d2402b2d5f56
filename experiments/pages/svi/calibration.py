"""Variational simulation-based calibration of a regression network: does a guide's centre lie right
on average?

Weights and noise from the prior make measurements, a guide is fitted to them, and the true values
are ranked among its draws. Ranked are only quantities that all copies of a network share: the curve
at four points, and the noise. NUTS sees the same measurements.
"""

from helpers import common, densities, mcmc, networks, svi, verify

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import runs
from experiments.problems.numpyro_models import regression_model

SETTINGS = {
    "seed": 5001,
    "num_replications": 120,
    "replications_a_unit": 20,
    "num_points": 20,
    "noise_scale": 0.5,
    "hidden": 5,
    "num_steps": 3000,
    "num_draws": 200,
    "points": [-1.4, -0.5, 0.0, 1.4],  # where the curve is ranked
    "num_chains": 4,
    "num_warmup": 200,
    "num_samples": 500,
    "max_tree_depth": 10,
    "threshold_chance": 0.01,
}
NETWORK = networks.MLP((SETTINGS["hidden"],), use_bias=True)
MODEL = partial(regression_model, NETWORK, noise_scale=SETTINGS["noise_scale"])
LOG_DENSITY = densities.regression_log_density(
    NETWORK, tfd.Normal(0.0, 1.0), SETTINGS["noise_scale"]
)
SHAPES = {
    "params": networks.parameter_shapes(NETWORK, 1),
    "log_noise": jax.ShapeDtypeStruct((), jnp.float32),
}
QUANTITIES = [*(f"f at {p:g}" for p in SETTINGS["points"]), "noise"]
GUIDES = {
    "mean-field": (partial(AutoNormal, init_scale=1e-3), svi.ELBO),
    "full-rank": (partial(AutoMultivariateNormal, init_scale=1e-3), Trace_ELBO(num_particles=10)),
}
SMALL = {"arm": "mean-field", "first": 0, "count": 4}


def units() -> dict[str, dict]:
    """Return each guide and NUTS on several replications at a time."""
    count = SETTINGS["replications_a_unit"]
    firsts = range(0, SETTINGS["num_replications"], count)
    return {
        f"{arm}, from {first}": {"arm": arm, "first": first, "count": count}
        for arm in [*GUIDES, "NUTS"]
        for first in firsts
    }


def unit(arm: str, first: int, count: int) -> dict:
    """Return quantities of draws, [replication, chain, draw, quantity], and the true ones."""
    truth, observed = replications(first, count)
    numbers = range(first, first + count)
    if arm == "NUTS":
        starts = mcmc.normal_starts(
            common.key(SETTINGS["seed"], "start", first), SHAPES, (count, SETTINGS["num_chains"])
        )
        sizes = {
            "num_warmup": SETTINGS["num_warmup"],
            "num_samples": SETTINGS["num_samples"],
            "max_tree_depth": SETTINGS["max_tree_depth"],
        }
        posterior = mcmc.sample(
            common.key(SETTINGS["seed"], "NUTS", first),
            LOG_DENSITY,
            starts,
            tasks=observed,
            **sizes,
        )
        values = _of_draws(posterior.draws["params"], jnp.exp(posterior.draws["log_noise"]))
        diagnosis = runs.kept_run(posterior)
        return {"truth": truth, "values": values, **diagnosis}
    keys = jnp.stack([common.key(SETTINGS["seed"], arm, number) for number in numbers])
    values, losses = fits(keys, arm, observed)
    svi.check_losses(losses)
    return {"truth": truth, "values": values[:, None]}


def replications(first: int, count: int) -> tuple[jax.Array, densities.Observed]:
    """Return true quantities and measurements, [replication, ...], each by its own key."""
    x = jax.random.uniform(
        common.key(SETTINGS["seed"], "x"), (SETTINGS["num_points"], 1), minval=-1.0
    ).sort(axis=0)
    keys = jnp.stack(
        [common.key(SETTINGS["seed"], "data", number) for number in range(first, first + count)]
    )
    truth, y = _replicate(keys, x)
    x = np.broadcast_to(x, (count, *x.shape))
    return truth, densities.observe(x, y, [1.0, 1.0], num_classes=None)


@jax.jit
@partial(jax.vmap, in_axes=(0, None))
def _replicate(key, x):
    key_weights, key_noise, key_y = jax.random.split(key, 3)
    weights = mcmc.normal_starts(key_weights, SHAPES["params"], ())
    noise = jnp.abs(SETTINGS["noise_scale"] * jax.random.cauchy(key_noise))
    mean = NETWORK.apply(weights, x)
    return quantities(weights, noise), mean + noise * jax.random.normal(key_y, mean.shape)


def quantities(weights, noise):
    """What is ranked."""
    return jnp.append(NETWORK.apply(weights, jnp.array(SETTINGS["points"])[:, None]), noise)


_of_draws = jax.jit(jax.vmap(jax.vmap(jax.vmap(quantities))))


@partial(jax.jit, static_argnums=1)
def fits(keys, name, observed):
    """Quantities of every guide's draws, [replication, draw, quantity], and losses."""

    def one(pair):
        key, observed = pair
        guide, loss = GUIDES[name]
        key_fit, key_draw = jax.random.split(key)
        fit = svi.run(
            key_fit, MODEL, guide, (observed,), num_steps=SETTINGS["num_steps"], loss=loss
        )
        draws = svi.draw(key_draw, MODEL, guide, fit.params, (observed,), SETTINGS["num_draws"])
        return jax.vmap(quantities)(svi.network_position(draws), draws["noise"]), fit.losses

    return jax.lax.map(one, (keys, observed))


def score(drawn: dict, arm: str, first: int, count: int) -> dict:
    """Return ranks of the truth, and the binomial error of ranks among so many draws."""
    thin = drawn["values"].shape[1] * drawn["values"].shape[2] // SETTINGS["num_draws"]
    values = drawn["values"][:, :, ::thin].reshape(count, SETTINGS["num_draws"], -1)
    found = verify.ranks(values, drawn["truth"])
    share = (found + 1) / (SETTINGS["num_draws"] + 2)
    error = np.sqrt(SETTINGS["num_draws"] * share * (1 - share))
    kept = {"ranks": by_quantity(found), "ranks_error": by_quantity(error), "check": {}}
    if arm == "NUTS":
        posterior = runs.run_from(drawn)
        kept["check"] = runs.diagnosis(posterior, drawn["values"])
    return kept


def by_quantity(values):
    """Columns by name."""
    return dict(zip(QUANTITIES, np.transpose(values).tolist(), strict=True))


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row a guide and NUTS: all ranks, and their distance from uniform ones."""
    settings, num_draws = units(), SETTINGS["num_draws"]

    def row(arm):
        parts = [scored[name] for name in scored if settings[name]["arm"] == arm]
        ranks, error = (
            {q: [rank for part in parts for rank in part[entry][q]] for q in QUANTITIES}
            for entry in ("ranks", "ranks_error")
        )
        distance = verify.rank_distance(np.transpose(list(ranks.values())), num_draws)
        return {
            "name": arm,
            "num_draws": num_draws,
            "ranks": ranks,
            "ranks_error": error,
            "distance": dict(zip(QUANTITIES, distance.tolist(), strict=True)),
            "band": verify.rank_band(
                SETTINGS["num_replications"], num_draws, SETTINGS["threshold_chance"]
            ),
            "check": [part["check"] for part in parts if part["check"]],
        }

    return [row(arm) for arm in [*GUIDES, "NUTS"]]
