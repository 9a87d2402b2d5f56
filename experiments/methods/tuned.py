"""Minibatch samplers whose step size is chosen without the posterior: kernels, the rule, distances
and the gate.

The rule sees a sampler's own runs alone. Of a grid of step sizes, each half the next, it takes the
largest whose mean predictions, of four chains, match those of half that step: their distance beyond
Monte Carlo error is at most ``MARGIN``, and so is that error itself, since chains that hardly move,
or stray far, would match anything. Of several frictions, or what else a sampler has to be given, it
takes the one with the most effective draws at the step chosen for it.
"""

from helpers import data, densities, diagnostics, metrics, networks, predict, sgfs, sgmcmc
from helpers.common import take

import time
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

from experiments import shared
from experiments.methods import psgld
from experiments.problems.source_moons import cyclical

LIMIT = 0.005  # total variation to the posterior, up to which a sampler is near it
# between a step and half of it: an error in proportion to the step is twice that
MARGIN = LIMIT / 2
# share by which the spread of predictions may be off, if a sampler is to sample the posterior
SPREAD = 0.1
CYCLES = 10  # of cyclical SGLD
MODE_STEPS = 1000  # of Adam on all data, to the mode that belongs to a start
NETWORK = networks.MLP()
CONTROL, AT_MODE = "SGLD, control variates", "SGLD, control variates, from the mode"
GRADIENTS_A_STEP = {CONTROL: 2, AT_MODE: 2, "SGHMC": 10}


class CentredState(NamedTuple):
    """A position, the place where its gradients are measured from, and the gradient of all data
    there.
    """

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
    """Return a sampler of the comparison; ``given`` is its damping, friction or alpha, and 0 where
    it has none.
    """
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
    """Return SGLD with control variates (Baker et al. 2019), each chain with a centre of its own,
    ``(start, centre)``.

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

        return shared.train(loss, start, optimizer, num_steps)[0]

    return jax.lax.map(climb, starts)


def initial(name: str, starts: Any, points: data.Points) -> Any:
    """Return where the chains of a sampler start: all at the same places, but for the one that
    starts at its modes.
    """
    if name not in (CONTROL, AT_MODE):
        return starts
    centres = modes(starts, points)
    return (centres if name == AT_MODE else starts), centres


def lengths(name: str, num_steps: int, num_draws: int) -> dict[str, int]:
    """Return warm-up, draws and thinning, so that all samplers spend ``num_steps`` minibatch
    gradients a chain.

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


def tune_and_draw(
    key: Callable,
    name: str,
    settings: list[float],
    step_sizes: list[float],
    starts: Any,
    points: data.Points,
    x: Float[Array, "point feature"],
    tuning: dict[str, int],
    final: dict[str, int],
    margin: float = MARGIN,
) -> dict:
    """Run a sampler on its grid, choose, and run it afresh and for longer as chosen.

    Args:
        key: ``key(*names)``, of a run by its names.
        settings: dampings, frictions or alphas; [0.0] where there is none.
        step_sizes: each half the next one.
        x: where predictions are compared.
        tuning, final: ``num_steps`` a chain, ``num_draws`` and ``batch_size`` of the two kinds of
            runs.
        margin: total variation up to which a step and half of it agree.

    Returns of each setting and step size that stayed finite predictions, by chain [chain, point],
    and of draws at ten points; the processor's seconds of a run, their median, since the first one
    compiles; the place in both lists of what was chosen, or -1; and weights, if something was.
    """
    begun = initial(name, starts, points)
    found, picked, seconds = {}, [], []
    for i, given in enumerate(settings):
        algorithm, runs = kernel(name, given, points), {}
        for step_size in step_sizes:
            at, began = f"{step_size:g}", time.process_time()
            weights = draw(
                key("tuning", f"{given:g}", at), name, algorithm, begun, points, step_size, **tuning
            )
            seconds.append(time.process_time() - began)
            if weights is not None:
                p = probabilities(weights, x)
                runs[at] = {"p_of_chains": p.mean(axis=1), "p": p[..., :: p.shape[-1] // 10]}
        found[f"{given:g}"] = runs
        of_steps = [
            runs[at]["p_of_chains"] if (at := f"{size:g}") in runs else None for size in step_sizes
        ]
        place = chosen(of_steps, margin)
        if place >= 0:
            picked.append((effective(runs[f"{step_sizes[place]:g}"]["p"]), i, place))
    kept = {"tuning": found, "seconds": np.median(seconds), "chosen": np.array([-1, -1])}
    if not picked:
        return kept
    _, i, place = max(picked)
    given, step_size = settings[i], step_sizes[place]
    weights = draw(
        key("final"), name, kernel(name, given, points), begun, points, step_size, **final
    )
    return (
        kept | {"chosen": np.array([i, place])} | ({} if weights is None else {"weights": weights})
    )


def chosen(of_steps: list[Float[np.ndarray, "chain point"] | None], margin: float = MARGIN) -> int:
    """Return the place of the largest step that matches half of it, the one before; -1 if there is
    none.
    """

    def match(half, whole):
        apart, chance = distance(half, whole)
        return beyond(apart, chance) <= margin and chance <= margin

    pairs = [(i, of_steps[i - 1], of_steps[i]) for i in range(1, len(of_steps))]
    return max(
        (i for i, *pair in pairs if all(part is not None for part in pair) and match(*pair)),
        default=-1,
    )


def beyond(apart: float, chance: float) -> float:
    """Return the part of a distance that chance does not explain: squares of independent parts add
    up.
    """
    return float(np.sqrt(max(apart**2 - chance**2, 0.0)))


_probabilities = jax.jit(partial(predict.probabilities, NETWORK.apply))


def probabilities(
    weights: Any, x: Float[Array, "point feature"]
) -> Float[np.ndarray, "chain draw point"]:
    """Return p of every draw; one chain in memory at a time."""
    chains = jax.tree.leaves(weights)[0].shape[0]
    return np.concatenate(
        [np.asarray(_probabilities(take(weights, np.s_[c : c + 1]), x)) for c in range(chains)]
    )


def effective(p: Float[np.ndarray, "chain draw point"]) -> float:
    """Return effective draws of predictions, the least over points, all chains together."""
    found = diagnostics.summarize(p)
    return float(np.minimum(found.ess_bulk, found.ess_tail).min())


def gate(
    p: Float[np.ndarray, "chain draw point"], log_density: Float[np.ndarray, "chain draw"]
) -> dict:
    """Diagnose a run as the book does, by predictions and log density: what is nearest to its
    bound, and whether mixed.

    ``ess`` is the least of chains taken one at a time, which has to be 400; ``ess_of_predictions``
    that of all chains together, the least over points.
    """
    found = diagnostics.summarize({"predictions": p, "log density": log_density})
    nearest = np.argmax(found.rhat - found.rhat_bound)
    return {
        "rhat": float(found.rhat[nearest]),
        "rhat_bound": float(found.rhat_bound[nearest]),
        "ess": float(found.ess_alone.min()),
        "ess_of_predictions": effective(p),
        "mixed": bool(
            (found.rhat <= found.rhat_bound).all()
            and found.ess_alone.min() >= diagnostics.LEAST_ESS
        ),
    }


def log_densities(weights: Any, points: data.Points) -> Float[np.ndarray, "chain draw"]:
    """Return the log posterior, up to a constant, of every draw."""
    return np.asarray(_log_densities(weights, points))


@jax.jit
def _log_densities(weights, points):
    def one(position):
        return log_prior(position) + log_likelihood(position, points).sum()

    return jax.lax.map(lambda chain: jax.lax.map(one, chain), weights)


def scored(p: Float[np.ndarray, "chain draw point"], y: Array) -> dict:
    """Return NLL and calibration of the mean prediction at fresh points, and the Monte Carlo error
    of the NLL.
    """
    found = metrics.scores(p.mean(axis=(0, 1)), y)
    kept = {
        "nll": found["NLL"],
        "accuracy": found["accuracy %"],
        "calibration": found["calibration error"],
    }
    return kept | {"nll_error": diagnostics.nll_error(p, y)}


def spread(p: Float[np.ndarray, "chain draw point"]) -> float:
    """Return the standard deviation of p over all draws, mean over points: what the weights leave
    open.
    """
    return float(p.reshape(-1, p.shape[-1]).std(axis=0, dtype=np.float64).mean())


def distance(
    of_chains: Float[np.ndarray, "chain point"], truth: Float[np.ndarray, "chain point"]
) -> tuple[float, float]:
    """Return the total variation between mean predictions of two sets of chains, and what chance
    alone would make it.

    Chains of one set are independent, so what they differ by says how far their mean is off by
    chance, whether or not a chain has mixed; the mean of the absolute value of a normal is 0.8
    standard deviations.
    """
    gap = of_chains.mean(axis=0) - truth.mean(axis=0)
    variance = sum(chains.var(axis=0, ddof=1) / len(chains) for chains in (of_chains, truth))
    return float(np.abs(gap).mean()), float(np.sqrt(2 / np.pi * variance).mean())


def rounded(values: Any) -> list:
    """Return numbers for JSON."""
    return np.asarray(values, np.float64).round(6).tolist()


def short(run: dict) -> dict:
    """Return what is kept of a run of tuning."""
    return {"p_of_chains": rounded(run["p_of_chains"]), "ess_of_predictions": effective(run["p"])}


def row(
    name: str,
    seeds: list[dict],
    reference: dict,
    settings: list[float] | None = None,
    step_sizes: list[float] | None = None,
    limit: float = LIMIT,
) -> dict:
    """Return a sampler's row, lists by seed: its curves, its chosen steps, its long runs, and what
    the limits say.

    It is near the posterior if the 95 % interval of its distance over seeds ends below the limit,
    keeps the spread of predictions if the interval of that, as a share of the reference's, lies
    within ``SPREAD`` of 1, and samples the posterior if it does both and its chains have mixed in
    every seed.

    Args:
        seeds: what ``score`` kept of each seed.
        reference: what it kept of the long run on all data.
        settings, step_sizes: the grid, in the places that ``chosen`` names; none: not tuned.
        limit: total variation below which the interval over seeds has to end.
    """
    found, truth = (
        {"name": name, "gradients": [one["gradients"] for one in seeds]},
        np.array(reference["p_of_chains"]),
    )
    if step_sizes:
        found["curves"] = {
            f"{given:g}": curve(f"{given:g}", step_sizes, seeds, truth) for given in settings
        }
        chosen, found["seconds"] = (
            [one["chosen"] for one in seeds],
            [one["seconds"] for one in seeds],
        )
        found["given"] = [settings[i] if i >= 0 else -1.0 for i, _ in chosen]
        found["step_size"] = [step_sizes[i] if i >= 0 else -1.0 for _, i in chosen]
    runs = [one for one in seeds if "p_of_chains" in one]
    found["seeds_with_a_run"] = [one["seed"] for one in runs]
    if len(runs) < 2:
        return found | {"near": False, "keeps_spread": False, "samples": False}
    of_chains = [np.array(one["p_of_chains"]) for one in runs]
    tv, chance = zip(*(distance(chains, truth) for chains in of_chains), strict=True)
    together = distance(np.concatenate(of_chains), truth)
    found |= {
        "tv": tv,
        "tv_chance": chance,
        "tv_together": together[0],
        "tv_together_chance": together[1],
    }
    names = ("nll", "nll_error", "accuracy", "calibration", "spread")
    names += (
        ("rhat", "rhat_bound", "ess", "ess_of_predictions", "mixed") if "ess" in runs[0] else ()
    )
    found |= {entry: [one[entry] for one in runs] for entry in names}
    found["spread_ratio"] = [one["spread"] / reference["spread"] for one in runs]
    every = len(runs) == len(seeds)
    (mean, half), (ratio, off) = metrics.interval(tv), metrics.interval(found["spread_ratio"])
    found["near"] = bool(every and mean + half <= limit)
    found["keeps_spread"] = bool(every and abs(ratio - 1) + off <= SPREAD)
    return found | {
        "samples": found["near"] and found["keeps_spread"] and all(found.get("mixed", [False]))
    }


def curve(
    given: str, step_sizes: list[float], seeds: list[dict], truth: Float[np.ndarray, "chain point"]
) -> list:
    """Return by step size distances of every seed and of all chains together; none where no run
    stayed finite.
    """

    def at(size):
        runs = [run for one in seeds if (run := one["tuning"][given].get(f"{size:g}"))]
        if not runs:
            return {"step_size": size, "finite": 0}
        of_chains = [np.array(run["p_of_chains"]) for run in runs]
        tv, chance = zip(*(distance(chains, truth) for chains in of_chains), strict=True)
        together = distance(np.concatenate(of_chains), truth)
        found = {
            "tv": tv,
            "tv_chance": chance,
            "tv_together": together[0],
            "tv_together_chance": together[1],
        }
        effective_draws = [run["ess_of_predictions"] for run in runs]
        return {
            "step_size": size,
            "finite": len(runs),
            **found,
            "ess_of_predictions": effective_draws,
        }

    return [at(size) for size in step_sizes]
