"""Tempered sequential Monte Carlo: particles of the prior follow the likelihood from power 0 to 1.

The next power keeps a set share of the effective sample size; moves are HMC, whose step size
adapts (Del Moral, Doucet and Jasra 2006). On the way comes the evidence.

    state, path = smc.anneal(key, particles, log_prior, log_likelihood)
"""

from collections.abc import Callable
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
from blackjax.smc import adaptive_tempered, resampling
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Key


def anneal(
    key: Key[Array, ""],
    particles: Any,
    log_prior: Callable,
    log_likelihood: Callable,
    num_moves: int = 5,
    integration_steps: int = 10,
    shares: tuple[float, float] = (0.5, 1.0),
    target_acceptance: float = 0.8,
    target_ess: float = 0.9,
    max_powers: int = 300,
) -> tuple[Any, dict[str, Array]]:
    """Follow particles of the prior to the posterior; to be called within ``jit``.

    Returns BlackJAX's state, in which ``particles`` and ``weights`` are where they end, and the
    way: "powers" of the likelihood and "log_evidence" at each, [power], infinite beyond "number".

    Args:
        particles: draws of the prior, pytree, leading axis [particle].
        log_prior: ``f(position)``; -inf outside of a region confines the particles to it.
        log_likelihood: ``f(position)``, which is raised to the powers.
        num_moves: trajectories of a particle after each resampling.
        integration_steps: leapfrog steps of a trajectory.
        shares: of the step size: each particle has one drawn uniformly between the two.
        target_acceptance: mean acceptance probability to which the step size adapts.
        target_ess: effective sample size of the particles at the next power, as a share.
        max_powers: where it ends at the latest; "number" says whether the posterior was reached.
    """
    count = len(jax.tree.leaves(particles)[0])

    def move(key, state, log_density, step_size, inverse_mass_matrix):
        sizes = step_size, inverse_mass_matrix, integration_steps
        return blackjax.hmc.build_kernel()(key, state, log_density, *sizes)

    def onwards(carry):
        key, state, log_evidence, step_size, number, path = carry
        key, key_step, key_share = jax.random.split(key, 3)
        low, high = shares
        tuned = {
            "step_size": step_size
            * jax.random.uniform(key_share, (count,), minval=low, maxval=high),
            "inverse_mass_matrix": jax.vmap(lambda one: ravel_pytree(one)[0])(state.particles).var(
                axis=0
            )[None],
        }
        given = log_prior, log_likelihood, move, blackjax.hmc.init, tuned, resampling.systematic
        smc = blackjax.adaptive_tempered_smc(*given, target_ess, num_mcmc_steps=num_moves)
        state, info = smc.step(key_step, state)
        log_evidence += info.log_likelihood_increment
        acceptance = jnp.nan_to_num(info.update_info.acceptance_rate).mean()
        step_size = step_size * jnp.exp(acceptance - target_acceptance)
        path = path.at[:, number].set(jnp.stack([state.tempering_param, log_evidence]))
        return key, state, log_evidence, step_size, number + 1, path

    def unfinished(carry):
        return (carry[1].tempering_param < 1.0) & (carry[4] < max_powers)

    begin = adaptive_tempered.init(particles)
    carry = key, begin, jnp.float32(0.0), jnp.float32(0.1), 0, jnp.full((2, max_powers), jnp.inf)
    _, state, _, _, number, path = jax.lax.while_loop(unfinished, onwards, carry)
    return state, {"powers": path[0], "log_evidence": path[1], "number": number}
