"""Which mode of the hierarchical posterior holds the mass: the evidence of three regions by
tempered SMC.

Particles are drawn from the prior confined to a region and follow the likelihood from power 0 to 1
without leaving it (Del Moral, Doucet and Jasra 2006; the next power keeps a set share of the
effective sample size; moves are HMC). With powers and moves fixed beforehand the evidence of a run
would be unbiased; here they adapt. Runs are averaged before the logarithm is taken; where few of
them carry the mean, it is more likely too low than too high, and so is its error. On its way a run
passes all powers below 1, and gives the evidence at each.
"""

from helpers import densities, hierarchical, mcmc

from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.smc import adaptive_tempered, resampling
from jax.flatten_util import ravel_pytree
from scipy.special import logsumexp

from experiments import shared
from experiments.problems import regions

SETTINGS = {
    "seed": 3007,
    "hyperpriors": list(regions.HYPERPRIORS),
    # tasks of the sources or of a redraw, and how many
    "posteriors": [["sources", 18], [0, 2], [0, 5]],
    "num_runs": 10,
    "particles": 400,
    "moves": 5,  # after each resampling
    "integration_steps": 10,
    "shares": [0.5, 1.0],  # of the step size, by particle
    "target_acceptance": 0.8,
    "target_ess": 0.9,  # share
    "most_powers": 300,
    # of powers at which evidence is kept
    "grid": [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
}
OF_LABELS = densities.label_log_likelihood(regions.NETWORK)
TOTAL = hierarchical.sum_over_tasks(lambda weights, task: OF_LABELS(weights, task).sum())


def units():
    """A region of a posterior each."""
    return of_regions(SETTINGS["posteriors"], SETTINGS["num_runs"])


def of_regions(posteriors, num_runs):
    """Return the settings of the three regions of posteriors, (redraw, number of tasks), under each
    hyperprior.
    """
    return {
        f"{redraw}, {num_tasks} tasks, {hyperprior}, {regions.LAYERS[region]} widest": {
            "hyperprior": hyperprior,
            "region": region,
            "redraw": redraw,
            "num_tasks": num_tasks,
            "num_runs": num_runs,
        }
        for redraw, num_tasks in posteriors
        for hyperprior in SETTINGS["hyperpriors"]
        for region in range(3)
    }


SMALL = {"hyperprior": "HalfNormal(1)", "region": 2, "redraw": 0, "num_tasks": 2, "num_runs": 4}


def unit(hyperprior, region, redraw, num_tasks, num_runs):
    """Return of each run its powers, the log evidence at each, and the particles before the last
    weights, [run].
    """
    observed = regions.observed(redraw, num_tasks)
    key = partial(shared.key, SETTINGS["seed"], redraw, num_tasks, hyperprior, region)
    found = [annealed(key(run), observed, hyperprior, region) for run in range(num_runs)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *found)


@partial(jax.jit, static_argnums=(2, 3))
def annealed(key, observed, hyperprior, region):
    """Follow particles from the prior to the posterior within a region."""
    prior, num_tasks = regions.HYPERPRIORS[hyperprior], observed.y.shape[0]

    def log_prior(position):
        inside = (
            jnp.stack([position["log_sd"][layer] for layer in regions.LAYERS]).argmax() == region
        )
        return jnp.where(inside, hierarchical.log_prior(position, prior), -jnp.inf)

    def log_likelihood(position):
        return TOTAL(hierarchical.task_weights(position, num_tasks), observed)

    key, key_prior = jax.random.split(key)
    particles = confined(key_prior, prior, region, num_tasks, SETTINGS["particles"])
    state, found = anneal(key, particles, log_prior, log_likelihood)
    return found | {"log_sd": state.particles["log_sd"]}


def anneal(key, particles, log_prior, log_likelihood):
    """Follow particles of the prior to the posterior: where they end, the powers, and the log
    evidence at each.
    """
    count, most = len(jax.tree.leaves(particles)[0]), SETTINGS["most_powers"]

    def move(key, state, log_density, step_size, inverse_mass_matrix):
        sizes = step_size, inverse_mass_matrix, SETTINGS["integration_steps"]
        return blackjax.hmc.build_kernel()(key, state, log_density, *sizes)

    def onwards(carry):
        key, state, log_evidence, step_size, number, path = carry
        key, key_step, key_share = jax.random.split(key, 3)
        low, high = SETTINGS["shares"]
        tuned = {
            "step_size": step_size
            * jax.random.uniform(key_share, (count,), minval=low, maxval=high),
            "inverse_mass_matrix": jax.vmap(lambda one: ravel_pytree(one)[0])(state.particles).var(
                axis=0
            )[None],
        }
        given = log_prior, log_likelihood, move, blackjax.hmc.init, tuned, resampling.systematic
        smc = blackjax.adaptive_tempered_smc(
            *given, SETTINGS["target_ess"], num_mcmc_steps=SETTINGS["moves"]
        )
        state, info = smc.step(key_step, state)
        log_evidence += info.log_likelihood_increment
        acceptance = jnp.nan_to_num(info.update_info.acceptance_rate).mean()
        step_size = step_size * jnp.exp(acceptance - SETTINGS["target_acceptance"])
        path = path.at[:, number].set(jnp.stack([state.tempering_param, log_evidence]))
        return key, state, log_evidence, step_size, number + 1, path

    def unfinished(carry):
        return (carry[1].tempering_param < 1.0) & (carry[4] < most)

    begin = adaptive_tempered.init(particles)
    carry = key, begin, jnp.float32(0.0), jnp.float32(0.1), 0, jnp.full((2, most), jnp.inf)
    _, state, _, _, number, path = jax.lax.while_loop(unfinished, onwards, carry)
    return state, {"powers": path[0], "log_evidence": path[1], "number": number}


def confined(key, prior, region, num_tasks, count):
    """Draw particles from the prior within a region: the largest of three alike changes places with
    the region's.
    """
    key_normal, key_sd = jax.random.split(key)
    particles = mcmc.normal_starts(
        key_normal, hierarchical.shapes(regions.NETWORK, num_tasks, 2), (count,)
    )
    log_sd, each = jnp.log(prior.sample((count, 3), seed=key_sd)), jnp.arange(count)
    largest = log_sd.argmax(axis=1)
    swapped = (
        log_sd.at[each, largest].set(log_sd[:, region]).at[each, region].set(log_sd[each, largest])
    )
    return particles | {"log_sd": {layer: swapped[:, i] for i, layer in enumerate(regions.LAYERS)}}


def score(drawn, hyperprior, region, redraw, num_tasks, **_):
    """The log evidence of a region at the powers of the grid, its error, and that of each run at
    power 1.

    Of a run it is interpolated between its own powers. ValueError: a run does not reach power 1, or
    is not finite.
    """
    each = np.stack(
        [on_grid(*one) for one in zip(drawn["powers"], drawn["log_evidence"], strict=True)]
    )
    error = shared.jackknife(log_mean, each, num_stretches=len(each))  # a run at a time
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
        raise ValueError(
            f"log_evidence: given {log_evidence[reached].tolist()}, expected finite numbers"
        )
    start = np.append(0.0, powers[reached].astype(np.float64))
    return np.interp(
        SETTINGS["grid"], start, np.append(0.0, log_evidence[reached].astype(np.float64))
    )


def log_mean(values):
    """Logarithm of the mean of exponentials over runs, [run, ...]."""
    return logsumexp(values, axis=0) - np.log(len(values))


def rows(scored):
    """A row a posterior: log evidence of its regions, and the logarithm of each one's share of the
    mass, by power.
    """
    found = {}
    for one in scored.values():
        found.setdefault((one["redraw"], one["num_tasks"], one["hyperprior"]), []).append(one)
    return [row(of_regions) for of_regions in found.values()]


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
    return (
        {name: of_regions[0][name] for name in names}
        | {"powers": SETTINGS["grid"]}
        | regionwise
        | shares
    )
