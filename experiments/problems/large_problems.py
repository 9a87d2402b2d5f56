"""What ``fit`` fits: a problem returns a log density of a position and of data, shapes of a
position, and the data.
"""

from helpers import common, densities, hierarchical, networks
from helpers.data import rotated_moons, two_moons

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.problems import sharded_sums

PRIOR_SCALES = [0.5, 1.0, 6.0]


def moons(num_rows: int) -> tuple[Callable, Any, densities.Observed]:
    """One network on so many rows of two moons; rows are what is divided."""
    points = two_moons(common.key(11, "moons"), num_rows)
    network, scales = networks.MLP(), jnp.array(PRIOR_SCALES)
    of_labels = densities.label_log_likelihood(network)
    total = sharded_sums.summed(lambda params, _, observed: of_labels(params, observed).sum())

    def log_density(params, observed):
        return densities.log_prior(params, scales) + total(params, None, observed)

    observed = jax.tree.map(np.asarray, densities.observe(points.x, points.y))
    return log_density, networks.parameter_shapes(network, 2), observed


def tasks(num_tasks: int, gathered: bool = True) -> tuple[Callable, Any, densities.Observed]:
    """Return ``hierarchical.log_density`` on so many rotated moons; tasks are what is divided.

    The gradient of each task's own weights is gathered on all devices, for a sampler, or stays
    where it is.
    """
    drawn = rotated_moons(common.key(11, "tasks"), num_tasks, num_test=1)
    network, hyperprior = networks.MLP(), tfd.HalfNormal(1.0)
    of_tasks = hierarchical.total_log_likelihood(network)

    def part(common, offset, observed):
        weights = hierarchical.task_weights({**common, "offset": offset}, observed.y.shape[0])
        of_offset = hierarchical.log_prior({"mean": {}, "log_sd": {}, "offset": offset}, hyperprior)
        return of_offset + of_tasks(weights, observed)

    total = sharded_sums.summed(part, gathered)

    def log_density(position, observed):
        common = {name: position[name] for name in ("mean", "log_sd")}
        of_common = hierarchical.log_prior({**common, "offset": {}}, hyperprior)
        return of_common + total(common, position["offset"], observed)

    observed = jax.tree.map(np.asarray, densities.observe(drawn.x_train, drawn.y_train))
    return log_density, hierarchical.shapes(network, num_tasks, 2), observed
