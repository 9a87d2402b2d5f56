"""Tempered sequential Monte Carlo: particles of the prior follow the likelihood from power 0 to 1.

The next power keeps a set share of the effective sample size; moves are HMC, whose step size
adapts (Del Moral, Doucet and Jasra 2006).
"""

import blackjax
import jax
import jax.numpy as jnp
from blackjax.smc import adaptive_tempered, resampling
from jax.flatten_util import ravel_pytree

# Those of the result ``hierarchical_bnn/masses``.
SETTINGS = {
    "moves": 5,  # after each resampling
    "integration_steps": 10,
    "shares": [0.5, 1.0],  # of the step size, by particle
    "target_acceptance": 0.8,
    "target_ess": 0.9,  # share
    "most_powers": 300,
}


def next_power(keys, state, step_size, log_prior, log_likelihood, moves):
    """Bring particles to the next power; return them, and BlackJAX's account of their moves."""
    key_step, key_share = keys
    count, (low, high) = len(jax.tree.leaves(state.particles)[0]), SETTINGS["shares"]
    tuned = {"step_size": step_size * jax.random.uniform(key_share, (count,), None, low, high)}
    vectors = jax.vmap(lambda one: ravel_pytree(one)[0])(state.particles)
    tuned["inverse_mass_matrix"] = vectors.var(axis=0)[None]

    def move(key, state, log_density, step_size, inverse_mass_matrix):
        sizes = step_size, inverse_mass_matrix, SETTINGS["integration_steps"]
        return blackjax.hmc.build_kernel()(key, state, log_density, *sizes)

    given = log_prior, log_likelihood, move, blackjax.hmc.init, tuned, resampling.systematic
    smc = blackjax.adaptive_tempered_smc(*given, SETTINGS["target_ess"], num_mcmc_steps=moves)
    return smc.step(key_step, state)


def adapted(step_size, info):
    """Return the step size of the next power: larger where more was accepted than aimed at."""
    acceptance = jnp.nan_to_num(info.update_info.acceptance_rate).mean()
    return step_size * jnp.exp(acceptance - SETTINGS["target_acceptance"])


def anneal(key, particles, log_prior, log_likelihood):
    """Follow particles of the prior to the posterior; return them, powers, log evidence at each."""
    density, moves, most = (log_prior, log_likelihood), SETTINGS["moves"], SETTINGS["most_powers"]

    def onwards(carry):
        key, state, log_evidence, step_size, number, path = carry
        key, *keys = jax.random.split(key, 3)
        state, info = next_power(keys, state, step_size, *density, moves)
        log_evidence += info.log_likelihood_increment
        step_size = adapted(step_size, info)
        path = path.at[:, number].set(jnp.stack([state.tempering_param, log_evidence]))
        return key, state, log_evidence, step_size, number + 1, path

    def unfinished(carry):
        return (carry[1].tempering_param < 1.0) & (carry[4] < most)

    begin = adaptive_tempered.init(particles)
    carry = key, begin, jnp.float32(0.0), jnp.float32(0.1), 0, jnp.full((2, most), jnp.inf)
    _, state, _, _, number, path = jax.lax.while_loop(unfinished, onwards, carry)
    return state, {"powers": path[0], "log_evidence": path[1], "number": number}
