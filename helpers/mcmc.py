"""Hamiltonian Monte Carlo that learns its metric and its trajectories from NUTS, chains spread over
cores.

Every chain is one unit of work. Threads take the units one after the other, one thread a core;
``vmap`` would make every chain wait for the longest trajectory. One program runs every unit, so
draws do not depend on how many cores.

    starts = mcmc.normal_starts(key_start, shapes, (4,))
    posterior = mcmc.sample(key, log_density, starts, data=observed)
    starts_of_tasks = mcmc.normal_starts(key_start, shapes, (18, 4))
    posterior = mcmc.sample(key, log_density, starts_of_tasks, tasks=observed)
"""

from helpers import checks, hmc
from helpers import progress as lines
from helpers.common import stack, take
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

# By how much the mean log inverse metric of a chain may differ from the median chain's; one that
# differs by more is stuck.
MAX_LOG_METRIC_DIFFERENCE = np.log(100.0)


class Warmup(NamedTuple):
    """What warm-up learnt, of each chain that went on: leading axis [chain]; with tasks, [task,
    chain].
    """

    step_size: Float[Array, "*chain"]
    # the diagonal, in the order of ``ravel_pytree``; shared by a posterior's chains
    inverse_metric: Float[Array, "*chain parameter"]
    mean_steps: Float[Array, "*chain"]  # mean length of a trajectory, m; shared likewise
    # share of the no-U-turn trajectories that ended at ``max_tree_depth``
    at_limit: Float[Array, "*chain"]
    chain: Int[Array, "*chain"]  # its index among the starts
    # whether what it learnt entered the averages: that of a chain that is stuck does not
    shared: Bool[Array, "*chain"]
    seconds: Float[Array, "*chain"]  # of its core, compiling left out


class Posterior(NamedTuple):
    """Draws, a pytree like one position, and their statistics: leading axes [chain, draw]; with
    tasks, [task, chain, draw].
    """

    draws: Any
    stats: Stats
    warmup: Warmup | None = None  # None where another sampler drew


def normal_starts(
    key: Key[Array, ""], position: Any, batch: tuple[int, ...], scale: float = 1.0
) -> Any:
    """Draw dispersed starts, independent normal numbers of mean 0.

    Args:
        position: pytree like one position; shapes, as of ``hierarchical.shapes``, suffice.
        batch: leading axes of every leaf returned: ``(chains,)``, or ``(tasks, chains)``.
        scale: standard deviation of every number.
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
    """Return how many processor cores this process may use."""
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
        log_density: up to a constant, in nats, of one position; then of a task if there are tasks,
            then of the data if there are any. A second call with the same function and shapes
            compiles nothing again.
        initial_positions: pytree of dispersed starts, leading axis [chain]; with tasks, [task,
            chain].
        data: what all chains share, any pytree.
        tasks: pytree with leading axis [task]: the tasks are independent posteriors.
        num_warmup: draws of each chain that are thrown away.
        num_samples: draws of each chain that are kept.
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
    num_nuts = 3 * num_warmup // 4
    lengths = num_nuts, num_warmup - num_nuts, num_samples
    with ThreadPoolExecutor(cores()) as pool, lines.line(progress) as shown:
        common = (data,) if shown is None else (data, lines.number(shown))
        units = keys[0], positions, tasks
        settings = log_density, lengths, target_acceptance, max_tree_depth
        warm_up, draw = hmc.compiled(pool, *settings, take(units, 0), common)
        run_units = partial(_run_units, pool, shown, common)
        learnt, seconds = run_units("warm-up", num_nuts, warm_up.result(), units)
        chain = _going_on(learnt, choose, batch)
        first_unit = batch[-1] * np.arange(np.prod(batch[:-1], dtype=int))  # of each task
        rows = (chain + first_unit.reshape(*batch[:-1], 1)).ravel()
        batch = chain.shape
        learnt, tasks, seconds = take((learnt, tasks, seconds), rows)
        learnt, shared = _share(learnt, batch)
        units = keys[1][: len(rows)], learnt, tasks
        (*drawn, step_size), more = run_units("draws", sum(lengths[1:]), draw.result(), units)
    metric, seconds = np.exp(learnt.log_inverse_metric), seconds + more
    warmup = Warmup(
        step_size, metric, learnt.num_steps, learnt.at_limit, chain.ravel(), shared, seconds
    )
    posterior = Posterior(*jax.device_put(_by_chain((*drawn, warmup), batch)))
    bad = np.argwhere(~_finite((posterior.draws, posterior.stats), batch))
    if len(bad):
        raise FloatingPointError(f"draws of chains {bad.tolist()}: not finite")
    return posterior


def _run_units(pool, shown, common, phase, num_steps, program, units):
    """Run a compiled program on every unit; return what it gives, leading axis [unit], and the
    seconds of each.
    """

    def run(i):
        begun = time.perf_counter()
        found = jax.tree.map(np.asarray, program(*take(units, i), *common))
        return found, time.perf_counter() - begun

    futures = [pool.submit(run, i) for i in range(len(units[0]))]
    found = lines.follow(shown, phase, num_steps * len(futures), futures)
    parts, seconds = zip(*found, strict=True)
    return stack(parts), np.array(seconds)


def _by_chain(tree, batch):
    """Return a tree with leading axis [unit] with the leading axes of ``batch``."""
    return jax.tree.map(lambda leaf: leaf.reshape(*batch, *leaf.shape[1:]), tree)


def _going_on(learnt, choose, batch):
    """Return which chains of each posterior go on, [*task, kept]."""
    finite = _finite(learnt, batch)
    lost = np.argwhere(~finite).tolist()
    if choose is not None:
        kept = np.asarray(choose(_by_chain(learnt.position, batch)))
        _check_choice(kept, batch)
        if not np.take_along_axis(finite, kept, axis=-1).all():
            raise FloatingPointError(f"choose kept {kept.tolist()}; not finite: {lost}")
        return kept
    count, message = finite.sum(axis=-1).min(), f"warm-up of chains {lost}: not finite"
    if 2 * count < batch[-1]:
        raise FloatingPointError(message)
    if count < batch[-1]:
        message = f"{message}; {count} of {batch[-1]} chains go on"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    return np.argsort(~finite, axis=-1, kind="stable")[..., :count]


def _check_choice(kept, batch):
    """Check that the indices of the chosen chains are [*task, kept], of chains, each once."""
    fits = kept.ndim == len(batch) and kept.shape[:-1] == batch[:-1] and kept.size
    known = fits and kept.dtype.kind == "i" and np.isin(kept, range(batch[-1])).all()
    if not known or (np.diff(np.sort(kept, axis=-1)) == 0).any():
        expected = f"integers {[*batch[:-1], 'kept']} from 0 to {batch[-1] - 1}, none twice"
        raise ValueError(f"choose: gave {kept.tolist()}, expected {expected}")


def _share(learnt, batch):
    """Give the chains of a posterior one metric and one mean length; return whose entered the
    averages, [*unit].
    """
    size = learnt.log_inverse_metric.mean(axis=-1).reshape(batch)
    shared = np.abs(size - np.median(size, axis=-1, keepdims=True)) <= MAX_LOG_METRIC_DIFFERENCE
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
        given = f"the log density is not finite at {bad.tolist()}"
        raise ValueError(f"initial_positions: {given}, expected a finite start")


def _finite(tree, batch):
    """Whether all numbers of each chain are finite, [*task, chain]."""
    return np.logical_and.reduce(
        [np.isfinite(leaf).reshape(*batch, -1).all(axis=-1) for leaf in jax.tree.leaves(tree)]
    )
