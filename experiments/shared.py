"""What experiments share: keys by name, training, tempered starts, means of chains, rows of
diagnostics and ranks.
"""

from helpers import diagnostics, hmc, mcmc, metrics, verify
from helpers.common import take

import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, ArrayLike, Float, Int, Key
from scipy import stats


def key(seed: int, *names: str | int) -> Key[Array, ""]:
    """Return the key of a name, ``key(3001, "data", redraw)``: it depends on nothing that stands
    beside it.
    """
    found = jax.random.key(seed)
    for name in names:
        found = jax.random.fold_in(found, zlib.crc32(str(name).encode()))
    return found


def train(
    loss: Callable,
    start: Any,
    optimizer: optax.GradientTransformation,
    num_steps: int,
    keep: Callable | None = None,
    every: int = 1,
) -> tuple[Any, Any]:
    """Minimise ``loss(params)`` by optax in one scan, to be called within ``jit`` and mapped.

    Returns the last parameters, and what ``keep(params)`` gave after each step, or after every so
    many of them; ``every`` divides ``num_steps``.
    """

    def step(carry, _):
        params, state = carry
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    def stretch(carry, _):
        carry = jax.lax.scan(step, carry, length=every)[0]
        return carry, None if keep is None else keep(carry[0])

    (params, _), kept = jax.lax.scan(
        stretch, (start, optimizer.init(start)), length=num_steps // every
    )
    return params, kept


def tempered_starts(
    key: Key[Array, ""],
    log_density: Callable,
    shapes: Any,
    observed: Any,
    power: float,
    num_started: int,
    **sizes: Any,
) -> Any:
    """Return where chains from N(0, 1) end under the likelihood at a power below 1, leading axis
    [started].

    Args:
        observed: ``densities.Observed``, whose weights are multiplied by the power.
    """
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(key_start, shapes, (num_started,))
    below = observed._replace(weight=power * observed.weight)
    return take(
        mcmc.sample(key_chains, log_density, starts, data=below, **sizes).draws, np.s_[:, -1]
    )


def warmed_up(
    key: Key[Array, ""],
    log_density: Callable,
    positions: Any,
    data: Any,
    num_warmup: int = 300,
    target_acceptance: float = 0.8,
    max_tree_depth: int = 10,
) -> Any:
    """Return where chains end after the no-U-turn part of a warm-up of ``mcmc.sample``, leading
    axis [chain].

    It is the program that ``mcmc.sample`` runs with the same density, settings and shapes: a stage
    on other data before it, such as a likelihood at a lower power, compiles nothing that the run
    would not.

    FloatingPointError: chains whose warm-up is not finite.
    """
    settings = log_density, 3 * num_warmup // 4, target_acceptance, max_tree_depth
    positions, data = jax.tree.map(np.asarray, positions), jax.tree.map(jnp.asarray, data)
    keys = np.asarray(
        jax.random.key_data(jax.random.split(key, len(jax.tree.leaves(positions)[0])))
    )
    units = [(one, take(positions, chain), None) for chain, one in enumerate(keys)]
    # BlackJAX mixes types and ranks
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        program = hmc.warm_up.lower(*settings, *units[0], data).compile()
    with ThreadPoolExecutor(mcmc.cores()) as pool:
        learnt = list(pool.map(lambda unit: jax.tree.map(np.asarray, program(*unit, data)), units))
    bad = [
        chain
        for chain, one in enumerate(learnt)
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(one))
    ]
    if bad:
        raise FloatingPointError(f"warm-up of chains {bad}: not finite")
    return jax.tree.map(lambda *leaves: np.stack(leaves), *(one.position for one in learnt))


def agreed_starts(
    key: Key[Array, ""],
    log_density: Callable,
    starts: Any,
    observed: Any,
    power: float = 0.8,
    least: int = 3,
    most: int = 24,
    times: float = 5.0,
    **settings: Any,
) -> tuple[Any, int]:
    """Return where chains of hierarchical networks end under the likelihood at a power below 1, and
    how many stages on.

    Stages of ``warmed_up`` follow each other until one layer's standard deviation is the largest in
    all chains, and so many times the next; at least so many and at most so many of them. No chain
    is left out; one that does not come round in time is seen by the R-hat of the run that follows.

    Args:
        starts: positions, leading axis [chain].
        observed: ``densities.Observed``, whose weights are multiplied by the power.
        times: a chain that is elsewhere, or on its way, has standard deviations of much the same
            size.
    """
    below = observed._replace(
        weight=np.asarray(observed.weight) * np.asarray(power, observed.weight.dtype)
    )
    for stage, one in enumerate(jax.random.split(key, most), 1):
        starts = warmed_up(one, log_density, starts, below, **settings)
        log_sd = np.array(list(starts["log_sd"].values()))  # [layer, chain]
        widest, (second, first) = log_sd.argmax(axis=0), np.sort(log_sd, axis=0)[-2:]
        if (
            stage >= least
            and (widest == widest[0]).all()
            and (first - second >= np.log(times)).all()
        ):
            break
    return starts, stage


def of_draws(function: Callable, draws: Any, num_axes: int = 2) -> Any:
    """Return ``function(position)`` of every draw, on leading axes [chain, draw], or [task, chain,
    draw] if 3.
    """
    mapped = function
    for _ in range(num_axes):
        mapped = _mapped(mapped)
    return jax.jit(mapped)(draws)


def _mapped(function):
    return lambda tree: jax.lax.map(function, tree)


def chain_means(function: Callable, draws: Any, num_axes: int = 2) -> Any:
    """Return the mean of ``function(position)`` over the draws of each chain, one draw in memory at
    a time.
    """

    def one_chain(draws):
        def add(total, position):
            return jax.tree.map(jnp.add, total, function(position)), None

        first = jax.eval_shape(function, take(draws, 0))
        zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), first)
        total = jax.lax.scan(add, zeros, draws)[0]
        return jax.tree.map(lambda a: a / jax.tree.leaves(draws)[0].shape[0], total)

    mapped = one_chain
    for _ in range(num_axes - 1):
        mapped = _mapped(mapped)
    return jax.jit(mapped)(draws)


def kept_of(posterior: mcmc.Posterior) -> dict:
    """Return what a unit keeps of a run beside its draws: the statistics, and what warm-up
    learnt.
    """
    return {"stats": posterior.stats._asdict(), "warmup": posterior.warmup._asdict()}


def run_of(drawn: dict, draws: Any = None) -> mcmc.Posterior:
    """Return the run of which ``kept_of`` was kept, with those draws: what ``diagnosed`` takes."""
    return mcmc.Posterior(draws, mcmc.Stats(**drawn["stats"]), mcmc.Warmup(**drawn["warmup"]))


def diagnosed(posterior: mcmc.Posterior, predictions: Any, **others: Any) -> dict:
    """Return ``diagnostics.check`` of a run as a row keeps it: by kind of quantity, then of the
    run.
    """
    check = diagnostics.check(posterior, predictions, **others)
    by_kind = {
        name: dict(zip(check.kinds, getattr(check, name).tolist(), strict=True))
        for name in ("rhat", "rhat_bound", "ess")
    }
    mixed = bool(
        (check.rhat <= check.rhat_bound).all() and check.ess.min() >= diagnostics.LEAST_ESS
    )
    kept = {
        name: getattr(check, name)
        for name in ("divergences", "bfmi", "integration_steps", "at_limit")
    }
    return by_kind | kept | {"chains": posterior.stats.log_density.shape[-2], "mixed": mixed}


def percent_right(
    p: Float[np.ndarray, "chain draw *point"], y: Int[ArrayLike, "*point"]
) -> tuple[float, float]:
    """Return the accuracy of the average prediction in percent, and its Monte Carlo error.

    The error is that of the mean over eight stretches of each chain, and no less than what one
    point is worth.
    """
    stretches = [part.mean(axis=0) for chain in p for part in np.array_split(chain, 8)]
    spread = np.std([metrics.accuracy(part, y) for part in stretches], ddof=1) / np.sqrt(
        len(stretches)
    )
    return 100 * metrics.accuracy(p.mean(axis=(0, 1)), y), 100 * float(
        np.hypot(spread, 1 / np.size(y))
    )


def mixture_nll_error(
    f: Float[Array, "*draw point"], noise: Float[Array, "*draw"], y: Float[Array, " point"]
) -> float:
    """Return the Monte Carlo standard error of ``metrics.mixture_nll``; draws [draw] are
    independent ones.
    """
    log_p = stats.norm.logpdf(y, f, noise[..., None]).reshape(
        *(noise.shape if noise.ndim == 2 else (4, -1)), y.size
    )
    # Of each point only ratios between draws count; far from the data its densities are too small
    # for numbers.
    return diagnostics.nll_error(np.exp(log_p - log_p.max(axis=(0, 1))), np.ones_like(y))


def jackknife(
    function: Callable, *draws: Float[Array, "draw ..."], num_stretches: int = 20
) -> np.ndarray:
    """Return the Monte Carlo standard error of numbers found of draws, where no formula gives it.

    Stretches of the draws, chains one after the other, are left out in turn. A stretch must be long
    against the time in which a chain forgets. The error has 19 degrees of freedom.
    """
    stretches = np.array_split(np.arange(len(draws[0])), num_stretches)
    found = [
        function(*(np.delete(values, stretch, axis=0) for values in draws)) for stretch in stretches
    ]
    return np.sqrt(num_stretches - 1) * np.std(found, axis=0)


def rank_band(
    num_replications: int, num_draws: int, chance: float = 0.05, simulations: int = 2000
) -> float:
    """Return the largest distance of the ranks' cumulative share from a straight line that chance
    explains.

    The distance is standardised by its binomial standard deviation, so that the ends of the line
    count as much as its middle (Sailynoja, Burkner and Vehtari 2022); ``rank_distance`` is what to
    compare with it.
    """
    random = np.random.default_rng(5)
    drawn = random.integers(0, num_draws + 1, size=(num_replications, simulations))
    return float(np.quantile(rank_distance(drawn, num_draws), 1 - chance))


def rank_distance(
    found: Int[np.ndarray, " replication *quantity"], num_draws: int
) -> Float[np.ndarray, "*quantity"]:
    """Return the largest distance of the ranks' cumulative share from a straight line,
    standardised.
    """
    line, difference = verify.rank_difference(found, num_draws)
    return (np.abs(difference) / np.sqrt(line * (1 - line) / len(found))).max(axis=0)


def rank_row(
    values: Float[Array, "replication draw quantity"], truth: Array, names: list[str], chance: float
) -> dict:
    """Return what is kept of simulation-based calibration: ranks, their distance from uniform ones,
    and the band.
    """
    num_draws, found = values.shape[1], verify.ranks(values, truth)
    return {
        "num_draws": num_draws,
        "ranks": {name: found[:, i].tolist() for i, name in enumerate(names)},
        "distance": dict(zip(names, rank_distance(found, num_draws).tolist(), strict=True)),
        "band": rank_band(len(found), num_draws, chance),
    }
