"""Sampling from minibatches: the loop that every such sampler shares.

A sampler is anything in the shape of BlackJAX's: ``init(position, key)`` and ``step(key, state,
minibatch, step_size)``, where a state is a position or holds one. ``helpers.sgfs`` is one,
``blackjax.sgld(gradient)`` another.

    algorithm = sgfs.sgfs(log_prior, log_likelihood, data_size=500)
    settings = {"batch_size": 50, "step_size": 1e-3, "num_warmup": 2000, "num_samples": 500}
    draws = sgmcmc.sample(key, algorithm, starts, points, **settings)

Data that memory does not hold are ``Rows``, which a function reads.
"""

from helpers import chains, checks
from helpers import progress as lines
from helpers.common import mixed_types, take
from helpers.mcmc import cores
from helpers.programs import bounded

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.base import SamplingAlgorithm
from jaxtyping import Array, Int, Key


class Rows(NamedTuple):
    """Data that a function reads, a few rows at a time, from wherever they are."""

    count: int  # of all rows
    # the rows of those numbers, a pytree of NumPy arrays with the same leading axes
    read: Callable[[Int[np.ndarray, "*row"]], Any]


def position_of(state: Any) -> Any:
    """Return the position of a sampler's state, which may be the state itself."""
    return getattr(state, "position", state)


def sample(
    key: Key[Array, ""],
    algorithm: SamplingAlgorithm,
    initial_positions: Any,
    data: Any,
    *,
    batch_size: int,
    step_size: float | Callable[[Array], Array],
    num_warmup: int,
    num_samples: int,
    thin: int = 1,
    num_cycles: int = 1,
    replace: bool = True,
    keep: Callable[[Any], Any] = position_of,
    progress: bool | None = None,
) -> Any:
    """Return the draws of chains on minibatches; what is thrown away is never stored.

    A chain repeats ``num_cycles`` times: ``num_warmup`` steps without a draw, then ``num_samples``
    draws, each after ``thin`` steps. Chains run on threads, one program for all, as in
    ``mcmc.sample``.

    Args:
        algorithm: ``init(position, key)`` and ``step(key, state, minibatch, step_size)``; if it
            says its ``data_size`` and ``replace``, as that of ``sgfs`` does, they are compared with
            what is given here.
        initial_positions: pytree of starts, leading axis [chain].
        data: pytree, leading axis [datum]; or ``Rows``, read at once for each draw.
        batch_size: data of a minibatch, drawn anew for every step.
        step_size: a number, or a function of the step's index; all of them are one array, so
            another one compiles nothing again.
        replace: whether a minibatch may hold a datum twice; without, a step costs a sort of all
            data.
        keep: what is stored of a state, leading axes [chain, draw], the draws of all cycles one
            after the other.
        progress: whether a line says how far it is; by default in the notebooks that readers run.
            Draws are the same.

    ValueError: no chains, data, draws or cycles, a batch larger than the data, a step size that is
    not positive, an algorithm for another number of data or other minibatches.
    FloatingPointError: a chain that is not finite; it names the first such draw of each.
    """
    source, data = (data, None) if isinstance(data, Rows) else (None, data)
    num_data = source.count if source else checks.leading("data", data, ("datum",))[0]
    (num_chains,) = checks.leading("initial_positions", initial_positions, ("chain",))
    checks.count(batch_size=batch_size, num_samples=num_samples, thin=thin, num_cycles=num_cycles)
    checks.count(least=0, num_warmup=num_warmup)
    if batch_size > num_data:
        raise ValueError(
            f"batch_size: given {batch_size}, expected at most {num_data}, the number of data"
        )
    _check_algorithm(algorithm, num_data, replace)
    step_sizes = _step_sizes(step_size, num_cycles * (num_warmup + num_samples * thin)).reshape(
        num_cycles, -1
    )
    lengths = num_warmup, num_samples, thin
    keys = jax.random.key_data(jax.random.split(key, (num_chains, 2)))
    with chains.threads(cores()) as pool, lines.line(progress) as shown:
        with mixed_types():
            units = []
            for chain in range(num_chains):
                position = jax.tree.map(lambda leaf: leaf[chain], initial_positions)
                state = algorithm.init(position, jax.random.wrap_key_data(keys[chain, 0]))
                state = jax.tree.map(jnp.asarray, state)
                units.append((keys[chain, 1], state, step_sizes, data, lines.number(shown)))
            settings = algorithm.step, keep, lengths, (batch_size, num_data, replace), source
            run = _one_chain.lower(*settings, *units[0]).compile()
        futures = [
            pool.submit(lambda unit: jax.tree.map(np.asarray, run(*unit)), unit) for unit in units
        ]
        parts = lines.follow(shown, "chains", num_chains * step_sizes.size, futures)
    draws = jax.tree.map(
        lambda *leaves: np.stack(leaves).reshape(num_chains, -1, *leaves[0].shape[2:]), *parts
    )
    _check_finite(draws, num_chains)
    return jax.device_put(draws)


@bounded(5)
def _one_chain(step, keep, lengths, batches, source, key, state, step_sizes, data, number):
    """Run one chain; leaves come back with leading axes [cycle, draw]."""
    num_warmup, num_samples, thin = lengths

    def take_steps(state, key, step_sizes):
        """Take as many steps as there are step sizes: their minibatches are drawn at once, which is
        cheaper.
        """
        count = step_sizes.shape[0]
        key_batches, key_steps = jax.random.split(key)
        chosen = _chosen(key_batches, count, *batches)

        def take_step(state, inputs):
            rows, key, step_size = inputs
            batch = take(data, rows) if source is None else rows
            return step(key, state, batch, step_size), None

        rows = chosen if source is None else read(source, chosen)
        inputs = rows, jax.random.split(key_steps, count), step_sizes
        return jax.lax.scan(take_step, state, inputs)[0]

    def step_numbers(count):
        return None if number is None else jnp.arange(1, count + 1)

    def draw(state, inputs):
        *inputs, place = inputs
        state = take_steps(state, *inputs)
        lines.report(number, place, every=-(-num_samples // 50), worth=thin)
        return state, keep(state)

    def cycle(state, inputs):
        key, step_sizes = inputs
        key_warmup, key_draws = jax.random.split(key)
        state = warm_up(state, key_warmup, step_sizes[:num_warmup]) if num_warmup else state
        rest = step_sizes[num_warmup:].reshape(num_samples, thin)
        turns = jax.random.split(key_draws, num_samples), rest, step_numbers(num_samples)
        return jax.lax.scan(draw, state, turns)

    def warm_up(state, key, step_sizes):
        """Take the steps in blocks, so that no more than a block's minibatches are in memory."""
        block = max(size for size in range(1, 51) if num_warmup % size == 0)
        key_blocks = jax.random.split(key)[0]  # as stored results were drawn
        count = num_warmup // block

        def one_block(state, inputs):
            *inputs, place = inputs
            state = take_steps(state, *inputs)
            lines.report(number, place, every=-(-count // 50), worth=block)
            return state, None

        keys, blocks = jax.random.split(key_blocks, count), step_sizes.reshape(-1, block)
        return jax.lax.scan(one_block, state, (keys, blocks, step_numbers(count)))[0]

    return jax.lax.scan(
        cycle, state, (jax.random.split(jax.random.wrap_key_data(key), len(step_sizes)), step_sizes)
    )[1]


def _chosen(key, count, batch_size, num_data, replace):
    """Return the numbers of the rows of so many minibatches, [step, row]."""
    if replace:
        return jax.random.randint(key, (count, batch_size), 0, num_data)
    pick = partial(jax.random.choice, a=num_data, shape=(batch_size,), replace=False)
    return jax.lax.map(pick, jax.random.split(key, count))


def read(source: Rows, chosen: Int[Array, "*row"]) -> Any:
    """Return the rows of those numbers within a compiled program, which calls the function."""
    one = jax.eval_shape(lambda: source.read(np.zeros(1, int)))
    shapes = jax.tree.map(
        lambda a: jax.ShapeDtypeStruct((*chosen.shape, *a.shape[1:]), a.dtype), one
    )

    def found(rows):
        # in the types that the program has, which are those of ``jax.numpy``
        return jax.tree.map(
            lambda a, to: np.asarray(a, to.dtype), source.read(np.asarray(rows)), shapes
        )

    return jax.pure_callback(found, shapes, chosen)


def _check_algorithm(algorithm, num_data, replace):
    """Check an algorithm that says of which minibatches it is."""
    for name, given in (("data_size", num_data), ("replace", replace)):
        made = getattr(algorithm, name, None)
        if made not in (None, given):
            raise ValueError(
                f"algorithm: given one made with {name}={made}, "
                f"expected {name}={given}, as of the data and the minibatches here"
            )


def _step_sizes(step_size, num_steps):
    index = np.arange(num_steps, dtype=np.float32)
    given = np.asarray(step_size(index) if callable(step_size) else step_size, np.float32)
    values = np.broadcast_to(given, index.shape)
    bad = np.flatnonzero(~(values > 0))  # infinite ones serve: SGFS then has no noise of its own
    if len(bad):
        raise ValueError(
            f"step_size: given {values[bad[0]]} at step {bad[0]}, expected a positive number"
        )
    return values


def _check_finite(draws, num_chains):
    for path, leaf in jax.tree_util.tree_flatten_with_path(draws)[0]:
        finite = np.isfinite(leaf).reshape(num_chains, leaf.shape[1], -1).all(axis=2)
        where = {
            chain: int(np.argmin(finite[chain]))
            for chain in np.flatnonzero(~finite.all(axis=1)).tolist()
        }
        if where:
            name = jax.tree_util.keystr(path) or "position"
            raise FloatingPointError(
                f"{name} is not finite, first in {where} (chain: draw); try a smaller step size"
            )
