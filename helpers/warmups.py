"""What chains learn before they draw: which of them go on, and what those of a posterior share.

``mcmc.sample`` and ``mcmc.warm_up`` call ``learn``.
"""

from helpers import chains, full_metric, hmc, restarts
from helpers import progress as lines
from helpers.common import mixed_types, stack, take
from helpers.programs import bounded

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

# By how much the mean log inverse metric of a chain may differ from the median chain's; one that
# differs by more is stuck.
MAX_LOG_METRIC_DIFFERENCE = np.log(100.0)


class Warmup(NamedTuple):
    """What warm-up learnt, of each chain that went on: leading axis [chain]; with tasks, [task,
    chain].
    """

    step_size: Float[Array, "*chain"]
    # the diagonal, of few parameters (``full_metric.applies``) the matrix [parameter, parameter],
    # in the order of ``ravel_pytree``; shared by a posterior's chains
    inverse_metric: Float[Array, "*chain parameter"] | Float[Array, "*chain parameter parameter"]
    # mean length of a trajectory, m; shared likewise, unless it is what the step size makes of a
    # full metric
    mean_steps: Float[Array, "*chain"]
    # share of the no-U-turn trajectories that ended at ``max_tree_depth``
    at_limit: Float[Array, "*chain"]
    chain: Int[Array, "*chain"]  # its index among the starts
    # whether what it learnt entered the averages: that of a chain that is stuck does not
    shared: Bool[Array, "*chain"]
    seconds: Float[Array, "*chain"]  # of its core, compiling left out
    # how often it began again, since it was far below the best; None in results kept before
    begun_again: Int[Array, "*chain"] | None = None


def learn(
    work: chains.Work,
    key: Key[Array, ""],
    positions: Any,
    tasks: Any,
    batch: tuple[int, ...],
    sizes: tuple[int, float, int],
    choose: Callable | None,
) -> tuple[Warmup, hmc.Going]:
    """Return what warm-up learnt, and the chains before their first draw, in NumPy; leading axes as
    those of the chains that go on.

    Args:
        work: what all chains have in common.
        positions: where they start, leading axes ``batch``: [chain] or [task, chain].
        tasks: leading axis [task]; None for none.
        batch: leading axes.
        sizes: draws of the warm-up, target acceptance and tree depth, as of ``mcmc.sample``.
        choose: as of ``mcmc.sample``.

    ValueError, FloatingPointError: as ``mcmc.sample``.
    """
    num_warmup, target_acceptance, _ = sizes
    num_nuts, num_chains = 3 * num_warmup // 4, int(np.prod(batch))
    # In NumPy, which compiles nothing.
    given, tasks = chains.by_unit(positions, batch), chains.of_units(tasks, batch)
    # Numbers beyond those of the keys that are split off below.
    key_starts, key_again = (jax.random.fold_in(key, np.uint32(2**32 - i)) for i in (1, 2))
    positions = restarts.checked_starts(work, key_starts, given, tasks, batch)
    keys = np.asarray(jax.random.key_data(jax.random.split(key, (2, num_chains))))
    common = work.data, lines.number(work.shown)
    settings = work.log_density, (num_nuts, *sizes[1:]), take((keys[0], positions, tasks), 0)
    nuts, stretch = hmc.compiled(work.pool, *settings, *common)
    nuts = nuts.result()

    def no_u_turn(rows, keys, positions):
        units = keys, positions, take(tasks, rows)
        one = lambda i: nuts(*take(units, i), *common)  # noqa: E731
        return chains.run(work, "warm-up", num_nuts, one, range(len(rows)))

    learnt, seconds = no_u_turn(np.arange(num_chains), keys[0], positions)
    begun = np.zeros(num_chains, int)
    if choose is None and batch[-1] > 1:
        some = work, key_again, no_u_turn, learnt, (positions, tasks), batch
        learnt, begun, more = restarts.again(*some)
        seconds = seconds + more
    chain = going_on(learnt, choose, batch)
    first_unit = batch[-1] * np.arange(np.prod(batch[:-1], dtype=int))  # of each task
    rows = (chain + first_unit.reshape(*batch[:-1], 1)).ravel()
    learnt, tasks, seconds, begun = take((learnt, tasks, seconds, begun), rows)
    learnt, shared = share(learnt, chain.shape)
    num_tuning = num_warmup - num_nuts
    going = begin(keys[1][: len(rows)], learnt, num_tuning, target_acceptance)
    settings = stretch.result(), going, tasks, num_tuning
    going, more = chains.turns(work, "step sizes", *settings)
    warmup = found(going, learnt.at_limit, chain.ravel(), shared, seconds + more, begun)
    return chains.by_chain((warmup, going), chain.shape)


def found(going: hmc.Going, *others: Any) -> Warmup:
    """Return what chains have learnt when their step sizes are tuned, leading axis [unit].

    ``others`` are the share at the limit, the chains, whether they are shared, the seconds, and how
    often each began again.
    """
    step_size = np.exp(going.adaptation.log_step_size_avg)
    given = going.inverse_metric, going.num_steps, step_size
    mean_steps = np.asarray(full_metric.mean_steps(*given))
    return Warmup(step_size, going.inverse_metric, mean_steps, *others)


def begin(keys: Any, learnt: hmc.Learnt, num_tuning: int, target_acceptance: float) -> hmc.Going:
    """Return chains before their first turn, in NumPy.

    Args:
        keys: data of a key of each, leading axis [unit].
        learnt: of each, leading axis [unit].
        num_tuning, target_acceptance: as of ``hmc.begin``.
    """
    with mixed_types():
        going = _begin(keys, learnt, num_tuning, target_acceptance)
    return jax.tree.map(np.asarray, going)


_begin = bounded(0)(jax.vmap(hmc.begin, (0, 0, None, None)))


def going_on(
    learnt: hmc.Learnt, choose: Callable | None, batch: tuple[int, ...]
) -> Int[np.ndarray, "*task kept"]:
    """Return which chains of each posterior go on: those chosen, or those that are finite.

    Args:
        learnt: of each unit, leading axis [unit].
        choose: as of ``mcmc.sample``.
        batch: leading axes of the chains, [chain] or [task, chain].

    ValueError: a choice of chains that are not there.
    FloatingPointError: more than half of the chains, or one that was chosen, not finite.
    """
    well = chains.finite(learnt, batch)
    lost = np.argwhere(~well).tolist()
    if choose is not None:
        kept = np.asarray(choose(chains.by_chain(learnt.position, batch)))
        _check_choice(kept, batch)
        if not np.take_along_axis(well, kept, axis=-1).all():
            raise FloatingPointError(f"choose kept {kept.tolist()}; not finite: {lost}")
        return kept
    count, message = well.sum(axis=-1).min(), f"warm-up of chains {lost}: not finite"
    if 2 * count < batch[-1]:
        raise FloatingPointError(message)
    if count < batch[-1]:
        message = f"{message}; {count} of {batch[-1]} chains go on"
        warnings.warn(message, RuntimeWarning, stacklevel=5)
    return np.argsort(~well, axis=-1, kind="stable")[..., :count]


def _check_choice(kept, batch):
    """Check that the indices of the chosen chains are [*task, kept], of chains, each once."""
    fits = kept.ndim == len(batch) and kept.shape[:-1] == batch[:-1] and kept.size
    known = fits and kept.dtype.kind == "i" and np.isin(kept, range(batch[-1])).all()
    if not known or (np.diff(np.sort(kept, axis=-1)) == 0).any():
        expected = f"integers {[*batch[:-1], 'kept']} from 0 to {batch[-1] - 1}, none twice"
        raise ValueError(f"choose: gave {kept.tolist()}, expected {expected}")


def share(
    learnt: hmc.Learnt, batch: tuple[int, ...]
) -> tuple[hmc.Learnt, Bool[np.ndarray, " unit"]]:
    """Give the chains of a posterior one metric and one mean length; return whose entered the
    averages.

    ``learnt`` has leading axis [unit], of which ``batch`` makes [chain] or [task, chain].
    """
    size = learnt.log_inverse_metric.mean(axis=-1).reshape(batch)
    shared = np.abs(size - np.median(size, axis=-1, keepdims=True)) <= MAX_LOG_METRIC_DIFFERENCE
    shared |= ~shared.any(axis=-1, keepdims=True)

    def mean(values):
        of_chains = values.reshape(*batch, *values.shape[1:])
        where = shared.reshape(*batch, *[1] * (values.ndim - 1))
        found = of_chains.mean(axis=len(batch) - 1, keepdims=True, where=where)
        return np.broadcast_to(found, of_chains.shape).reshape(values.shape)

    learnt = learnt._replace(
        log_inverse_metric=mean(learnt.log_inverse_metric), num_steps=mean(learnt.num_steps)
    )
    return _share_full(learnt, shared), shared.ravel()


def _share_full(learnt, shared):
    """Give the chains of each posterior one full metric, if their draws were kept for it."""
    if learnt.recent is None:
        return learnt
    num_chains = shared.shape[-1]
    firsts = range(0, shared.size, num_chains)  # units, of each posterior
    metrics, factors = stack(
        [
            full_metric.estimate(
                learnt.recent[first : first + num_chains][who], learnt.log_inverse_metric[first]
            )
            for first, who in zip(firsts, shared.reshape(-1, num_chains), strict=True)
        ]
    )
    full, factor = (np.repeat(part, num_chains, axis=0) for part in (metrics, factors))
    step_size = (learnt.step_size * factor).astype(full.dtype)
    return learnt._replace(recent=None, full=full, step_size=step_size)
