"""Microseconds per value and gradient of the hierarchical log density, beside the floor of plain C
on this machine.

Side by side in one run, in turns, so that a busy machine slows both alike; the medians and their
ratio are what counts. Needs a C compiler. Argument: [rounds]. `make benchmark NAMES=gradient` sets
what XLA needs.
"""

from helpers import data, densities, hierarchical, mcmc, networks

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

NETWORK = networks.MLP()


def plain(position, labelled):
    """The same density with one vmapped network, as a first version would have it."""
    logits = jax.vmap(NETWORK.apply)(hierarchical.task_weights(position, 18), labelled.x)
    likelihood = densities.bernoulli_log_likelihood(logits, labelled.y).sum()
    return likelihood + hierarchical.log_prior(position, tfd.HalfNormal(1.0))


def timer_of(function, position, repetitions=4000):
    """Return a function that times ``repetitions`` values and gradients in one compiled loop, in
    microseconds each.
    """

    @jax.jit
    def run(position):
        def step(carry, _):
            position, total = carry
            value, slope = jax.value_and_grad(function)(position)
            return (jax.tree.map(lambda a, b: a + 1e-7 * b, position, slope), total + value), None

        return jax.lax.scan(step, (position, 0.0), length=repetitions)[0]

    jax.block_until_ready(run(position))

    def once():
        begin = time.perf_counter()
        jax.block_until_ready(run(position))
        return 1e6 * (time.perf_counter() - begin) / repetitions

    return once


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    tasks = data.source_moons()
    labelled = densities.observe(tasks.x_train, tasks.y_train)
    position = mcmc.normal_starts(jax.random.key(1), hierarchical.shapes(NETWORK, 18, 2), ())
    ours = hierarchical.log_density(NETWORK)
    np.testing.assert_allclose(plain(position, labelled) - ours(position, labelled), 0.0, atol=0.01)
    folder = tempfile.mkdtemp()
    source = Path(__file__).with_name("floor.c")
    subprocess.run(
        ["cc", "-O3", "-march=native", "-ffast-math", source, "-o", f"{folder}/floor", "-lm"],
        check=True,
    )

    def floor():
        return float(
            subprocess.run(
                [f"{folder}/floor", "20000"], check=True, capture_output=True
            ).stdout.split()[0]
        )

    runs = {
        "plain C": floor,
        "helpers.hierarchical": timer_of(lambda p: ours(p, labelled), position),
        "one vmapped network": timer_of(lambda p: plain(p, labelled), position),
    }
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(run())
    base = np.median(times["plain C"])
    for name, values in times.items():
        middle = np.median(values)
        print(f"{name:22s} {middle:7.1f} us, {middle / base:5.1f} x the floor")


if __name__ == "__main__":
    main()
