"""One chain of the book's sampler, as two programs: NUTS for warm-up, then random-length HMC for
the draws.

``mcmc.sample`` lets ``compiled`` compile them and runs them for every chain. A log density takes a
position, then a task and data if there are any.
"""

from helpers import progress
from helpers.common import mixed_types

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import dual_averaging_adaptation
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int


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
    step_size: Float[Array, "*unit"]
    log_inverse_metric: Float[Array, "*unit parameter"]  # of the diagonal
    num_steps: Float[Array, "*unit"]  # mean length of a trajectory
    at_limit: Float[Array, "*unit"]  # share of trajectories that ended at the largest tree depth


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
    """Return what NUTS (Hoffman and Gelman 2014) learns in a chain, no leading axis.

    The metric is the diagonal one that minimises the Fisher divergence (Seyboldt et al. 2026). The
    mean length of a trajectory, and the share at the limit, are of the last third of the draws.

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
    metric, last = jnp.log(parameters["inverse_mass_matrix"]), lengths[-(num_draws // 3) :]
    at_limit = (last >= 2**max_tree_depth - 1).mean()
    return Learnt(unravel(state.position), parameters["step_size"], metric, last.mean(), at_limit)


@partial(jax.jit, static_argnums=range(4))
def draw(
    log_density, num_tuning, num_samples, target_acceptance, key, learnt, task, data, number=None
):
    """Tune the step size by dual averaging, then draw by HMC (Neal 2011, section 4.2).

    Each trajectory has a length of its own, 1 to ``2 m - 1`` steps, each as likely, where ``m`` is
    ``learnt.num_steps`` rounded up. Returns draws and ``Stats``, leading axis [draw], and the step
    size.

    Args:
        log_density: of one position, then of the task and the data.
        num_tuning: draws that tune the step size and are thrown away.
        num_samples: draws that are kept.
        target_acceptance: mean acceptance that the step size is tuned to.
        key: data of a random key, as ``jax.random.key_data`` returns.
        learnt: of one unit, as ``warm_up`` returns.
        task, data: what the density takes beside the position; None for none.
        number: of the line that draws are reported to; None for none.
    """
    start, unravel, flat_density = _flat(log_density, learnt.position, task, data)
    inverse_metric = jnp.exp(learnt.log_inverse_metric)
    one_turn = turn(flat_density, inverse_metric, learnt.num_steps, target_acceptance)
    key_tuning, key_draws, key_length = jax.random.split(jax.random.wrap_key_data(key), 3)
    init, _, final = dual_averaging_adaptation(target_acceptance)

    def one_draw(carry, inputs):
        *inputs, step = inputs
        found = one_turn(carry, inputs)
        progress.report(number, step, every=-(-num_samples // 50))
        return found

    state = blackjax.dynamic_hmc.init(start, flat_density, key_length)
    keys = jnp.concatenate(
        [jax.random.split(key_tuning, num_tuning), jax.random.split(key_draws, num_samples)]
    )
    steps = None if number is None else jnp.arange(1, len(keys) + 1)
    turns = keys, jnp.arange(num_tuning + num_samples) < num_tuning, steps
    (_, adaptation), drawn = jax.lax.scan(one_draw, (state, init(learnt.step_size)), turns)
    vectors, stats = jax.tree.map(lambda a: a[num_tuning:], drawn)
    return jax.vmap(unravel)(vectors), stats, final(adaptation)


def turn(
    flat_density: Callable,
    inverse_metric: Float[Array, " parameter"],
    mean_steps: Float[Array, ""],
    target_acceptance: float,
) -> Callable:
    """Return one draw of a chain, ``f((state, adaptation), (key, tuning))``, for ``lax.scan``.

    It follows one trajectory and, if it is ``tuning``, learns of the step size. It returns the pair
    that goes on, and position and ``Stats`` of the draw.

    Args:
        flat_density: of a position as one vector.
        inverse_metric: the diagonal.
        mean_steps: a trajectory has 1 to ``2 m - 1`` steps, ``m`` being this number rounded up.
        target_acceptance: mean acceptance that the step size is tuned to.
    """
    most = 2 * jnp.ceil(mean_steps).astype(int)
    kernel = blackjax.dynamic_hmc.build_kernel(
        integration_steps_fn=lambda key: jax.random.randint(key, (), 1, most)
    )
    _, update, final = dual_averaging_adaptation(target_acceptance)

    def one_turn(carry, inputs):
        (state, adaptation), (key, tuning) = carry, inputs
        # One kernel, hence one program to compile, serves the tuning and the draws.
        step_size = jnp.where(tuning, jnp.exp(adaptation.log_step_size), final(adaptation))
        moved, info = kernel(key, state, flat_density, step_size, inverse_metric)
        tuned = update(adaptation, info.acceptance_rate)
        adaptation = jax.tree.map(lambda new, old: jnp.where(tuning, new, old), tuned, adaptation)
        # BlackJAX reports the energy at the trajectory's end, which is infinite for some that are
        # rejected.
        energy = (inverse_metric * info.momentum**2).sum() / 2 - state.logdensity
        acceptance, steps = info.acceptance_rate, info.num_integration_steps
        stats = Stats(moved.logdensity, info.is_divergent, acceptance, energy, steps)
        return (moved, adaptation), (moved.position, stats)

    return one_turn


def compiled(
    pool: ThreadPoolExecutor,
    log_density: Callable,
    lengths: tuple[int, int, int],
    target_acceptance: float,
    max_tree_depth: int,
    unit: tuple,
    common: tuple,
) -> tuple[Future, Future]:
    """Return ``warm_up`` and ``draw`` as programs that the threads of a pool compile.

    The first takes ``(key, position, task, *common)``, the second ``(key, learnt, task, *common)``,
    of one unit.

    Args:
        pool: whose threads compile.
        log_density: of one position, then of the task and the data.
        lengths: how many draws the no-U-turn part, the tuning of the step size and the sampling
            take.
        target_acceptance, max_tree_depth: as of ``warm_up``.
        unit: key, position and task of any unit, for their shapes and types.
        common: what all units share: data, and the number of a line if there is one.
    """
    num_nuts, *num_others = lengths
    key, _, task = unit
    with mixed_types():  # the density itself has just been evaluated under the caller's rules
        settings = log_density, num_nuts, target_acceptance, max_tree_depth
        first = warm_up.lower(*settings, *unit, *common)
        warm_up_program = pool.submit(first.compile)  # while the draws are traced
        learnt = jax.tree.map(lambda a: np.ones(a.shape, a.dtype), first.out_info)
        settings = log_density, *num_others, target_acceptance
        second = draw.lower(*settings, key, learnt, task, *common)
    return warm_up_program, pool.submit(second.compile)


def _flat(log_density, position, task, data):
    """Return a position as one vector, the way back, and the density of such a vector."""
    vector, unravel = ravel_pytree(position)
    arguments = [part for part in (task, data) if part is not None]
    return vector, unravel, lambda v: log_density(unravel(v), *arguments)
