"""Hamiltonian Monte Carlo that learns its metric and its trajectories from NUTS, chains spread over cores.

Every chain is one unit of work. Threads take the units one after the other, one thread a core;
``vmap`` would make every chain wait for the longest trajectory of all. One program runs every
unit, so the draws do not depend on how many cores there are, to the last bit.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import dual_averaging_adaptation
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key


class Stats(NamedTuple):
    """What the sampler says of each draw."""

    log_density: Float[Array, "*chain draw"]
    diverging: Bool[Array, "*chain draw"]
    acceptance: Float[Array, "*chain draw"]
    energy: Float[Array, "*chain draw"]
    integration_steps: Int[Array, "*chain draw"]


class Posterior(NamedTuple):
    """Draws, a pytree like one position, and their statistics, on leading axes [chain, draw]."""

    draws: Any
    stats: Stats


def normal_starts(key: Key[Array, ""], position: Any, batch: tuple[int, ...], scale: float = 1.0) -> Any:
    """Draw dispersed starts N(0, scale) for every leaf of a position (its shapes suffice), leading axes ``batch``."""
    leaves, structure = jax.tree.flatten(position)
    shapes = tuple((*batch, *jnp.shape(leaf)) for leaf in leaves)
    return jax.tree.unflatten(structure, _normals(key, scale, shapes))


@partial(jax.jit, static_argnames="shapes")
def _normals(key, scale, shapes):
    # Entry i of a random array depends on the key and on i alone, so one program of the largest size
    # gives what one program a leaf would, each of which takes half a second to compile.
    sizes = [int(np.prod(shape)) for shape in shapes]
    rows = jax.vmap(lambda k: jax.random.normal(k, (max(sizes),)))(jax.random.split(key, len(shapes)))
    return [scale * row[:size].reshape(shape) for row, size, shape in zip(rows, sizes, shapes, strict=True)]


def sample(
    key: Key[Array, ""],
    log_density: Callable,
    initial_positions: Any,
    *,
    num_warmup: int = 300,
    num_samples: int = 1000,
    target_acceptance: float = 0.8,
    max_tree_depth: int = 10,
    data: Any = None,
    choose: Callable[[Any], Int[np.ndarray, "*task kept"]] | None = None,
) -> Posterior:
    """Draw from a density by Hamiltonian Monte Carlo with trajectories of random length (Neal 2011, section 4.2).

    Three quarters of warm-up are no-U-turn sampling (Hoffman and Gelman 2014). It finds the diagonal metric
    that minimises the Fisher divergence (Seyboldt et al. 2026), and how many steps a trajectory needs (as in
    Wu et al. 2018). Chains of one posterior share both: the metrics' geometric mean, the mean number of steps m.
    The last quarter tunes each chain's step size by dual averaging. Then everything is fixed, and
    every draw follows a trajectory of 1 to 2 m - 1 steps, each number as likely.

    Args:
        log_density: of one position, up to a constant; ``log_density(position, data_t)`` if
            there are data. A second call with the same function compiles nothing again.
        initial_positions: pytree of dispersed starts, leading axis [chain]; with data, [task, chain].
        num_warmup: warm-up draws of each chain, thrown away.
        num_samples: draws kept of each chain.
        target_acceptance: mean acceptance that the step size is tuned to.
        max_tree_depth: a trajectory of warm-up has at most ``2 ** max_tree_depth - 1`` steps.
        data: pytree with leading axis [task]: the tasks are independent posteriors.
        choose: given the positions in which the no-U-turn part ends, leading axes like the starts', the
            indices of the chains that go on, [kept]; with data, [task, kept]. All by default.

    Returns:
        draws and statistics, leading axes [chain, draw]; with data, [task, chain, draw].

    Raises:
        ValueError: no chains, draws or warm-up, shapes that do not fit, a start whose density is not finite.
        FloatingPointError: a chain whose warm-up, draws or densities are not finite.
    """
    batch = _check(initial_positions, data, num_warmup, num_samples, target_acceptance, max_tree_depth)
    # In NumPy, which compiles nothing.
    positions = jax.tree.map(lambda a: np.asarray(a).reshape(-1, *np.shape(a)[len(batch) :]), initial_positions)
    data = jax.tree.map(lambda a: np.repeat(np.asarray(a), batch[-1], axis=0), data)
    _check_start(log_density, positions, data, batch)
    keys = np.asarray(jax.random.key_data(jax.random.split(key, (2, int(np.prod(batch))))))
    sizes = 3 * num_warmup // 4, num_warmup - 3 * num_warmup // 4, num_samples

    def unit(index, tree):
        return jax.tree.map(lambda a: a[index], tree)

    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def over_units(program, arguments):
            units = range(len(arguments[0]))
            parts = list(pool.map(lambda i: jax.tree.map(np.asarray, program(*unit(i, arguments))), units))
            return jax.tree.map(lambda *leaves: np.stack(leaves), *parts)

        # BlackJAX mixes types and ranks; the density itself has just been evaluated under the caller's rules.
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            arguments = keys[0], positions, data
            settings = log_density, sizes[0], target_acceptance, max_tree_depth
            first = _warm_up.lower(*settings, *unit(0, arguments))
            warm_up = pool.submit(first.compile)  # while the draws are traced
            learnt = jax.tree.map(lambda a: np.ones(a.shape, a.dtype), first.out_info)
            second = _draw.lower(log_density, *sizes[1:], target_acceptance, keys[1, 0], learnt, unit(0, data))
        draw = pool.submit(second.compile)
        learnt = over_units(warm_up.result(), arguments)
        _check_finite("warm-up", learnt, batch)
        if choose is not None:
            rows, batch = _chosen(learnt.position, choose, batch)
            learnt, data = unit(rows, (learnt, data))
        learnt = learnt._replace(
            log_inverse_metric=_over_chains(learnt.log_inverse_metric, batch),
            num_steps=_over_chains(learnt.num_steps, batch),
        )
        drawn = over_units(draw.result(), (keys[1][: len(learnt.step_size)], learnt, data))
    joined = jax.tree.map(lambda leaf: leaf.reshape(*batch, *leaf.shape[1:]), drawn)
    posterior = Posterior(*jax.device_put(joined))
    _check_finite("draws", posterior, batch)
    return posterior


class _Learnt(NamedTuple):
    """What warm-up leaves to the draws, of each unit."""

    position: Any
    step_size: Float[Array, "*unit"]
    log_inverse_metric: Float[Array, "*unit parameter"]
    num_steps: Float[Array, "*unit"]  # mean length of a trajectory


@partial(jax.jit, static_argnums=range(4))
def _warm_up(log_density, num_draws, target_acceptance, max_tree_depth, key, position, data):
    """Find a step size, a metric and the length of trajectories by NUTS."""
    start, unravel, flat_density = _flat(log_density, position, data)
    warmup = blackjax.staged_adaptation(
        blackjax.nuts,
        flat_density,
        "fisher_diag",
        target_acceptance_rate=target_acceptance,
        adaptation_info_fn=lambda state, info, adaptation: info.num_integration_steps,
        max_num_doublings=max_tree_depth,
    )
    (state, parameters), lengths = warmup.run(jax.random.wrap_key_data(key), start, num_draws)
    log_inverse_metric, num_steps = jnp.log(parameters["inverse_mass_matrix"]), lengths[-(num_draws // 3) :].mean()
    return _Learnt(unravel(state.position), parameters["step_size"], log_inverse_metric, num_steps)


@partial(jax.jit, static_argnums=range(4))
def _draw(log_density, num_tuning, num_samples, target_acceptance, key, learnt, data):
    """Tune the step size and draw; leaves come back with a leading axis [draw]."""
    start, unravel, flat_density = _flat(log_density, learnt.position, data)
    inverse_metric, most = jnp.exp(learnt.log_inverse_metric), 2 * jnp.ceil(learnt.num_steps).astype(int)
    kernel = blackjax.dynamic_hmc.build_kernel(integration_steps_fn=lambda key: jax.random.randint(key, (), 1, most))
    key_tuning, key_draws, key_length = jax.random.split(jax.random.wrap_key_data(key), 3)
    init, update, final = dual_averaging_adaptation(target_acceptance)

    def one_draw(carry, turn):
        state, adaptation = carry
        key, tuning = turn
        # One kernel, hence one program to compile, serves the tuning and the draws.
        step_size = jnp.where(tuning, jnp.exp(adaptation.log_step_size), final(adaptation))
        moved, info = kernel(key, state, flat_density, step_size, inverse_metric)
        tuned = update(adaptation, info.acceptance_rate)
        adaptation = jax.tree.map(lambda new, old: jnp.where(tuning, new, old), tuned, adaptation)
        # BlackJAX reports the energy at the trajectory's end, which is infinite for some that are rejected.
        energy = (inverse_metric * info.momentum**2).sum() / 2 - state.logdensity
        stats = Stats(moved.logdensity, info.is_divergent, info.acceptance_rate, energy, info.num_integration_steps)
        return (moved, adaptation), (moved.position, stats)

    state = blackjax.dynamic_hmc.init(start, flat_density, key_length)
    keys = jnp.concatenate([jax.random.split(key_tuning, num_tuning), jax.random.split(key_draws, num_samples)])
    turns = keys, jnp.arange(num_tuning + num_samples) < num_tuning
    _, drawn = jax.lax.scan(one_draw, (state, init(learnt.step_size)), turns)
    vectors, stats = jax.tree.map(lambda a: a[num_tuning:], drawn)
    return jax.vmap(unravel)(vectors), stats


def _flat(log_density, position, data):
    """Return a position as one vector, the way back, and the density of such a vector."""
    vector, unravel = ravel_pytree(position)
    arguments = () if data is None else (data,)
    return vector, unravel, lambda v: log_density(unravel(v), *arguments)


def _chosen(positions, choose, batch):
    """Return the rows of the units that ``choose`` names, and their batch shape."""
    kept = np.asarray(choose(jax.tree.map(lambda a: a.reshape(*batch, *a.shape[1:]), positions)))
    tasks, chains = batch[:-1], batch[-1]
    fits = kept.ndim == len(batch) and kept.shape[:-1] == tasks and kept.size
    if kept.dtype.kind != "i" or not fits or not np.isin(kept, range(chains)).all():
        raise ValueError(f"choose: gave {kept.tolist()}, expected integers {[*tasks, 'kept']} from 0 to {chains - 1}")
    rows = kept + chains * np.arange(np.prod(tasks, dtype=int)).reshape(*tasks, 1)
    return rows.ravel(), kept.shape


def _over_chains(values, batch):
    """Replace each unit's values by their mean over the chains of its posterior."""
    of_chains = values.reshape(*batch, *values.shape[1:])
    mean = of_chains.mean(axis=len(batch) - 1, keepdims=True)
    return np.broadcast_to(mean, of_chains.shape).reshape(values.shape)


def _check(positions, data, num_warmup, num_samples, target_acceptance, max_tree_depth):
    """Check the arguments before any work; return the batch shape, [chain] or [task, chain]."""
    sizes = [("num_warmup", num_warmup, 20), ("num_samples", num_samples, 1), ("max_tree_depth", max_tree_depth, 1)]
    for name, size, least in sizes:
        if size != int(size) or size < least:
            raise ValueError(f"{name}: given {size}, expected an integer of {least} or more")
    if not 0 < target_acceptance < 1:
        raise ValueError(f"target_acceptance: given {target_acceptance}, expected a number between 0 and 1")
    axes = ("chain",) if data is None else ("task", "chain")
    shapes = [jnp.shape(leaf)[: len(axes)] for leaf in jax.tree.leaves(positions)]
    if not shapes or len(set(shapes)) > 1 or len(shapes[0]) < len(axes) or 0 in shapes[0]:
        raise ValueError(
            f"initial_positions: given leaves that begin {shapes}, expected the same {axes} in all, none 0"
        )
    tasks = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(data)}
    if data is not None and tasks != {shapes[0][:1]}:
        raise ValueError(f"data: given leading axes {sorted(tasks)}, expected {shapes[0][:1]}, one entry a task")
    return shapes[0]


@partial(jax.jit, static_argnums=0)
def _densities(log_density, positions, data):
    arguments = () if data is None else (data,)
    return jax.vmap(log_density)(positions, *arguments)


def _check_start(log_density, positions, data, batch):
    values = _densities(log_density, positions, data)
    bad = np.argwhere(~np.isfinite(np.asarray(values).reshape(batch)))
    if len(bad):
        raise ValueError(f"initial_positions: the log density is not finite at {bad.tolist()}, expected a finite start")


def _check_finite(what, tree, batch):
    finite = [np.isfinite(leaf).reshape(*batch, -1).all(axis=-1) for leaf in jax.tree.leaves(tree)]
    bad = np.argwhere(~np.logical_and.reduce(finite))
    if len(bad):
        raise FloatingPointError(f"{what} of chains {bad.tolist()}: not finite")
