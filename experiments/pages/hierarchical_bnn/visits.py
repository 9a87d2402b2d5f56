"""Which mode of the hierarchical posterior holds the mass, a third way: chains that start in every
region.

Four chains each start with the input, the hidden and the output layer's group standard deviation
the largest, and none is left out. Where all twelve agree and pass between regions, the share of
their draws in a region is its share of the mass; where they leave a region and do not come back,
they say which way and not how much. With the likelihood raised to a power below 1 they pass more
often than with the whole of it. Where regions share the mass and passages are seldom, a longer run
follows.
"""

from helpers import common, diagnostics, hierarchical, mcmc

import jax
import numpy as np

from experiments.methods import runs
from experiments.problems import regions

SETTINGS = {
    "seed": 3009,
    "hyperpriors": list(regions.HYPERPRIORS),
    "powers": [0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0],
    "start_scale": 0.3,
    "start_sd": {"widest": 2.7, "others": 0.14},
    "starts": [0, 1, 2] * 4,
    "num_warmup": 500,
    "num_samples": {"2": 2000, "5": 2000, "18": 4000},  # by the number of tasks
    # hyperprior, redraw, number of tasks
    "long": {"posteriors": [["HalfNormal(5)", 0, 5]], "num_samples": 30_000},
}
HIERARCHICAL = {
    name: hierarchical.log_density(regions.NETWORK, prior)
    for name, prior in regions.HYPERPRIORS.items()
}


def units():
    """A posterior on the sources' data each, at a power of the likelihood; those of few tasks; then
    longer runs.
    """
    tempered = {
        f"{hyperprior}, power {power}": setting(hyperprior, power)
        for hyperprior in SETTINGS["hyperpriors"]
        for power in SETTINGS["powers"]
    }
    few = {
        f"{hyperprior}, {num_tasks} tasks": setting(hyperprior, 1.0, 0, num_tasks)
        for hyperprior in SETTINGS["hyperpriors"]
        for num_tasks in (2, 5)
    }
    longer = {
        f"{hyperprior}, redraw {redraw}, {num_tasks} tasks": setting(
            hyperprior, 1.0, redraw, num_tasks
        )
        | {"num_samples": SETTINGS["long"]["num_samples"]}
        for hyperprior, redraw, num_tasks in SETTINGS["long"]["posteriors"]
    }
    return tempered | few | longer


def setting(hyperprior, power, redraw="sources", num_tasks=18):
    """Return a unit's setting."""
    return {
        "hyperprior": hyperprior,
        "power": power,
        "redraw": redraw,
        "num_tasks": num_tasks,
        "num_samples": SETTINGS["num_samples"][str(num_tasks)],
    }


SMALL = setting("HalfNormal(1)", 1.0, 0, 2)


def unit(hyperprior, power, redraw, num_tasks, num_samples):
    """Sample so many draws of each chain, from starts in all regions."""
    key_start, key_chains = jax.random.split(
        common.key(SETTINGS["seed"], redraw, num_tasks, hyperprior, power)
    )
    starts = regions.starts(
        key_start, num_tasks, SETTINGS["starts"], SETTINGS["start_scale"], SETTINGS["start_sd"]
    )
    sizes = {"num_warmup": SETTINGS["num_warmup"], "num_samples": num_samples}
    observed = regions.observed(redraw, num_tasks, power)
    posterior = mcmc.sample(key_chains, HIERARCHICAL[hyperprior], starts, data=observed, **sizes)
    return {"log_sd": posterior.draws["log_sd"], **runs.kept_run(posterior)}


def score(drawn, hyperprior, power, redraw, num_tasks, num_samples):
    """Shares of the draws by region, and how well all chains agree."""
    posterior = runs.run_from(drawn)
    log_sd = np.stack([drawn["log_sd"][layer] for layer in regions.LAYERS], axis=-1)
    inside = log_sd.argmax(axis=-1)[..., None] == np.arange(3)  # [chain, draw, region]
    by_chain = inside.mean(axis=1)
    every = diagnostics.summarize(log_sd)
    left = [int(np.flatnonzero(chain)[-1]) + 1 if chain.any() else 0 for chain in ~inside[..., 2]]
    return {
        "hyperprior": hyperprior,
        "power": power,
        "redraw": redraw,
        "num_tasks": num_tasks,
        "num_samples": num_samples,
        "share": inside.mean(axis=(0, 1)).tolist(),
        "share_error": (by_chain.std(axis=0, ddof=1) / np.sqrt(len(by_chain))).tolist(),
        "share_by_chain": by_chain.tolist(),
        "draws_until_output_for_good": left,
        "rhat_log_sd": every.rhat.tolist(),
        "ess_log_sd": np.minimum(every.ess_bulk, every.ess_tail).tolist(),
        "gradients": float(posterior.stats.integration_steps.sum()),
        "seconds": float(drawn["warmup"]["seconds"].sum()),
        "check": runs.diagnosis(posterior, log_sd),
    }
