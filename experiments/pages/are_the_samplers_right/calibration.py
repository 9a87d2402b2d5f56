"""Simulation-based calibration of the flat network: weights from the prior, labels from the
weights, fit, rank.

Three samplers see the same simulated labels: the book's; the book's with the likelihood at a power
other than one, as if some labels had been forgotten; and one that returns draws of its prior and
sees no data.
"""

from helpers import common, data, densities, diagnostics, mcmc, networks, verify

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import runs

SETTINGS = {
    "seed": 4001,
    "num_replications": 1000,
    "num_a_unit": 50,
    "num_chains": 4,
    "num_warmup": 200,
    "num_samples": 500,
    "thin": 20,  # 100 nearly independent draws are ranked
    # Each sampler's power of the likelihood; 0: draws of the prior.
    "samplers": {
        "the book's sampler": 1.0,
        "likelihood at power 0.7": 0.7,
        "draws of the prior": 0.0,
    },
    # where f is ranked; at the origin it is 0
    "points": [[-1.0, -1.0], [0.5, -0.5], [1.0, 0.0], [2.0, 1.0]],
    "threshold_chance": 0.01,  # of a band for each quantity, fixed before any result was seen
}
QUANTITIES = [
    "log likelihood",
    "squared norm of the weights",
    *(f"f at {tuple(p)}" for p in SETTINGS["points"]),
]
NETWORK = networks.MLP()
FLAT = densities.flat_log_density(NETWORK)


def units():
    """A sampler and some of the replications each."""
    count = SETTINGS["num_a_unit"]
    return {
        f"{sampler}, from {first}": {"sampler": sampler, "first": first, "count": count}
        for sampler in SETTINGS["samplers"]
        for first in range(0, SETTINGS["num_replications"], count)
    }


SMALL = {"sampler": "the book's sampler", "first": 0, "count": 10}


def simulated(first, count):
    """Return weights of the prior and what is observed of each, leading axis [replication].

    Each replication has a key of its own, so that any of them can be made again alone.
    """
    x = data.source_moons().x_train[0]
    keys = jnp.stack(
        [common.key(SETTINGS["seed"], "replication", i) for i in range(first, first + count)]
    )
    truth, y = _simulate(keys, x)
    return truth, densities.observe(np.broadcast_to(x, (count, *x.shape)), y, jnp.ones(3))


@jax.jit
def _simulate(keys, x):
    def one(key):
        key_weights, key_labels = jax.random.split(key)
        weights = mcmc.normal_starts(key_weights, networks.parameter_shapes(NETWORK, 2), ())
        return weights, jax.random.bernoulli(
            key_labels, jax.nn.sigmoid(NETWORK.apply(weights, x))
        ).astype(jnp.int32)

    return jax.vmap(one)(keys)


def quantities(weights, observed):
    """Return what is ranked, the log likelihood too: without data the prior would pass."""
    likelihood = densities.bernoulli_log_likelihood(
        NETWORK.apply(weights, observed.x), observed.y
    ).sum()
    norm = sum((leaf**2).sum() for leaf in jax.tree.leaves(weights))
    return jnp.concatenate(
        [jnp.stack([likelihood, norm]), NETWORK.apply(weights, jnp.array(SETTINGS["points"]))]
    )


@jax.jit
def of_draws(draws, observed):
    """Return quantities of sets of weights, [replication, chain, draw, quantity]."""

    def of_replication(pair):
        draws, observed = pair
        return jax.lax.map(jax.vmap(lambda weights: quantities(weights, observed)), draws)

    return jax.lax.map(of_replication, (draws, observed))


def unit(sampler, first, count):
    """Fit some replications by a sampler; keep quantities of draws and of the true weights."""
    truth, observed = simulated(first, count)
    kept = {"truth": jax.jit(jax.vmap(quantities))(truth, observed)}
    key_start, key_chains = (
        common.key(SETTINGS["seed"], part, sampler, first) for part in ("starts", "chains")
    )
    batch, power = (count, SETTINGS["num_chains"]), SETTINGS["samplers"][sampler]
    if power == 0:
        batch = (*batch, SETTINGS["num_samples"] // SETTINGS["thin"])
        draws = mcmc.normal_starts(key_chains, networks.parameter_shapes(NETWORK, 2), batch)
        return kept | {"values": of_draws(draws, observed)}
    starts = mcmc.normal_starts(key_start, networks.parameter_shapes(NETWORK, 2), batch)
    weighted = observed._replace(weight=power * observed.weight)
    sizes = {"num_warmup": SETTINGS["num_warmup"], "num_samples": SETTINGS["num_samples"]}
    posterior = mcmc.sample(key_chains, FLAT, starts, tasks=weighted, **sizes)
    kept |= runs.kept_run(posterior)
    return kept | {"values": of_draws(posterior.draws, observed)}


def score(drawn, **_):
    """Ranks of the truth among thinned draws, [replication, quantity], its share, with errors."""
    values, truth = drawn["values"], drawn["truth"]
    if "stats" not in drawn:
        ranks = verify.ranks(values.reshape(len(values), -1, len(QUANTITIES)), truth)
        return {"ranks": ranks.tolist()}
    thinned = values[:, :, :: SETTINGS["thin"]].reshape(len(values), -1, len(QUANTITIES))
    leading = np.moveaxis(values, 0, 2)  # [chain, draw, replication, quantity]
    below = (leading < truth).astype(float)
    posterior = runs.run_from(drawn)
    return {
        "ranks": verify.ranks(thinned, truth).tolist(),
        "below": below.mean(axis=(0, 1)).tolist(),
        "below_error": diagnostics.standard_error(below).tolist(),
        "ess": diagnostics.summarize(leading).ess_bulk.reshape(truth.shape).tolist(),
        "check": runs.diagnosis(posterior, values),
    }


def rows(scored):
    """A row a sampler: all ranks, their distance from uniform ones, and what chance explains."""
    made = []
    for sampler in SETTINGS["samplers"]:
        parts = [part for name, part in scored.items() if name.startswith(f"{sampler}, ")]

        def joined(name, parts=parts):
            return np.concatenate([part[name] for part in parts])

        ranks = joined("ranks")
        num_draws = SETTINGS["num_chains"] * SETTINGS["num_samples"] // SETTINGS["thin"]
        row = {
            "name": sampler,
            "num_draws": num_draws,
            "ranks": {name: ranks[:, i].tolist() for i, name in enumerate(QUANTITIES)},
            "distance": dict(
                zip(QUANTITIES, verify.rank_distance(ranks, num_draws).tolist(), strict=True)
            ),
            "band": verify.rank_band(len(ranks), num_draws, SETTINGS["threshold_chance"]),
            "ess": [],
        }
        if "check" in parts[0]:
            # 1st, 5th and 50th percentile over replications, of each quantity
            row["ess"] = np.quantile(joined("ess"), [0.01, 0.05, 0.5], axis=0).T.tolist()
            row["below"] = joined("below")[:, 0].tolist()  # of the log likelihood
            row["below_error"] = joined("below_error")[:, 0].tolist()
            row["check"] = [part["check"] for part in parts]
        made.append(row)
    return made
