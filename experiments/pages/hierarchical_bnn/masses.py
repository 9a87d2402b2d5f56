"""Which mode of the hierarchical posterior holds the mass: the evidence of three regions by
tempered SMC.

Particles are drawn from the prior confined to a region and follow the likelihood from power 0 to 1
without leaving it (Del Moral, Doucet and Jasra 2006; the next power keeps a set share of the
effective sample size; moves are HMC). With powers and moves fixed beforehand the evidence of a run
would be unbiased; here they adapt. Runs are averaged before the logarithm is taken; where few of
them carry the mean, it is more likely too low than too high, and so is its error. On its way a run
passes all powers below 1, and gives the evidence at each.
"""

from helpers import common, hierarchical, smc

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import region_masses
from experiments.methods.region_masses import score as score  # of this result, too
from experiments.problems import regions

# engine and pages find it here

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
    key = partial(common.key, SETTINGS["seed"], redraw, num_tasks, hyperprior, region)
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
        return region_masses.TOTAL(hierarchical.task_weights(position, num_tasks), observed)

    key, key_prior = jax.random.split(key)
    particles = region_masses.confined(key_prior, prior, region, num_tasks, SETTINGS["particles"])
    state, found = smc.anneal(key, particles, log_prior, log_likelihood)
    return found | {"log_sd": state.particles["log_sd"]}


def rows(scored):
    """A row a posterior: log evidence of its regions, and the logarithm of each one's share of the
    mass, by power.
    """
    found = {}
    for one in scored.values():
        found.setdefault((one["redraw"], one["num_tasks"], one["hyperprior"]), []).append(one)
    return [region_masses.row(of_regions) for of_regions in found.values()]
