"""What a thousand to a million data cost a minibatch sampler and NUTS, and what equal numbers of gradients buy.

Times are of one step in a compiled loop: two lengths are timed and subtracted. The whole gradient goes through
the data in chunks, so that its memory does not grow. Errors are distances from a long NUTS run.
"""

from helpers import data, densities, diagnostics, mcmc, metrics, networks, predict, sgfs, sgmcmc

import time

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import store
from blackjax.sgmcmc import gradients

SETTINGS = {
    "seed": 7002,
    "sizes": [1000, 10_000, 100_000, 1_000_000],
    "sampled": [1000, 10_000],  # by NUTS too
    "chunk": 1000,
    "timed_steps": 4000,
    "rounds": 5,
    "batch_size": 50,
    "steps": 80_000,  # of a minibatch sampler, each of four chains: 4 million per-datum gradients
    "num_draws": 200,
    "num_points": 500,
    "num_test": 20_000,
    "reference": [[200, 500, 6], [150, 150, 5]],  # of each sampled size: warm-up, draws, tree depth
    "times_size": {"SGLD": [0.005, 0.02, 0.08], "SGFS": [0.05, 0.2, 0.8]},  # step size times number of data
}
NETWORK = networks.MLP()


def log_prior(weights):
    """N(0, 1) on every weight."""
    return densities.normal_log_prior(weights, jnp.ones(3))


def log_likelihood(weights, point):
    """Of one labelled point, or of several."""
    return densities.bernoulli_log_likelihood(NETWORK.apply(weights, point.x), point.y)


def in_chunks(points):
    """The data with leading axes [chunk, datum]: beyond what a core's cache holds a datum costs several times more."""
    return jax.tree.map(lambda a: a.reshape(-1, SETTINGS["chunk"], *a.shape[1:]), points)


def whole_gradient(weights, points):
    """The gradient of the log posterior, chunk by chunk."""

    def add(total, part):
        slope = jax.grad(lambda w: log_likelihood(w, part).sum())(weights)
        return jax.tree.map(jnp.add, total, slope), None

    return jax.lax.scan(add, jax.grad(log_prior)(weights), in_chunks(points))[0]


def microseconds(step, state, points, length):
    """Time a step by what twice as many steps take longer; one value a round."""

    @jax.jit
    def loop(key, state, points, count):
        return jax.lax.fori_loop(0, count, lambda i, s: step(jax.random.fold_in(key, i), s, points), state)

    def seconds(count):
        begin = time.process_time()
        jax.block_until_ready(loop(jax.random.key(0), state, points, count))
        return time.process_time() - begin

    seconds(1)
    return [1e6 * max(seconds(2 * length) - seconds(length), 1e-9) / length for _ in range(SETTINGS["rounds"])]


def on_minibatches(algorithm, size):
    """A step that draws its own minibatch."""

    def step(key, state, points):
        key_rows, key_step = jax.random.split(key)
        rows = jax.random.randint(key_rows, (SETTINGS["batch_size"],), 0, size)
        return algorithm.step(key_step, state, jax.tree.map(lambda a: a[rows], points), 1e-2 / size)

    return step


def main():
    keys = jax.random.split(jax.random.key(SETTINGS["seed"]), 4 * len(SETTINGS["sizes"]))
    rows = []
    for size, (key_data, key_start, key_reference, key_run) in zip(SETTINGS["sizes"], keys.reshape(-1, 4), strict=True):
        tasks = data.rotated_moons(key_data, 1, size, SETTINGS["num_test"], 0.2)
        points = data.Points(tasks.x_train[0], tasks.y_train[0])
        x_test, y_test = tasks.x_test[0], tasks.y_test[0]
        best = float(metrics.negative_log_likelihood(data.bayes_optimum(tasks, tasks.x_test, 0.2)[0], y_test))
        shapes = jax.eval_shape(NETWORK.init, key_start, points.x[:2])
        starts = mcmc.normal_starts(key_start, shapes, (4,))
        slope = gradients.grad_estimator(log_prior, log_likelihood, size)
        samplers = {"SGLD": blackjax.sgld(slope), "SGFS": sgfs.sgfs(log_prior, log_likelihood, size)}
        of_points = jax.jit(lambda d, x=x_test: predict.probabilities(NETWORK.apply, d, x[: SETTINGS["num_points"]]))
        mean_test = jax.jit(
            lambda d, x=x_test: jax.lax.map(
                lambda w: jax.nn.sigmoid(NETWORK.apply(w, x)), jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), d)
            ).mean(axis=0)
        )
        first, times = jax.tree.map(lambda a: a[0], starts), {}
        for name, algorithm in samplers.items():
            state = algorithm.init(first)
            times[name] = microseconds(on_minibatches(algorithm, size), state, points, SETTINGS["timed_steps"])

        def whole(key, weights, points):
            del key
            return jax.tree.map(lambda a, b: a + 1e-9 * b, weights, whole_gradient(weights, points))

        times["whole gradient"] = microseconds(whole, first, points, max(2, 2_000_000 // size))
        print(size, {name: round(float(np.median(t)), 1) for name, t in times.items()}, flush=True)

        truth = None
        entry = {"size": size, "bayes_nll": best, "microseconds": times, "runs": []}

        def add(name, step_size, spent, draws, entry=entry, y_test=y_test, best=best):
            p = np.asarray(of_points(draws))
            found = diagnostics.summarize(p[..., ::10])
            run = {
                "sampler": name,
                "step_size": step_size,
                "gradients": spent,  # per-datum, of one chain
                "tv": -1.0 if truth is None else float(np.abs(p.mean(axis=(0, 1)) - truth).mean()),
                "ess": float(np.quantile(np.minimum(found.ess_bulk, found.ess_tail), 0.05)),
                "rhat": float(np.quantile(found.rhat, 0.99)),
                "excess_nll": float(metrics.negative_log_likelihood(mean_test(draws), y_test)) - best,
            }
            entry["runs"].append(run)
            print(size, *(f"{v:.4g}" if isinstance(v, float) else v for v in run.values()), flush=True)

        def thinned(draws, count=SETTINGS["num_draws"]):
            return jax.tree.map(lambda a: a[:, :: max(1, a.shape[1] // count)], draws)

        budget = SETTINGS["steps"] * SETTINGS["batch_size"]
        if size in SETTINGS["sampled"]:
            chunks = in_chunks(points)

            def posterior(w, chunks=chunks):
                return log_prior(w) + jax.lax.map(lambda part: log_likelihood(w, part).sum(), chunks).sum()

            num_warmup, num_samples, depth = SETTINGS["reference"][SETTINGS["sampled"].index(size)]
            lengths = {"num_warmup": num_warmup, "num_samples": num_samples, "max_tree_depth": depth}
            long = mcmc.sample(key_reference, posterior, starts, **lengths)
            p = np.asarray(of_points(long.draws))
            truth = p[2:].mean(axis=(0, 1))  # half of the chains tells the reference's own error
            per_draw = float(long.stats.integration_steps.mean())
            steps = num_warmup + num_samples
            add(
                "NUTS, long, its halves",
                0.0,
                int(steps * per_draw * size),
                thinned(jax.tree.map(lambda a: a[:2], long.draws)),
            )
            truth = p.mean(axis=(0, 1))
            affordable = int(budget / size / (2**depth - 1))  # trajectories
            warmup = max(20, affordable // 2)
            short = mcmc.sample(
                jax.random.fold_in(key_run, len(samplers)),
                posterior,
                starts,
                num_warmup=warmup,
                num_samples=max(affordable - warmup, 5),
                max_tree_depth=depth,
            )
            spent = int((warmup + short.stats.diverging.shape[1]) * short.stats.integration_steps.mean() * size)
            add("NUTS", 0.0, spent, thinned(short.draws))
        for number, (name, algorithm) in enumerate(samplers.items()):
            wanted = SETTINGS["times_size"][name] if truth is not None else SETTINGS["times_size"][name][1:2]
            for times_size in wanted:
                draws = sgmcmc.sample(
                    jax.random.fold_in(key_run, number),
                    algorithm,
                    starts,
                    points,
                    batch_size=SETTINGS["batch_size"],
                    step_size=times_size / size,
                    num_warmup=SETTINGS["steps"] // 3,
                    num_samples=SETTINGS["num_draws"],
                    thin=SETTINGS["steps"] * 2 // 3 // SETTINGS["num_draws"],
                )
                add(name, times_size / size, budget, draws)
        rows.append(entry)
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
