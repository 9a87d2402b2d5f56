"""The book's networks fitted by its sampler, task by task or all tasks together; predictions."""

from helpers import mcmc, networks, tempering
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp

from experiments.methods import runs
from experiments.problems import moons_redrawn

NUM_CHAINS = 4
# A chain that starts in a mode of little mass leaves it where the likelihood has this power: page
# `modes`.
TEMPERED = {"power": 0.8, "num_started": NUM_CHAINS, "num_warmup": 300, "num_samples": 300}


def fit_flat(key, tasks, num_chains=NUM_CHAINS, log_density=moons_redrawn.FLAT, **sizes):
    """Fit each task alone, by chains from N(0, 1); ``tasks`` are what the log density gets."""
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(
        key_start,
        networks.parameter_shapes(moons_redrawn.NETWORK, 2),
        (len(jax.tree.leaves(tasks)[0]), num_chains),
    )
    return mcmc.sample(key_chains, log_density, starts, tasks=tasks, **sizes)


def fit_hierarchical(key, log_density, shapes, observed, centre=None, tempered=TEMPERED, **sizes):
    """Fit all tasks of a data set together: chains from N(0, 1), none left out.

    There are modes between which chains seldom pass, so chains spend a stage at a lower power of
    the likelihood first. Given a centre, they start without it, log standard deviations from
    N(centre, 1/4). What is stored of each chain tells where it is.
    """
    key_start, key_chains = jax.random.split(key)
    if centre is None:
        starts = tempering.tempered_starts(key_start, log_density, shapes, observed, **tempered)
    else:
        starts = mcmc.normal_starts(key_start, shapes, (NUM_CHAINS,))
        for name, at in centre.items():
            wide = starts["log_sd"][name]
            starts["log_sd"][name] = jax.tree.map(lambda a, at=at: at + 0.5 * a, wide)
    return mcmc.sample(key_chains, log_density, starts, data=observed, **sizes)


def thinned_run(posterior, most=400):
    """Return what is kept of a run: at most so many draws a chain, statistics, warm-up."""
    shape = posterior.stats.log_density.shape
    thinned = (*[slice(None)] * (len(shape) - 1), slice(None, None, max(1, shape[-1] // most)))
    kept = take(posterior.draws, thinned).items()
    draws = {name: part for name, part in kept if jax.tree.leaves(part)}
    return {"draws": draws, **runs.kept_run(posterior)}


@jax.jit
def flat_probabilities(draws, x):
    """Return p [chain, draw, task, point] of draws [task, chain, draw] at x [task, point, 2]."""

    def one_task(pair):
        draws, x = pair
        of_draw = jax.vmap(jax.vmap(lambda weights: moons_redrawn.NETWORK.apply(weights, x)))
        return jax.nn.sigmoid(of_draw(draws))

    return jnp.moveaxis(jax.lax.map(one_task, (draws, x)), 0, 2)


@partial(jax.jit, static_argnums=0)
def probabilities(logits, draws, x):
    """Return p [chain, draw, task, point] of draws [chain, draw] of ``logits(position, x)``."""

    def one(position):
        return jax.nn.sigmoid(logits(position, x))

    return jax.lax.map(lambda chain: jax.lax.map(one, chain), draws)
