"""How the time of one gradient of the hierarchical log density grows with tasks, points and width.

Seconds belong to the machine that ran this; the page is about their ratios. So every size is timed
in turns with the base, on the same core within the same seconds: units may run on different
machines.
"""

from helpers import common, densities, hierarchical, mcmc, networks

import jax
import numpy as np

from experiments.methods import gradient_timer

SETTINGS = {
    "seed": 4002,
    "tasks": [18, 60, 180, 600, 1800],
    "points": [50, 150, 500, 1500, 5000],
    "width": [5, 10, 20, 50, 100],
    "base": {"tasks": 18, "points": 50, "width": 5},
    "seconds_a_run": 0.3,
    "runs": 9,
}


def units():
    """A size each."""
    return {
        f"{what} {value}": {"what": what, "value": value, "runs": SETTINGS["runs"]}
        for what in SETTINGS["base"]
        for value in SETTINGS[what]
    }


# The base against itself: any machine has to find that it is as slow.
SMALL = units()["tasks 18"]


def problem(tasks, points, width):
    """Return a density, a position and data of one size."""
    key_x, key_y, key_position = (
        common.key(SETTINGS["seed"], part) for part in ("x", "y", "position")
    )
    x = jax.random.normal(key_x, (tasks, points, 2))
    observed = densities.observe(x, jax.random.bernoulli(key_y, 0.5, x.shape[:2]).astype(int))
    network = networks.MLP(hidden=(width, width))
    position = mcmc.normal_starts(key_position, hierarchical.shapes(network, tasks, 2), ())
    return hierarchical.log_density(network), position, observed


def unit(what, value, runs):
    """Time gradients of one size and of the base in turns."""
    base = SETTINGS["base"]
    at_size = problem(**{**base, what: value})
    of_base, of_size = gradient_timer.timer(*problem(**base)), gradient_timer.timer(*at_size)
    seconds = np.array([(of_base(), of_size()) for _ in range(runs)])
    return {
        "seconds": seconds,
        "unknowns": np.array(sum(leaf.size for leaf in jax.tree.leaves(at_size[1]))),
    }


def score(drawn, what, value, **_):
    """Microseconds of every run, and how many times slower than the base the size is."""
    of_base, of_size = 1e6 * drawn["seconds"].T
    times_slower = of_size / of_base
    return {
        "what": what,
        "value": value,
        "unknowns": int(drawn["unknowns"]),
        "microseconds": of_size.tolist(),
        "base_microseconds": of_base.tolist(),
        "times_slower": float(np.median(times_slower)),
        # of a median: the spread comes from what else the machine does, whose tails are long
        "times_slower_error": float(
            np.sqrt(np.pi / 2) * times_slower.std(ddof=1) / np.sqrt(len(times_slower))
        ),
    }
