"""The evidence of the regions of a hierarchical posterior, and the share of the mass in each.

Tempered SMC finds the evidence within a region (``smc``); runs are averaged before the logarithm is
taken.
"""

from helpers import hierarchical, mcmc, monte_carlo, smc

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from experiments.problems import regions

# Those of the result ``hierarchical_bnn/masses``.
SETTINGS = {
    "particles": 400,
    # of powers at which evidence is kept
    "grid": [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
}
TOTAL = hierarchical.total_log_likelihood(regions.NETWORK)


def confined(key, prior, region, num_tasks, count):
    """Draw particles from the prior within a region: the largest of three alike moves there."""
    key_normal, key_sd = jax.random.split(key)
    shapes = hierarchical.shapes(regions.NETWORK, num_tasks, 2)
    particles = mcmc.normal_starts(key_normal, shapes, (count,))
    log_sd, each = jnp.log(prior.sample((count, 3), seed=key_sd)), jnp.arange(count)
    largest = log_sd.argmax(axis=1)
    swapped = log_sd.at[each, largest].set(log_sd[:, region])
    swapped = swapped.at[each, region].set(log_sd[each, largest])
    return particles | {"log_sd": {layer: swapped[:, i] for i, layer in enumerate(regions.LAYERS)}}


def annealed(key_begin, key_path, observed, hyperprior, region, count):
    """Follow so many particles from the prior to the posterior within a region: where they end, and
    their path, as of ``smc.anneal``.
    """
    prior, num_tasks = regions.HYPERPRIORS[hyperprior], observed.y.shape[0]

    def log_prior(position):
        log_sd = jnp.stack([position["log_sd"][layer] for layer in regions.LAYERS])
        inside = log_sd.argmax() == region
        return jnp.where(inside, hierarchical.log_prior(position, prior), -jnp.inf)

    def log_likelihood(position):
        return TOTAL(hierarchical.task_weights(position, num_tasks), observed)

    particles = confined(key_begin, prior, region, num_tasks, count)
    return smc.anneal(key_path, particles, log_prior, log_likelihood)


def score(drawn, hyperprior, region, redraw, num_tasks, **_):
    """Log evidence of a region at the powers of the grid, its error, that of each run at power 1.

    Of a run it is interpolated between its own powers. ValueError: a run does not reach power 1, or
    is not finite.
    """
    paths = zip(drawn["powers"], drawn["log_evidence"], strict=True)
    each = np.stack([on_grid(*path) for path in paths])
    error = monte_carlo.jackknife(log_mean, each, num_stretches=len(each))  # a run at a time
    return {
        "hyperprior": hyperprior,
        "region": region,
        "redraw": redraw,
        "num_tasks": num_tasks,
        "log_evidence": log_mean(each).tolist(),
        "log_evidence_error": error.tolist(),
        "by_run": each[:, -1].tolist(),
        "number_of_powers": np.isfinite(drawn["powers"]).sum(axis=1).tolist(),
    }


def on_grid(powers, log_evidence):
    """Return a run's log evidence at the powers of the grid."""
    reached = np.isfinite(powers)
    if not reached.any() or powers[reached][-1] < 1:
        raise ValueError(f"powers: given {powers[reached].tolist()}, expected to end with 1")
    if not np.isfinite(log_evidence[reached]).all():
        given = f"given {log_evidence[reached].tolist()}"
        raise ValueError(f"log_evidence: {given}, expected finite numbers")
    start = np.append(0.0, powers[reached].astype(np.float64))
    values = np.append(0.0, log_evidence[reached].astype(np.float64))
    return np.interp(SETTINGS["grid"], start, values)


def log_mean(values):
    """Logarithm of the mean of exponentials over runs, [run, ...]."""
    return logsumexp(values, axis=0) - np.log(len(values))


def row(of_regions):
    """Join the regions of a posterior; the error of a share's logarithm is to first order."""
    log_evidence, error = (
        np.array([one[name] for one in of_regions])
        for name in ("log_evidence", "log_evidence_error")
    )
    log_share = log_evidence - logsumexp(log_evidence, axis=0)[None]
    weighted = np.exp(2 * log_share) * error**2
    of_others = np.sqrt(weighted.sum(axis=0)[None] - weighted)
    shares = {
        "log_share": log_share.tolist(),
        "log_share_error": np.hypot((1 - np.exp(log_share)) * error, of_others).tolist(),
    }
    names = "redraw", "num_tasks", "hyperprior"
    kept = "log_evidence", "log_evidence_error", "by_run", "number_of_powers"
    regionwise = {name: [one[name] for one in of_regions] for name in kept}
    named = {name: of_regions[0][name] for name in names}
    return named | {"powers": SETTINGS["grid"]} | regionwise | shares
