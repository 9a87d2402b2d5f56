"""What the page on variational inference and its experiments share: NumPyro's models, a data set,
log weights.
"""

from helpers import checks, networks, svi
from helpers.data import Points, unit
from helpers.densities import Observed

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Key
from numpyro.contrib.module import random_flax_module
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoLaplaceApproximation


def _network(network, x, scales):
    """A network whose weights and biases are sites, normal with a scale per layer."""
    shapes = networks.parameter_shapes(network, x.shape[-1])["params"]
    prior = {
        f"Dense_{i}.{name}": dist.Normal(0.0, scales[i])
        for i in range(len(shapes))
        for name in shapes[f"Dense_{i}"]
    }
    return random_flax_module("net", network, prior=prior, input_shape=x.shape)


def flat_model(network: nn.Module, observed: Observed, batch_size: int | None = None) -> None:
    """State the model of ``densities.flat_log_density`` in NumPyro, for one task whose labels are
    all seen.

    With a batch size its log density is an unbiased estimate: that of some points, drawn without
    replacement, with their log likelihood multiplied by all points over theirs.
    """
    net = _network(network, observed.x, observed.prior_scales)
    of_label = dist.BernoulliLogits if network.num_outputs == 1 else dist.CategoricalLogits
    size = observed.y.shape[0]
    with numpyro.plate("point", size, subsample_size=batch_size) as index:
        x, y = (
            (observed.x, observed.y)
            if batch_size in (None, size)
            else (observed.x[index], observed.y[index])
        )
        numpyro.sample("y", of_label(net(x)), obs=y)


def regression_model(network: nn.Module, observed: Observed, noise_scale: float = 0.5) -> None:
    """State the model of ``densities.regression_log_density`` with a normal prior in NumPyro, for
    one task.

    Its sites are ``net/Dense_0.kernel`` and so on, and ``noise``, whose unconstrained value is
    ``log_noise``.
    """
    net = _network(network, observed.x, observed.prior_scales)
    noise = numpyro.sample("noise", dist.HalfCauchy(noise_scale))
    with numpyro.plate("point", observed.y.shape[0]):
        numpyro.sample("y", dist.Normal(net(observed.x), noise), obs=observed.y)


def log_weights(
    key: Key[Array, ""], model: Callable, guide: Callable, params: dict, args: tuple, num_draws: int
) -> Float[Array, " draw"]:
    """Return log p(y, w) - log q(w) at draws w of a fitted guide: their mean is the ELBO, their
    tail gives k-hat.

    ValueError: no draws; NumPyro's Laplace guide, which is a point while it is fitted.
    """
    checks.count(num_draws=num_draws)
    key_set_up, key_draw = jax.random.split(key)
    with svi.standard():
        ready = svi.made(key_set_up, model, guide, args)
        if isinstance(ready, AutoLaplaceApproximation):
            raise ValueError(
                "guide: given AutoLaplaceApproximation, whose ELBO is that of a point; expected another"
            )
        elbo = Trace_ELBO()
        return -jax.lax.map(
            lambda k: elbo.loss(k, params, model, ready, *args),
            jax.random.split(key_draw, num_draws),
        )


def spiral(
    key: Key[Array, ""], points_per_class: int = 100, noise: float = 0.2, num_classes: int = 3
) -> Points:
    """Draw arms of a spiral, one a class: radii evenly from 0 to 1/2, angle 4 y + 8 r plus N(0,
    noise), in radians.

    A point is ``r (sin, cos)`` of its angle, so arm y starts at angle 4 y and turns by 4.

    ValueError: no points or classes, a noise that is negative or not finite.
    """
    checks.count(points_per_class=points_per_class, num_classes=num_classes)
    checks.number(noise=noise, closed=True)
    radius = jnp.tile(jnp.linspace(0.0, 0.5, points_per_class), num_classes)
    y = jnp.repeat(jnp.arange(num_classes), points_per_class)
    angle = 4.0 * y.astype(radius.dtype) + 8 * radius + noise * jax.random.normal(key, radius.shape)
    return Points(radius[:, None] * unit(jnp.pi / 2 - angle), y)
