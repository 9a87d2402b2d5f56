"""Where chains of a posterior with several modes start: stages at a lower power of the likelihood.

Chains that start in a mode of little mass leave it where the likelihood counts less.

    positions, num_stages = tempering.agreed_starts(key, log_density, positions, observed)
"""

from helpers import chains, checks, hmc, mcmc
from helpers.common import mixed_types, stack, take

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key


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
        log_density: ``f(position, observed)``.
        shapes: of a position, a tree of ``jax.ShapeDtypeStruct``.
        observed: ``densities.Observed``, whose weights are multiplied by the power.
        num_started: number of chains.
        sizes: what ``mcmc.sample`` takes, such as ``num_warmup`` and ``num_samples``.

    ValueError: a power that is not between 0 and 1; as ``mcmc.sample``.
    FloatingPointError: as ``mcmc.sample``.
    """
    checks.number(high=1.0, power=power)
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

    Args:
        log_density: ``f(position, data)``.
        positions: where chains start, leading axis [chain].
        num_warmup: draws of the whole warm-up, of which three quarters are run here.
        target_acceptance: mean acceptance probability to which the step size adapts.
        max_tree_depth: a trajectory has at most 2^depth leapfrog steps.

    ValueError: as ``mcmc.sample``.
    FloatingPointError: chains whose warm-up is not finite.
    """
    mcmc.batch_of(positions, None, num_warmup, target_acceptance, max_tree_depth)
    settings = log_density, 3 * num_warmup // 4, target_acceptance, max_tree_depth
    positions, data = jax.tree.map(np.asarray, positions), jax.tree.map(jnp.asarray, data)
    keys = np.asarray(
        jax.random.key_data(jax.random.split(key, len(jax.tree.leaves(positions)[0])))
    )
    units = [(one, take(positions, chain), None) for chain, one in enumerate(keys)]
    with mixed_types():
        program = hmc.warm_up.lower(*settings, *units[0], data, None).compile()
    with chains.threads(mcmc.cores()) as pool:
        learnt = list(
            pool.map(lambda unit: jax.tree.map(np.asarray, program(*unit, data, None)), units)
        )
    bad = [
        chain
        for chain, one in enumerate(learnt)
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(one))
    ]
    if bad:
        raise FloatingPointError(f"warm-up of chains {bad}: not finite")
    return stack([one.position for one in learnt])


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
        log_density: ``f(position, observed)``; positions have ``log_sd`` by layer.
        starts: positions, leading axis [chain].
        observed: ``densities.Observed``, whose weights are multiplied by the power.
        least, most: number of stages.
        times: a chain that is elsewhere, or on its way, has standard deviations of much the same
            size.
        settings: what ``warmed_up`` takes.

    ValueError: a power that is not between 0 and 1, no stages, ``times`` below 1; as ``warmed_up``.
    FloatingPointError: as ``warmed_up``.
    """
    checks.number(high=1.0, power=power)
    checks.number(low=1.0, closed=True, times=times)
    checks.count(**{"least (stages)": least, "most": most})
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
