"""Methods that sample, of one task: ``f(key, task, budget, value)``; ``value`` is the one free
setting of each.

Chains start at draws of the prior. The budget is of all chains together, warm-up and tuning
included.
"""

from helpers import data

from functools import partial

import blackjax
import jax
import jax.numpy as jnp
from blackjax.mcmc import adjusted_mclmc_dynamic
from blackjax.sgmcmc import gradients

from experiments.methods import budgets
from experiments.methods.approximations import BATCH, climbs
from experiments.methods.schedules import cyclical
from experiments.problems import six_tasks

CYCLES = 10  # of cyclical SGLD; the first half of each is thrown away
A_STEP = 2  # gradients of one step of microcanonical dynamics, by McLachlan's integrator
A_DRAW = 50  # gradients of a draw of NUTS, as guessed before the run
MOST_WARMUP = 500


def per_chain(key, one_chain):
    """Run ``one_chain(key, start)`` for each chain, one after the other."""
    key_start, key_chains = jax.random.split(key)
    count = budgets.NUM_CHAINS
    pairs = jax.random.split(key_chains, count), budgets.normal_starts(key_start, count)
    return jax.lax.map(lambda pair: one_chain(*pair), pairs)


def mala(key, task, budget, value):
    """Metropolis-adjusted Langevin; ``value`` is the step size. The first ``SHARE`` is dropped."""
    algorithm = blackjax.mala(partial(six_tasks.log_density, task=task), value)
    length = budget // budgets.NUM_CHAINS
    warm = int(budgets.SHARE * length)

    def step(key, state):
        return algorithm.step(key, state)[0]

    def one_chain(key, start):
        key_warm, key_draws = jax.random.split(key)
        state = budgets.walk(key_warm, step, algorithm.init(start), warm)
        return budgets.steps(key_draws, step, state, length - warm)[1]

    return budgets.chained(per_chain(key, one_chain), budgets.NUM_CHAINS * length)


def langevin(key, task, budget, value, name):
    """Langevin dynamics on minibatches, plain or cyclical; ``value`` is the (first) step size."""

    def of_label(vector, point):
        label = task._replace(x=point.x[None], y=point.y[None], weight=jnp.ones(1))
        return six_tasks.log_likelihood(vector, label)

    size = task.y.shape[0]
    slope = gradients.grad_estimator(six_tasks.log_prior, of_label, size)
    length = budget // budgets.NUM_CHAINS * size // BATCH
    cycle = length // CYCLES
    schedule = cyclical(value, cycle) if name == "cyclical" else lambda i: value

    def step(key, carry):
        vector, i = carry
        key_rows, key_step = jax.random.split(key)
        rows = jax.random.randint(key_rows, (BATCH,), 0, size)
        batch = data.Points(task.x[rows], task.y[rows])
        step_size = jnp.maximum(schedule(i), 1e-8)
        return blackjax.sgld(slope).step(key_step, vector, batch, step_size), i + 1

    def stretch(key, carry, length, warm, most):
        key_warm, key_draws = jax.random.split(key)
        carry = budgets.walk(key_warm, step, carry, warm)
        return budgets.steps(key_draws, step, carry, length - warm, most, lambda carry: carry[0])

    def one_chain(key, start):
        begin = start, jnp.int32(0)
        if name != "cyclical":
            return stretch(key, begin, length, int(budgets.SHARE * length), budgets.MOST)[1]

        def one_cycle(carry, key):
            # Each cycle begins where the last one ended, with the first step size again.
            return stretch(key, (carry[0], jnp.int32(0)), cycle, cycle // 2, budgets.MOST // CYCLES)

        kept = jax.lax.scan(one_cycle, begin, jax.random.split(key, CYCLES))[1]
        return kept.reshape(-1, six_tasks.SIZE)

    return budgets.chained(per_chain(key, one_chain), budgets.NUM_CHAINS * length * BATCH / size)


def mclmc_chain(key, start, task, num_steps, energy_variance):
    """Tune and run one chain of microcanonical Langevin; a third of the steps tune."""
    key_start, key_tune, key_draws = jax.random.split(key, 3)
    density, kernel = partial(six_tasks.log_density, task=task), blackjax.mclmc.build_kernel()
    state = blackjax.mclmc.init(start, density, key_start)
    state, found, tuned = blackjax.mclmc_find_L_and_step_size(
        kernel, num_steps, state, key_tune, density, desired_energy_var=energy_variance
    )

    def step(key, state):
        return kernel(key, state, density, found.inverse_mass_matrix, found.L, found.step_size)[0]

    return budgets.steps(key_draws, step, state, num_steps - tuned)[1]


def mclmc(key, task, budget, value):
    """Microcanonical Langevin (Robnik et al. 2023), not adjusted; ``value``: energy variance."""
    length = budget // budgets.NUM_CHAINS // A_STEP
    found = per_chain(key, lambda k, s: mclmc_chain(k, s, task, length, value))
    return budgets.chained(found, budgets.NUM_CHAINS * length * A_STEP)


def mile(key, task, budget, value):
    """``value`` short microcanonical chains from optimised networks (Sommer et al. 2025).

    A fifth of the gradients of each goes to Adam.
    """
    count = int(value)
    each = budget // count
    climbing, length = each // 5, (each - each // 5) // A_STEP
    key_climb, key_chains = jax.random.split(key)
    tops = climbs(key_climb, task, count, climbing, 1e-2)
    keys = jax.random.split(key_chains, count)
    found = jax.lax.map(lambda pair: mclmc_chain(*pair, task, length, 5e-4), (keys, tops))
    return budgets.chained(found, count * (climbing + length * A_STEP))


def adjusted(key, task, budget, value):
    """Adjusted microcanonical dynamics of random length; ``value`` is its mean, in steps."""
    density = partial(six_tasks.log_density, task=task)
    number = adjusted_mclmc_dynamic.make_random_trajectory_length_fn(True)
    kernel = blackjax.adjusted_mclmc_dynamic.build_kernel(integration_steps_fn=number)
    tries = int(budget / budgets.NUM_CHAINS / A_STEP / value)

    def tuned_chain(key, start):
        key_start, key_tune, key_draws = jax.random.split(key, 3)
        state = blackjax.adjusted_mclmc_dynamic.init(start, density, key_start)
        state, found, tuned = blackjax.adjusted_mclmc_find_L_and_step_size(
            kernel, density, tries, state, key_tune, 0.8, target_num_integration_steps=value
        )

        def step(key, state):
            settings = {"inverse_mass_matrix": found.inverse_mass_matrix}
            settings["integration_steps_params"] = (found.L / found.step_size,)
            state, info = kernel(key, state, density, found.step_size, **settings)
            return state, jnp.float32(A_STEP * info.num_integration_steps)

        return key_draws, step, state, jnp.float32(A_STEP * tuned), jnp.float32(A_STEP * value)

    return spent_up(key, tuned_chain, budget)


def spent_up(key, tuned_chain, budget):
    """Run chains until the budget is spent, each with an equal part of it.

    ``tuned_chain(key, start)`` returns the key of the draws, a step as of ``spend``, the state
    after warm-up, the gradients that warm-up took, and the cost of a step.
    """

    def one_chain(key, start):
        key_draws, step, state, spent, cost = tuned_chain(key, start)
        left = budget / budgets.NUM_CHAINS - spent
        kept, count, more = budgets.spend(key_draws, step, state, left, cost)
        return kept, count, spent + more

    kept, count, spent = per_chain(key, one_chain)
    return budgets.chained(kept, spent.sum(), count)


def warmup_draws(budget):
    """Of NUTS: half of the budget, as guessed, and not more than so many."""
    return min(MOST_WARMUP, int(budget / budgets.NUM_CHAINS / 2 / A_DRAW))


def nuts(key, task, budget, value, metric):
    """NUTS with a diagonal metric, Stan's or Fisher's, tuned to mean acceptance ``value``."""
    density = partial(six_tasks.log_density, task=task)
    settings = {
        "target_acceptance_rate": value,
        "adaptation_info_fn": lambda s, info, a: info.num_integration_steps,
    }
    if metric == "Fisher":
        warmup = blackjax.staged_adaptation(blackjax.nuts, density, "fisher_diag", **settings)
    else:
        warmup = blackjax.window_adaptation(blackjax.nuts, density, **settings)

    def tuned_chain(key, start):
        key_warm, key_draws = jax.random.split(key)
        (state, found), lengths = warmup.run(key_warm, start, warmup_draws(budget))
        algorithm = blackjax.nuts(density, **found)

        def step(key, state):
            state, info = algorithm.step(key, state)
            return state, jnp.float32(info.num_integration_steps)

        spent, cost = jnp.float32(lengths.sum()), jnp.float32(lengths[-len(lengths) // 3 :].mean())
        return key_draws, step, state, spent, cost

    return spent_up(key, tuned_chain, budget)
