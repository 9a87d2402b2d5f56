"""Where the chains of the hierarchical network go, on the sources' data.

First from which starts and first stages sixteen chains reach which mode; then, from a state in each
mode found, what two chains do when the likelihood is raised to a power below one; last the centred
against the non-centred form, at the same settings.
"""

from helpers import data, densities, diagnostics, hierarchical, mcmc, networks

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import store
from tensorflow_probability.substrates.jax import distributions as tfd

SETTINGS = {
    "seed": 3004,
    "num_chains": 16,
    "starts": [0.05, 0.5, 1.0],
    "tempered": [0.6, 0.8],
    "powers": [1.0, 0.9, 0.8, 0.6, 0.4, 0.2],
    "num_warmup": 200,
    "num_samples": 200,
    "max_tree_depth": 6,
}
SAMPLING = {name: SETTINGS[name] for name in ("num_warmup", "num_samples", "max_tree_depth")}
LAYERS = ("Dense_0", "Dense_1", "Dense_2")
NETWORK = networks.MLP()
NON_CENTRED = hierarchical.log_density(NETWORK)


def centred(position, tasks):
    """The same posterior with the tasks' weights themselves as coordinates; ``offset`` holds the weights."""
    log_prior = (
        tfd.Normal(0.0, 1.0).log_prob(jnp.concatenate([a.ravel() for a in jax.tree.leaves(position["mean"])])).sum()
    )
    for name in LAYERS:
        sd = jnp.exp(position["log_sd"][name])
        mean, weights = position["mean"][name]["kernel"], position["offset"][name]["kernel"]
        log_prior += tfd.Normal(0.0, sd).log_prob(weights - mean[None]).sum()
        log_prior += tfd.HalfNormal(1.0).log_prob(sd) + position["log_sd"][name]
    logits = jax.vmap(NETWORK.apply)({"params": position["offset"]}, tasks.x)
    return log_prior + (tasks.weight * densities.bernoulli_log_likelihood(logits, tasks.y)).sum()


def log_sds(draws):
    """Group log standard deviations, [batch, chain, draw, layer]."""
    return np.stack([np.asarray(draws["log_sd"][name]) for name in LAYERS], axis=-1)


def row(kind, start, power, posterior, index):
    """One setting: the group standard deviations of every chain at its end, and the sampler's own account."""
    draws, stats = jax.tree.map(lambda a: a[index], (posterior.draws, posterior.stats))
    log_sd = log_sds(draws)
    every = diagnostics.summarize(log_sd)
    density = diagnostics.summarize(stats.log_density)
    kept = {
        "kind": kind,
        "start": start,
        "power": power,
        "sd_by_chain": np.exp(np.median(log_sd[:, -50:], axis=1)).round(4).tolist(),
        "path_of_sd": np.exp(log_sd[:, ::10]).round(4).tolist(),
        "divergences": int(stats.diverging.sum()),
        "integration_steps": float(stats.integration_steps.mean()),
        "rhat_log_sd": np.asarray(every.rhat).tolist(),
        "ess_log_sd": np.asarray(every.ess_bulk).tolist(),
        "ess_log_density": float(density.ess_bulk[0]),
    }
    print(kind, start, power, np.round(kept["sd_by_chain"], 2).tolist(), kept["divergences"], flush=True)
    return kept


def main():
    source = data.source_moons()
    shapes = hierarchical.shapes(NETWORK, 18)
    key_starts, key_reach, key_powers, key_forms = jax.random.split(jax.random.key(SETTINGS["seed"]), 4)

    def tasks_at(powers):
        parts = [hierarchical.labelled(source.x_train, source.y_train, power) for power in powers]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)

    # From which starts, and at which power of the likelihood, do chains reach which mode?
    cases = [(scale, 1.0) for scale in SETTINGS["starts"]] + [(1.0, power) for power in SETTINGS["tempered"]]
    keys = jax.random.split(key_starts, len(cases))
    starts = [
        mcmc.normal_starts(k, shapes, (SETTINGS["num_chains"],), s) for k, (s, _) in zip(keys, cases, strict=True)
    ]
    starts = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
    reached = mcmc.sample(key_reach, NON_CENTRED, starts, data=tasks_at([power for _, power in cases]), **SAMPLING)
    rows = [row("starts", scale, power, reached, i) for i, (scale, power) in enumerate(cases)]

    # From a chain of each mode, named by the layer whose standard deviation is largest, at lower powers.
    last = jax.tree.map(lambda a: a[:3, :, -1].reshape(-1, *a.shape[3:]), reached.draws)
    largest = np.stack([np.asarray(last["log_sd"][name]) for name in LAYERS], axis=1).argmax(axis=1)
    for layer, key in enumerate(jax.random.split(key_powers, 3)):
        if (largest == layer).any():
            first = int((largest == layer).argmax())
            one = jax.tree.map(partial(jnp.take, indices=first, axis=0), last)
            begin = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(SETTINGS["powers"]), 2, *a.shape)), one)
            posterior = mcmc.sample(key, NON_CENTRED, begin, data=tasks_at(SETTINGS["powers"]), **SAMPLING)
            rows += [row(f"from mode {layer}", None, p, posterior, i) for i, p in enumerate(SETTINGS["powers"])]

    # Centred and non-centred from the same four states of the first mode, at the same settings.
    fine = np.flatnonzero(largest == 2)[:4]
    begin = jax.tree.map(lambda a: a[fine][None], last)
    weights = jax.vmap(lambda p: hierarchical.task_weights(p, 18)["params"])(jax.tree.map(lambda a: a[0], begin))
    key_centred, key_other = jax.random.split(key_forms)
    forms = {"centred": (key_centred, centred, {**begin, "offset": jax.tree.map(lambda a: a[None], weights)})}
    forms["non-centred"] = (key_other, NON_CENTRED, begin)
    for name, (key, log_density, start) in forms.items():
        posterior = mcmc.sample(
            key, log_density, start, data=tasks_at([1.0]), num_warmup=500, num_samples=1000, max_tree_depth=8
        )
        rows.append(row(name, None, 1.0, posterior, 0))
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
