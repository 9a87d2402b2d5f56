"""Which layer differs most between tasks where the scales of the means are learnt too: the mass of
each answer.

The posterior is that of ``every layer, means' scale learnt`` of ``attribution``. It is cut into
three regions, by the layer whose group standard deviation is the largest multiple of its means'
scale. All six scales have one hyperprior, so each region has a third of the prior. The evidence of
a region is found as in ``hierarchical_bnn/masses``.
"""

from helpers import common, hierarchical, mcmc, smc

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import region_masses
from experiments.pages.what_the_gain_is_made_of import attribution
from experiments.problems import regions

SEED = 3013
SETTINGS = {
    "seed": SEED,
    "hyperpriors": list(regions.HYPERPRIORS),
    "num_redraws": 2,
    "num_tasks": 18,
    "num_runs": 3,
}
row = region_masses.row


def units():
    """A region of a posterior each."""
    return {
        f"{i}, {hyperprior}, {layer} differs most": {
            "hyperprior": hyperprior,
            "region": region,
            "redraw": i,
            "num_tasks": SETTINGS["num_tasks"],
            "num_runs": SETTINGS["num_runs"],
        }
        for i in range(SETTINGS["num_redraws"])
        for hyperprior in SETTINGS["hyperpriors"]
        for region, layer in enumerate(regions.LAYERS)
    }


SMALL = {"hyperprior": "HalfNormal(5)", "region": 0, "redraw": 0, "num_tasks": 2, "num_runs": 2}


def unit(hyperprior, region, redraw, num_tasks, num_runs):
    """Return of each run its powers, the log evidence at each, and the scales of the last
    particles, [run].
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
        inside = attribution.ratio(position["log_sd"]).argmax() == region
        return jnp.where(inside, hierarchical.log_prior(position, prior), -jnp.inf)

    def log_likelihood(position):
        return attribution.TOTAL(
            hierarchical.task_weights(attribution.plain(position), num_tasks), observed
        )

    key, key_prior = jax.random.split(key)
    particles = confined(key_prior, prior, region, num_tasks, region_masses.SETTINGS["particles"])
    state, found = smc.anneal(key, particles, log_prior, log_likelihood)
    return found | {"log_sd": state.particles["log_sd"]}


def confined(key, prior, region, num_tasks, count):
    """Draw particles from the prior within a region: the layer that differs most changes places
    with the region's.
    """
    key_normal, key_sd = jax.random.split(key)
    shapes = attribution.shapes(num_tasks, list(regions.LAYERS), "learnt", False)
    particles = mcmc.normal_starts(key_normal, shapes, (count,))
    log_sd, each = jnp.log(prior.sample((count, 2, 3), seed=key_sd)), jnp.arange(count)
    most = (log_sd[:, 0] - log_sd[:, 1]).argmax(axis=1)
    swapped = (
        log_sd.at[each, :, most]
        .set(log_sd[:, :, region])
        .at[each, :, region]
        .set(log_sd[each, :, most])
    )
    names = [*regions.LAYERS], [*attribution.MEANS]
    named = {name: swapped[:, i, j] for i, of in enumerate(names) for j, name in enumerate(of)}
    return particles | {"log_sd": named}


def score(drawn, hyperprior, region, redraw, num_tasks, **_):
    """Scores of ``masses``, and the median scales of the last particles of each run."""
    medians = {
        name: np.exp(np.median(part, axis=1)).tolist() for name, part in drawn["log_sd"].items()
    }
    return region_masses.score(drawn, hyperprior, region, redraw, num_tasks) | {"scales": medians}


def rows(scored):
    """A row a posterior, as in ``masses``, with the scales by region."""
    found = {}
    for one in scored.values():
        found.setdefault((one["redraw"], one["hyperprior"]), []).append(one)
    return [
        row(of_regions) | {"scales": [one["scales"] for one in of_regions]}
        for of_regions in found.values()
    ]
