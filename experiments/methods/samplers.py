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

from experiments.methods.approximations import BATCH, climbs
from experiments.methods.budgets import (
    MOST,
    NUM_CHAINS,
    SHARE,
    chained,
    normal_starts,
    spend,
    steps,
)
from experiments.methods.schedules import cyclical
from experiments.problems import six_tasks

CYCLES = 10  # of cyclical SGLD; the first half of each is thrown away
A_STEP = 2  # gradients of one step of microcanonical dynamics, by McLachlan's integrator
A_DRAW = 50  # gradients of a draw of NUTS, as guessed before the run
MOST_WARMUP = 500


def per_chain(key, one_chain, count=NUM_CHAINS):
    """Run ``one_chain(key, start)`` for each chain, one after the other."""
    key_start, key_chains = jax.random.split(key)
    pairs = jax.random.split(key_chains, count), normal_starts(key_start, count)
    return jax.lax.map(lambda pair: one_chain(*pair), pairs)


def mala(key, task, budget, value):
    """Metropolis-adjusted Langevin; ``value`` is the step size."""
    algorithm = blackjax.mala(partial(six_tasks.log_density, task=task), value)
    length = budget // NUM_CHAINS
    return fixed(key, algorithm, length, lambda state: state.position)


def fixed(key, algorithm, length, position, gradients_a_step=1.0):
    """Run an algorithm whose steps cost the same; the first ``SHARE`` is thrown away."""

    def one_chain(key, start):
        key_warm, key_draws = jax.random.split(key)
        state, warm = algorithm.init(start), int(SHARE * length)
        state = jax.lax.fori_loop(
            0, warm, lambda i, s: algorithm.step(jax.random.fold_in(key_warm, i), s)[0], state
        )
        return steps(
            key_draws, lambda k, s: algorithm.step(k, s)[0], state, length - warm, position
        )

    return chained(per_chain(key, one_chain), NUM_CHAINS * length * gradients_a_step)


def langevin(key, task, budget, value, name):
    """Stochastic gradient Langevin dynamics on minibatches, plain or cyclical; ``value`` is the
    (first) step size.
    """

    def of_label(vector, point):
        return six_tasks.log_likelihood(
            vector, task._replace(x=point.x[None], y=point.y[None], weight=jnp.ones(1))
        )

    size = task.y.shape[0]
    slope = gradients.grad_estimator(six_tasks.log_prior, of_label, size)
    length = budget // NUM_CHAINS * size // BATCH
    cycle = length // CYCLES
    schedule = cyclical(value, cycle) if name == "cyclical" else lambda i: value

    def step(key, carry):
        vector, i = carry
        key_rows, key_step = jax.random.split(key)
        rows = jax.random.randint(key_rows, (BATCH,), 0, size)
        batch = data.Points(task.x[rows], task.y[rows])
        return blackjax.sgld(slope).step(
            key_step, vector, batch, jnp.maximum(schedule(i), 1e-8)
        ), i + 1

    def stretch(key, carry, warm, rest, most):
        key_warm, key_draws = jax.random.split(key)
        carry = jax.lax.fori_loop(
            0, warm, lambda i, c: step(jax.random.fold_in(key_warm, i), c), carry
        )
        kept = min(rest, most)

        def one(carry, key):
            body = lambda i, c: step(jax.random.fold_in(key, i), c)  # noqa: E731
            carry = jax.lax.fori_loop(0, rest // kept, body, carry)
            return carry, carry[0]

        return jax.lax.scan(one, carry, jax.random.split(key_draws, kept))

    def one_chain(key, start):
        begin = start, jnp.int32(0)
        if name != "cyclical":
            warm = int(SHARE * length)
            return stretch(key, begin, warm, length - warm, MOST)[1]

        def one_cycle(carry, key):
            # Each cycle begins where the last one ended, with the first step size again.
            carry, kept = stretch(
                key, (carry[0], jnp.int32(0)), cycle // 2, cycle - cycle // 2, MOST // CYCLES
            )
            return carry, kept

        return jax.lax.scan(one_cycle, begin, jax.random.split(key, CYCLES))[1].reshape(
            -1, six_tasks.SIZE
        )

    return chained(per_chain(key, one_chain), NUM_CHAINS * length * BATCH / size)


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

    return steps(key_draws, step, state, num_steps - tuned, lambda state: state.position)


def mclmc(key, task, budget, value):
    """Microcanonical Langevin (Robnik et al. 2023), not adjusted; ``value`` is the energy's
    variance to tune to.
    """
    length = budget // NUM_CHAINS // A_STEP
    return chained(
        per_chain(key, lambda k, s: mclmc_chain(k, s, task, length, value)),
        NUM_CHAINS * length * A_STEP,
    )


def mile(key, task, budget, value):
    """Short microcanonical chains from optimised networks (Sommer et al. 2025); ``value`` is how
    many.

    A fifth of the gradients of each goes to Adam.
    """
    count = int(value)
    each = budget // count
    climbing, length = each // 5, (each - each // 5) // A_STEP
    key_climb, key_chains = jax.random.split(key)
    tops = climbs(key_climb, task, count, climbing, 1e-2)
    keys = jax.random.split(key_chains, count)
    found = jax.lax.map(lambda pair: mclmc_chain(*pair, task, length, 5e-4), (keys, tops))
    return chained(found, count * (climbing + length * A_STEP))


def adjusted(key, task, budget, value):
    """Adjusted microcanonical dynamics of random length; ``value`` is its mean, in steps."""
    density = partial(six_tasks.log_density, task=task)
    number = adjusted_mclmc_dynamic.make_random_trajectory_length_fn(True)
    kernel = blackjax.adjusted_mclmc_dynamic.build_kernel(integration_steps_fn=number)
    tries = int(budget / NUM_CHAINS / A_STEP / value)

    def one_chain(key, start):
        key_start, key_tune, key_draws = jax.random.split(key, 3)
        state = blackjax.adjusted_mclmc_dynamic.init(start, density, key_start)
        state, found, tuned = blackjax.adjusted_mclmc_find_L_and_step_size(
            kernel, density, tries, state, key_tune, 0.8, target_num_integration_steps=value
        )

        def step(key, state):
            mean = (found.L / found.step_size,)
            settings = {
                "inverse_mass_matrix": found.inverse_mass_matrix,
                "integration_steps_params": mean,
            }
            state, info = kernel(key, state, density, found.step_size, **settings)
            return state, jnp.float32(A_STEP * info.num_integration_steps)

        spent, cost = jnp.float32(A_STEP * tuned), jnp.float32(A_STEP * value)
        left = budget / NUM_CHAINS - spent
        kept, count, more = spend(
            key_draws, step, state, left, cost, lambda state: state.position, MOST
        )
        return kept, count, spent + more

    kept, count, spent = per_chain(key, one_chain)
    return chained(kept, spent.sum(), count)


def warmup_draws(budget):
    """Of NUTS: half of the budget, as guessed, and not more than so many."""
    return min(MOST_WARMUP, int(budget / NUM_CHAINS / 2 / A_DRAW))


def nuts(key, task, budget, value, metric):
    """NUTS with a diagonal metric, Stan's or Fisher's; ``value`` is the mean acceptance to tune
    to.
    """
    density = partial(six_tasks.log_density, task=task)
    settings = {
        "target_acceptance_rate": value,
        "adaptation_info_fn": lambda s, info, a: info.num_integration_steps,
    }
    if metric == "Fisher":
        warmup = blackjax.staged_adaptation(blackjax.nuts, density, "fisher_diag", **settings)
    else:
        warmup = blackjax.window_adaptation(blackjax.nuts, density, **settings)

    def one_chain(key, start):
        key_warm, key_draws = jax.random.split(key)
        (state, found), lengths = warmup.run(key_warm, start, warmup_draws(budget))
        algorithm = blackjax.nuts(density, **found)

        def step(key, state):
            state, info = algorithm.step(key, state)
            return state, jnp.float32(info.num_integration_steps)

        spent, cost = jnp.float32(lengths.sum()), jnp.float32(lengths[-len(lengths) // 3 :].mean())
        left = budget / NUM_CHAINS - spent
        kept, count, more = spend(
            key_draws, step, state, left, cost, lambda state: state.position, MOST
        )
        return kept, count, spent + more

    kept, count, spent = per_chain(key, one_chain)
    return chained(kept, spent.sum(), count)
