"""The book's sampler and the no-U-turn samplers of two libraries, on one density, each at its
defaults.

    run = peer_samplers.SAMPLERS["NumPyro"](key, peer.log_density, starts)

A chain is a program, compiled before the clock starts, and chains take turns on the cores as those
of ``mcmc.sample`` do.
"""

from helpers import mcmc
from helpers.common import mixed_types, stack, take
from helpers.hmc import Stats

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key
from numpyro.infer import NUTS

NUM_WARMUP = NUM_SAMPLES = 1000  # of the libraries: what their users are told to begin with
WARMUP_OF_OURS = 300  # the default


class Run(NamedTuple):
    """What a sampler drew, and what it took."""

    posterior: mcmc.Posterior  # leading axes [chain, draw]
    seconds: float  # of all cores together, compiling left out
    warmup_gradients: float  # of all chains together


def ours(key: Key[Array, ""], log_density: Callable, starts: Any) -> Run:
    """Run the book's sampler at its defaults.

    Its no-U-turn draws count as many gradients each as those that were counted, the last third. Of
    a chain that began again, what it threw away does not count.
    """
    posterior = mcmc.sample(key, log_density, starts, num_warmup=WARMUP_OF_OURS)
    by_nuts = 3 * WARMUP_OF_OURS // 4
    found = posterior.going.num_steps, posterior.warmup.mean_steps
    of_nuts, tuning = (float(np.asarray(steps).sum(dtype=np.float64)) for steps in found)
    gradients = by_nuts * of_nuts + (WARMUP_OF_OURS - by_nuts) * tuning
    return Run(posterior, float(np.sum(posterior.warmup.seconds)), gradients)


def numpyro_chain(key, start, log_density):
    """Draw one chain as NumPyro's ``MCMC`` does; return draws, statistics, steps of warm-up."""
    kernel = NUTS(potential_fn=lambda position: -log_density(position))
    first = kernel.init(key, NUM_WARMUP, start, (), {})

    def step(state, _):
        state = kernel.sample(state, (), {})
        of_draw = (-state.potential_energy, state.diverging, state.accept_prob)
        return state, (state.z, Stats(*of_draw, state.energy, state.num_steps))

    warm, (_, stats) = jax.lax.scan(step, first, length=NUM_WARMUP)
    return *jax.lax.scan(step, warm, length=NUM_SAMPLES)[1], stats.integration_steps.sum()


def blackjax_chain(key, start, log_density):
    """Draw one chain as BlackJAX's introduction does; return what ``numpyro_chain`` returns."""
    key_warm, key_draws = jax.random.split(key)
    warmup = blackjax.window_adaptation(
        blackjax.nuts,
        log_density,
        adaptation_info_fn=lambda state, info, adaptation: info.num_integration_steps,
    )
    (warm, found), steps = warmup.run(key_warm, start, NUM_WARMUP)
    algorithm = blackjax.nuts(log_density, **found)

    def step(state, key):
        state, info = algorithm.step(key, state)
        of_draw = (state.logdensity, info.is_divergent, info.acceptance_rate)
        return state, (state.position, Stats(*of_draw, info.energy, info.num_integration_steps))

    return *jax.lax.scan(step, warm, jax.random.split(key_draws, NUM_SAMPLES))[1], steps.sum()


def spread(one_chain: Callable) -> Callable[[Key[Array, ""], Callable, Any], Run]:
    """Return a sampler whose chains are threads, one a core at a time."""

    def sample(key, log_density, starts):
        num_chains = len(jax.tree.leaves(starts)[0])
        chains = jax.random.split(key, num_chains), starts
        with mixed_types():
            program = jax.jit(lambda key, start: one_chain(key, start, log_density))
            program = program.lower(*take(chains, 0)).compile()

        def run(i):
            begun = time.perf_counter()
            found = jax.tree.map(np.asarray, program(*take(chains, i)))
            return found, time.perf_counter() - begun

        with ThreadPoolExecutor(mcmc.cores()) as pool:
            parts, seconds = zip(*pool.map(run, range(num_chains)), strict=True)
        draws, stats, warmup_steps = stack(parts)
        posterior = mcmc.Posterior(*jax.tree.map(jnp.asarray, (draws, stats)))
        return Run(posterior, float(sum(seconds)), float(warmup_steps.sum()))

    return sample


SAMPLERS = {
    "ours": ours,
    "NumPyro": spread(numpyro_chain),
    "BlackJAX": spread(blackjax_chain),
}
