"""Microseconds per step of SGFS on its source's problem, beside what it is made of and plain C on
this machine.

Side by side in one run, in turns, on one thread, in processor time, so that a busy machine slows
all alike. Pin it to a core, as XLA may use more: taskset -c 0 make benchmark NAMES=sgfs. Argument:
[rounds]. Needs a C compiler for the floor, which is a gradient of another network (floor.c): it
says how fast the machine is.
"""

from helpers import data, densities, mcmc, networks, sgfs, sgmcmc

import sys
import time

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.base import SamplingAlgorithm
from blackjax.sgmcmc import gradients

from benchmarks import floor
from experiments.problems.source_moons import fisher_source_moons

NETWORK, SIZE, BATCH, STEPS = networks.MLP(), 500, 50, 40_000


def log_prior(weights):
    """N(0, 1) on every weight."""
    return densities.log_prior(weights, jnp.ones(3))


def log_likelihood(weights, point):
    """Of one point."""
    return densities.bernoulli_log_likelihood(NETWORK.apply(weights, point.x), point.y)


def timer_of(kernel, start, points):
    """Return a function that times ``sgmcmc``'s loop, less the call's own cost, in microseconds a
    step.
    """

    def seconds(num_samples):
        begin = time.process_time()
        sizes = {
            "batch_size": BATCH,
            "step_size": 1e-5,
            "num_warmup": 0,
            "num_samples": num_samples,
            "thin": 100,
        }
        sgmcmc.sample(jax.random.key(2), kernel, start, points, **sizes)
        return time.process_time() - begin

    for count in (1, 1 + STEPS // 100):
        seconds(count)  # compiles
    return lambda: 1e6 * (seconds(1 + STEPS // 100) - seconds(1)) / STEPS


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    tasks = fisher_source_moons(jax.random.key(0))
    points = data.Points(tasks.x_train[0], tasks.y_train[0])
    start = mcmc.normal_starts(
        jax.random.key(1), jax.eval_shape(NETWORK.init, jax.random.key(1), points.x), (1,)
    )
    slope = gradients.grad_estimator(log_prior, log_likelihood, SIZE)
    descent = SamplingAlgorithm(
        lambda position, key: position,
        lambda key, w, batch, size: jax.tree.map(lambda a, b: a + size * b, w, slope(w, batch)),
    )
    with floor.compiled() as plain_c:
        runs = {
            "plain C, another gradient": plain_c,
            "minibatch and its gradient": timer_of(descent, start, points),
            "SGLD": timer_of(blackjax.sgld(slope), start, points),
            "SGFS": timer_of(sgfs.sgfs(log_prior, log_likelihood, SIZE), start, points),
            "SGFS, proportional": timer_of(
                sgfs.sgfs(log_prior, log_likelihood, SIZE, preconditioner=sgfs.PROPORTIONAL),
                start,
                points,
            ),
        }
        times = floor.in_turns(runs, rounds)
    for name, values in times.items():
        middle = np.median(values)
        ratio = np.median(np.array(values) / np.array(times["minibatch and its gradient"]))
        print(
            f"{name:27s} {middle:6.1f} us ({min(values):.1f} to {max(values):.1f}), "
            f"{ratio:4.1f} x the gradient"
        )


if __name__ == "__main__":
    main()
