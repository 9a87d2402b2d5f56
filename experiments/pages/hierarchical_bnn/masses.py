"""Which mode of the hierarchical posterior holds the mass: the evidence of three regions by
tempered SMC.

Particles are drawn from the prior confined to a region and follow the likelihood from power 0 to 1
without leaving it (Del Moral, Doucet and Jasra 2006; the next power keeps a set share of the
effective sample size; moves are HMC). With powers and moves fixed beforehand the evidence of a run
would be unbiased; here they adapt. Runs are averaged before the logarithm is taken; where few of
them carry the mean, it is more likely too low than too high, and so is its error. On its way a run
passes all powers below 1, and gives the evidence at each.

Redrawn data have fewer runs. On the sources' data the lowest of ten runs of the heaviest region was
28 or more above the highest of the others; for such a distance three do. With two tasks and five
regions share the mass, and five runs know it roughly: where a rare run finds most of the evidence,
their spread is too small an error. Where a posterior has both, the five are the first of the ten.
"""

from helpers import common

from functools import partial

import jax
import numpy as np

from experiments.methods import region_masses
from experiments.methods.region_masses import score as score  # of this result, too
from experiments.problems import regions

SETTINGS = {
    "seed": 3007,
    "hyperpriors": list(regions.HYPERPRIORS),
    "posteriors": [  # of so many tasks of the sources or of redraws
        {"redraws": ["sources"], "num_tasks": 18, "num_runs": 10},
        {"redraws": [0], "num_tasks": 2, "num_runs": 10},
        {"redraws": [0], "num_tasks": 5, "num_runs": 10},
        {"redraws": [0, 1, 2, 3, 4], "num_tasks": 2, "num_runs": 5},
        {"redraws": [0, 1, 2, 3, 4], "num_tasks": 5, "num_runs": 5},
        {"redraws": [0, 1, 2, 3, 4], "num_tasks": 18, "num_runs": 3},
    ],
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
    return {
        f"{redraw}, {of['num_tasks']} tasks, {hyperprior}, {layer} widest, {of['num_runs']} runs": {
            "hyperprior": hyperprior,
            "region": region,
            "redraw": redraw,
            "num_tasks": of["num_tasks"],
            "num_runs": of["num_runs"],
        }
        for of in SETTINGS["posteriors"]
        for redraw in of["redraws"]
        for hyperprior in SETTINGS["hyperpriors"]
        for region, layer in enumerate(regions.LAYERS)
    }


SMALL = [
    {"hyperprior": "HalfNormal(1)", "region": 2, "redraw": 0, "num_tasks": 2, "num_runs": 4},
    {"hyperprior": "HalfNormal(5)", "region": 0, "redraw": 0, "num_tasks": 2, "num_runs": 2},
    {"hyperprior": "HalfNormal(5)", "region": 1, "redraw": 3, "num_tasks": 2, "num_runs": 2},
]


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
    key, key_prior = jax.random.split(key)
    state, found = region_masses.annealed(
        key_prior, key, observed, hyperprior, region, SETTINGS["particles"]
    )
    return found | {"log_sd": state.particles["log_sd"]}


def rows(scored):
    """A row a posterior and number of runs: log evidence of its regions, and the logarithm of each
    one's share of the mass, by power.
    """
    found = {}
    for one in scored.values():
        posterior = one["redraw"], one["num_tasks"], one["hyperprior"], len(one["by_run"])
        found.setdefault(posterior, []).append(one)
    return [
        region_masses.row(of_regions) | {"num_runs": num_runs}
        for (*_, num_runs), of_regions in found.items()
    ]
