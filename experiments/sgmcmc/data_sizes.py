"""What a thousand to a million data cost a minibatch sampler and NUTS, and what equal numbers of gradients buy.

Times are of one step in a compiled loop: two lengths are timed and subtracted. The whole gradient goes through
the data in chunks, so that its memory does not grow. Errors are distances from a long NUTS run.
"""

from helpers import data, diagnostics, hierarchical, mcmc, metrics, networks, sgfs, sgmcmc
from helpers.common import take

import time

import blackjax
import jax
import jax.numpy as jnp
from blackjax.sgmcmc import gradients

from experiments import shared
from experiments.sgmcmc.step_sizes import against, compared_later, hundred, log_likelihood, log_prior, probabilities

SETTINGS = {
    "seed": 7002,
    "sizes": [1000, 10_000, 100_000, 1_000_000],
    "chunk": 1000,
    "timed_steps": 4000,
    "rounds": 5,
    "batch_size": 50,
    "num_chains": 4,
    "steps": 80_000,  # of a minibatch sampler, each of four chains: 4 million per-datum gradients
    "num_draws": 200,
    "num_points": 500,
    "num_test": 20_000,
    "long": {  # NUTS, of each size that it samples
        "1000": {"num_warmup": 300, "num_samples": 1000, "max_tree_depth": 12},
        "10000": {"num_warmup": 200, "num_samples": 400, "max_tree_depth": 11},
    },
    "short_depth": {"1000": 6, "10000": 5},  # of NUTS at the price of the others, which longer trees would exceed
    "times_size": {"SGLD": [0.005, 0.02, 0.08], "SGFS": [0.05, 0.2, 0.8]},  # step size times number of data
}
NETWORK = networks.MLP()
LONG, SHORT, TIMES = "NUTS, long, its halves", "NUTS", "times"
SMALL = {"size": 1000, "arm": "SGFS", "times_size": [0.8]}


def units() -> dict[str, dict]:
    """Return for each size the times, NUTS where it is sampled, and each minibatch sampler."""

    def of_size(size):
        sampled = str(size) in SETTINGS["long"]
        arms = {arm: [] for arm in ([TIMES, LONG, SHORT] if sampled else [TIMES])}
        return arms | {name: sizes if sampled else sizes[1:2] for name, sizes in SETTINGS["times_size"].items()}

    return {
        f"{size}, {arm}": {"size": size, "arm": arm, "times_size": list(times_size)}
        for size in SETTINGS["sizes"]
        for arm, times_size in of_size(size).items()
    }


def problem(size: int) -> data.Tasks:
    """Return the data, as one task."""
    return data.rotated_moons(shared.key(SETTINGS["seed"], "data", size), 1, size, SETTINGS["num_test"], 0.2)


def unit(size: int, arm: str, times_size: list[float]) -> dict:
    """Return times, or for each run weights, [chain, draw], and per-datum gradients of one chain."""
    tasks = problem(size)
    points = data.Points(tasks.x_train[0], tasks.y_train[0])
    shapes = networks.parameter_shapes(NETWORK, points.x.shape[-1])
    starts = mcmc.normal_starts(shared.key(SETTINGS["seed"], "start", size), shapes, (SETTINGS["num_chains"],))
    if arm == TIMES:
        return {"microseconds": microseconds(take(starts, 0), points)}
    if arm in (LONG, SHORT):
        return {arm: nuts(arm, starts, points)}
    key = shared.key(SETTINGS["seed"], size, arm)
    sizes = {"num_warmup": SETTINGS["steps"] // 3, "num_samples": SETTINGS["num_draws"]}
    sizes |= {"thin": SETTINGS["steps"] * 2 // 3 // SETTINGS["num_draws"], "batch_size": SETTINGS["batch_size"]}
    algorithm, spent = kernel(arm, size), SETTINGS["steps"] * SETTINGS["batch_size"]

    def run(times):
        weights = sgmcmc.sample(key, algorithm, starts, points, step_size=times / size, **sizes)
        return {"weights": weights, "gradients": spent, "step_size": times / size}

    return {f"{times:g}": run(times) for times in times_size}


def kernel(name, size):
    """Return a minibatch sampler."""
    if name == "SGFS":
        return sgfs.sgfs(log_prior, log_likelihood, size)
    return blackjax.sgld(gradients.grad_estimator(log_prior, log_likelihood, size))


def in_chunks(points):
    """The data with leading axes [chunk, datum]: beyond what a core's cache holds a datum costs several times more."""
    return jax.tree.map(lambda a: a.reshape(-1, SETTINGS["chunk"], *a.shape[1:]), points)


def log_density(weights, chunks):
    """Of all data, chunk by chunk: each chunk's gradient is found with its value, while it is in the cache."""
    each = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(chunks.y), *a.shape)), weights)
    return log_prior(weights) + _of_chunks(each, chunks)


_of_chunks = hierarchical.sum_over_tasks(lambda weights, part: log_likelihood(weights, part).sum())


def nuts(arm, starts, points):
    """NUTS, long, or for as many gradients as the others have: then trees are cut and warm-up is short."""
    size = len(points.y)
    sizes = SETTINGS["long"][str(size)]
    if arm == SHORT:
        depth = SETTINGS["short_depth"][str(size)]
        affordable = SETTINGS["steps"] * SETTINGS["batch_size"] // size // (2**depth - 1)  # trajectories
        warmup = max(20, affordable // 2)  # the least that can be, as are the draws
        sizes = {"num_warmup": warmup, "num_samples": max(affordable - warmup, 8), "max_tree_depth": depth}
    key = shared.key(SETTINGS["seed"], size, arm)
    posterior = mcmc.sample(key, log_density, starts, data=in_chunks(points), **sizes)
    steps = posterior.stats.integration_steps.sum() + sizes["num_warmup"] * posterior.warmup.mean_steps.sum()
    spent = int(steps / SETTINGS["num_chains"] * size)
    diagnosis = shared.kept_of(posterior)
    return {"weights": posterior.draws, "gradients": spent, "step_size": 0.0, **diagnosis}


def microseconds(start, points):
    """Time a step of each minibatch sampler, and a whole gradient; one value a round."""
    size, found = len(points.y), {}
    for name in SETTINGS["times_size"]:
        algorithm = kernel(name, size)
        found[name] = of_step(on_minibatches(algorithm, size), algorithm.init(start), points, SETTINGS["timed_steps"])
    return found | {"whole gradient": of_step(downhill, start, in_chunks(points), max(2, 2_000_000 // size))}


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
        chosen = jax.random.randint(key_rows, (SETTINGS["batch_size"],), 0, size)
        return algorithm.step(key_step, state, take(points, chosen), 1e-2 / size)

    return step


def of_step(step, state, points, length):
    """Time a step by what twice as many steps take longer."""

    @jax.jit
    def loop(key, state, points, count):
        return jax.lax.fori_loop(0, count, lambda i, s: step(jax.random.fold_in(key, i), s, points), state)

    def seconds(count):
        began = time.process_time()
        jax.block_until_ready(loop(jax.random.key(0), state, points, count))
        return time.process_time() - began

    seconds(1)  # compiles
    return [1e6 * max(seconds(2 * length) - seconds(length), 1e-9) / length for _ in range(SETTINGS["rounds"])]


def score(drawn: dict, size: int, arm: str, times_size: list[float]) -> dict:
    """Return times and the Bayes optimum, or the scores of each run."""
    tasks = problem(size)
    best = data.bayes_optimum(tasks, tasks.x_test, 0.2)[0]
    optimum = float(metrics.negative_log_likelihood(best, tasks.y_test[0]))
    if arm == TIMES:
        return {"bayes_nll": optimum, "microseconds": {name: t.tolist() for name, t in drawn["microseconds"].items()}}
    names = [f"{times:g}" for times in times_size] or [arm]
    runs = [{"sampler": arm} | of_run(drawn[name], tasks.x_test[0], tasks.y_test[0], optimum) for name in names]
    return {"runs": runs}


def of_run(run, x, y, optimum):
    """Score one run at fresh points."""
    p = probabilities(run["weights"], x[: SETTINGS["num_points"]])
    p_test = probabilities(hundred(run["weights"]), x)
    kept = {
        "step_size": float(run["step_size"]),
        "gradients": int(run["gradients"]),
        **compared_later(p),
        "excess_nll": float(metrics.negative_log_likelihood(p_test.mean(axis=(0, 1)), y)) - optimum,
        "excess_nll_error": diagnostics.nll_error(p_test, y),
        "check": {},
    }
    if "stats" in run:
        posterior = shared.run_of(run)
        kept["check"] = shared.diagnosed(posterior, p[..., ::20])
    return kept


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each size: times, and every run, with its distance from the long one where there is one."""
    settings = units()

    def row(size):
        found = {one["arm"]: scored[name] for name, one in settings.items() if one["size"] == size}
        times = found.pop(TIMES)
        reference = found[LONG]["runs"][0] if LONG in found else None
        runs = [with_distance(run, reference) for one in found.values() for run in one["runs"]]
        return {"size": size, **times, "runs": runs}

    return [row(size) for size in SETTINGS["sizes"]]


def with_distance(run, reference):
    """A run as it is kept; -1 where there is no reference."""
    distance = {"tv": -1.0} if reference is None else against(run, reference)
    return {name: value for name, value in run.items() if name not in ("p_of_chains", "p", "p_error")} | distance
