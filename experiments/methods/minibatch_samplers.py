"""Minibatch samplers of a comparison by name: kernels, starts, lengths, draws and predictions."""

from helpers import data, densities, networks, predict, sgfs, sgmcmc, training
from helpers.common import take

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from blackjax.base import SamplingAlgorithm
from blackjax.sgmcmc import gradients
from jaxtyping import Array, Float

from experiments.methods import psgld
from experiments.methods.schedules import cyclical

CYCLES = 10  # of cyclical SGLD
MODE_STEPS = 1000  # of Adam on all data, to the mode that belongs to a start
NETWORK = networks.MLP()
CONTROL, AT_MODE = "SGLD, control variates", "SGLD, control variates, from the mode"
GRADIENTS_A_STEP = {CONTROL: 2, AT_MODE: 2, "SGHMC": 10}


class CentredState(NamedTuple):
    """A position, the place where its gradients are measured from, and the whole gradient there."""

    position: Any
    centre: Any
    slope: Any


def log_prior(weights):
    """N(0, 1) on every weight."""
    return densities.log_prior(weights, jnp.ones(3))


def log_likelihood(weights, point):
    """Of one labelled point, or of several."""
    return densities.bernoulli_log_likelihood(NETWORK.apply(weights, point.x), point.y)


def kernel(name: str, given: float, points: data.Points) -> SamplingAlgorithm:
    """Return a sampler by name; ``given``: its damping, friction or alpha, 0 where it has none."""
    size = points.y.shape[0]
    slope = gradients.grad_estimator(log_prior, log_likelihood, size)
    return {
        "SGLD": lambda: blackjax.sgld(slope),
        CONTROL: lambda: centred_sgld(slope, points),
        AT_MODE: lambda: centred_sgld(slope, points),
        "preconditioned SGLD": lambda: psgld.psgld(slope, damping=given),
        "cyclical SGLD": lambda: blackjax.sgld(slope),
        "SGHMC": lambda: blackjax.sghmc(slope, alpha=given),
        "SGNHT": lambda: blackjax.sgnht(slope, alpha=given),
        "SGFS, identity": lambda: sgfs.sgfs(log_prior, log_likelihood, size),
        "SGFS, proportional": lambda: sgfs.sgfs(
            log_prior, log_likelihood, size, preconditioner=sgfs.PROPORTIONAL
        ),
    }[name]()


def centred_sgld(slope: Callable, points: data.Points) -> SamplingAlgorithm:
    """Return SGLD with control variates (Baker et al. 2019), ``(start, centre)`` of each chain.

    BlackJAX's ``gradients.control_variates`` has one centre for all chains, and a network has many
    copies of a mode.
    """

    def init(pair, rng_key=None):
        del rng_key
        return CentredState(*pair, jax.jit(slope)(pair[1], points))

    def step(rng_key, state, minibatch, step_size):
        def estimate(position, batch):
            here, there = slope(position, batch), slope(state.centre, batch)
            return jax.tree.map(lambda whole, g, c: whole + g - c, state.slope, here, there)

        return state._replace(
            position=blackjax.sgld(estimate).step(rng_key, state.position, minibatch, step_size)
        )

    return SamplingAlgorithm(init, step)


@partial(jax.jit, static_argnums=2)
def modes(starts: Any, points: data.Points, num_steps: int = MODE_STEPS) -> Any:
    """Climb from each start to the posterior mode that belongs to it."""
    optimizer = optax.adam(optax.cosine_decay_schedule(3e-2, num_steps))

    def climb(start):
        def loss(weights):
            return -log_prior(weights) - log_likelihood(weights, points).sum()

        return training.train(loss, start, optimizer, num_steps)[0]

    return jax.lax.map(climb, starts)


def initial(name: str, starts: Any, points: data.Points) -> Any:
    """Return where chains start: all at the same places, but for the one that starts at modes."""
    if name not in (CONTROL, AT_MODE):
        return starts
    centres = modes(starts, points)
    return (centres if name == AT_MODE else starts), centres


def lengths(name: str, num_steps: int, num_draws: int) -> dict[str, int]:
    """Return warm-up, draws and thinning of ``num_steps`` minibatch gradients a chain.

    A fifth is warm-up, and the first half of each cycle.
    """
    steps = num_steps // GRADIENTS_A_STEP.get(name, 1)
    cycles, share = (CYCLES, 0.5) if name == "cyclical SGLD" else (1, 0.2)
    draws = num_draws // cycles
    thin = int(steps / cycles * (1 - share)) // draws
    return {
        "num_warmup": steps // cycles - thin * draws,
        "num_samples": draws,
        "thin": thin,
        "num_cycles": cycles,
    }


def draw(
    key: Any, name: str, algorithm: Any, starts: Any, points: Any, step_size: float, **sizes: int
) -> Any:
    """Return weights [chain, draw]; None if a chain left the numbers."""
    size = lengths(name, sizes["num_steps"], sizes["num_draws"])
    length = size["num_warmup"] + size["num_samples"] * size["thin"]
    schedule = step_size
    if name == "cyclical SGLD":  # whose last step of a cycle single precision rounds to 0
        wave = cyclical(step_size, length)
        schedule = lambda t: np.maximum(wave(t), 1e-6 * step_size)  # noqa: E731
    options = {"batch_size": sizes["batch_size"], "step_size": schedule, **size}
    try:
        return sgmcmc.sample(key, algorithm, starts, points, **options)
    except FloatingPointError:
        return None


_probabilities = jax.jit(partial(predict.probabilities, NETWORK.apply))


def probabilities(
    weights: Any, x: Float[Array, "point feature"]
) -> Float[np.ndarray, "chain draw point"]:
    """Return p of every draw; one chain in memory at a time."""
    chains = jax.tree.leaves(weights)[0].shape[0]
    each = (_probabilities(take(weights, np.s_[c : c + 1]), x) for c in range(chains))
    return np.concatenate([np.asarray(p) for p in each])


def log_densities(weights: Any, points: data.Points) -> Float[np.ndarray, "chain draw"]:
    """Return the log posterior, up to a constant, of every draw."""
    return np.asarray(_log_densities(weights, points))


@jax.jit
def _log_densities(weights, points):
    def one(position):
        return log_prior(position) + log_likelihood(position, points).sum()

    return jax.lax.map(lambda chain: jax.lax.map(one, chain), weights)
