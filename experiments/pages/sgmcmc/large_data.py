"""What ``data_sizes`` runs on a thousand to a million data: chains, Laplace's method, clocks."""

from helpers import hierarchical, mcmc, training
from helpers.common import take

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from experiments.methods import minibatch_samplers, runs, total_variation
from experiments.methods.minibatch_samplers import log_likelihood, log_prior
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
    "limit_at_500": total_variation.LIMIT,
    "margin_at_500": total_variation.MARGIN,
    "num_points": 500,
    "num_test": 20_000,
    "reference": {
        "1000": {"num_warmup": 300, "num_samples": 1500, "max_tree_depth": 10},
        "10000": {"num_warmup": 400, "num_samples": 700, "max_tree_depth": 10},
    },
    "times_size": {  # step size times number of data
        "SGLD": doublings(0.005, 7),
        minibatch_samplers.AT_MODE: doublings(0.02),
        "SGFS, identity": doublings(0.5, 5),
    },
    "laplace": {"10000": 3, "100000": 3, "1000000": 2},  # starts
    "adam_steps": 3000,
    "newton_steps": 60,
    "laplace_draws": 2000,
}


def shrunk(at_500, size):
    """A limit in total variation, as what data leave open."""
    return at_500 * (500 / size) ** 0.5


def in_chunks(points):
    """The data, [chunk, datum]: beyond a core's cache a datum costs several times more."""
    return jax.tree.map(lambda a: a.reshape(-1, RUN["chunk"], *a.shape[1:]), points)


def log_density(weights, chunks):
    """Of all data, chunk by chunk: value and gradient together, while in the cache."""
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
    return {"weights": posterior.draws, "gradients": steps * size} | runs.kept_run(posterior)


def laplace(key, start, points):
    """Climb to a mode by Adam, then Newton; draw from the normal there, with log weights.

    Where the density curves upwards, or hardly, a step goes along the slope all the same. No draws
    if after those steps the curvature is not positive in every direction: then it is no
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
        return training.train(loss, vector, optimizer, RUN["adam_steps"])[0]

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
        """Log likelihood of each draw less that of the mode: large sums would lose it."""

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
        algorithm = minibatch_samplers.kernel(name, 0.0, points)
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
