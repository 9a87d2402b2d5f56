"""Minibatches from files larger than memory: the same samplers and fits, one stretch of steps after
the other.

    draws = streamed.sample(key, algorithm, starts, folder, batch_size=100, step_size=1e-3, ...)
    state, losses = streamed.fit(key, svi, folder, batch_size=100, num_steps=10_000)

The first is as ``sgmcmc.sample``, the second takes NumPyro's ``SVI``.

A folder has a file NAME.npy for each array of the data, all with leading axis [datum]. They are
mapped into memory for a stretch of steps, whose rows are read, and then let go. Memory grows with a
stretch, and not with the data.
"""

from helpers import checks, sgmcmc
from helpers.common import mixed_types, stack, take

import mmap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.base import SamplingAlgorithm
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


def rows(folder: Path, chosen: Int[np.ndarray, "*batch"]) -> dict[str, np.ndarray]:
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


def sample(
    key: Key[Array, ""],
    algorithm: SamplingAlgorithm,
    initial_positions: Any,
    folder: Path,
    *,
    batch_size: int,
    step_size: float | Callable[[Array], Array],
    num_warmup: int,
    num_samples: int,
    thin: int = 1,
    keep: Callable[[Any], Any] = sgmcmc.position_of,
) -> Any:
    """Draw what ``sgmcmc.sample`` draws from data in memory, with replacement and in one cycle.

    A minibatch is a dict of arrays. A stretch is a draw: it has ``thin`` steps. Chains run one
    after the other.

    ValueError: as ``sgmcmc.sample``; a folder without data.
    FloatingPointError: a chain that is not finite.
    """
    # Private parts of `sgmcmc` are used, since the draws are to be its own; the tests compare them.
    (num_chains,) = checks.leading("initial_positions", initial_positions, ("chain",))
    checks.count(batch_size=batch_size, num_samples=num_samples, thin=thin)
    checks.count(least=0, num_warmup=num_warmup)
    block = max(size for size in range(1, 51) if num_warmup % size == 0)
    step_sizes = jnp.asarray(sgmcmc._step_sizes(step_size, num_warmup + num_samples * thin))
    warm = step_sizes[:num_warmup].reshape(-1, block)
    rest = step_sizes[num_warmup:].reshape(num_samples, thin)

    def step(state, inputs, batch):
        key, step_size = inputs
        return algorithm.step(key, state, batch, step_size), None

    def one_chain(position, keys):
        state = algorithm.init(position, keys[0])
        key_warmup, key_draws = jax.random.split(jax.random.split(keys[1], 1)[0])
        key_warmup = jax.random.split(key_warmup)[0]  # as in sgmcmc.sample
        for key, sizes in zip(jax.random.split(key_warmup, len(warm)), warm, strict=True):
            state = several(state, key, sizes)
        drawn = []
        for key, sizes in zip(jax.random.split(key_draws, num_samples), rest, strict=True):
            state = several(state, key, sizes)
            drawn.append(jax.tree.map(np.asarray, keep(state)))
        return stack(drawn)

    def several(state, key, step_sizes):
        key_batches, key_steps = jax.random.split(key)
        inputs = jax.random.split(key_steps, len(step_sizes)), step_sizes
        chosen = _chosen(key_batches, folder, (len(step_sizes), batch_size))
        return _steps(step, state, inputs, rows(folder, chosen))[0]

    with mixed_types():
        keys = jax.random.split(key, (num_chains, 2))
        starts = [take(initial_positions, chain) for chain in range(num_chains)]
        parts = [one_chain(*pair) for pair in zip(starts, keys, strict=True)]
    draws = stack(parts)
    sgmcmc._check_finite(draws, num_chains)
    return draws


def fit(
    key: Key[Array, ""],
    svi: SVI,
    folder: Path,
    *,
    batch_size: int,
    num_steps: int,
    stretch: int = 100,
) -> tuple[Any, np.ndarray]:
    """Fit a guide on minibatches; return ``svi``'s state, for its ``get_params``, and all losses.

    The model takes a minibatch, a dict of arrays, and scales it up by ``numpyro.handlers.scale``. A
    ``numpyro.plate`` of all rows would do so, too, and draw a subsample of them that nobody needs,
    from a list of their numbers.

    ValueError: a folder without data, steps that are no multiple of a stretch.
    """
    checks.count(batch_size=batch_size, num_steps=num_steps, stretch=stretch)
    if num_steps % stretch:
        expected = f"a multiple of the {stretch} steps of a stretch"
        raise ValueError(f"num_steps: given {num_steps}, expected {expected}")

    def step(state, _, batch):
        return svi.update(state, batch)

    key_first, key_init, *keys = jax.random.split(key, 2 + num_steps // stretch)
    losses = []
    with mixed_types():
        state = svi.init(key_init, rows(folder, _chosen(key_first, folder, (batch_size,))))
        for key in keys:
            part = rows(folder, _chosen(key, folder, (stretch, batch_size)))
            state, found = _steps(step, state, None, part)
            losses.append(np.asarray(found))
    return state, np.concatenate(losses)


def _chosen(key, folder, shape):
    """Draw rows with replacement."""
    return np.asarray(jax.random.randint(key, shape, 0, len(next(iter(files(folder).values())))))


@partial(jax.jit, static_argnums=0)
def _steps(step, state, inputs, batches):
    """Take the steps of a stretch; inputs and minibatches have leading axis [step]."""
    return jax.lax.scan(lambda state, parts: step(state, *parts), state, (inputs, batches))
