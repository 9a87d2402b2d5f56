"""Every method of the ladder by its name: how it is run, its one free setting, and where it is not
defined.
"""

from helpers import common, densities, mcmc
from helpers.common import mixed_types, stack, take

import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import arviz
import jax
import numpy as np

from experiments.methods import approximations, many_chain_samplers, samplers
from experiments.methods.budgets import MOST, NUM_CHAINS, Drawn
from experiments.problems import six_tasks

SEED = 9002
FLAT = densities.flat_log_density(six_tasks.NETWORK)
FEWEST = 20  # of draws of warm-up, tries or particles, below which a method is not said to be one
A_DRAW = {4: 14, 5: 28, 6: 42}  # gradients of the book's sampler, as guessed, by largest tree depth
NUM_GROUPS = 4
FIT, SAMPLE, OTHER = "fits", "samples", "another target"


class Method(NamedTuple):
    """A method, its candidate settings, and what it is."""

    run: Callable | None  # of one task; none: all tasks at once, by ``mcmc.sample``
    setting: str  # what the values are of
    values: list[float]
    kind: str  # whether it fits an approximation, samples, or aims at another target
    undefined: Callable[[int, float], str] = lambda budget, value: ""  # why there is no such cell
    # whether its draws come from a weighted cloud: parts of them are not independent
    resampled: bool = False


def _ensemble(budget, value):
    return "" if budget >= 2 * value else "one network is no ensemble"


def _fewer(what: str, count: Callable) -> Callable:
    """Return the reason of a cell that has too few of something."""
    reason = f"fewer than {FEWEST} {what}"
    return lambda budget, value: "" if count(budget, value) >= FEWEST else reason


def _path(budget, value):
    return "" if budget <= 1000 else "one path ends by itself: more gradients change nothing"


def _paths(budget, value):
    return "" if budget >= 2 * approximations.PATH_COST else "only one path"


RATE, RATES, SLOW = "learning rate", [1e-2, 3e-2, 1e-1], [3e-3, 1e-2, 3e-2]
ACCEPTANCES, STEPS = [0.7, 0.8, 0.9], [100, 300, 1000]
BOOK = "the book's sampler"
FEWER = {
    "tries": _fewer("tries a chain", lambda b, v: b / NUM_CHAINS / samplers.A_STEP / v),
    "ChEES": _fewer("draws of warm-up a chain", lambda b, v: b / v / 3 / 20),
    "MEADS": _fewer("steps of warm-up", lambda b, v: b // int(v) // 3),
    "MILE": _fewer("steps of tuning", lambda b, v: b / v * 0.4 / 3),
    "NUTS": _fewer("draws of warm-up a chain", lambda b, v: samplers.warmup_draws(b)),
    BOOK: _fewer("draws of warm-up a chain", lambda b, v: _warmup(b, int(v))),
    "particles": _fewer("particles", many_chain_samplers.num_particles),
}
METHODS = {
    "MAP": Method(approximations.most_probable, RATE, RATES, FIT),
    **{
        f"Laplace, {part}": Method(partial(approximations.laplace, part=part), RATE, RATES, FIT)
        for part in ("full", "diagonal", "last layer")
    },
    "SWAG": Method(approximations.swag, "step size", [1e-3, 3e-3, 1e-2], FIT),
    "Pathfinder": Method(approximations.pathfinder, "memory", [5, 10, 20], FIT, _path),
    "multi-Pathfinder": Method(
        approximations.multipathfinder_, "memory", [5, 10, 20], FIT, _paths, resampled=True
    ),
    **{
        f"SVI, {name}": Method(partial(approximations.guide, name=name), RATE, SLOW, FIT)
        for name in ("mean-field", "low-rank", "full-rank", "flow")
    },
    "SGLD": Method(
        partial(samplers.langevin, name="plain"), "step size", [1e-3, 3e-3, 1e-2], SAMPLE
    ),
    "SGLD, cyclical": Method(
        partial(samplers.langevin, name="cyclical"), "first step size", [3e-3, 1e-2, 3e-2], SAMPLE
    ),
    "MCLMC": Method(samplers.mclmc, "energy variance", [5e-5, 5e-4, 5e-3], SAMPLE),
    "MCLMC, adjusted": Method(
        samplers.adjusted, "steps a trajectory", [2, 8, 32], SAMPLE, FEWER["tries"]
    ),
    "MALA": Method(samplers.mala, "step size", [3e-3, 1e-2, 3e-2], SAMPLE),
    "ChEES": Method(many_chain_samplers.chees, "chains", [8, 16, 32], SAMPLE, FEWER["ChEES"]),
    "MEADS": Method(many_chain_samplers.meads, "chains", [16, 32, 64], SAMPLE, FEWER["MEADS"]),
    "MILE": Method(samplers.mile, "chains", [4, 8, 16], SAMPLE, FEWER["MILE"]),
    **{
        f"NUTS, {metric}": Method(
            partial(samplers.nuts, metric=metric), "acceptance", ACCEPTANCES, SAMPLE, FEWER["NUTS"]
        )
        for metric in ("Stan", "Fisher")
    },
    BOOK: Method(None, "tree depth", [4, 5, 6], SAMPLE, FEWER[BOOK]),
    "tempered SMC": Method(
        many_chain_samplers.tempered, "moves", [1, 2, 5], SAMPLE, FEWER["particles"], resampled=True
    ),
    **{
        name: Method(
            partial(approximations.ensemble, prior=prior), "steps a member", STEPS, OTHER, _ensemble
        )
        for name, prior in (("deep ensemble", False), ("ensemble of modes", True))
    },
    "MC dropout": Method(approximations.dropout, "dropped share", [0.05, 0.1, 0.2], OTHER),
}


def _warmup(budget, depth):
    return min(300, int(budget / NUM_CHAINS / 2 / A_DRAW[depth]))


def run(name: str, kind: str, budget: int, value: float, seed: int) -> dict:
    """Run a method on tasks; return mean predictions, quantiles of p, ESS, gradients, seconds.

    ValueError: no such method, or a cell that is not defined.
    """
    if name not in METHODS:
        raise ValueError(f"name: given {name!r}, expected one of {list(METHODS)}")
    method = METHODS[name]
    if method.undefined(budget, value):
        raise ValueError(f"{name} with {value} at {budget}: {method.undefined(budget, value)}")
    problem = six_tasks.problem(kind)
    key = common.key(SEED, name, kind, budget, f"{value:g}", seed)
    with mixed_types():
        if method.run is None:
            drawn, seconds = _book(key, problem, budget, value)
        else:
            drawn, seconds = _mapped(name, key, kind, budget, value)
    linear = name.startswith("Laplace")
    places = range(len(problem.y))
    each = [_of_task(take(drawn, at), problem.x[at], linear, method) for at in places]
    found = stack(each)
    gradients = np.asarray(drawn.gradients, np.float64)
    return found | {"gradients": gradients, "seconds": np.array(seconds)}


@lru_cache(maxsize=4)
def _program(name, kind, budget, value):
    """Compile a method for one task after the other: seeds share it."""
    observed = six_tasks.problem(kind).observed
    keys = jax.random.split(jax.random.key(0), len(observed.y))
    return in_turn(name, budget, value).lower(keys, observed).compile()


def in_turn(name, budget, value):
    """Return the program that runs a method on one task after the other, of (keys, observed)."""
    run_one = METHODS[name].run
    return jax.jit(lambda *pairs: jax.lax.map(lambda pair: run_one(*pair, budget, value), pairs))


def _mapped(name, key, kind, budget, value):
    """Run a method on one task after the other; return the processor's seconds, too."""
    observed, program = six_tasks.problem(kind).observed, _program(name, kind, budget, value)
    keys = jax.random.split(key, len(observed.y))
    begun = time.process_time()
    drawn = jax.block_until_ready(program(keys, observed))
    seconds = time.process_time() - begun
    return jax.tree.map(np.asarray, drawn), seconds


def _book(key, problem, budget, value):
    """Run ``mcmc.sample``; all trajectories of its NUTS count as if they were the longest."""
    depth, shape = int(value), (len(problem.y), NUM_CHAINS)
    key_start, key_chains = jax.random.split(key)
    starts = six_tasks.params_of(jax.random.normal(key_start, (*shape, six_tasks.SIZE)))
    warmup = _warmup(budget, depth)
    by_nuts = 3 * warmup // 4
    spent = by_nuts * (2**depth - 1) + (warmup - by_nuts) * A_DRAW[depth]
    draws = max(10, int((budget / NUM_CHAINS - spent) / A_DRAW[depth]))
    sizes = {"num_warmup": warmup, "num_samples": draws, "max_tree_depth": depth}
    posterior = mcmc.sample(key_chains, FLAT, starts, tasks=problem.observed, **sizes)
    tuning = np.asarray(posterior.warmup.mean_steps).sum(axis=1) * (warmup - by_nuts)
    used = np.asarray(posterior.stats.integration_steps).sum(axis=(1, 2)) + tuning
    vectors = np.asarray(six_tasks.vector_of(posterior.draws))[:, :, :: -(-draws // MOST)]
    count, centre = np.full(shape, vectors.shape[2]), np.full((shape[0], six_tasks.SIZE), np.nan)
    gradients = used + NUM_CHAINS * by_nuts * (2**depth - 1)
    return Drawn(vectors, count, gradients, centre), float(posterior.warmup.seconds.sum())


@partial(jax.jit, static_argnames="linear")
def predicted(vectors, centre, x, linear):
    """Return p of networks [draw, point]; if ``linear``, of a network expanded to first order."""

    def one(vector):
        if not linear:
            return jax.nn.sigmoid(six_tasks.logits(vector, x))
        value, slope = jax.jvp(lambda v: six_tasks.logits(v, x), (centre,), (vector - centre,))
        return jax.nn.sigmoid(value + slope)

    return jax.lax.map(one, vectors)


def _of_task(drawn, x, linear, method):
    """Summarise one task: mean p of all draws and of four groups, quantiles, ESS of p."""
    pairs = zip(drawn.vectors, drawn.count, strict=True)
    p = [np.asarray(predicted(chain, drawn.centre, x, linear))[:count] for chain, count in pairs]
    blocks = [block if len(block) else p[0] for block in np.array_split(p[0], NUM_GROUPS)]
    parts = p if len(p) > 1 else blocks
    groups = [np.mean([part.mean(axis=0) for part in group], axis=0) for group in _grouped(parts)]
    means, counts = [chain.mean(axis=0) for chain in p], [len(chain) for chain in p]
    mean = np.average(means, axis=0, weights=counts)
    if method.resampled:  # one run does not know its Monte Carlo error
        groups = NUM_GROUPS * [mean]
    some, fewest = [chain[:, : six_tasks.NUM_SPREAD] for chain in p], min(len(chain) for chain in p)
    joined = np.concatenate(some)
    ess = np.full(six_tasks.NUM_SPREAD, np.nan)
    if method.kind == SAMPLE and not method.resampled and fewest >= 8 and np.isfinite(joined).all():
        even = np.stack([chain[:fewest] for chain in some]).astype(np.float64)
        share = len(joined) / even[..., 0].size  # of chains of unequal lengths
        ess = np.array([share * arviz.ess(even[..., i]) for i in range(six_tasks.NUM_SPREAD)])
    quantiles = np.quantile(joined, six_tasks.LEVELS, axis=0).T
    found = {"mean": mean, "groups": np.stack(groups), "quantiles": quantiles}
    return found | {"ess": ess, "draws": np.array(len(joined))}


def _grouped(parts):
    """Return parts as four lists of them."""
    return [parts[i::NUM_GROUPS] for i in range(NUM_GROUPS)]


def chosen(rows: list[dict]) -> dict[str, float]:
    """Return the value of each method that ``tuning`` found nearest on its own tasks."""
    return {row["name"]: row["chosen"] for row in rows}
