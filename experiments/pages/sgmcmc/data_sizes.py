"""What a thousand to a million data cost a minibatch sampler and the full sampler, and what is near
the posterior.

Times are of one step in a compiled loop: two lengths are timed and subtracted. The whole gradient
goes through the data in chunks, so that its memory does not grow.

At a thousand and ten thousand data a long run of the book's sampler is the reference; samplers are
tuned by ``step_size_rule``, which does not see it. What data leave open shrinks with the root of
their number, and with it the margin of the rule and the limit of what is near. Beyond, a reference
could only be Laplace's approximation of one copy, mended by importance weights: its Pareto k-hat
says whether it may be one, up to 0.7. It is also found at ten thousand data, where the sampler
tells whether k-hat is right. Samplers are not run where nothing can be said of them.
"""

from helpers import common, data, diagnostics, mcmc, metrics, networks
from helpers.common import take

from functools import partial

import jax
import numpy as np

from experiments.methods import (
    minibatch_samplers,
    minibatch_scores,
    runs,
    step_size_rule,
    total_variation,
)
from experiments.pages.sgmcmc import large_data

# The number of seeds is no part of what a unit does, so that more can follow.
SETTINGS = {
    "num_seeds": {"1000": 5, "10000": 5},
    **large_data.RUN,
}
REFERENCE, TIMES, LAPLACE = "NUTS, long", "times", "Laplace"
SMALL = {"size": 1000, "arm": "SGLD", "seed": 0}


def units() -> dict[str, dict]:
    """Return long runs, minibatch samplers by seed, Laplace's approximations, times."""
    found = [(int(size), REFERENCE, 0) for size in reversed(large_data.RUN["reference"])]
    arms, seeds = [*reversed(large_data.RUN["times_size"])], SETTINGS["num_seeds"]
    found += [
        (int(size), arm, seed)
        for size, count in seeds.items()
        for seed in range(count)
        for arm in arms
    ]
    found += [
        (int(size), LAPLACE, start)
        for size, count in large_data.RUN["laplace"].items()
        for start in range(count)
    ]
    found += [(size, TIMES, 0) for size in large_data.RUN["sizes"]]
    return {
        f"{size}, {arm}, {seed}": {"size": size, "arm": arm, "seed": seed}
        for size, arm, seed in found
    }


def problem(size: int) -> data.Tasks:
    """Return the data, as one task."""
    return data.rotated_moons(
        common.key(large_data.RUN["seed"], "data", size), 1, size, large_data.RUN["num_test"], 0.2
    )


def unit(size: int, arm: str, seed: int) -> dict:
    """Return times, Laplace's approximation, or weights [chain, draw] and gradients of a datum."""
    tasks = problem(size)
    points = data.Points(tasks.x_train[0], tasks.y_train[0])
    shapes = networks.parameter_shapes(minibatch_samplers.NETWORK, points.x.shape[-1])
    key = partial(common.key, large_data.RUN["seed"], size, arm, seed)
    starts = common.key(large_data.RUN["seed"], "start", size, seed if arm != REFERENCE else arm)
    starts = mcmc.normal_starts(starts, shapes, (large_data.RUN["num_chains"],))
    if arm == TIMES:
        return {"microseconds": large_data.microseconds(take(starts, 0), points)}
    if arm == LAPLACE:
        return large_data.laplace(key("draws"), take(starts, 0), points)
    if arm == REFERENCE:
        return large_data.full(key("chains"), starts, points)
    step_sizes = [times / size for times in large_data.RUN["times_size"][arm]]
    x, margin = (
        tasks.x_test[0][: large_data.RUN["num_points"]],
        large_data.shrunk(large_data.RUN["margin_at_500"], size),
    )
    runs = large_data.RUN["tuning"], large_data.RUN["final"]
    drawn = step_size_rule.tune_and_draw(
        key, arm, [0.0], step_sizes, starts, points, x, *runs, margin=margin
    )
    return drawn | {
        "gradients": large_data.RUN["num_chains"]
        * runs[1]["num_steps"]
        * large_data.RUN["batch_size"]
    }


def score(drawn: dict, size: int, arm: str, seed: int) -> dict:
    """Return times and the Bayes optimum, k-hat, or tuning and the final run."""
    tasks = problem(size)
    x, y = tasks.x_test[0], tasks.y_test[0]
    points = data.Points(tasks.x_train[0], tasks.y_train[0])
    if arm == TIMES:
        best = data.bayes_optimum(tasks, tasks.x_test, 0.2)[0]
        optimum = float(metrics.negative_log_likelihood(best, y))
        return {
            "bayes_nll": optimum,
            "microseconds": {name: t.tolist() for name, t in drawn["microseconds"].items()},
        }
    if arm == LAPLACE:
        found = {
            name: float(drawn[name]) for name in ("least_eigenvalue", "newton_step", "log_density")
        }
        if "log_weights" in drawn:
            found["k_hat"] = float(diagnostics.arviz.psislw(np.array(drawn["log_weights"]))[1])
        return found
    found = {"name": arm, "seed": seed, "gradients": int(drawn["gradients"])}
    if "tuning" in drawn:
        found["tuning"] = {
            "0": {at: minibatch_scores.short(run) for at, run in drawn["tuning"]["0"].items()}
        }
        found["seconds"] = float(drawn["seconds"])
        found["chosen"] = [int(place) for place in drawn["chosen"]]
    if "weights" not in drawn:
        return found
    p = minibatch_samplers.probabilities(drawn["weights"], x[: large_data.RUN["num_points"]])
    every = max(1, p.shape[1] // 125)
    of_test = minibatch_samplers.probabilities(
        jax.tree.map(lambda a: a[:, ::every], drawn["weights"]), x
    )
    found |= minibatch_scores.scored(of_test, y) | {
        "p_of_chains": minibatch_scores.rounded(p.mean(axis=1, dtype=np.float64))
    }
    found |= {"spread": minibatch_scores.spread(p)}
    if "stats" in drawn:
        found["check"] = runs.diagnosis(runs.run_from(drawn), p[..., ::10])
        return found | minibatch_scores.gate(
            p[..., ::10], np.asarray(drawn["stats"]["log_density"])
        )
    return found | minibatch_scores.gate(
        p[..., ::10], minibatch_samplers.log_densities(drawn["weights"], points)
    )


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row a size: times, k-hats, and, where there is one, reference and samplers."""
    settings = units()

    def of(size, arm):
        return [
            scored[name]
            for name, one in settings.items()
            if (one["size"], one["arm"]) == (size, arm)
        ]

    def row(size):
        found = {"size": size, **of(size, TIMES)[0], "laplace": of(size, LAPLACE)}
        if str(size) not in large_data.RUN["reference"]:
            return found
        reference = of(size, REFERENCE)[0]
        truth = np.array(reference["p_of_chains"])
        halves = total_variation.distance(truth[:2], truth[2:])
        limit = large_data.shrunk(large_data.RUN["limit_at_500"], size)
        samplers = [
            minibatch_scores.row(
                arm, of(size, arm), reference, [0.0], [times / size for times in grid], limit
            )
            for arm, grid in large_data.RUN["times_size"].items()
        ]
        kept = {entry: value for entry, value in reference.items() if entry != "p_of_chains"}
        reference = {**kept, "tv": halves[0], "tv_chance": halves[1]}
        return found | {"limit": limit, "reference": reference, "samplers": samplers}

    return [row(size) for size in large_data.RUN["sizes"]]
