"""What a thousand to a million data cost a minibatch sampler and the full sampler, and what is near
the posterior.

Times are of one step in a compiled loop: two lengths are timed and subtracted. The whole gradient
goes through the data in chunks, so that its memory does not grow.

At a thousand and ten thousand data a long run of the book's sampler is the reference; samplers are
tuned by the rule of ``tuned``, which does not see it. What data leave open shrinks with the root of
their number, and with it the margin of the rule and the limit of what is near. Beyond, a reference
could only be Laplace's approximation of one copy, mended by importance weights: its Pareto k-hat
says whether it may be one, up to 0.7. It is also found at ten thousand data, where the sampler
tells whether k-hat is right. Samplers are not run where nothing can be said of them.
"""

from helpers import data, diagnostics, hierarchical, mcmc, metrics, networks
from helpers.common import take

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from experiments import shared
from experiments.methods import tuned
from experiments.methods.tuned import log_likelihood, log_prior
from experiments.pages.sgmcmc.step_sizes import doublings

RUN = {
    "seed": 7002,
    "sizes": [1000, 10_000, 100_000, 1_000_000],
    "chunk": 1000,
    "timed_steps": 4000,
    "rounds": 5,
    "batch_size": 50,
    "num_chains": 4,
    # minibatch gradients, each chain
    "tuning": {"num_steps": 240_000, "num_draws": 250, "batch_size": 50},
    "final": {"num_steps": 400_000, "num_draws": 500, "batch_size": 50},
    "limit_at_500": tuned.LIMIT,
    "margin_at_500": tuned.MARGIN,
    "num_points": 500,
    "num_test": 20_000,
    "reference": {
        "1000": {"num_warmup": 300, "num_samples": 1500, "max_tree_depth": 10},
        "10000": {"num_warmup": 400, "num_samples": 700, "max_tree_depth": 10},
    },
    "times_size": {  # step size times number of data
        "SGLD": doublings(0.005, 7),
        tuned.AT_MODE: doublings(0.02),
        "SGFS, identity": doublings(0.5, 5),
    },
    "laplace": {"10000": 3, "100000": 3, "1000000": 2},  # starts
    "adam_steps": 3000,
    "newton_steps": 60,
    "laplace_draws": 2000,
}
# The number of seeds is no part of what a unit does, so that more can follow.
SETTINGS = {
    "num_seeds": {"1000": 5, "10000": 5},
    **RUN,
}
REFERENCE, TIMES, LAPLACE = "NUTS, long", "times", "Laplace"
SMALL = {"size": 1000, "arm": "SGLD", "seed": 0}


def units() -> dict[str, dict]:
    """Return the long runs, by seed the minibatch samplers, Laplace's approximations, and the
    times.
    """
    found = [(int(size), REFERENCE, 0) for size in reversed(RUN["reference"])]
    arms, seeds = [*reversed(RUN["times_size"])], SETTINGS["num_seeds"]
    found += [
        (int(size), arm, seed)
        for size, count in seeds.items()
        for seed in range(count)
        for arm in arms
    ]
    found += [
        (int(size), LAPLACE, start)
        for size, count in RUN["laplace"].items()
        for start in range(count)
    ]
    found += [(size, TIMES, 0) for size in RUN["sizes"]]
    return {
        f"{size}, {arm}, {seed}": {"size": size, "arm": arm, "seed": seed}
        for size, arm, seed in found
    }


def problem(size: int) -> data.Tasks:
    """Return the data, as one task."""
    return data.rotated_moons(shared.key(RUN["seed"], "data", size), 1, size, RUN["num_test"], 0.2)


def unit(size: int, arm: str, seed: int) -> dict:
    """Return times, Laplace's approximation, or weights [chain, draw] and per-datum gradients of
    all chains.
    """
    tasks = problem(size)
    points = data.Points(tasks.x_train[0], tasks.y_train[0])
    shapes = networks.parameter_shapes(tuned.NETWORK, points.x.shape[-1])
    key = partial(shared.key, RUN["seed"], size, arm, seed)
    starts = shared.key(RUN["seed"], "start", size, seed if arm != REFERENCE else arm)
    starts = mcmc.normal_starts(starts, shapes, (RUN["num_chains"],))
    if arm == TIMES:
        return {"microseconds": microseconds(take(starts, 0), points)}
    if arm == LAPLACE:
        return laplace(key("draws"), take(starts, 0), points)
    if arm == REFERENCE:
        return full(key("chains"), starts, points)
    step_sizes = [times / size for times in RUN["times_size"][arm]]
    x, margin = tasks.x_test[0][: RUN["num_points"]], shrunk(RUN["margin_at_500"], size)
    runs = RUN["tuning"], RUN["final"]
    drawn = tuned.tune_and_draw(
        key, arm, [0.0], step_sizes, starts, points, x, *runs, margin=margin
    )
    return drawn | {"gradients": RUN["num_chains"] * runs[1]["num_steps"] * RUN["batch_size"]}


def shrunk(at_500, size):
    """A limit in total variation, as what data leave open."""
    return at_500 * (500 / size) ** 0.5


def in_chunks(points):
    """The data with leading axes [chunk, datum]: beyond what a core's cache holds a datum costs
    several times more.
    """
    return jax.tree.map(lambda a: a.reshape(-1, RUN["chunk"], *a.shape[1:]), points)


def log_density(weights, chunks):
    """Of all data, chunk by chunk: each chunk's gradient is found with its value, while it is in
    the cache.
    """
    each = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(chunks.y), *a.shape)), weights)
    return log_prior(weights) + _of_chunks(each, chunks)


_of_chunks = hierarchical.sum_over_tasks(lambda weights, part: log_likelihood(weights, part).sum())


def full(key, starts, points):
    """The book's sampler on all data."""
    size = len(points.y)
    sizes = RUN["reference"][str(size)]
    posterior = mcmc.sample(key, log_density, starts, data=in_chunks(points), **sizes)
    steps = (
        posterior.stats.integration_steps.sum()
        + sizes["num_warmup"] * posterior.warmup.mean_steps.sum()
    )
    return {"weights": posterior.draws, "gradients": steps * size} | shared.kept_of(posterior)


def laplace(key, start, points):
    """Climb to a mode by Adam and then Newton's steps; draw from the normal there, with logarithms
    of weights.

    No draws if after those steps the curvature is not positive in every direction: then it is no
    mode.
    """
    chunks = in_chunks(points)
    start, unravel = ravel_pytree(start)

    def of_data(vector, part):
        return log_likelihood(unravel(vector), part).sum()

    @jax.jit
    def climbed(vector):
        optimizer = optax.adam(optax.cosine_decay_schedule(3e-2, RUN["adam_steps"]))
        loss = partial(lambda chunks, v: -log_density(unravel(v), chunks), chunks)
        return shared.train(loss, vector, optimizer, RUN["adam_steps"])[0]

    @jax.jit
    def slopes(vector):
        def add(total, part):
            found = jax.grad(of_data)(vector, part), jax.hessian(of_data)(vector, part)
            return jax.tree.map(jnp.add, total, found), None

        slope, hessian = jax.lax.scan(add, (-vector, -jnp.eye(vector.size)), chunks)[0]
        return slope, -hessian

    density = jax.jit(lambda vector: log_density(unravel(vector), chunks))
    vector, step = climbed(start), np.inf
    for _ in range(RUN["newton_steps"]):
        slope, precision = (np.asarray(part, np.float64) for part in slopes(vector))
        values, axes = np.linalg.eigh(precision)
        # Where the density curves upwards, or hardly, along the slope all the same.
        move = axes @ ((axes.T @ slope) / np.maximum(np.abs(values), 0.3))
        step, length, here = float(np.sqrt(slope @ move)), 1.0, float(density(vector))
        while length > 1e-3 and float(density(vector + jnp.float32(length * move))) < here:
            length /= 2
        vector = vector + jnp.float32(length * move)
        if step < 0.01:
            break
    found = {
        "least_eigenvalue": values[0],
        "newton_step": step,
        "log_density": float(density(vector)),
    }
    if values[0] <= 0:
        return found
    normal = np.asarray(jax.random.normal(key, (RUN["laplace_draws"], vector.size)), np.float64)
    away = np.linalg.solve(np.linalg.cholesky(precision).T, normal.T).T
    weights = jnp.float32(np.asarray(vector, np.float64) + away)

    @jax.jit
    def gains(weights):
        """Log likelihood of each draw less that of the mode, datum by datum: large sums would lose
        it.
        """

        def add(total, part):
            base = log_likelihood(unravel(vector), part)
            return total + jax.lax.map(
                lambda w: (log_likelihood(unravel(w), part) - base).sum(), weights
            ), None

        return jax.lax.scan(add, jnp.zeros(len(weights)), chunks)[0]

    drawn, mode = np.asarray(weights, np.float64), np.asarray(vector, np.float64)
    prior = ((mode**2).sum() - (drawn**2).sum(axis=1)) / 2
    log_weights = np.asarray(gains(weights), np.float64) + prior + (normal**2).sum(axis=1) / 2
    return found | {"log_weights": log_weights}


def microseconds(start, points):
    """Time a step of two minibatch samplers, and a whole gradient; one value a round."""
    size, found = len(points.y), {}
    for name in ("SGLD", "SGFS, identity"):
        algorithm = tuned.kernel(name, 0.0, points)
        one = on_minibatches(algorithm, size)
        found[name.split(",")[0]] = of_step(one, algorithm.init(start), points, RUN["timed_steps"])
    return found | {
        "whole gradient": of_step(downhill, start, in_chunks(points), max(2, 2_000_000 // size))
    }


def downhill(key, weights, chunks):
    """A step that needs the whole gradient, and hardly moves."""
    del key

    def add(total, part):
        slope = jax.grad(lambda w: log_likelihood(w, part).sum())(weights)
        return jax.tree.map(jnp.add, total, slope), None

    slope = jax.lax.scan(add, jax.grad(log_prior)(weights), chunks)[0]
    return jax.tree.map(lambda a, b: a + 1e-9 * b, weights, slope)


def on_minibatches(algorithm, size):
    """A step that draws its own minibatch."""

    def step(key, state, points):
        key_rows, key_step = jax.random.split(key)
        chosen = jax.random.randint(key_rows, (RUN["batch_size"],), 0, size)
        return algorithm.step(key_step, state, take(points, chosen), 1e-2 / size)

    return step


def of_step(step, state, points, length):
    """Time a step by what twice as many steps take longer."""

    @jax.jit
    def loop(key, state, points, count):
        return jax.lax.fori_loop(
            0, count, lambda i, s: step(jax.random.fold_in(key, i), s, points), state
        )

    def seconds(count):
        began = time.process_time()
        jax.block_until_ready(loop(jax.random.key(0), state, points, count))
        return time.process_time() - began

    seconds(1)  # compiles
    return [
        1e6 * max(seconds(2 * length) - seconds(length), 1e-9) / length
        for _ in range(RUN["rounds"])
    ]


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
        found["tuning"] = {"0": {at: tuned.short(run) for at, run in drawn["tuning"]["0"].items()}}
        found["seconds"] = float(drawn["seconds"])
        found["chosen"] = [int(place) for place in drawn["chosen"]]
    if "weights" not in drawn:
        return found
    p = tuned.probabilities(drawn["weights"], x[: RUN["num_points"]])
    every = max(1, p.shape[1] // 125)
    of_test = tuned.probabilities(jax.tree.map(lambda a: a[:, ::every], drawn["weights"]), x)
    found |= tuned.scored(of_test, y) | {
        "p_of_chains": tuned.rounded(p.mean(axis=1, dtype=np.float64))
    }
    found |= {"spread": tuned.spread(p)}
    if "stats" in drawn:
        found["check"] = shared.diagnosed(shared.run_of(drawn), p[..., ::10])
        return found | tuned.gate(p[..., ::10], np.asarray(drawn["stats"]["log_density"]))
    return found | tuned.gate(p[..., ::10], tuned.log_densities(drawn["weights"], points))


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each size: times, k-hats, and where there is one the reference and the
    samplers.
    """
    settings = units()

    def of(size, arm):
        return [
            scored[name]
            for name, one in settings.items()
            if (one["size"], one["arm"]) == (size, arm)
        ]

    def row(size):
        found = {"size": size, **of(size, TIMES)[0], "laplace": of(size, LAPLACE)}
        if str(size) not in RUN["reference"]:
            return found
        reference = of(size, REFERENCE)[0]
        truth = np.array(reference["p_of_chains"])
        halves = tuned.distance(truth[:2], truth[2:])
        limit = shrunk(RUN["limit_at_500"], size)
        samplers = [
            tuned.row(arm, of(size, arm), reference, [0.0], [times / size for times in grid], limit)
            for arm, grid in RUN["times_size"].items()
        ]
        kept = {entry: value for entry, value in reference.items() if entry != "p_of_chains"}
        reference = {**kept, "tv": halves[0], "tv_chance": halves[1]}
        return found | {"limit": limit, "reference": reference, "samplers": samplers}

    return [row(size) for size in RUN["sizes"]]
