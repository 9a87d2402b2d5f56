"""One chain of the book's sampler, as two programs: NUTS for warm-up, then random-length HMC, one
stretch of turns after the other.

``mcmc.sample`` lets ``compiled`` compile them and runs them for every chain. A log density takes a
position, then a task and data if there are any.
"""

from helpers import full_metric, progress
from helpers.common import mixed_types
from helpers.programs import bounded

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import DualAveragingAdaptationState, dual_averaging_adaptation
from blackjax.mcmc.dynamic_hmc import DynamicHMCState
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, UInt32

BLOCK = 250  # turns of a chain that a program takes at most, and then gives back


class Stats(NamedTuple):
    """What the sampler says of each draw."""

    log_density: Float[Array, "*chain draw"]  # at the draw, nats, up to a constant
    diverging: Bool[Array, "*chain draw"]  # whether the trajectory's energy error was too large
    acceptance: Float[Array, "*chain draw"]  # probability with which its end was accepted
    energy: Float[Array, "*chain draw"]  # where the trajectory starts, nats, up to a constant
    integration_steps: Int[Array, "*chain draw"]  # leapfrog steps of the trajectory


class Learnt(NamedTuple):
    """What the no-U-turn part leaves to the draws, of each unit: a chain of a task."""

    position: Any  # where it ends
    log_density: Float[Array, "*unit"]  # there
    gradient: Float[Array, "*unit parameter"]  # of the density, there
    step_size: Float[Array, "*unit"]
    log_inverse_metric: Float[Array, "*unit parameter"]  # of the diagonal
    # over the last third of the no-U-turn draws:
    num_steps: Float[Array, "*unit"]  # mean length of a trajectory
    at_limit: Float[Array, "*unit"]  # share of trajectories that ended at the largest tree depth
    mean_log_density: Float[Array, "*unit"]
    # Of few parameters (``full_metric.applies``), else None: these draws and the gradients there,
    # until chains share what they make of them, a full inverse metric.
    recent: Float[Array, "*unit 2 draw parameter"] | None = None
    full: Float[Array, "*unit parameter parameter"] | None = None


class Going(NamedTuple):
    """All that a chain needs to go on, of each unit: arrays."""

    position: Any  # where it is
    log_density: Float[Array, "*unit"]  # there
    gradient: Float[Array, "*unit parameter"]  # of the density, there
    key_length: UInt32[Array, "*unit word"]  # of the next trajectory's length, as ``key_data``
    key_tuning: UInt32[Array, "*unit word"]  # of all turns that tune
    key_draws: UInt32[Array, "*unit word"]  # of all turns that draw
    adaptation: DualAveragingAdaptationState  # of the step size
    target_acceptance: Float[Array, "*unit"]  # mean that the step size is tuned to
    # the diagonal, or the matrix [parameter, parameter]
    inverse_metric: Float[Array, "*unit parameter"] | Float[Array, "*unit parameter parameter"]
    num_steps: Float[Array, "*unit"]  # mean length of warm-up's trajectories: see ``full_metric``
    num_tuning: Int[Array, "*unit"]  # so many turns, the first, tune the step size
    turn: Int[Array, "*unit"]  # turns that it has taken


@bounded(4)
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
    """Return what NUTS (Hoffman and Gelman 2014) learns in a chain, no leading axis.

    The metric is the diagonal one that minimises the Fisher divergence (Seyboldt et al. 2026). The
    mean length of a trajectory, and the share at the limit, are of the last third of the draws. Of
    few parameters these draws are kept.

    Args:
        log_density: of one position, then of the task and the data.
        num_draws: how many are taken, and thrown away.
        target_acceptance: mean acceptance that the step size is tuned to.
        max_tree_depth: a trajectory has at most ``2 ** max_tree_depth - 1`` steps.
        key: data of a random key, as ``jax.random.key_data`` returns.
        position: pytree, where the chain starts.
        task, data: what the density takes beside the position; None for none.
        number: of the line that draws are reported to; None for none.
    """
    start, unravel, flat_density = _flat(log_density, position, task, data)
    few = full_metric.applies(start.size, num_draws)

    def seen(state, info, adaptation):
        # counted anew in every window of the metric
        progress.report(number, adaptation.ss_state.step, every=10)
        there = (state.position, state.logdensity_grad) if few else None
        return info.num_integration_steps, state.logdensity, there

    warmup = blackjax.staged_adaptation(
        blackjax.nuts,
        flat_density,
        "fisher_diag",
        target_acceptance_rate=target_acceptance,
        adaptation_info_fn=seen,
        max_num_doublings=max_tree_depth,
        initial_inverse_mass_matrix=full_metric.first_guess(flat_density, start) if few else None,
    )
    (state, parameters), found = warmup.run(jax.random.wrap_key_data(key), start, num_draws)
    lengths, log_densities, there = jax.tree.map(lambda a: a[-(num_draws // 3) :], found)
    return Learnt(
        unravel(state.position),
        state.logdensity,
        state.logdensity_grad,
        parameters["step_size"],
        jnp.log(parameters["inverse_mass_matrix"]),
        lengths.mean(),
        (lengths >= 2**max_tree_depth - 1).mean(),
        log_densities.mean(),
        jnp.stack(there) if few else None,
    )


def begin(key, learnt, num_tuning, target_acceptance):
    """Return a chain before its first turn, ``Going``, no leading axis.

    Args:
        key: data of a random key, as ``jax.random.key_data`` returns.
        learnt: as ``warm_up`` returns; or with a metric and a length that chains share.
        num_tuning: so many turns tune the step size, by dual averaging.
        target_acceptance: mean acceptance that it is tuned to.
    """
    keys = jax.random.key_data(jax.random.split(jax.random.wrap_key_data(key), 3))
    key_tuning, key_draws, key_length = keys
    return Going(
        *learnt[:3],
        key_length,
        key_tuning,
        key_draws,
        dual_averaging_adaptation(target_acceptance)[0](learnt.step_size),
        jnp.asarray(target_acceptance, learnt.step_size.dtype),
        jnp.exp(learnt.log_inverse_metric) if learnt.full is None else learnt.full,
        learnt.num_steps,
        jnp.int32(num_tuning),
        jnp.int32(0),
    )


@bounded(2)
def stretch(log_density, size, going, count, task, data):
    """Let a chain take turns, by HMC (Neal 2011, section 4.2); no leading axis.

    Its first turns tune the step size by dual averaging, the others draw with the one found. Each
    trajectory has a length of its own, 1 to ``2 m - 1`` steps, each as likely, where ``m`` is
    ``full_metric.mean_steps`` rounded up. A turn depends on its number and not on how many there
    are: stretches of any lengths give the bits of one long stretch, by one program.

    Args:
        log_density: of one position, then of the task and the data.
        size: the most turns of a stretch.
        going: the chain, as ``begin`` or a stretch before this one returns.
        count: how many turns it takes, at most ``size``.
        task, data: what the density takes beside the position; None for none.

    Returns the chain, draws and ``Stats``, leading axis [size]. Those beyond ``count`` are 0.
    """
    start, unravel, flat_density = _flat(log_density, going.position, task, data)
    one_turn = turn(flat_density, going)
    key = jax.random.wrap_key_data(going.key_length)
    state = DynamicHMCState(start, going.log_density, going.gradient, key)
    carry = state, going.adaptation

    def kept_turn(i, pair):
        carry, kept = pair
        carry, found = one_turn(carry, going.turn + i)
        return carry, jax.tree.map(lambda rows, row: rows.at[i].set(row), kept, found)

    number = jnp.zeros(size, going.log_density.dtype)
    statistics = Stats(number, number > 0, number, number, number.astype(int))
    kept = jnp.zeros((size, *start.shape), start.dtype), statistics
    (state, adaptation), drawn = jax.lax.fori_loop(0, count, kept_turn, (carry, kept))
    vector, *there, key = state
    going = Going(unravel(vector), *there, jax.random.key_data(key), *going[4:])
    vectors, stats = drawn
    going = going._replace(adaptation=adaptation, turn=going.turn + count)
    return going, jax.vmap(unravel)(vectors), stats


def turn(flat_density: Callable, going: Going) -> Callable:
    """Return one turn of a chain, ``f((state, adaptation), number)``.

    It follows one trajectory and, if the turn of that number is one that tunes, learns of the step
    size. It returns the pair that goes on, and position and ``Stats`` of the draw.

    Args:
        flat_density: of a position as one vector.
        going: the chain; its metric, lengths, keys and target are used.
    """
    inverse_metric = going.inverse_metric
    kernel = blackjax.dynamic_hmc.build_kernel(
        integration_steps_fn=lambda key, most: jax.random.randint(key, (), 1, most)
    )
    _, update, final = dual_averaging_adaptation(going.target_acceptance)

    def one_turn(carry, number):
        state, adaptation = carry
        tuning = number < going.num_tuning
        # Folding a number in gives what ``jax.random.split`` has at that place, of any length.
        key = jnp.where(tuning, going.key_tuning, going.key_draws)
        number = jnp.where(tuning, number, number - going.num_tuning)
        key = jax.random.fold_in(jax.random.wrap_key_data(key), number)
        # One kernel, hence one program to compile, serves the tuning and the draws.
        step_size = jnp.where(tuning, jnp.exp(adaptation.log_step_size), final(adaptation))
        mean = full_metric.mean_steps(inverse_metric, going.num_steps, step_size)
        most = 2 * jnp.ceil(mean).astype(int)
        moved, info = kernel(key, state, flat_density, step_size, inverse_metric, (most,))
        tuned = update(adaptation, info.acceptance_rate)
        adaptation = jax.tree.map(lambda new, old: jnp.where(tuning, new, old), tuned, adaptation)
        # BlackJAX reports the energy at the trajectory's end, which is infinite for some that are
        # rejected.
        energy = full_metric.kinetic_energy(inverse_metric, info.momentum) - state.logdensity
        acceptance, steps = info.acceptance_rate, info.num_integration_steps
        stats = Stats(moved.logdensity, info.is_divergent, acceptance, energy, steps)
        return (moved, adaptation), (moved.position, stats)

    return one_turn


def compiled(
    pool: ThreadPoolExecutor,
    log_density: Callable,
    settings: tuple[int, float, int],
    unit: tuple,
    data: Any,
    number: Any = None,
) -> tuple[Future, Future]:
    """Return ``warm_up`` and ``stretch`` as programs that the threads of a pool compile.

    The first takes ``(key, position, task, data, number)``, the second ``(going, count, task,
    data)``, of one unit.

    Args:
        pool: whose threads compile.
        log_density: of one position, then of the task and the data.
        settings: number of no-U-turn draws, target acceptance and tree depth, as of ``warm_up``.
        unit: key, position and task of any unit, for their shapes and types.
        data: what all units share.
        number: of a line, if there is one.
    """
    key, _, task = unit
    with mixed_types():  # the density itself has just been evaluated under the caller's rules
        first = warm_up.lower(log_density, *settings, *unit, data, number)
        warm_up_program = pool.submit(first.compile)  # while the turns are traced
        learnt = first.out_info
        if learnt.recent is not None:
            full = jax.ShapeDtypeStruct(2 * learnt.recent.shape[-1:], learnt.recent.dtype)
            learnt = learnt._replace(recent=None, full=full)
        going = jax.eval_shape(begin, key, learnt, 0, 0.0)
        # As NumPy's arrays have them, types are not weak: else it is compiled again for these.
        going = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), going)
    return warm_up_program, compiled_stretch(pool, log_density, going, task, data)


def compiled_stretch(
    pool: ThreadPoolExecutor, log_density: Callable, going: Going, task: Any, data: Any
) -> Future:
    """Return ``stretch`` as a program of ``(going, count, task, data)`` that a thread compiles.

    Args:
        pool: whose thread compiles.
        log_density: of one position, then of the task and the data.
        going, task: of any unit, for their shapes and types.
        data: what all units share.
    """
    with mixed_types():
        return pool.submit(
            stretch.lower(log_density, BLOCK, going, np.int32(0), task, data).compile
        )


def _flat(log_density, position, task, data):
    """Return a position as one vector, the way back, and the density of such a vector."""
    vector, unravel = ravel_pytree(position)
    arguments = [part for part in (task, data) if part is not None]
    return vector, unravel, lambda v: log_density(unravel(v), *arguments)
