"""The hierarchical posterior cut into three regions, by which layer's group standard deviation is
the largest.

The three standard deviations have one hyperprior, so each region has a third of the prior.
"""

from helpers import data, densities, hierarchical, mcmc, networks

import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.problems import moons_redrawn

LAYERS = ("Dense_0", "Dense_1", "Dense_2")  # region i: that of layer i is the largest
HYPERPRIORS = {
    "HalfNormal(1)": tfd.HalfNormal(1.0),
    "HalfNormal(5)": tfd.HalfNormal(5.0),
    "HalfCauchy(1)": tfd.HalfCauchy(0.0, 1.0),
}
NETWORK = networks.MLP()


def observed(redraw, num_tasks, power=1.0):
    """Return training points of the sources' tasks or a redraw, the likelihood at a power."""
    own = redraw == "sources"
    tasks = data.source_moons() if own else moons_redrawn.drawn(redraw, num_tasks=num_tasks)
    return densities.observe(tasks.x_train, tasks.y_train, weight=power)


def starts(key, num_tasks, widest, scale, sd):
    """Draw starts N(0, scale), [chain]: each begins with its layer of ``widest`` the widest."""
    shapes = hierarchical.shapes(NETWORK, num_tasks, 2)
    drawn = mcmc.normal_starts(key, shapes, (len(widest),), scale)
    is_widest = np.arange(3) == np.array(widest)[:, None]
    at = np.where(is_widest, np.log(sd["widest"]), np.log(sd["others"]))
    drawn["log_sd"] = {layer: np.float32(at[:, i]) for i, layer in enumerate(LAYERS)}
    return drawn
