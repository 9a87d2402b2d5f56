"""Simulation-based calibration of the flat network: weights from the prior, labels from the weights, fit, rank.

Three samplers see the same simulated labels: the book's; the book's with the likelihood at a power other
than one, as if some labels had been forgotten; and one that returns draws of its prior and sees no data.
"""

from helpers import data, densities, diagnostics, mcmc, networks, verify

import jax
import jax.numpy as jnp
import numpy as np
import store

SETTINGS = {
    "seed": 4001,
    "num_replications": 1000,
    "num_chains": 2,
    "num_warmup": 200,
    "num_samples": 500,
    "thin": 10,
    "max_tree_depth": 6,
    "power": 0.7,  # of the likelihood, for the second sampler
    "points": [[-1.0, -1.0], [0.5, -0.5], [1.0, 0.0], [2.0, 1.0]],  # where f is ranked; at the origin it is 0
    "threshold_chance": 0.01,  # of a band for each quantity, fixed before any result was seen
}
QUANTITIES = ["log likelihood", "squared norm of the weights", *(f"f at {tuple(p)}" for p in SETTINGS["points"])]
NETWORK = networks.MLP()
FLAT = densities.flat_log_density(NETWORK)


def quantities(weights, observed):
    """What is ranked; the log likelihood depends on the data, without which the prior would pass."""
    likelihood = densities.bernoulli_log_likelihood(NETWORK.apply(weights, observed.x), observed.y).sum()
    norm = sum((leaf**2).sum() for leaf in jax.tree.leaves(weights))
    return jnp.concatenate([jnp.stack([likelihood, norm]), NETWORK.apply(weights, jnp.array(SETTINGS["points"]))])


@jax.jit
def of_draws(draws, observed):
    """Quantities of [replication, draw] sets of weights."""
    return jax.lax.map(lambda pair: jax.lax.map(lambda w: quantities(w, pair[1]), pair[0]), (draws, observed))


def row(name, values, truth, ess=None):
    """Ranks of the truth, their distance from uniform ones, and what chance explains."""
    num_draws = values.shape[1]
    found = verify.ranks(values, truth)
    kept = {
        "name": name,
        "num_draws": num_draws,
        "ranks": {q: found[:, i].tolist() for i, q in enumerate(QUANTITIES)},
        "distance": dict(zip(QUANTITIES, verify.rank_distance(found, num_draws).tolist(), strict=True)),
        "band": verify.rank_band(len(found), num_draws, SETTINGS["threshold_chance"]),
        "ess": [] if ess is None else ess,  # 1st, 5th and 50th percentile over replications, of each quantity
    }
    print(name, kept["band"], kept["distance"], kept["ess"], flush=True)
    return kept


def main():
    key_prior, key_labels, key_starts, key_other, *keys = jax.random.split(jax.random.key(SETTINGS["seed"]), 6)
    count, chains = SETTINGS["num_replications"], SETTINGS["num_chains"]
    x = data.source_moons().x_train[0]
    weights = jax.eval_shape(NETWORK.init, key_prior, x)
    truth = mcmc.normal_starts(key_prior, weights, (count,))
    logits = jax.vmap(lambda w: NETWORK.apply(w, x))(truth)
    y = jax.random.bernoulli(key_labels, jax.nn.sigmoid(logits)).astype(jnp.int32)
    observed = densities.observe(jnp.broadcast_to(x, (count, *x.shape)), y, jnp.ones(3))
    true_values = jax.jit(jax.vmap(quantities))(truth, observed)

    def tempered(w, observed):
        return SETTINGS["power"] * FLAT(w, observed) + (1 - SETTINGS["power"]) * densities.normal_log_prior(
            w, observed.prior_scales
        )

    starts = mcmc.normal_starts(key_starts, weights, (count, chains))
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples", "max_tree_depth")}
    rows = []
    samplers = {"the book's sampler": FLAT, "likelihood at power 0.7": tempered}
    for key, (name, density) in zip(keys, samplers.items(), strict=True):
        draws = mcmc.sample(key, density, starts, data=observed, **sizes).draws
        joined = jax.tree.map(lambda a: a.reshape(count, -1, *a.shape[3:]), draws)
        values = np.asarray(of_draws(joined, observed)).reshape(count, chains, -1, len(QUANTITIES))
        ess = np.array([diagnostics.summarize(one).ess_bulk for one in values])
        thinned = values[:, :, :: SETTINGS["thin"]].reshape(count, -1, len(QUANTITIES))
        rows.append(row(name, thinned, true_values, np.quantile(ess, [0.01, 0.05, 0.5], axis=0).T.tolist()))
    num_draws = chains * SETTINGS["num_samples"] // SETTINGS["thin"]
    prior = mcmc.normal_starts(key_other, weights, (count, num_draws))
    rows.append(row("draws of the prior", np.asarray(of_draws(prior, observed)), true_values))
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
