"""One posterior over the devices of a mesh: what is a sum over data or tasks is summed where they
lie.

A mesh of ``joined_processes.grid`` has rows. Chains are divided among rows, which talk after
warm-up, when chains agree on a metric, and after a stretch, when every process gets the draws of
all. Within a row data are divided among devices, which talk once a gradient: a sum.

    total = sharded_sums.summed(lambda params, _, seen: log_likelihood(params, seen).sum())
    log_density = lambda params, seen: log_prior(params) + total(params, None, seen)
    posterior = sharded.sample(key, log_density, starts, mesh, data=observed)

Draws are those of ``mcmc.sample`` but for rounding. They do not depend on how many processes share
the rows, nor on whether the run was stopped: with a folder it is kept there, stretch by stretch,
and goes on where it was.
"""

from helpers import checks, hmc, mcmc
from helpers.common import mixed_types, take

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import DualAveragingAdaptationState, dual_averaging_adaptation
from blackjax.mcmc.dynamic_hmc import DynamicHMCState
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh
from jaxtyping import Array, Key

from experiments.methods import checkpoints, meshes
from experiments.problems import sharded_sums


class Carry(NamedTuple):
    """All that a chain needs to go on, and what warm-up learnt."""

    chain: Any  # BlackJAX's state, its random key as numbers
    adaptation: Any  # of the step size
    inverse_metric: Array
    mean_steps: Array
    at_limit: Array
    shared: Array


# The shapes of the trees that are kept.
CARRY = Carry(DynamicHMCState(0, 0, 0, 0), DualAveragingAdaptationState(0, 0, 0, 0, 0), 0, 0, 0, 0)
DRAWN = 0, hmc.Stats(0, 0, 0, 0, 0)


def sample(
    key: Key[Array, ""],
    log_density: Callable,
    initial_positions: Any,
    mesh: Mesh,
    *,
    data: Any,
    num_warmup: int = 300,
    num_samples: int = 1000,
    target_acceptance: float = 0.8,
    max_tree_depth: int = 10,
    every: int | None = None,
    folder: Path | None = None,
) -> mcmc.Posterior:
    """Draw as ``mcmc.sample`` does; rows of a mesh share the chains, devices of a row the data.

    Every process calls this with the same arguments and has the whole posterior in the end. The
    density is of a position and of data, whose leading axes are divided; what it sums over data
    goes through ``sharded_sums.summed``. Positions are whole on every device, so what ``own`` there
    is, is ``gathered``.

    Args:
        every: turns of a stretch: draws, and before them the quarter of warm-up that tunes the step
            size; all of them by default, in one stretch.
        folder: where the run is kept, after warm-up and after each stretch; a run that is found
            there goes on.

    ValueError: as ``mcmc.sample``; chains, data or turns that do not divide evenly; a folder with
    another run.
    FloatingPointError: a warm-up or draws that are not finite.
    """
    sizes = num_warmup, num_samples, target_acceptance, max_tree_depth
    batch = mcmc._check(initial_positions, None, *sizes)
    (num_chains,), num_tuning = batch, num_warmup - 3 * num_warmup // 4
    num_turns = num_tuning + num_samples
    every = num_turns if every is None else every
    _check_divided(num_chains, mesh.shape["row"], num_turns, every)
    starts = jax.tree.map(np.asarray, initial_positions)
    keys = np.asarray(jax.random.key_data(jax.random.split(key, (2, num_chains))))
    each = _for_each_chain(mesh, num_chains, data)
    density = log_density, target_acceptance
    tuned = np.tile(np.arange(num_turns) < num_tuning, (num_chains, 1))
    turns = _keys(keys[1], num_tuning, num_samples), tuned
    stretch = meshes.whole(partial(_stretch, *density))
    settings = {"num_warmup": num_warmup, "num_samples": num_samples}
    settings |= {"target_acceptance": target_acceptance, "max_tree_depth": max_tree_depth}
    settings |= {"every": every, "chains": num_chains, "key": keys.tolist()}
    kept = contextlib.nullcontext() if folder is None else checkpoints.opened(folder, settings)
    with mixed_types(), kept as manager:
        last = manager and manager.latest_step()
        if last is None:
            sizes = num_warmup - num_tuning, max_tree_depth
            carry, parts, last = _begun(each, density, sizes, keys, starts, batch), [], 0
            if manager:
                checkpoints.save(manager, 0, (carry, None), settings)
        else:
            carry, parts = _resumed(manager, last, each, log_density, starts)
        for step in range(last + 1, num_turns // every + 1):
            stretch_turns = take(turns, np.s_[:, (step - 1) * every : step * every])
            carry, drawn = each(stretch, carry, *stretch_turns, starts)
            parts.append(drawn)
            if manager:
                checkpoints.save(manager, step, (carry, drawn), settings)
    drawn = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1)[:, num_tuning:], *parts)
    return _posterior(carry, drawn, starts, target_acceptance)


def _check_divided(num_chains, num_rows, num_turns, every):
    """Refuse chains that rows do not divide, and turns that stretches do not."""
    if num_chains % num_rows:
        raise ValueError(
            f"initial_positions: given {num_chains} chains, "
            f"expected a multiple of the {num_rows} rows"
        )
    checks.count(every=every)
    if num_turns % every:
        turns = f"{num_turns} turns, those that tune the step size included"
        raise ValueError(f"every: given {every}, expected a divisor of the {turns}")


def _for_each_chain(mesh, num_chains, data):
    """Return what runs a program for each chain with a device here: what all found, [chain]."""
    rows = meshes.rows_of_chains(mesh, num_chains)
    mine = {row for row in rows.values() if meshes.is_mine(row)}
    there = {row: meshes.place(data, row, sharded_sums.AXIS) for row in mine}

    def each(program, *trees):
        found = {}
        for chain in (chain for chain, row in rows.items() if row in there):
            with jax.set_mesh(rows[chain]):
                placed = meshes.place(take(trees, chain), rows[chain])
                found[chain] = program(*placed, there[rows[chain]])
        return meshes.together(jax.tree.map(np.asarray, found), rows)

    return each


def _begun(each, density, sizes, keys, starts, batch):
    """Return chains before their first turn: warmed up, with the metric on which they agree."""
    (log_density, target_acceptance), (num_nuts, max_tree_depth) = density, sizes

    def warm_up(key, position, data):
        settings = log_density, num_nuts, target_acceptance, max_tree_depth
        return hmc.warm_up(*settings, key, position, None, data)

    learnt = each(meshes.whole(warm_up), keys[0], starts)
    _check_finite("warm-up", learnt, batch)
    learnt, shared = mcmc._share(learnt, batch)
    return each(meshes.whole(partial(_begin, *density)), keys[1], learnt, shared)


def _resumed(manager, last, each, log_density, starts):
    """Return how the chains of a run that is kept go on, and what its stretches drew."""
    carry, _ = checkpoints.read(manager, last, (CARRY, DRAWN if last else None))
    parts = [checkpoints.read(manager, step, (CARRY, DRAWN))[1] for step in range(1, last + 1)]
    values = each(meshes.whole(partial(_value, log_density)), carry.chain.position, starts)
    if not np.allclose(values, carry.chain.logdensity, rtol=1e-3):
        raise ValueError(
            f"folder: given a run of log densities {carry.chain.logdensity.tolist()}, "
            f"expected {values.tolist()}: of other data, or of another density"
        )
    return carry, parts


def _keys(keys, num_tuning, num_samples):
    """Return the keys of all turns, [chain, turn], as ``hmc.draw`` makes them."""

    def of_chain(key):
        key_tuning, key_draws, _ = jax.random.split(jax.random.wrap_key_data(key), 3)
        return jnp.concatenate(
            [jax.random.split(key_tuning, num_tuning), jax.random.split(key_draws, num_samples)]
        )

    return np.asarray(jax.random.key_data(jax.vmap(of_chain)(keys)))


def _begin(log_density, target_acceptance, key, learnt, shared, data):
    """Return a chain before its first turn."""
    start, _, density = hmc._flat(log_density, learnt.position, None, data)
    key_length = jax.random.split(jax.random.wrap_key_data(key), 3)[2]
    chain = blackjax.dynamic_hmc.init(start, density, key_length)
    adaptation = dual_averaging_adaptation(target_acceptance)[0](learnt.step_size)
    return Carry(
        _packed(chain),
        adaptation,
        jnp.exp(learnt.log_inverse_metric),
        learnt.num_steps,
        learnt.at_limit,
        shared,
    )


def _value(log_density, vector, position, data):
    return hmc._flat(log_density, position, None, data)[2](vector)


def _stretch(log_density, target_acceptance, carry, keys, tuned, position, data):
    """Let a chain take turns of ``hmc.draw``; return it, vectors and statistics of each turn."""
    *_, density = hmc._flat(log_density, position, None, data)
    one_turn = hmc.turn(density, carry.inverse_metric, carry.mean_steps, target_acceptance)
    state = _packed(carry.chain, jax.random.wrap_key_data), carry.adaptation
    turns = jax.random.wrap_key_data(keys), tuned
    (chain, adaptation), drawn = jax.lax.scan(one_turn, state, turns)
    return carry._replace(chain=_packed(chain), adaptation=adaptation), drawn


def _packed(chain, convert=jax.random.key_data):
    return chain._replace(random_generator_arg=convert(chain.random_generator_arg))


def _posterior(carry, drawn, starts, target_acceptance):
    """Return the draws as ``mcmc.sample`` does; seconds are not measured."""
    vectors, stats = drawn
    num_chains = len(vectors)
    _check_finite("draws", drawn, (num_chains,))
    _, unravel = ravel_pytree(take(starts, 0))
    draws = jax.tree.map(np.asarray, jax.vmap(jax.vmap(unravel))(vectors))
    step_size = np.asarray(dual_averaging_adaptation(target_acceptance)[2](carry.adaptation))
    none, chain = np.full(num_chains, np.nan), np.arange(num_chains)
    learnt = carry.inverse_metric, carry.mean_steps, carry.at_limit, chain, carry.shared, none
    return mcmc.Posterior(draws, stats, mcmc.Warmup(step_size, *learnt))


def _check_finite(what, tree, batch):
    bad = np.argwhere(~mcmc._finite(tree, batch))
    if len(bad):
        raise FloatingPointError(f"{what} of chains {bad.ravel().tolist()}: not finite")
