"""Methods that sample by many chains or particles at once: ``f(key, task, budget, value)``, as in
``samplers``.
"""

from helpers import smc

from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import optax
from blackjax.smc import adaptive_tempered, resampling

from experiments.methods import budgets, samplers
from experiments.problems import six_tasks

MOST_POWERS, POWERS = 100, 13  # of tempered SMC: at most, and as guessed before the run


def chees(key, task, budget, value):
    """HMC tuned by ChEES (Hoffman et al. 2021); ``value`` is the number of chains."""
    key_start, key_warm, key_draws = jax.random.split(key, 3)
    count, density = int(value), partial(six_tasks.log_density, task=task)
    settings = {"mass_matrix_estimation": "diagonal", "max_leapfrog_steps": 100}
    settings["adaptation_info_fn"] = lambda state, info, adaptation: info
    warmup = blackjax.chees_adaptation(density, count, **settings)
    num_warmup = min(samplers.MOST_WARMUP, int(budget / count / 3 / 20))
    starts, optimizer = budgets.normal_starts(key_start, count), optax.adam(0.02)
    (state, found), info = warmup.run(key_warm, starts, 0.05, optimizer, num_warmup)
    lengths = info.num_integration_steps
    algorithm = blackjax.dynamic_hmc(density, **found)

    def step(key, state):
        state, info = jax.vmap(algorithm.step)(jax.random.split(key, count), state)
        return state, jnp.float32(info.num_integration_steps.sum())

    spent = jnp.float32(lengths.sum())
    cost = jnp.float32(lengths[-num_warmup // 3 :].sum(axis=1).mean())
    most = budgets.MOST_OF_ALL // count
    kept, number, more = budgets.spend(key_draws, step, state, budget - spent, cost, most)
    return budgets.chained(kept.swapaxes(0, 1), spent + more, number)


def meads(key, task, budget, value):
    """Generalised HMC tuned by MEADS (Hoffman and Sountsov 2022), of so many chains."""
    key_start, key_warm, key_draws = jax.random.split(key, 3)
    count, density = int(value), partial(six_tasks.log_density, task=task)
    length = budget // count
    num_warmup = length // 3
    warmup = blackjax.meads_adaptation(density, count, adaptation_info_fn=lambda s, info, a: None)
    (state, found), _ = warmup.run(key_warm, budgets.normal_starts(key_start, count), num_warmup)
    algorithm = blackjax.ghmc(density, **found)

    def step(key, state):
        return jax.vmap(algorithm.step)(jax.random.split(key, count), state)[0]

    most = budgets.MOST_OF_ALL // count
    _, kept = budgets.steps(key_draws, step, state, length - num_warmup, most)
    return budgets.chained(kept.swapaxes(0, 1), count * length)


def cost(moves):
    """Return the gradients of a particle at a power: two more begin the moves, and weigh."""
    return int(moves) * smc.Settings().integration_steps + 2


def num_particles(budget, moves):
    """Return how many particles a budget allows."""
    return int(budget / (POWERS * cost(moves)))


def tempered(key, task, budget, value):
    """Adaptive tempered SMC by HMC (Del Moral et al. 2006); ``value``: moves after resampling."""
    moves, density = int(value), (six_tasks.log_prior, partial(six_tasks.log_likelihood, task=task))
    count, settings = num_particles(budget, moves), smc.Settings(moves=moves)
    key_start, key_path, key_draw = jax.random.split(key, 3)

    def onwards(carry):
        key, state, step_size, number = carry
        key, *keys = jax.random.split(key, 3)
        state, info = smc.next_power(keys, state, step_size, *density, settings)
        return key, state, smc.adapted(step_size, info, settings), number + 1

    def unfinished(carry):
        return (carry[1].tempering_param < 1.0) & (carry[3] < MOST_POWERS)

    begin = adaptive_tempered.init(budgets.normal_starts(key_start, count))
    carry = key_path, begin, jnp.float32(0.1), 0
    _, state, _, number = jax.lax.while_loop(unfinished, onwards, carry)
    key_rows, key_order = jax.random.split(key_draw)
    rows = resampling.systematic(key_rows, state.weights, budgets.NUM_DRAWS)
    rows = jax.random.permutation(key_order, rows)
    return budgets.fitted(state.particles[rows], number * count * cost(moves))
