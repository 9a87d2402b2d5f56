"""The log densities of ``helpers.densities`` as models of NumPyro."""

from helpers import networks
from helpers.densities import Observed

import flax.linen as nn
import numpyro
import numpyro.distributions as dist
from numpyro.contrib.module import random_flax_module


def _network(network, x, scales):
    """A network whose weights and biases are sites, normal with a scale per layer."""
    shapes = networks.parameter_shapes(network, x.shape[-1])["params"]
    names = [(i, name) for i in range(len(shapes)) for name in shapes[f"Dense_{i}"]]
    prior = {f"Dense_{i}.{name}": dist.Normal(0.0, scales[i]) for i, name in names}
    return random_flax_module("net", network, prior=prior, input_shape=x.shape)


def flat_model(network: nn.Module, observed: Observed, batch_size: int | None = None) -> None:
    """State ``densities.flat_log_density`` in NumPyro, for one task whose labels are all seen.

    With a batch size its log density is an unbiased estimate: that of some points, drawn without
    replacement, with their log likelihood multiplied by all points over theirs.
    """
    net = _network(network, observed.x, observed.prior_scales)
    of_label = dist.BernoulliLogits if network.num_outputs == 1 else dist.CategoricalLogits
    size = observed.y.shape[0]
    with numpyro.plate("point", size, subsample_size=batch_size) as index:
        x, y = observed.x, observed.y
        if batch_size not in (None, size):
            x, y = x[index], y[index]
        numpyro.sample("y", of_label(net(x)), obs=y)


def regression_model(network: nn.Module, observed: Observed, noise_scale: float = 0.5) -> None:
    """State ``densities.regression_log_density`` with a normal prior in NumPyro, for one task.

    Its sites are ``net/Dense_0.kernel`` and so on, and ``noise``, whose unconstrained value is
    ``log_noise``.
    """
    net = _network(network, observed.x, observed.prior_scales)
    noise = numpyro.sample("noise", dist.HalfCauchy(noise_scale))
    with numpyro.plate("point", observed.y.shape[0]):
        numpyro.sample("y", dist.Normal(net(observed.x), noise), obs=observed.y)
