"""One posterior over the devices of a mesh: what is a sum over data or tasks is summed where they
lie.

A mesh of ``joined_processes.grid`` has rows. Chains are divided among rows, which talk after
warm-up, when chains agree on a metric, and after a stretch, when every process gets the draws of
all. Within a row data are divided among devices, which talk once a gradient: a sum.

    total = sharded_sums.summed(lambda params, _, seen: log_likelihood(params, seen).sum())
    log_density = lambda params, seen: log_prior(params) + total(params, None, seen)
    posterior = sharded.sample(key, log_density, starts, mesh, data=observed)

Draws are those of ``mcmc.sample`` but for rounding, where no chain of it begins again. They do not
depend on how many processes share the rows, nor on whether the run was stopped: with a folder it is
kept there, stretch by stretch, and goes on where it was.
"""

from helpers import chains, checks, hmc, mcmc, warmups
from helpers.common import mixed_types, take

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from blackjax.adaptation.step_size import DualAveragingAdaptationState
from jax.sharding import Mesh
from jaxtyping import Array, Key

from experiments.methods import checkpoints, meshes
from experiments.problems import sharded_sums


class Run(NamedTuple):
    """Chains as they are, and what stretches have drawn; leading axis [chain]."""

    going: hmc.Going
    at_limit: Array
    shared: Array
    parts: list[tuple[Any, hmc.Stats]]  # of each stretch, leading axes [chain, turn]


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
    sizes = num_warmup, target_acceptance, max_tree_depth
    checks.count(num_samples=num_samples)
    (num_chains,) = batch = mcmc.batch_of(initial_positions, None, *sizes)
    num_tuning = num_warmup - 3 * num_warmup // 4
    num_turns = num_tuning + num_samples
    every = num_turns if every is None else every
    _check_divided(num_chains, mesh.shape["row"], num_turns, every)
    starts = jax.tree.map(np.asarray, initial_positions)
    keys = np.asarray(jax.random.key_data(jax.random.split(key, (2, num_chains))))
    each = _for_each_chain(mesh, num_chains, data)
    stretch = meshes.whole(
        lambda going, data: hmc.stretch(log_density, every, going, every, None, data)
    )
    settings = {"num_warmup": num_warmup, "num_samples": num_samples}
    settings |= {"target_acceptance": target_acceptance, "max_tree_depth": max_tree_depth}
    settings |= {"every": every, "chains": num_chains, "key": keys.tolist()}
    kept = contextlib.nullcontext() if folder is None else checkpoints.opened(folder, settings)
    with mixed_types(), kept as manager:
        last = manager and manager.latest_step()
        if last is None:
            run, last = _begun(each, log_density, sizes, keys, starts, batch), 0
            if manager:
                checkpoints.save(manager, 0, run, settings)
        else:
            run = _resumed(manager, last, each, log_density, starts)
        for step in range(last + 1, num_turns // every + 1):
            going, *drawn = each(stretch, run.going)
            run = run._replace(going=going)
            run.parts.append(tuple(drawn))
            if manager:
                checkpoints.save(manager, step, run._replace(parts=run.parts[-1:]), settings)
    return _posterior(run, num_tuning)


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


def _begun(each, log_density, sizes, keys, starts, batch):
    """Return chains before their first turn: warmed up, with the metric on which they agree."""
    num_warmup, target_acceptance, max_tree_depth = sizes
    num_nuts = 3 * num_warmup // 4

    def warm_up(key, position, data):
        settings = log_density, num_nuts, target_acceptance, max_tree_depth
        return hmc.warm_up(*settings, key, position, None, data)

    learnt = each(meshes.whole(warm_up), keys[0], starts)
    _check_finite("warm-up", learnt, batch)
    learnt, shared = warmups.share(learnt, batch)
    going = warmups.begin(keys[1], learnt, num_warmup - num_nuts, target_acceptance)
    return Run(going, learnt.at_limit, shared, [])


def _resumed(manager, last, each, log_density, starts):
    """Return a run that is kept: how its chains go on, and what its stretches drew."""
    like = hmc.Going(*[0] * len(hmc.Going._fields))._replace(
        position=starts, adaptation=DualAveragingAdaptationState(0, 0, 0, 0, 0)
    )
    drawn = starts, hmc.Stats(0, 0, 0, 0, 0)
    runs = [
        checkpoints.read(manager, step, Run(like, 0, 0, [drawn] if step else []))
        for step in range(last + 1)
    ]
    run = runs[-1]._replace(parts=[part for one in runs for part in one.parts])
    value = meshes.whole(lambda position, data: log_density(position, data))
    values, kept = each(value, run.going.position), run.going.log_density
    if not np.allclose(values, kept, rtol=1e-3):
        raise ValueError(
            f"folder: given a run of log densities {kept.tolist()}, "
            f"expected {values.tolist()}: of other data, or of another density"
        )
    return run


def _posterior(run, num_tuning):
    """Return the draws as ``mcmc.sample`` does; seconds are not measured."""
    draws, stats = jax.tree.map(
        lambda *leaves: np.concatenate(leaves, axis=1)[:, num_tuning:], *run.parts
    )
    num_chains = len(run.shared)
    _check_finite("draws", (draws, stats), (num_chains,))
    going, none, chain = run.going, np.full(num_chains, np.nan), np.arange(num_chains)
    warmup = warmups.found(going, run.at_limit, chain, run.shared, none, 0 * chain)
    return mcmc.Posterior(draws, stats, warmup, going)


def _check_finite(what, tree, batch):
    bad = np.argwhere(~chains.finite(tree, batch))
    if len(bad):
        raise FloatingPointError(f"{what} of chains {bad.ravel().tolist()}: not finite")
