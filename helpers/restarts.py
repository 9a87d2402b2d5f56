"""Chains that begin again: where a start has no finite density, or a mode has little mass.

``warmups.learn`` asks for both before chains draw.
"""

from helpers import chains, checks, hmc
from helpers.common import generator, take

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

MOST_DRAWN = 100  # how often a start whose density is not finite is drawn
MOST_AGAIN = 3  # how often a chain begins again
# By how many nats a chain may be below its posterior's best: a constant, and so many times the root
# of the number of parameters. The log density of a normal has a standard deviation of the root of
# half their number, so four such roots are more than five of them: guesses would stay within if
# each came from one draw. The constant is for what is not normal.
ALLOWED = 15.0, 4.0


def finite_starts(
    work: chains.Work,
    key: Key[Array, ""],
    given: Any,
    tasks: Any,
    batch: tuple[int, ...],
    where: Bool[np.ndarray, " unit"],
) -> tuple[Any, Bool[np.ndarray, " unit"]]:
    """Return starts, of which some are new, and for which of those no finite density was found.

    A new start is drawn up to a hundred times, from independent normals, each with the mean of the
    starts that were given for that posterior. Variances are those of one start more, as predicted
    from n: their own, times ``(n + 1) / (n - 1)``.

    Args:
        work: whose density has to be finite.
        given: starts, leading axis [unit].
        tasks: leading axis [unit]; None for none.
        batch: what [unit] is: [chain] or [task, chain].
        where: which starts are to be new.
    """
    random, missing, starts = generator(key), where.copy(), given

    def drawn(leaf, old):
        of_chains = leaf.reshape(*batch, *leaf.shape[1:])
        axis = {"axis": len(batch) - 1, "keepdims": True}
        wide = np.sqrt((batch[-1] + 1) / max(batch[-1] - 1, 1)) * of_chains.std(**axis)
        new = of_chains.mean(**axis) + wide * random.normal(size=of_chains.shape)
        rows = missing.reshape(-1, *[1] * (leaf.ndim - 1))
        return np.where(rows, new.reshape(leaf.shape), old).astype(leaf.dtype)

    for _ in range(MOST_DRAWN):
        if not missing.any():
            break
        starts = jax.tree.map(drawn, given, starts)
        missing &= ~is_finite(work, starts, tasks)
    return starts, missing


def is_finite(work: chains.Work, positions: Any, tasks: Any) -> Bool[np.ndarray, " unit"]:
    """Return whether the log density is, at positions with leading axis [unit]."""
    values = chains.densities(work.log_density, positions, tasks, work.data)
    return np.isfinite(np.asarray(values))


def mass(learnt: hmc.Learnt) -> Float[np.ndarray, " unit"]:
    """Guess the log of the mass where each chain is, in nats, up to what chains have in common.

    It is that of a normal with the mean log density of the chain's draws and the volume of its
    metric; -inf where a chain is not finite.
    """
    volume = np.asarray(learnt.log_inverse_metric, float).sum(axis=-1) / 2
    with np.errstate(invalid="ignore"):
        guess = np.asarray(learnt.mean_log_density, float) + volume
    return np.where(chains.finite(learnt, volume.shape), guess, -np.inf)


def far(
    learnt: hmc.Learnt, guess: Float[np.ndarray, " unit"], batch: tuple[int, ...]
) -> Bool[np.ndarray, " unit"]:
    """Return whether chains are so far below the best of their posterior that they begin again.

    Both are far below: the mass, and the mean log density. For a metric is learnt from few draws:
    where there are hundreds of parameters that the data hardly determine, its volume varies by
    hundreds of nats between chains that are as good as each other.

    Args:
        learnt: of each unit, leading axis [unit].
        guess: their log mass, as ``mass`` returns.
        batch: what [unit] is: [chain] or [task, chain].
    """
    constant, times = ALLOWED
    allowed = constant + times * np.sqrt(learnt.log_inverse_metric.shape[-1])
    lost = ~(guess > -np.inf)
    height = np.where(lost, -np.inf, learnt.mean_log_density).reshape(batch)
    guess = guess.reshape(batch)
    first = guess.argmax(axis=-1)[..., None]
    below = [part < np.take_along_axis(part, first, axis=-1) - allowed for part in (guess, height)]
    return lost | (below[0] & below[1]).ravel()


def again(
    work: chains.Work,
    key: Key[Array, ""],
    run: Callable,
    learnt: hmc.Learnt,
    given: tuple[Any, Any],
    batch: tuple[int, ...],
) -> tuple[hmc.Learnt, Int[np.ndarray, " unit"], Float[np.ndarray, " unit"]]:
    """Let chains that are far below the best of their posterior begin again, at most three times,
    each from a new start; a new one is kept if its mass is greater.

    Returned are what chains learnt, how often each began again, and the seconds that it took,
    leading axis [unit].

    Args:
        work: what all chains have in common.
        key: of what is new.
        run: ``f(units, keys, positions)`` runs the no-U-turn part for those units, and returns what
            each learnt and its seconds.
        learnt: of each unit, leading axis [unit].
        given: starts and tasks, leading axis [unit].
        batch: what [unit] is: [chain] or [task, chain].
    """
    guess = mass(learnt)
    count, seconds = np.zeros(len(guess), int), np.zeros(len(guess))
    for number in range(MOST_AGAIN):
        where = far(learnt, guess, batch)
        if not where.any():
            break
        key_starts, key_chains = jax.random.split(jax.random.fold_in(key, number))
        starts, missing = finite_starts(work, key_starts, *given, batch, where)
        rows = np.flatnonzero(where & ~missing)
        if not len(rows):
            break
        keys = np.asarray(jax.random.key_data(jax.random.split(key_chains, len(guess))))
        new, more = run(rows, keys[rows], take(starts, rows))
        count[rows] += 1
        seconds[rows] += more
        better = mass(new) > guess[rows]
        kept = rows[better]

        def put(old, new):
            old = old.copy()
            old[kept] = new[better]
            return old

        learnt = jax.tree.map(put, learnt, new)
        guess = mass(learnt)
    return learnt, count, seconds


def checked_starts(
    work: chains.Work, key: Key[Array, ""], positions: Any, tasks: Any, batch: tuple[int, ...]
) -> Any:
    """Return starts with finite densities, leading axis [unit]: those given, or new ones for them.

    Args:
        work: whose density has to be finite.
        key: of new starts.
        positions, tasks: leading axis [unit].
        batch: what [unit] is: [chain] or [task, chain].

    ValueError: numbers that are not finite, or no finite density around the starts.
    """
    checks.finite(initial_positions=positions)
    bad = ~is_finite(work, positions, tasks)
    if not bad.any():
        return positions
    starts, missing = finite_starts(work, key, positions, tasks, batch, bad)
    if missing.any():
        places = np.argwhere(missing.reshape(batch)).tolist()
        raise ValueError(
            f"initial_positions: the log density is not finite at {places}, nor at {MOST_DRAWN} "
            "draws with the mean and spread of all starts, expected a finite start: try a smaller "
            "``scale`` of ``normal_starts``"
        )
    return starts
