"""How the time of one gradient of the hierarchical log density grows with tasks, points and width.

Seconds belong to the machine that ran this; their ratios are what the page is about.
"""

from helpers import hierarchical, mcmc, networks

import time

import jax
import jax.numpy as jnp
import numpy as np
import store

SETTINGS = {
    "seed": 4002,
    "tasks": [18, 60, 180, 600, 1800],
    "points": [50, 150, 500, 1500, 5000],
    "width": [5, 10, 20, 50, 100],
    "base": {"tasks": 18, "points": 50, "width": 5},
    "seconds_a_run": 0.3,
    "runs": 5,
}


def microseconds(density, position):
    """Time gradients in compiled loops long enough for the clock; one value a run."""

    @jax.jit
    def loop(position, count):
        def step(_, position):
            slope = jax.grad(density)(position)
            return jax.tree.map(lambda a, b: a + 1e-7 * b, position, slope)

        return jax.lax.fori_loop(0, count, step, position)

    def seconds(count):
        begin = time.perf_counter()
        jax.block_until_ready(loop(position, count))
        return time.perf_counter() - begin

    seconds(1)  # compiles
    count = 4
    while seconds(count) < SETTINGS["seconds_a_run"]:
        count *= 2
    return [1e6 * seconds(count) / count for _ in range(SETTINGS["runs"])]


def main():
    rows = []
    for what in ("tasks", "points", "width"):
        for value in SETTINGS[what]:
            size = {**SETTINGS["base"], what: value}
            network = networks.MLP(hidden=(size["width"], size["width"]))
            key_x, key_y, key_position = jax.random.split(jax.random.key(SETTINGS["seed"]), 3)
            x = jax.random.normal(key_x, (size["tasks"], size["points"], 2))
            labelled = hierarchical.labelled(x, jax.random.bernoulli(key_y, 0.5, x.shape[:2]).astype(jnp.int32))
            position = mcmc.normal_starts(key_position, hierarchical.shapes(network, size["tasks"]), ())
            density = hierarchical.log_density(network)
            found = microseconds(lambda p, density=density, labelled=labelled: density(p, labelled), position)
            unknowns = sum(leaf.size for leaf in jax.tree.leaves(position))
            rows.append(
                {"name": f"{what} {value}", "what": what, "value": value, "unknowns": unknowns, "microseconds": found}
            )
            print(what, value, unknowns, round(float(np.median(found)), 1), flush=True)
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
