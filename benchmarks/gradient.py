"""Microseconds per value and gradient of the hierarchical log density, beside the floor of plain C
on this machine.

Side by side in one run, in turns, so that a busy machine slows both alike; the medians and their
ratio are what counts. Needs a C compiler. Argument: [rounds]. `make benchmark NAMES=gradient` sets
what XLA needs.
"""

from helpers import data, densities, hierarchical, mcmc

import sys
import time

import jax
import numpy as np

from benchmarks import floor
from experiments.pages.scaling_out.many_chains import NETWORK, all_at_once


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
    """Time the density as the book has it and with one vmapped network, beside plain C."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    tasks = data.source_moons()
    labelled = densities.observe(tasks.x_train, tasks.y_train)
    position = mcmc.normal_starts(jax.random.key(1), hierarchical.shapes(NETWORK, 18, 2), ())
    ours = hierarchical.log_density(NETWORK)
    np.testing.assert_allclose(
        all_at_once(position, labelled) - ours(position, labelled), 0.0, atol=0.01
    )
    with floor.compiled() as plain_c:
        runs = {
            "plain C": plain_c,
            "helpers.hierarchical": timer_of(lambda p: ours(p, labelled), position),
            "one vmapped network": timer_of(lambda p: all_at_once(p, labelled), position),
        }
        times = floor.in_turns(runs, rounds)
    base = np.median(times["plain C"])
    for name, values in times.items():
        middle = np.median(values)
        print(f"{name:22s} {middle:7.1f} us, {middle / base:5.1f} x the floor")


if __name__ == "__main__":
    main()
