"""Tempered sequential Monte Carlo: particles of the prior follow the likelihood from power 0 to 1.

The next power keeps a set share of the effective sample size; moves are HMC, whose step size
adapts (Del Moral, Doucet and Jasra 2006). On the way comes the evidence.

    state, path = smc.anneal(key, particles, log_prior, log_likelihood)
"""

from helpers import checks

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
from blackjax.smc import adaptive_tempered, resampling
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Key


class Settings(NamedTuple):
    """How particles move from one power to the next."""

    moves: int = 5  # trajectories of a particle after each resampling
    integration_steps: int = 10  # leapfrog steps of a trajectory
    # Each particle has a share of the step size, drawn uniformly between the two.
    shares: tuple[float, float] = (0.5, 1.0)
    target_acceptance: float = 0.8  # to which the step size adapts
    target_ess: float = 0.9  # effective sample size at the next power, as a share of the particles
    most_powers: int = 300  # where it ends at the latest


DEFAULTS = Settings()


def anneal(
    key: Key[Array, ""],
    particles: Any,
    log_prior: Callable,
    log_likelihood: Callable,
    settings: Settings = DEFAULTS,
) -> tuple[Any, dict[str, Array]]:
    """Follow particles of the prior to the posterior; to be called within ``jit``.

    Returns BlackJAX's state, in which ``particles`` and ``weights`` are where they end, and the
    way: "powers" of the likelihood and "log_evidence" at each, [power], infinite beyond "number".
    The posterior was reached if ``state.tempering_param`` is 1.

    Args:
        particles: draws of the prior, pytree, leading axis [particle].
        log_prior: ``f(position)``; -inf outside of a region confines the particles to it.
        log_likelihood: ``f(position)``, which is raised to the powers.
        settings: how particles move.

    ValueError: no particles, or, outside of ``jit``, some that are not finite.
    """
    checks.leading("particles", particles, ("particle",))
    if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(particles)):
        checks.finite(particles=jax.tree.map(checks.cast, particles))
    most = settings.most_powers

    def onwards(carry):
        key, state, log_evidence, step_size, number, path = carry
        key, *keys = jax.random.split(key, 3)
        state, info = next_power(keys, state, step_size, log_prior, log_likelihood, settings)
        log_evidence += info.log_likelihood_increment
        step_size = adapted(step_size, info, settings)
        path = path.at[:, number].set(jnp.stack([state.tempering_param, log_evidence]))
        return key, state, log_evidence, step_size, number + 1, path

    def unfinished(carry):
        return (carry[1].tempering_param < 1.0) & (carry[4] < most)

    begin = adaptive_tempered.init(particles)
    carry = key, begin, jnp.float32(0.0), jnp.float32(0.1), 0, jnp.full((2, most), jnp.inf)
    _, state, _, _, number, path = jax.lax.while_loop(unfinished, onwards, carry)
    return state, {"powers": path[0], "log_evidence": path[1], "number": number}


def next_power(
    keys: Sequence[Key[Array, ""]],
    state: Any,
    step_size: ArrayLike,
    log_prior: Callable,
    log_likelihood: Callable,
    settings: Settings,
) -> tuple[Any, Any]:
    """Bring particles to the next power; return them, and BlackJAX's account of their moves.

    Args:
        keys: of the step, and of the particles' shares of its size.
        state: BlackJAX's, as ``adaptive_tempered.init`` begins it.
        step_size: of the trajectories, before each particle has its share.
        log_prior, log_likelihood: ``f(position)``.
        settings: how particles move.
    """
    key_step, key_share = keys
    count, (low, high) = len(jax.tree.leaves(state.particles)[0]), settings.shares
    tuned = {"step_size": step_size * jax.random.uniform(key_share, (count,), None, low, high)}
    vectors = jax.vmap(lambda one: ravel_pytree(one)[0])(state.particles)
    tuned["inverse_mass_matrix"] = vectors.var(axis=0)[None]

    def move(key, state, log_density, step_size, inverse_mass_matrix):
        sizes = step_size, inverse_mass_matrix, settings.integration_steps
        return blackjax.hmc.build_kernel()(key, state, log_density, *sizes)

    given = log_prior, log_likelihood, move, blackjax.hmc.init, tuned, resampling.systematic
    smc = blackjax.adaptive_tempered_smc(*given, settings.target_ess, num_mcmc_steps=settings.moves)
    return smc.step(key_step, state)


def adapted(step_size: ArrayLike, info: Any, settings: Settings) -> Array:
    """Return the step size of the next power: larger where more was accepted than aimed at."""
    acceptance = jnp.nan_to_num(info.update_info.acceptance_rate).mean()
    return step_size * jnp.exp(acceptance - settings.target_acceptance)
