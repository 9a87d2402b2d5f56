"""The group learnt from eighteen training tasks, and distributions fitted to the networks of a task
not yet seen.

All follow from the keys of their names. What is cached serves the arms that a worker fits on one
redraw after the other.
"""

from helpers import common, copies, densities, diagnostics, hierarchical, networks
from helpers.common import take

from functools import lru_cache, partial

import jax.numpy as jnp
import numpy as np

from experiments.methods import fitted_priors, network_fits, runs, scoring
from experiments.problems import new_tasks

SETTINGS = {
    "seed": new_tasks.SEED,
    "num_chains": network_fits.NUM_CHAINS,
    "tempered": network_fits.TEMPERED,
    "group_warmup": 300,
    "group_draws": 1000,
    "mean_every": 10,  # of draws, for the reference that is their own mean
    "components": [2, 3, 4, 6],  # of the mixture; chosen by the log density of held-out chains
}
NETWORK = networks.MLP()
UNRAVEL, SIZE = networks.weights_of(NETWORK, 2)
LAYER = fitted_priors.layer_of_weight(UNRAVEL(jnp.zeros(SIZE))["params"])
LOG_DENSITY, LOGITS = hierarchical.log_density(NETWORK), hierarchical.logits(NETWORK)
MIXTURES = {
    f"mixture of {k}": partial(fitted_priors.fit_mixture, num_components=k)
    for k in SETTINGS["components"]
}
FITS = {
    "scales only": partial(fitted_priors.fit_scales, layer=LAYER),
    "a normal a layer": partial(fitted_priors.fit_layers, layer=LAYER),
    "one normal": fitted_priors.fit_normal,
    "Student-t": fitted_priors.fit_student_t,
    **MIXTURES,
}


@lru_cache(maxsize=1)
def posterior(redraw, num_draws):
    """Sample the group."""
    seen = new_tasks.training(redraw)
    observed = densities.observe(seen.x_train, seen.y_train)
    key, shapes = (
        common.key(SETTINGS["seed"], "group", redraw),
        hierarchical.shapes(NETWORK, new_tasks.NUM_TASKS, 2),
    )
    sizes = {"num_warmup": SETTINGS["group_warmup"], "num_samples": num_draws}
    return network_fits.fit_hierarchical(key, LOG_DENSITY, shapes, observed, **sizes)


def densest(draws, log_density):
    """Return the draw of the highest density of all, without leading axes."""
    best = np.unravel_index(np.asarray(log_density).argmax(), log_density.shape)
    return take(draws, tuple(int(i) for i in best))


@lru_cache(maxsize=3)
def aligned(redraw, num_draws, reference):
    """Return draws of the group, aligned to the densest, to their own mean, or not at all."""
    found = posterior(redraw, num_draws)
    if reference == "none":
        return found.draws
    if reference == "one draw":
        return copies.align(found.draws, densest(found.draws, found.stats.log_density))
    some = take(found.draws, np.s_[:, :: SETTINGS["mean_every"]])
    return copies.align(found.draws, copies.common_reference(some))


@lru_cache(maxsize=3)
def predictive(redraw, num_draws, reference):
    """Return networks of a task not yet seen, [chain, draw, weight]."""
    key = common.key(SETTINGS["seed"], "predictive", redraw)
    return np.asarray(fitted_priors.group_predictive(key, aligned(redraw, num_draws, reference)))


def held_out_density(w, names):
    """Mean log density of each chain's networks [chain, draw, weight] under fits to others."""

    def one(fit, chain):
        return np.mean(fit(np.delete(w, chain, axis=0).reshape(-1, SIZE)).log_prob(w[chain]))

    return {name: np.array([one(FITS[name], chain) for chain in range(len(w))]) for name in names}


def best_mixture(w):
    """Fit the mixture whose number of normals predicts held-out chains best."""
    found = held_out_density(w, MIXTURES)
    return FITS[max(found, key=lambda name: found[name].mean())](w.reshape(-1, SIZE))


def fitted(redraw, num_draws, reference):
    """Return what is kept of the group and of the fits to its networks."""
    found, old = posterior(redraw, num_draws), new_tasks.training(redraw)
    w, raw = (predictive(redraw, num_draws, to) for to in (reference, "none"))
    return {
        "w": w,
        "held_out_density": held_out_density(w, FITS),
        "held_out_density_not_aligned": held_out_density(raw, list(FITS)[:3]),
        "means": {
            "before": found.draws["mean"],
            "after": aligned(redraw, num_draws, reference)["mean"],
        },
        "log_sd": found.draws["log_sd"],
        "p": network_fits.probabilities(LOGITS, found.draws, old.x_test),
        **runs.kept_run(found),
    }


def score(drawn):
    """Return what a row has of group, networks and fits; errors: spread over chains left out."""
    w = drawn["w"].reshape(-1, SIZE).astype(np.float64)
    powers = ((w - w.mean(axis=0)) / w.std(axis=0)) ** 4
    before, after = (diagnostics.summarize(drawn["means"][at]) for at in ("before", "after"))
    of_layers = [np.flatnonzero(i == LAYER) for i in range(3)]
    kept = {
        "group": {
            "rhat_log_sd": diagnostics.summarize(drawn["log_sd"]).rhat.tolist(),
            "rhat_means": [
                float(np.median(before.rhat)),
                float(np.median(after.rhat)),
                float(after.rhat.max()),
            ],
            "ess_means": [float(np.median(one.ess_bulk)) for one in (before, after)]
            + [float(after.ess_bulk.min())],
            "sd": {name: float(np.exp(np.median(a))) for name, a in drawn["log_sd"].items()},
            "divergences": int(drawn["stats"]["diverging"].sum()),
        },
        "excess_kurtosis": [float(powers[:, part].mean() - 3) for part in of_layers],
        "correlation_norm": float(np.abs(np.corrcoef(w.T) - np.eye(SIZE)).mean()),
        "scales": [float(np.sqrt((w[:, part] ** 2).mean())) for part in of_layers],
        "mixture": max(MIXTURES, key=lambda name: drawn["held_out_density"][name].mean()),
    }
    for part in ("held_out_density", "held_out_density_not_aligned"):
        kept[part] = {name: values.tolist() for name, values in drawn[part].items()}
        sd = {name: float(v.std(ddof=1)) for name, v in drawn[part].items()}
        kept[f"{part}_error"] = {name: len(v) * [sd[name]] for name, v in drawn[part].items()}
    check = scoring.check_of_run(drawn, drawn["p"], log_sd=drawn["log_sd"])
    return {"scores": kept, "checks": check}
