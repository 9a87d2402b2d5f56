"""Samplers that see minibatches, on one posterior, each with the step size that a rule picks
without the posterior.

The rule is that of ``step_size_rule``. The reference is the book's sampler on all data, from eight
dispersed starts. Every sampler has the same dispersed starts, four of each seed, and one with
control variates also starts at the modes that belong to them. Each seed tunes by short runs and
draws one long run as tuned; the full-data sampler at about the same number of per-datum gradients
stands beside them, and two guides by variational inference. Limits were fixed before the run, after
trials and after the first seed of an earlier run (``minibatch_scores.row``). Times are of the
processor, on the core of whoever computed this result: only ratios of them may be compared, and no
check can.
"""

from helpers import common, data, densities, mcmc, networks, svi

from functools import partial

import jax
import numpy as np
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

from experiments.methods import (
    minibatch_samplers,
    minibatch_scores,
    runs,
    step_size_rule,
    total_variation,
)
from experiments.problems.numpyro_models import flat_model
from experiments.problems.source_moons import fisher_source_moons


def doublings(first: float, count: int = 6) -> list[float]:
    """Return step sizes, each half the next one."""
    return [first * 2**i for i in range(count)]


RUN = {
    "seed": 7001,
    "num_chains": 4,
    "limit": total_variation.LIMIT,
    "margin": total_variation.MARGIN,
    "spread": minibatch_scores.SPREAD,
    # minibatch gradients, each chain
    "tuning": {"num_steps": 200_000, "num_draws": 250, "batch_size": 50},
    "final": {"num_steps": 600_000, "num_draws": 500, "batch_size": 50},
    "num_points": 500,  # fresh points at which predictions are compared
    "num_test": 10_000,  # fresh points for scores
    "reference": {"num_warmup": 400, "num_samples": 4000, "max_tree_depth": 10},
    "reference_chains": 8,
    # about the gradients of a final run
    "equal": {"num_warmup": 100, "num_samples": 120, "max_tree_depth": 10},
    "step_sizes": {
        "SGLD": doublings(4e-5),
        minibatch_samplers.CONTROL: doublings(4e-5),
        minibatch_samplers.AT_MODE: doublings(4e-5),
        "preconditioned SGLD": doublings(1e-3),
        "cyclical SGLD": doublings(1.2e-4),
        "SGHMC": doublings(1e-3),
        "SGNHT": doublings(2e-4),
        "SGFS, identity": doublings(5e-4),
        "SGFS, proportional": doublings(5e-4),
    },
    # Damping of the preconditioner, friction, alpha.
    "given": {
        "preconditioned SGLD": [1.0, 10.0],
        "SGHMC": [0.01, 30.0, 100.0],
        "SGNHT": [1.0, 10.0, 100.0],
    },
    "svi_steps": 10_000,  # of ten draws of the guide on one minibatch
}
# The number of seeds is no part of what a unit does, so that more can follow.
SETTINGS = {
    "num_seeds": 5,
    **RUN,
}
MODEL = partial(flat_model, minibatch_samplers.NETWORK, batch_size=RUN["final"]["batch_size"])
LOG_DENSITY = densities.flat_log_density(minibatch_samplers.NETWORK)
REFERENCE, EQUAL = "NUTS, long", "NUTS"
GUIDES = {
    "SVI, diagonal": (partial(AutoNormal, init_scale=1e-2), svi.ELBO),
    "SVI, full": (partial(AutoMultivariateNormal, init_scale=1e-2), Trace_ELBO(num_particles=10)),
}
SMALL = {"name": "SGLD", "seed": 0}


def units() -> dict[str, dict]:
    """Return the reference, and every sampler and guide, seed by seed."""
    names = [*reversed(RUN["step_sizes"]), EQUAL, *GUIDES]
    seeds = range(SETTINGS["num_seeds"])
    return {REFERENCE: {"name": REFERENCE, "seed": 0}} | {
        f"{name}, seed {seed}": {"name": name, "seed": seed} for seed in seeds for name in names
    }


def problem() -> tuple[data.Points, data.Points]:
    """Return training and fresh points, those of the page."""
    key_split, key_test = jax.random.split(jax.random.key(RUN["seed"]), 6)[:2]
    source = fisher_source_moons(key_split)
    tasks = data.redraw_test(key_test, source, RUN["num_test"], 0.2)
    return data.Points(tasks.x_train[0], tasks.y_train[0]), data.Points(
        tasks.x_test[0], tasks.y_test[0]
    )


def unit(name: str, seed: int) -> dict:
    """Return runs of a sampler or guide: weights [chain, draw], seconds, gradients of a datum."""
    points, test = problem()
    key = partial(common.key, RUN["seed"], name, seed)
    shapes = networks.parameter_shapes(minibatch_samplers.NETWORK, points.x.shape[-1])
    if name in (REFERENCE, EQUAL):
        return full(key, name, seed, shapes, points)
    if name in GUIDES:
        return fit(key, name, points)
    starts = mcmc.normal_starts(
        common.key(RUN["seed"], "start", seed), shapes, (RUN["num_chains"],)
    )
    x, runs = test.x[: RUN["num_points"]], (RUN["tuning"], RUN["final"])
    settings, sizes = RUN["given"].get(name, [0.0]), RUN["step_sizes"][name]
    drawn = step_size_rule.tune_and_draw(key, name, settings, sizes, starts, points, x, *runs)
    spent = RUN["num_chains"] * RUN["final"]["num_steps"] * RUN["final"]["batch_size"]
    if name in (minibatch_samplers.CONTROL, minibatch_samplers.AT_MODE):
        spent += RUN["num_chains"] * minibatch_samplers.MODE_STEPS * len(points.y)
    return drawn | {"gradients": spent}


def full(key, name, seed, shapes, points):
    """The book's sampler on all data: long, or for about as many gradients as the others."""
    chains, sizes = (RUN["num_chains"], RUN["equal"])
    starts = common.key(RUN["seed"], "start", seed)
    if name == REFERENCE:
        chains, sizes, starts = RUN["reference_chains"], RUN["reference"], key("start")
    starts = mcmc.normal_starts(starts, shapes, (chains,))
    observed = densities.observe(points.x, points.y, [1.0, 1.0, 1.0])
    posterior = mcmc.sample(key("chains"), LOG_DENSITY, starts, data=observed, **sizes)
    steps = (
        posterior.stats.integration_steps.sum()
        + sizes["num_warmup"] * posterior.warmup.mean_steps.sum()
    )
    return {"weights": posterior.draws, "gradients": steps * len(points.y)} | runs.kept_run(
        posterior
    )


def fit(key, name, points):
    """A guide, fitted once; its draws stand as four chains."""
    observed = densities.observe(points.x, points.y, [1.0, 1.0, 1.0])
    guide, loss = GUIDES[name]
    found = svi.fit(key("fit"), MODEL, guide, (observed,), num_steps=RUN["svi_steps"], loss=loss)
    count = RUN["num_chains"], RUN["final"]["num_draws"]
    drawn = svi.draw(key("draws"), MODEL, guide, found.params, (observed,), count[0] * count[1])
    weights = jax.tree.map(lambda a: a.reshape(*count, *a.shape[1:]), svi.network_position(drawn))
    spent = RUN["svi_steps"] * loss.num_particles * RUN["final"]["batch_size"]
    return {"weights": weights, "gradients": spent}


def score(drawn: dict, name: str, seed: int) -> dict:
    """Return what a row is made of: tuning by setting and step size, and the final run."""
    points, test = problem()
    found = {"name": name, "seed": seed, "gradients": int(drawn["gradients"])}
    if "tuning" in drawn:
        found["tuning"] = {
            given: {at: minibatch_scores.short(run) for at, run in runs.items()}
            for given, runs in drawn["tuning"].items()
        }
        found["seconds"] = float(drawn["seconds"])
        found["chosen"] = [int(place) for place in drawn["chosen"]]
    if "weights" not in drawn:
        return found
    p = minibatch_samplers.probabilities(drawn["weights"], test.x[: RUN["num_points"]])
    every = max(1, p.shape[1] // 125)
    of_test = minibatch_samplers.probabilities(
        jax.tree.map(lambda a: a[:, ::every], drawn["weights"]), test.x
    )
    found |= minibatch_scores.scored(of_test, test.y) | {
        "p_of_chains": minibatch_scores.rounded(p.mean(axis=1, dtype=np.float64))
    }
    found["spread"] = minibatch_scores.spread(p)
    if name not in GUIDES:
        found |= minibatch_scores.gate(
            p[..., ::10], minibatch_samplers.log_densities(drawn["weights"], points)
        )
    if "stats" in drawn:
        found["check"] = runs.diagnosis(runs.run_from(drawn), p[..., ::10])
    return found


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for the reference and for every sampler and guide, its lists by seed."""
    reference, others = (
        scored[REFERENCE],
        [found for found in scored.values() if found["name"] != REFERENCE],
    )
    truth = np.array(reference["p_of_chains"])
    halves = total_variation.distance(truth[:4], truth[4:])
    kept = {entry: value for entry, value in reference.items() if entry != "p_of_chains"}
    names = dict.fromkeys(found["name"] for found in others)
    by_name = {name: [found for found in others if found["name"] == name] for name in names}
    first = {**kept, "tv": halves[0], "tv_chance": halves[1]}
    grids = {
        name: (RUN["given"].get(name, [0.0]), sizes) for name, sizes in RUN["step_sizes"].items()
    }
    return [
        first,
        *(
            minibatch_scores.row(name, seeds, reference, *grids.get(name, ()))
            for name, seeds in by_name.items()
        ),
    ]
