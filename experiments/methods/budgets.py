"""What a method gives for one task, and how chains spend what they may."""

from helpers.sgmcmc import position_of

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from experiments.problems import six_tasks

NUM_CHAINS = 4
MOST = 4000  # draws kept of a chain; of longer runs every so many-th
MOST_OF_ALL = NUM_CHAINS * MOST  # where there are more chains
NUM_DRAWS = 4000  # independent ones of a distribution that was fitted: they take no gradients
SHARE = 0.2  # of a chain that has no warm-up of its own: thrown away


class Drawn(NamedTuple):
    """Networks of one task, how many of each chain there are, and what they cost."""

    vectors: Float[Array, "chain draw 40"]
    count: Int[Array, " chain"]  # the first so many are draws
    # of the task's log density, all chains together; with the log density itself
    gradients: Float[Array, ""]
    centre: Float[Array, " 40"]  # where the network is expanded to first order; NaN if it is not


def fitted(
    vectors: Float[Array, "draw 40"], gradients: float | Array, centre: Array | None = None
) -> Drawn:
    """Return independent draws as four chains, or as one where they are no multiple of four."""
    chains = NUM_CHAINS if len(vectors) % NUM_CHAINS == 0 else 1
    split = vectors.reshape(chains, -1, six_tasks.SIZE)
    nowhere = jnp.full(six_tasks.SIZE, jnp.nan)
    count = jnp.full(chains, split.shape[1])
    return Drawn(split, count, jnp.float32(gradients), nowhere if centre is None else centre)


def chained(
    vectors: Float[Array, "chain draw 40"], gradients: float | Array, count: Array | None = None
) -> Drawn:
    """Return chains of which all draws, or the first so many of each, are there."""
    chains, draws = vectors.shape[:2]
    count = jnp.full(chains, draws) if count is None else jnp.broadcast_to(count, (chains,))
    return Drawn(vectors, count, jnp.float32(gradients), jnp.full(six_tasks.SIZE, jnp.nan))


def normal_starts(key: Array, count: int) -> Float[Array, "start 40"]:
    """Dispersed starts, N(0, 1): draws of the prior."""
    return jax.random.normal(key, (count, six_tasks.SIZE))


def walk(key: Array, step: Callable, state: Any, num_steps: int) -> Any:
    """Return the state after so many of ``step(key, state)``."""
    return jax.lax.fori_loop(0, num_steps, lambda i, s: step(jax.random.fold_in(key, i), s), state)


def steps(
    key: Array,
    step: Callable,
    state: Any,
    num_steps: int,
    most: int = MOST,
    position: Callable = position_of,
) -> tuple[Any, Any]:
    """Walk on; return the last state, and positions of at most so many steps, evenly spaced."""
    kept = min(num_steps, most)

    def one(state, key):
        state = walk(key, step, state, num_steps // kept)
        return state, position(state)

    return jax.lax.scan(one, state, jax.random.split(key, kept))


def spend(
    key: Array, step: Callable, state: Any, left: Array, cost: Array, most: int = MOST
) -> tuple[Array, Array, Array]:
    """Take ``step(key, state) -> state, gradients`` until so many gradients are spent.

    Ten steps are taken in any case. ``cost`` is the mean cost so far: by it draws are thinned to at
    most ``most``. Returns positions [most, ...], how many of them there are, and the gradients
    spent.
    """
    thin = jnp.maximum(1, jnp.ceil(left / (cost * most))).astype(int)
    begin = position_of(state)

    def unfinished(carry):
        number, spent, *_ = carry
        return (number < most) & ((spent < left) | (number < 10))

    def one(carry):
        number, spent, state, kept = carry
        turn = jax.random.fold_in(key, number)

        def inner(i, inside):
            state, spent = inside
            state, used = step(jax.random.fold_in(turn, i), state)
            return state, spent + used

        state, spent = jax.lax.fori_loop(0, thin, inner, (state, spent))
        return number + 1, spent, state, kept.at[number].set(position_of(state))

    carry = 0, jnp.float32(0.0), state, jnp.zeros((most, *begin.shape), begin.dtype)
    number, spent, _, kept = jax.lax.while_loop(unfinished, one, carry)
    return kept, number, spent
