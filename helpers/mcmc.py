"""Hamiltonian Monte Carlo that learns its metric and its trajectories from NUTS, chains spread over
cores.

Every chain is one unit of work. Threads take the units one after the other, one thread a core;
``vmap`` would make every chain wait for the longest trajectory. One program runs every unit, so
draws do not depend on how many cores.

    starts = mcmc.normal_starts(key_start, shapes, (4,))
    posterior = mcmc.sample(key, log_density, starts, data=observed)
    starts_of_tasks = mcmc.normal_starts(key_start, shapes, (18, 4))
    posterior = mcmc.sample(key, log_density, starts_of_tasks, tasks=observed)
    longer = mcmc.extend(posterior, log_density, 5000, tasks=observed)
"""

from helpers import chains, checks, hmc, warmups
from helpers import progress as lines
from helpers.hmc import Stats
from helpers.programs import bounded
from helpers.warmups import Warmup

import os
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key


class Posterior(NamedTuple):
    """Draws, a pytree like a position, and their statistics: leading axes [*task, chain, draw]."""

    draws: Any
    stats: Stats
    warmup: Warmup | None = None  # None where another sampler drew
    # what each chain needs to go on, leading axes [chain], with tasks [task, chain]; None likewise
    going: hmc.Going | None = None


def normal_starts(
    key: Key[Array, ""], position: Any, batch: tuple[int, ...], scale: float = 1.0
) -> Any:
    """Draw dispersed starts, independent normal numbers of mean 0.

    Args:
        position: pytree like one position; shapes, as of ``hierarchical.shapes``, suffice.
        batch: leading axes of every leaf returned: ``(chains,)``, or ``(tasks, chains)``.
        scale: standard deviation of every number.

    ValueError: an axis that is no integer of 1 or more, a scale that is negative or not finite.
    """
    checks.count(**{f"batch[{i}]": length for i, length in enumerate(batch)})
    checks.number(scale=scale, closed=True)
    leaves, structure = jax.tree.flatten(position)
    keys = jax.random.split(key, len(leaves))
    shapes = [(*batch, *jnp.shape(leaf)) for leaf in leaves]
    starts = [_normals(*of_leaf, scale) for of_leaf in zip(keys, shapes, strict=True)]
    return jax.tree.unflatten(structure, starts)


def _normals(key, shape, scale):
    if isinstance(key, jax.core.Tracer):  # of the caller's program, which is compiled anyway
        return scale * jax.random.normal(key, shape)
    # An entry depends on its key and place alone, so the head of a row that others share will do.
    size = int(np.prod(shape))
    row = np.asarray(_row(max(4096, 1 << (size - 1).bit_length()), key))[:size]
    return jnp.asarray(np.asarray(scale, row.dtype) * row.reshape(shape))


@bounded(1)
def _row(length, key):
    return jax.random.normal(key, (length,))


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
    hundred times larger or smaller than the median chain's. Of 30 parameters or fewer, at most a
    quarter of the no-U-turn draws, they share a full metric, and m steps are a quarter of a round
    posterior's period, but not more than in warm-up (``full_metric``). The last quarter tunes each
    chain's step size by dual averaging. Every draw follows a trajectory of 1 to 2 m - 1 steps, each
    as likely.

    A start whose density is not finite is drawn again, as Stan does, around the starts of its
    posterior. A chain of several begins again, up to three times, where the no-U-turn part was not
    finite, or ended where the mass is far below the best chain's, as ``restarts.far`` tells; not
    where the caller chooses.

    Args:
        log_density: up to a constant, in nats, of one position; then of a task if there are tasks,
            then of the data if there are any. A second call with the same function and shapes
            compiles nothing again, whatever ``num_samples`` is.
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
    whose warm-up was never finite is left out, with a warning, and with it as many of every other
    task. A chain is a program of its own, on a thread a core; on a GPU such programs take turns, so
    that ``JAX_PLATFORMS=cpu`` in the environment may be faster.

    ValueError: no chains, draws or warm-up, shapes that do not fit, a start that is not finite, or
    none of finite density found.
    FloatingPointError: more than half of the chains, or one that was chosen, whose warm-up is not
        finite; draws or densities that are not.
    """
    sizes = num_warmup, target_acceptance, max_tree_depth
    checks.count(num_samples=num_samples)
    batch = batch_of(initial_positions, tasks, *sizes)
    with _working(log_density, data, progress) as work:
        posterior = _warmed_up(work, key, initial_positions, tasks, batch, sizes, choose)
        return _drawn(work, posterior, tasks, num_samples)


def warm_up(
    key: Key[Array, ""],
    log_density: Callable,
    initial_positions: Any,
    *,
    data: Any = None,
    tasks: Any = None,
    num_warmup: int = 300,
    target_acceptance: float = 0.8,
    max_tree_depth: int = 10,
    choose: Callable[[Any], Int[np.ndarray, "*task kept"]] | None = None,
    progress: bool | None = None,
) -> Posterior:
    """Return chains that are ready to draw: the posterior of ``sample``, which takes the same
    arguments, before its first draw. ``extend`` draws from it.

    Args:
        log_density, initial_positions, data, tasks: what is sampled, and from where.
        num_warmup: draws of each chain, which are thrown away.
        target_acceptance, max_tree_depth, choose, progress: how.

    ValueError, FloatingPointError: as ``sample``.
    """
    sizes = num_warmup, target_acceptance, max_tree_depth
    batch = batch_of(initial_positions, tasks, *sizes)
    with _working(log_density, data, progress) as work:
        posterior = _warmed_up(work, key, initial_positions, tasks, batch, sizes, choose)
    return jax.device_put(posterior)


def extend(
    posterior: Posterior,
    log_density: Callable,
    num_samples: int = 1000,
    *,
    data: Any = None,
    tasks: Any = None,
    progress: bool | None = None,
) -> Posterior:
    """Let the chains of a posterior draw on, by what their warm-up learnt.

    Returned are all draws, the old ones and the new ones: those of one longer run, bit for bit.

    Args:
        posterior: as ``sample``, ``warm_up`` or this function returns.
        log_density, data, tasks: what it was drawn from, as of ``sample``.
        num_samples: how many more draws of each chain.
        progress: whether a line says how far it is, as of ``sample``.

    ValueError: a posterior whose chains cannot go on, shapes that do not fit, another density than
        the chains'.
    FloatingPointError: draws or densities that are not finite.
    """
    checks.count(num_samples=num_samples)
    _check_going(posterior, log_density, tasks, data)
    with _working(log_density, data, progress) as work:
        return _drawn(work, posterior, tasks, num_samples)


@contextmanager
def _working(log_density, data, progress):
    data = jax.tree.map(jnp.asarray, data)
    with chains.threads(cores()) as pool, lines.line(progress) as shown:
        yield chains.Work(pool, shown, log_density, data)


def _warmed_up(work, key, positions, tasks, batch, sizes, choose):
    """Return a posterior of no draws, in NumPy."""
    warmup, going = warmups.learn(work, key, positions, tasks, batch, sizes, choose)
    batch = going.turn.shape
    shapes = chains.stretch(work, going, tasks).out_info[1:]
    none = jax.tree.map(lambda a: np.empty((*batch, 0, *a.shape[1:]), a.dtype), shapes)
    return Posterior(*none, warmup, going)


def _drawn(work, posterior, tasks, num_samples):
    """Return a posterior with so many more draws."""
    batch = np.shape(posterior.going.turn)
    draws, stats, warmup, going = chains.by_unit(posterior, batch)
    stretch = chains.stretch(work, posterior.going, tasks)
    tasks = chains.of_units(tasks, batch)

    def longer(old):
        rows = np.empty((len(old), old.shape[1] + num_samples, *old.shape[2:]), old.dtype)
        rows[:, : old.shape[1]] = old
        return rows

    drawn = jax.tree.map(longer, (draws, stats))
    going, more = chains.turns(work, "draws", stretch, going, tasks, num_samples, drawn)
    warmup = warmup._replace(seconds=warmup.seconds + more)
    bad = np.argwhere(~chains.finite(drawn, batch))
    if len(bad):
        raise FloatingPointError(f"draws of chains {bad.tolist()}: not finite")
    return Posterior(*jax.device_put(chains.by_chain((*drawn, warmup, going), batch)))


def batch_of(positions, tasks, num_warmup, target_acceptance, max_tree_depth) -> tuple[int, ...]:
    """Check arguments of ``sample`` before any work; return the leading axes of its chains, [chain]
    or [task, chain].

    Args:
        positions, tasks, num_warmup, target_acceptance, max_tree_depth: as of ``sample``.

    ValueError: as ``sample``.
    """
    checks.count(max_tree_depth=max_tree_depth)
    checks.count(least=20, num_warmup=num_warmup)
    checks.number(high=1.0, target_acceptance=target_acceptance)
    batch = checks.leading(
        "initial_positions", positions, ("chain",) if tasks is None else ("task", "chain")
    )
    _check_tasks(tasks, batch)
    return batch


def _check_tasks(tasks, batch):
    of_tasks = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(tasks)}
    if tasks is not None and of_tasks != {batch[:1]}:
        raise ValueError(
            f"tasks: given leading axes {sorted(of_tasks)}, expected {batch[:1]}, one entry a task"
        )


def _check_going(posterior, log_density, tasks, data):
    """Check that chains can go on, and that it is their density that is given."""
    draws, stats, warmup, going = posterior
    if going is None or warmup is None:
        raise ValueError(
            "posterior: given one without ``going`` and ``warmup``, expected what ``mcmc.sample``, "
            "``mcmc.warm_up`` or ``mcmc.extend`` returned"
        )
    batch, axes = np.shape(going.turn), ("chain",) if tasks is None else ("task", "chain")
    if len(batch) != len(axes):
        raise ValueError(f"posterior: given chains {list(batch)}, expected {list(axes)}")
    _check_tasks(tasks, batch)
    each = (*batch, np.shape(stats.log_density)[-1])
    shapes = jax.tree.map(lambda a: (*each, *np.shape(a)[len(batch) :]), going.position)
    given = [np.shape(leaf) for leaf in jax.tree.leaves((draws, stats))]
    expected = jax.tree.leaves(shapes, is_leaf=lambda part: isinstance(part, tuple))
    expected += [each] * len(stats)
    if given != expected:
        raise ValueError(f"posterior: given draws and statistics {given}, expected {expected}")
    units = chains.by_unit(going.position, batch), chains.of_units(tasks, batch)
    values = np.asarray(chains.densities(log_density, *units, data)).reshape(batch)
    kept = np.asarray(going.log_density)
    if not np.allclose(values, kept, rtol=1e-3, atol=1e-3):
        raise ValueError(
            f"log_density: given {values.tolist()} where the chains are, "
            f"expected {kept.tolist()}: of other data, or another density"
        )
