"""Where the chains of the hierarchical network go, on the sources' data.

First from which starts and first stages sixteen chains reach which mode; then, from a state in each
mode found, what four chains do when the likelihood is raised to a power below one; last the centred
against the non-centred form, from the same states, at the same settings.
"""

from helpers import common, data, densities, diagnostics, hierarchical, mcmc, networks, predict
from helpers.common import take

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import runs

SETTINGS = {
    "seed": 3004,
    "num_started": 16,
    # scale of the starts, power
    "cases": [[0.05, 1.0], [0.5, 1.0], [1.0, 1.0], [1.0, 0.6], [1.0, 0.8]],
    "num_chains": 4,
    "powers": [1.0, 0.9, 0.8, 0.6, 0.4, 0.2],
    "sizes": {"num_warmup": 200, "num_samples": 200},
    "sizes_of_forms": {"num_warmup": 500, "num_samples": 1000},
}
LAYERS = ("Dense_0", "Dense_1", "Dense_2")
FORMS = ("centred", "non-centred")
NETWORK = networks.MLP()
NON_CENTRED, LOGITS = hierarchical.log_density(NETWORK), hierarchical.logits(NETWORK)


def units():
    """A posterior each: its kind, the scale of starts that are drawn, the likelihood's power."""
    count, parts = SETTINGS["num_started"], [("starts", *case) for case in SETTINGS["cases"]]
    parts += [
        (f"from mode {mode}", None, power) for mode in range(3) for power in SETTINGS["powers"]
    ]
    parts += [(form, None, 1.0) for form in FORMS]
    return {
        f"{kind}, {start}, {power}": {
            "kind": kind,
            "start": start,
            "power": power,
            "num_started": count,
        }
        for kind, start, power in parts
    }


SMALL = {"kind": "starts", "start": 0.05, "power": 0.6, "num_started": 4}


def observed_at(power):
    """Return the sources' training points with the likelihood at a power."""
    source = data.source_moons()
    return densities.observe(source.x_train, source.y_train, weight=power)


@lru_cache  # once a worker: the states that other units begin with are the ends of these chains
def from_starts(start, power, num_started):
    """Sample from starts N(0, start)."""
    key_start, key_chains = (
        common.key(SETTINGS["seed"], part, start, power) for part in ("starts", "chains")
    )
    starts = mcmc.normal_starts(
        key_start, hierarchical.shapes(NETWORK, 18, 2), (num_started,), start
    )
    return mcmc.sample(
        key_chains, NON_CENTRED, starts, data=observed_at(power), **SETTINGS["sizes"]
    )


def states(mode, num_started):
    """Return the ends, at power 1, of all chains in a mode, named by its widest layer."""
    runs = [
        from_starts(start, power, num_started) for start, power in SETTINGS["cases"] if power == 1
    ]
    ends = jax.tree.map(
        lambda *leaves: jnp.concatenate([leaf[:, -1] for leaf in leaves]), *[r.draws for r in runs]
    )
    widest = np.stack([ends["log_sd"][layer] for layer in LAYERS], axis=1).argmax(axis=1)
    return take(ends, np.flatnonzero(widest == mode))


def non_centred(position):
    """Return coordinates of ``hierarchical``; centred, ``offset`` holds tasks' weights."""

    def offset(layer):
        sd, mean = jnp.exp(position["log_sd"][layer]), position["mean"][layer]["kernel"]
        return {"kernel": (position["offset"][layer]["kernel"] - mean[None]) / sd}

    return {**position, "offset": {layer: offset(layer) for layer in LAYERS}}


def centred(position, observed):
    """Return the same log posterior of centred coordinates, with its Jacobian."""
    sizes = {layer: position["offset"][layer]["kernel"].size for layer in LAYERS}
    return NON_CENTRED(non_centred(position), observed) - sum(
        sizes[name] * position["log_sd"][name] for name in LAYERS
    )


def sample(kind, start, power, num_started):
    """Sample what a unit asks for; None if its mode was not found."""
    if kind == "starts":
        return from_starts(start, power, num_started)
    key, num_chains = common.key(SETTINGS["seed"], kind, power), SETTINGS["num_chains"]
    if kind not in FORMS:
        of_mode = states(int(kind[-1]), num_started)
        if not len(of_mode["log_sd"][LAYERS[0]]):
            return None
        begin = jax.tree.map(lambda leaf: jnp.repeat(leaf[:1], num_chains, axis=0), of_mode)
        return mcmc.sample(key, NON_CENTRED, begin, data=observed_at(power), **SETTINGS["sizes"])
    begin, log_density = take(states(2, num_started), np.s_[:num_chains]), NON_CENTRED
    if kind == "centred":
        begin["offset"] = jax.vmap(
            lambda position: hierarchical.task_weights(position, 18)["params"]
        )(begin)
        log_density = centred
    posterior = mcmc.sample(
        key, log_density, begin, data=observed_at(power), **SETTINGS["sizes_of_forms"]
    )
    if kind == "centred":
        posterior = posterior._replace(
            draws=jax.jit(jax.vmap(jax.vmap(non_centred)))(posterior.draws)
        )
    return posterior


def unit(**setting):
    """Sample; keep group standard deviations, and p at some of the sources' test points."""
    posterior = sample(**setting)
    if posterior is None:
        return {"found": np.array(False)}
    x = data.source_moons().x_test[:, ::9]
    return {
        "found": np.array(True),
        "log_sd": posterior.draws["log_sd"],
        "p": predict.of_draws(
            lambda position: jax.nn.sigmoid(LOGITS(position, x)), posterior.draws
        ),
        **runs.kept_run(posterior),
    }


def score(drawn, kind, start, power, **_):
    """Group standard deviations of every chain, on its way and at its end; its diagnostics."""
    if not drawn["found"]:
        return {}
    posterior = runs.run_from(drawn)
    log_sd = np.stack([drawn["log_sd"][layer] for layer in LAYERS], axis=-1)  # [chain, draw, layer]
    every, p = diagnostics.summarize(log_sd), drawn["p"]
    return {
        "kind": kind,
        "start": start,
        "power": power,
        "sd_by_chain": np.exp(np.median(log_sd[:, -50:], axis=1)).tolist(),
        "path_of_sd": np.exp(log_sd[:, ::10]).astype(float).round(4).tolist(),
        "log_sd": log_sd.mean(axis=(0, 1)).tolist(),
        "log_sd_error": diagnostics.standard_error(log_sd).tolist(),
        "p": p.mean(axis=(0, 1)).tolist(),
        "p_error": diagnostics.standard_error(p).tolist(),
        "divergences": int(posterior.stats.diverging.sum()),
        "integration_steps": float(posterior.stats.integration_steps.mean()),
        "rhat_log_sd": every.rhat.tolist(),
        "ess_log_sd": every.ess_bulk.tolist(),
        "ess_log_density": float(diagnostics.summarize(posterior.stats.log_density).ess_bulk[0]),
        "check": runs.diagnosis(posterior, p, log_sd=drawn["log_sd"]),
    }


def rows(scored):
    """A row a posterior, in the order of the units; a mode in which no chain ended has none."""
    only_checked = {"p", "p_error"}
    return [
        {name: part[name] for name in part if name not in only_checked}
        for part in scored.values()
        if part
    ]
