"""Rotated moons drawn again by name, and the log densities of the book's networks on them.

Data set i has the key of the name ("data", i) everywhere, so that arms of different results pair.
"""

from helpers import common, data, densities, hierarchical, networks

import jax

SEED = 3001  # of the data
NUM_TEST = 500
NETWORK = networks.MLP()
FLAT, OF_LABELS = densities.flat_log_density(NETWORK), densities.label_log_likelihood(NETWORK)
HIERARCHICAL, LOGITS = hierarchical.log_density(NETWORK), hierarchical.logits(NETWORK)


def drawn(*names, num_tasks=18, num_train=50, noise=0.3):
    """Draw a data set of rotated moons by its name."""
    return _rotated_moons(common.key(SEED, "data", *names), num_tasks, num_train, NUM_TEST, noise)


_rotated_moons = jax.jit(data.rotated_moons, static_argnums=range(1, 5))
optimum = jax.jit(lambda tasks: data.bayes_optimum(tasks, tasks.x_test))
