"""Hamiltonian Monte Carlo that learns its metric and its trajectories from NUTS, chains spread over
cores.

Every chain is one unit of work. Threads take the units one after the other, one thread a core;
``vmap`` would make every chain wait for the longest trajectory. One program runs every unit, so
draws do not depend on how many cores.

    starts = mcmc.normal_starts(key_start, shapes, (4,))
    posterior = mcmc.sample(key, log_density, starts, data=observed)
    posterior = mcmc.sample(key, log_density, mcmc.normal_starts(key_start, shapes, (18, 4)), tasks=observed)
"""

from helpers import checks, hmc
from helpers import progress as lines
from helpers.hmc import Stats

import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

# a metric so much larger or smaller than its fellows' is that of a chain that is stuck
ASTRAY = np.log(100.0)


class Warmup(NamedTuple):
    """What warm-up learnt, of each chain that went on."""

    step_size: Float[Array, "*chain"]
    # in the order of ``ravel_pytree``; shared by a posterior's chains
    inverse_metric: Float[Array, "*chain parameter"]
    mean_steps: Float[Array, "*chain"]  # mean length of a trajectory, m; shared likewise
    # share of the no-U-turn trajectories that ended at ``max_tree_depth``
    at_limit: Float[Array, "*chain"]
    chain: Int[Array, "*chain"]  # its place among the starts
    # whether what it learnt entered the averages: a chain that is stuck does not
    shared: Bool[Array, "*chain"]
    seconds: Float[Array, "*chain"]  # of its core, compiling left out


class Posterior(NamedTuple):
    """Draws, a pytree like one position, their statistics and what warm-up learnt: leading axes
    [chain, draw].
    """

    draws: Any
    stats: Stats
    warmup: Warmup | None = None  # [chain]


def normal_starts(
    key: Key[Array, ""], position: Any, batch: tuple[int, ...], scale: float = 1.0
) -> Any:
    """Draw dispersed starts N(0, scale) for every leaf of a position (its shapes suffice), leading
    axes ``batch``.
    """
    leaves, structure = jax.tree.flatten(position)
    shapes = tuple((*batch, *jnp.shape(leaf)) for leaf in leaves)
    return jax.tree.unflatten(structure, _normals(key, scale, shapes))


@partial(jax.jit, static_argnames="shapes")
def _normals(key, scale, shapes):
    # Entry i of a random array depends on the key and on i alone, so one program of the largest
    # size gives what one program a leaf would, each of which takes half a second to compile.
    sizes = [int(np.prod(shape)) for shape in shapes]
    rows = jax.vmap(lambda k: jax.random.normal(k, (max(sizes),)))(
        jax.random.split(key, len(shapes))
    )
    return [
        scale * row[:size].reshape(shape)
        for row, size, shape in zip(rows, sizes, shapes, strict=True)
    ]


def cores() -> int:
    """Return how many cores this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(allowed, os.cpu_count())


def sample(
    key: Key[Array, ""],
    log_density: Callable,
    initial_positions: Any,
    *,
    data: Any = None,
    tasks: Any = None,
    num_warmup: int = 300,
    num_samples: int = 1000,
    target_acceptance: float = 0.8,
    max_tree_depth: int = 10,
    choose: Callable[[Any], Int[np.ndarray, "*task kept"]] | None = None,
    progress: bool | None = None,
) -> Posterior:
    """Draw from a density by Hamiltonian Monte Carlo with trajectories of random length (Neal 2011,
    section 4.2).

    Three quarters of warm-up are no-U-turn sampling (Hoffman and Gelman 2014). It finds the
    diagonal metric that minimises the Fisher divergence (Seyboldt et al. 2026), and how many steps
    a trajectory needs (as in Wu et al. 2018). Chains of one posterior share the metrics' geometric
    mean and the mean number of steps m, without those of a chain whose metric is on average a
    hundred times larger or smaller than the median chain's. The last quarter tunes each chain's
    step size by dual averaging. Every draw follows a trajectory of 1 to 2 m - 1 steps, each as
    likely.

    Args:
        log_density: up to a constant, of one position; then of a task if there are tasks, then of
            the data if there are any. A second call with the same function and shapes compiles
            nothing again.
        initial_positions: pytree of dispersed starts, leading axis [chain]; with tasks, [task,
            chain].
        data: what all chains share, any pytree.
        tasks: pytree with leading axis [task]: the tasks are independent posteriors.
        num_warmup, num_samples: draws of each chain that are thrown away, and that are kept.
        target_acceptance: mean acceptance that the step size is tuned to.
        max_tree_depth: a trajectory of warm-up has at most ``2 ** max_tree_depth - 1`` steps.
        choose: given the positions in which the no-U-turn part ends, leading axes like the starts',
            the indices of the chains that go on, [kept]; with tasks, [task, kept]. All by default.
        progress: whether a line says how far it is; by default in the notebooks that readers run.
            Draws are the same.

    Leading axes of what is returned are [chain, draw]; with tasks, [task, chain, draw]. A chain
    whose warm-up was not finite is left out, with a warning, and with it as many of every other
    task. A chain is a program of its own, on a thread a core; on a GPU such programs take turns, so
    that ``JAX_PLATFORMS=cpu`` in the environment may be faster.

    ValueError: no chains, draws or warm-up, shapes that do not fit, a start whose density is not
    finite.
    FloatingPointError: more than half of the chains, or one that was chosen, whose warm-up is not
        finite; draws or densities that are not.
    """
    batch = _check(
        initial_positions, tasks, num_warmup, num_samples, target_acceptance, max_tree_depth
    )
    # In NumPy, which compiles nothing.
    positions = jax.tree.map(
        lambda a: np.asarray(a).reshape(-1, *np.shape(a)[len(batch) :]), initial_positions
    )
    tasks = jax.tree.map(lambda a: np.repeat(np.asarray(a), batch[-1], axis=0), tasks)
    data = jax.tree.map(jnp.asarray, data)
    _check_start(log_density, positions, tasks, data, batch)
    keys = np.asarray(jax.random.key_data(jax.random.split(key, (2, int(np.prod(batch))))))
    sizes = 3 * num_warmup // 4, num_warmup - 3 * num_warmup // 4, num_samples

    def unit(index, tree):
        return jax.tree.map(lambda a: a[index], tree)

    with ThreadPoolExecutor(cores()) as pool, lines.line(progress) as shown:
        alike = (data,) if shown is None else (data, lines.number(shown))

        def over_units(phase, num_steps, program, arguments):
            def run(i):
                begun = time.perf_counter()
                return jax.tree.map(
                    np.asarray, program(*unit(i, arguments), *alike)
                ), time.perf_counter() - begun

            futures = [pool.submit(run, i) for i in range(len(arguments[0]))]
            parts, seconds = zip(
                *lines.follow(shown, phase, num_steps * len(futures), futures), strict=True
            )
            return jax.tree.map(lambda *leaves: np.stack(leaves), *parts), np.array(seconds)

        # BlackJAX mixes types and ranks; the density itself has just been evaluated under the
        # caller's rules.
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            arguments = keys[0], positions, tasks
            settings = log_density, sizes[0], target_acceptance, max_tree_depth
            first = hmc.warm_up.lower(*settings, *unit(0, arguments), *alike)
            warm_up = pool.submit(first.compile)  # while the draws are traced
            learnt = jax.tree.map(lambda a: np.ones(a.shape, a.dtype), first.out_info)
            second = hmc.draw.lower(
                log_density,
                *sizes[1:],
                target_acceptance,
                keys[1, 0],
                learnt,
                unit(0, tasks),
                *alike,
            )
        draw = pool.submit(second.compile)
        learnt, seconds = over_units("warm-up", sizes[0], warm_up.result(), arguments)
        chain = _going_on(learnt, choose, batch)
        rows = (
            chain + batch[-1] * np.arange(np.prod(batch[:-1], dtype=int)).reshape(*batch[:-1], 1)
        ).ravel()
        batch = chain.shape
        learnt, tasks, seconds = unit(rows, (learnt, tasks, seconds))
        learnt, shared = _share(learnt, batch)
        units = keys[1][: len(rows)], learnt, tasks
        (*drawn, step_size), more = over_units("draws", sum(sizes[1:]), draw.result(), units)
    inverse_metric = np.exp(learnt.log_inverse_metric)
    warmup = (
        step_size,
        inverse_metric,
        learnt.num_steps,
        learnt.at_limit,
        chain.ravel(),
        shared,
        seconds + more,
    )
    joined = jax.tree.map(
        lambda leaf: leaf.reshape(*batch, *leaf.shape[1:]), (*drawn, Warmup(*warmup))
    )
    posterior = Posterior(*jax.device_put(joined))
    bad = np.argwhere(~_finite((posterior.draws, posterior.stats), batch))
    if len(bad):
        raise FloatingPointError(f"draws of chains {bad.tolist()}: not finite")
    return posterior


def _going_on(learnt, choose, batch):
    """Return which chains of each posterior go on, [*task, kept]."""
    finite = _finite(learnt, batch)
    if choose is not None:
        kept = np.asarray(
            choose(jax.tree.map(lambda a: a.reshape(*batch, *a.shape[1:]), learnt.position))
        )
        fits = (
            kept.ndim == len(batch)
            and kept.shape[:-1] == batch[:-1]
            and kept.size
            and kept.dtype.kind == "i"
        )
        if (
            not fits
            or not np.isin(kept, range(batch[-1])).all()
            or (np.diff(np.sort(kept, axis=-1)) == 0).any()
        ):
            given = f"gave {kept.tolist()}, expected integers {[*batch[:-1], 'kept']} from 0 to {batch[-1] - 1}"
            raise ValueError(f"choose: {given}, none twice")
        if not np.take_along_axis(finite, kept, axis=-1).all():
            raise FloatingPointError(
                f"choose kept {kept.tolist()}; not finite: {np.argwhere(~finite).tolist()}"
            )
        return kept
    count, lost = (
        finite.sum(axis=-1).min(),
        f"warm-up of chains {np.argwhere(~finite).tolist()}: not finite",
    )
    if 2 * count < batch[-1]:
        raise FloatingPointError(lost)
    if count < batch[-1]:
        warnings.warn(f"{lost}; {count} of {batch[-1]} chains go on", RuntimeWarning, stacklevel=3)
    return np.argsort(~finite, axis=-1, kind="stable")[..., :count]


def _share(learnt, batch):
    """Give the chains of a posterior one metric and one mean length; return whose entered the
    averages, [*unit].
    """
    size = learnt.log_inverse_metric.mean(axis=-1).reshape(batch)
    shared = np.abs(size - np.median(size, axis=-1, keepdims=True)) <= ASTRAY
    shared |= ~shared.any(axis=-1, keepdims=True)

    def mean(values):
        of_chains = values.reshape(*batch, *values.shape[1:])
        where = shared.reshape(*batch, *[1] * (values.ndim - 1))
        found = of_chains.mean(axis=len(batch) - 1, keepdims=True, where=where)
        return np.broadcast_to(found, of_chains.shape).reshape(values.shape)

    learnt = learnt._replace(
        log_inverse_metric=mean(learnt.log_inverse_metric), num_steps=mean(learnt.num_steps)
    )
    return learnt, shared.ravel()


def _check(positions, tasks, num_warmup, num_samples, target_acceptance, max_tree_depth):
    """Check the arguments before any work; return the batch shape, [chain] or [task, chain]."""
    checks.count(num_samples=num_samples, max_tree_depth=max_tree_depth)
    checks.count(least=20, num_warmup=num_warmup)
    checks.number(high=1.0, target_acceptance=target_acceptance)
    batch = checks.leading(
        "initial_positions", positions, ("chain",) if tasks is None else ("task", "chain")
    )
    of_tasks = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(tasks)}
    if tasks is not None and of_tasks != {batch[:1]}:
        raise ValueError(
            f"tasks: given leading axes {sorted(of_tasks)}, expected {batch[:1]}, one entry a task"
        )
    return batch


@partial(jax.jit, static_argnums=0)
def _densities(log_density, positions, tasks, data):
    def one(position, task):
        return log_density(position, *[part for part in (task, data) if part is not None])

    return jax.vmap(one)(positions, tasks)


def _check_start(log_density, positions, tasks, data, batch):
    values = _densities(log_density, positions, tasks, data)
    bad = np.argwhere(~np.isfinite(np.asarray(values).reshape(batch)))
    if len(bad):
        raise ValueError(
            f"initial_positions: the log density is not finite at {bad.tolist()}, expected a finite start"
        )


def _finite(tree, batch):
    """Whether all numbers of each chain are finite, [*task, chain]."""
    return np.logical_and.reduce(
        [np.isfinite(leaf).reshape(*batch, -1).all(axis=-1) for leaf in jax.tree.leaves(tree)]
    )
