"""Chains as units of work: threads take them one after the other, one thread a core.

What is here runs the programs of ``hmc`` for all chains of one or several posteriors.
"""

from helpers import hmc
from helpers import progress as lines
from helpers.common import stack, take
from helpers.programs import bounded

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float


class Work(NamedTuple):
    """What all units of a call have in common."""

    pool: ThreadPoolExecutor
    shown: lines.Line | None  # what says how far it is
    log_density: Callable  # of one position, then of the task and the data
    data: Any


def threads(count: int) -> ThreadPoolExecutor:
    """Return so many threads that compute in the caller's precision.

    ``with jax.enable_x64(True)`` holds for one thread, and each of these begins without it.
    """
    double = jax.config.jax_enable_x64
    return ThreadPoolExecutor(count, initializer=lambda: jax.enable_x64(double).__enter__())


def by_unit(tree: Any, batch: tuple[int, ...]) -> Any:
    """Return a tree with leading axes ``batch`` with one leading axis, [unit], in NumPy."""
    count = int(np.prod(batch))

    def one(leaf):
        return np.asarray(leaf).reshape(count, *np.shape(leaf)[len(batch) :])

    return jax.tree.map(one, tree)


def of_units(tasks: Any, batch: tuple[int, ...]) -> Any:
    """Return the task of each unit, leading axis [unit], of tasks with leading axis [task]."""
    return jax.tree.map(lambda a: np.repeat(np.asarray(a), batch[-1], axis=0), tasks)


def by_chain(tree: Any, batch: tuple[int, ...]) -> Any:
    """Return a tree with leading axis [unit] with the leading axes of ``batch``."""
    return jax.tree.map(lambda leaf: leaf.reshape(*batch, *leaf.shape[1:]), tree)


def finite(tree: Any, batch: tuple[int, ...]) -> Bool[np.ndarray, "*batch"]:
    """Return whether all numbers of each chain are finite."""
    return np.logical_and.reduce(
        [np.isfinite(leaf).reshape(*batch, -1).all(axis=-1) for leaf in jax.tree.leaves(tree)]
    )


@bounded(1)
def densities(log_density, positions, tasks, data):
    """Return the log density of each unit, leading axis [unit].

    Args:
        log_density: of one position, then of the task and the data.
        positions, tasks: leading axis [unit].
        data: what all units share.
    """

    def one(position, task):
        return log_density(position, *[part for part in (task, data) if part is not None])

    return jax.vmap(one)(positions, tasks)


def run(
    work: Work, phase: str, num_steps: int, one: Callable[[int], Any], units: Any
) -> tuple[Any, Float[np.ndarray, " unit"]]:
    """Return what ``one`` gives of each unit, leading axis [unit], and the seconds of each.

    Args:
        work: whose threads run.
        phase: what the line calls it.
        num_steps: of one unit.
        one: ``f(i)``, of the unit of that number.
        units: their numbers.
    """

    def timed(i):
        begun = time.perf_counter()
        found = jax.tree.map(np.asarray, one(i))
        return found, time.perf_counter() - begun

    futures = [work.pool.submit(timed, i) for i in units]
    found = lines.follow(work.shown, phase, num_steps * len(futures), futures)
    parts, seconds = zip(*found, strict=True)
    return stack(parts), np.array(seconds)


def stretch(work: Work, going: hmc.Going, tasks: Any) -> Callable:
    """Return ``hmc.stretch`` as a program of one unit, ``f(going, count, task, data)``, compiled.

    ``going`` are chains, leading axes [chain] or [task, chain], and ``tasks`` has [task].
    """
    batch = np.shape(going.turn)
    unit = take((by_unit(going, batch), of_units(tasks, batch)), 0)
    return hmc.compiled_stretch(work.pool, work.log_density, *unit, work.data).result()


def turns(
    work: Work,
    phase: str,
    program: Callable,
    going: hmc.Going,
    tasks: Any,
    count: int,
    room: Any = None,
) -> tuple[hmc.Going, Float[np.ndarray, " unit"]]:
    """Let all chains take turns; return them, and the seconds of each, leading axis [unit].

    Args:
        work: whose threads run.
        phase: what the line calls it.
        program: ``hmc.stretch``, compiled.
        going: the chains, leading axis [unit].
        tasks: of each unit, leading axis [unit]; None for none.
        count: how many turns each takes.
        room: draws and ``hmc.Stats``, leading axes [unit, draw], whose last ``count`` entries are
            written; None to throw them away.
    """
    most = hmc.BLOCK if work.shown is None else min(hmc.BLOCK, -(-count // 50))

    def one(i):
        chain, task = take((going, tasks), i)
        for first in range(0, count, most):
            size = min(most, count - first)
            chain, *found = program(chain, np.int32(size), task, work.data)
            if room is not None:
                at = first - count, (first - count + size) or None

                def write(rows, new):
                    rows[i, slice(*at)] = np.asarray(new)[:size]

                jax.tree.map(write, room, tuple(found))
            lines.add(work.shown, size)
        return chain

    return run(work, phase, count, one, range(len(going.turn)))
