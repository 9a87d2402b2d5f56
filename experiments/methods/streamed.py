"""Minibatches from files larger than memory, a few rows at a time.

    draws = sgmcmc.sample(key, algorithm, starts, streamed.rows(folder), batch_size=100, ...)
    state, losses = streamed.fit(key, svi, streamed.rows(folder), batch_size=100, num_steps=10_000)

The second takes NumPyro's ``SVI``.

A folder has a file NAME.npy for each array of the data, all with leading axis [datum]. They are
mapped into memory for a stretch of steps, whose rows are read, and then let go. Memory grows with a
stretch, and not with the data.
"""

from helpers import checks
from helpers.common import mixed_types
from helpers.programs import bounded
from helpers.sgmcmc import Rows, read

import mmap
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Int, Key
from numpyro.infer import SVI

AT_ONCE = 10  # rows of which the surroundings are in memory together


def files(folder: Path) -> dict[str, np.ndarray]:
    """Map the arrays of a folder into memory, by name.

    ValueError: no files, or files of unequal length.
    """
    found = {path.stem: np.load(path, mmap_mode="r") for path in sorted(Path(folder).glob("*.npy"))}
    checks.leading(f"{folder}", found, ("datum",))
    return found


def rows(folder: Path) -> Rows:
    """Return the rows of a folder, which are minibatches as dicts of arrays, by name.

    ValueError: no files, or files of unequal length.
    """
    return Rows(len(next(iter(files(folder).values()))), partial(rows_at, folder))


def rows_at(folder: Path, chosen: Int[np.ndarray, "*row"]) -> dict[str, np.ndarray]:
    """Read chosen rows of a folder, few at a time: each brings up to a megabyte beside it."""
    found = {}
    for name, values in files(folder).items():
        found[name] = np.empty((*chosen.shape, *values.shape[1:]), values.dtype)
        for begin in range(0, chosen.size, AT_ONCE):
            at = np.unravel_index(range(begin, min(begin + AT_ONCE, chosen.size)), chosen.shape)
            found[name][at] = values[chosen[at]]
            if hasattr(mmap, "MADV_DONTNEED"):  # where there is none, pages go when memory is short
                values.base.madvise(mmap.MADV_DONTNEED)
    return found


def fit(
    key: Key[Array, ""],
    svi: SVI,
    source: Rows,
    *,
    batch_size: int,
    num_steps: int,
    stretch: int = 100,
) -> tuple[Any, Array]:
    """Fit a guide on minibatches; return ``svi``'s state, for its ``get_params``, and all losses.

    The model takes a minibatch and scales it up by ``numpyro.handlers.scale``. A ``numpyro.plate``
    of all rows would do so, too, and draw a subsample of them that nobody needs, from a list of
    their numbers. The rows of a ``stretch`` of steps are read at once.

    ValueError: steps that are no multiple of a stretch.
    """
    checks.count(batch_size=batch_size, num_steps=num_steps, stretch=stretch)
    if num_steps % stretch:
        expected = f"a multiple of the {stretch} steps of a stretch"
        raise ValueError(f"num_steps: given {num_steps}, expected {expected}")
    with mixed_types():
        key_first, key_init, key_steps = jax.random.split(key, 3)
        first = jax.random.randint(key_first, (batch_size,), 0, source.count)
        state = svi.init(key_init, source.read(np.asarray(first)))
        keys = jax.random.split(key_steps, num_steps // stretch)
        state, losses = _fitted(svi, source, (stretch, batch_size), state, keys)
    return state, losses.ravel()


@bounded(3)
def _fitted(svi, source, shape, state, keys):
    def one_stretch(state, key):
        chosen = jax.random.randint(key, shape, 0, source.count)
        return jax.lax.scan(svi.update, state, read(source, chosen))

    return jax.lax.scan(one_stretch, state, keys)
