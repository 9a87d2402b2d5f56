"""Methods that sample by many chains or particles at once: ``f(key, task, budget, value)``, as in
``samplers``.
"""

from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import optax
from blackjax.smc import adaptive_tempered, resampling

from experiments.methods import samplers
from experiments.methods.budgets import (
    MOST,
    NUM_CHAINS,
    NUM_DRAWS,
    chained,
    fitted,
    normal_starts,
    spend,
    steps,
)
from experiments.problems import six_tasks

# of tempered SMC, as in the book's other runs
LEAPFROG, SHARES, TARGET_ESS, MOST_POWERS = 10, (0.5, 1.0), 0.9, 100
POWERS = 13  # as guessed before the run


def chees(key, task, budget, value):
    """Hamiltonian Monte Carlo tuned by ChEES (Hoffman et al. 2021); ``value`` is the number of
    chains.
    """
    key_start, key_warm, key_draws = jax.random.split(key, 3)
    count, density = int(value), partial(six_tasks.log_density, task=task)
    settings = {"mass_matrix_estimation": "diagonal", "max_leapfrog_steps": 100}
    warmup = blackjax.chees_adaptation(
        density, count, adaptation_info_fn=lambda s, info, a: info, **settings
    )
    num_warmup = min(samplers.MOST_WARMUP, int(budget / count / 3 / 20))
    (state, found), info = warmup.run(
        key_warm, normal_starts(key_start, count), 0.05, optax.adam(0.02), num_warmup
    )
    lengths = info.num_integration_steps
    algorithm = blackjax.dynamic_hmc(density, **found)

    def step(key, state):
        state, info = jax.vmap(algorithm.step)(jax.random.split(key, count), state)
        return state, jnp.float32(info.num_integration_steps.sum())

    spent, cost = (
        jnp.float32(lengths.sum()),
        jnp.float32(lengths[-num_warmup // 3 :].sum(axis=1).mean()),
    )
    most = NUM_CHAINS * MOST // count
    kept, number, more = spend(
        key_draws, step, state, budget - spent, cost, lambda state: state.position, most
    )
    return chained(kept.swapaxes(0, 1), spent + more, number)


def meads(key, task, budget, value):
    """Generalised Hamiltonian Monte Carlo tuned by MEADS (Hoffman and Sountsov 2022); ``value``:
    number of chains.
    """
    key_start, key_warm, key_draws = jax.random.split(key, 3)
    count, density = int(value), partial(six_tasks.log_density, task=task)
    length = budget // count
    num_warmup = length // 3
    warmup = blackjax.meads_adaptation(density, count, adaptation_info_fn=lambda s, info, a: None)
    (state, found), _ = warmup.run(key_warm, normal_starts(key_start, count), num_warmup)
    algorithm = blackjax.ghmc(density, **found)

    def step(key, state):
        return jax.vmap(algorithm.step)(jax.random.split(key, count), state)[0]

    most = NUM_CHAINS * MOST // count
    kept = steps(key_draws, step, state, length - num_warmup, lambda state: state.position, most)
    return chained(kept.swapaxes(0, 1), count * length)


def tempered(key, task, budget, value):
    """Adaptive tempered SMC (Del Moral et al. 2006) with Hamiltonian moves; ``value``: moves after
    each resampling.
    """
    moves = int(value)
    each = moves * LEAPFROG + 2  # to begin the moves, and to weigh
    count = int(budget / (POWERS * each))
    key_start, key_path, key_draw = jax.random.split(key, 3)

    def move(key, state, log_density, step_size, inverse_mass_matrix):
        return blackjax.hmc.build_kernel()(
            key, state, log_density, step_size, inverse_mass_matrix, LEAPFROG
        )

    def onwards(carry):
        key, state, step_size, number = carry
        key, key_step, key_share = jax.random.split(key, 3)
        shares = jax.random.uniform(key_share, (count,), minval=SHARES[0], maxval=SHARES[1])
        tuned = {
            "step_size": step_size * shares,
            "inverse_mass_matrix": state.particles.var(axis=0)[None],
        }
        given = (
            six_tasks.log_prior,
            partial(six_tasks.log_likelihood, task=task),
            move,
            blackjax.hmc.init,
            tuned,
        )
        smc = blackjax.adaptive_tempered_smc(
            *given, resampling.systematic, TARGET_ESS, num_mcmc_steps=moves
        )
        state, info = smc.step(key_step, state)
        acceptance = jnp.nan_to_num(info.update_info.acceptance_rate).mean()
        return key, state, step_size * jnp.exp(acceptance - 0.8), number + 1

    def unfinished(carry):
        return (carry[1].tempering_param < 1.0) & (carry[3] < MOST_POWERS)

    begin = adaptive_tempered.init(normal_starts(key_start, count))
    _, state, _, number = jax.lax.while_loop(
        unfinished, onwards, (key_path, begin, jnp.float32(0.1), 0)
    )
    key_rows, key_order = jax.random.split(key_draw)
    rows = jax.random.permutation(
        key_order, resampling.systematic(key_rows, state.weights, NUM_DRAWS)
    )
    return fitted(state.particles[rows], number * count * each)
