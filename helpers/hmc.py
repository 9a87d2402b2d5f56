"""One chain of the book's sampler, as two programs: NUTS for warm-up, then random-length HMC for
the draws.

``mcmc.sample`` runs them for every chain; a density takes a position, then a task and data if there
are any. Steps are reported to the line of ``number``, if there is one.
"""

from helpers import progress

from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
from blackjax.adaptation.step_size import dual_averaging_adaptation
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int


class Stats(NamedTuple):
    """What the sampler says of each draw."""

    log_density: Float[Array, "*chain draw"]
    diverging: Bool[Array, "*chain draw"]
    acceptance: Float[Array, "*chain draw"]
    energy: Float[Array, "*chain draw"]
    integration_steps: Int[Array, "*chain draw"]


class Learnt(NamedTuple):
    """What the no-U-turn part leaves to the draws, of each unit."""

    position: Any
    step_size: Float[Array, "*unit"]
    log_inverse_metric: Float[Array, "*unit parameter"]
    num_steps: Float[Array, "*unit"]  # mean length of a trajectory
    at_limit: Float[Array, "*unit"]


@partial(jax.jit, static_argnums=range(4))
def warm_up(
    log_density,
    num_draws,
    target_acceptance,
    max_tree_depth,
    key,
    position,
    task,
    data,
    number=None,
):
    """Find a step size, a metric and the length of trajectories by NUTS."""
    start, unravel, flat_density = _flat(log_density, position, task, data)

    def length(state, info, adaptation):
        # counted anew in every window of the metric
        progress.report(number, adaptation.ss_state.step, every=10)
        return info.num_integration_steps

    warmup = blackjax.staged_adaptation(
        blackjax.nuts,
        flat_density,
        "fisher_diag",
        target_acceptance_rate=target_acceptance,
        adaptation_info_fn=length,
        max_num_doublings=max_tree_depth,
    )
    (state, parameters), lengths = warmup.run(jax.random.wrap_key_data(key), start, num_draws)
    log_inverse_metric, last = (
        jnp.log(parameters["inverse_mass_matrix"]),
        lengths[-(num_draws // 3) :],
    )
    at_limit = (last >= 2**max_tree_depth - 1).mean()
    return Learnt(
        unravel(state.position), parameters["step_size"], log_inverse_metric, last.mean(), at_limit
    )


@partial(jax.jit, static_argnums=range(4))
def draw(
    log_density, num_tuning, num_samples, target_acceptance, key, learnt, task, data, number=None
):
    """Tune the step size and draw; leaves come back with a leading axis [draw], and the step
    size.
    """
    start, unravel, flat_density = _flat(log_density, learnt.position, task, data)
    inverse_metric, most = (
        jnp.exp(learnt.log_inverse_metric),
        2 * jnp.ceil(learnt.num_steps).astype(int),
    )
    kernel = blackjax.dynamic_hmc.build_kernel(
        integration_steps_fn=lambda key: jax.random.randint(key, (), 1, most)
    )
    key_tuning, key_draws, key_length = jax.random.split(jax.random.wrap_key_data(key), 3)
    init, update, final = dual_averaging_adaptation(target_acceptance)

    def one_draw(carry, turn):
        state, adaptation = carry
        key, tuning, step = turn
        # One kernel, hence one program to compile, serves the tuning and the draws.
        step_size = jnp.where(tuning, jnp.exp(adaptation.log_step_size), final(adaptation))
        moved, info = kernel(key, state, flat_density, step_size, inverse_metric)
        tuned = update(adaptation, info.acceptance_rate)
        adaptation = jax.tree.map(lambda new, old: jnp.where(tuning, new, old), tuned, adaptation)
        # BlackJAX reports the energy at the trajectory's end, which is infinite for some that are
        # rejected.
        energy = (inverse_metric * info.momentum**2).sum() / 2 - state.logdensity
        stats = Stats(
            moved.logdensity,
            info.is_divergent,
            info.acceptance_rate,
            energy,
            info.num_integration_steps,
        )
        progress.report(number, step, every=-(-num_samples // 50))
        return (moved, adaptation), (moved.position, stats)

    state = blackjax.dynamic_hmc.init(start, flat_density, key_length)
    keys = jnp.concatenate(
        [jax.random.split(key_tuning, num_tuning), jax.random.split(key_draws, num_samples)]
    )
    steps = None if number is None else jnp.arange(1, len(keys) + 1)
    turns = keys, jnp.arange(num_tuning + num_samples) < num_tuning, steps
    (_, adaptation), drawn = jax.lax.scan(one_draw, (state, init(learnt.step_size)), turns)
    vectors, stats = jax.tree.map(lambda a: a[num_tuning:], drawn)
    return jax.vmap(unravel)(vectors), stats, final(adaptation)


def _flat(log_density, position, task, data):
    """Return a position as one vector, the way back, and the density of such a vector."""
    vector, unravel = ravel_pytree(position)
    arguments = [part for part in (task, data) if part is not None]
    return vector, unravel, lambda v: log_density(unravel(v), *arguments)
