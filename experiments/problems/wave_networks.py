"""Networks on redrawn waves: nine priors and sizes by name, their log densities and curves."""

from helpers import common, densities, networks
from helpers.densities import regression_shapes

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.problems import waves

# Those of the result ``regression/variants``.
SETTINGS = {
    "seed": 5002,
    "variants": {
        "N(0, 1), 10 tanh units": {},
        "sd 0.1": {"scale": 0.1},
        "sd 10": {"scale": 10.0},
        "2 units": {"hidden": 2},
        "100 units": {"hidden": 100},
        "ReLU": {"activation": "relu", "target_acceptance": 0.95},
        "sd learnt": {"prior": "learnt"},
        "Student t, 3 df": {"prior": "student"},
        "100 units, scaled": {"hidden": 100, "factor": 0.1},
    },
}
DEFAULTS = {"hidden": 10, "activation": "tanh", "factor": 1.0, "prior": "normal"}
DEFAULTS |= {"scale": 1.0, "target_acceptance": 0.8}


class Model(NamedTuple):
    """What a variant's units have in common: the same functions, so that they compile once."""

    network: nn.Module
    log_density: Callable  # of a position and the data, whose weights are the power
    log_likelihood: Callable  # of draws [chain, draw] and the data
    shapes: dict  # of a position
    options: dict


@cache
def build(variant: str) -> Model:
    """Return a variant's model."""
    options = DEFAULTS | SETTINGS["variants"][variant]

    def activate(z):
        return options["factor"] ** 0.5 * getattr(nn, options["activation"])(z)

    network = networks.MLP((options["hidden"],), activate, use_bias=True)
    student = options["prior"] == "student"
    unit_prior = tfd.StudentT(3.0, 0.0, 1.0) if student else tfd.Normal(0.0, 1.0)
    of_weights = densities.regression_log_prior(unit_prior)
    of_points, shapes = densities.regression_log_likelihood(network), regression_shapes(network)
    if options["prior"] == "learnt":
        shapes |= common.float_shapes({"log_scales": (2,)})

    def log_prior(position, observed):
        if options["prior"] != "learnt":
            return of_weights(position, observed)
        scales = jnp.exp(position["log_scales"])
        hyperprior = tfd.HalfCauchy(0.0, 1.0).log_prob(scales).sum() + position["log_scales"].sum()
        return of_weights(position, observed._replace(prior_scales=scales)) + hyperprior

    def log_density(position, observed):
        return log_prior(position, observed) + of_points(position, observed).sum()

    def log_likelihood(position, observed):
        return of_points(position, observed).sum()

    of_draws = jax.jit(jax.vmap(jax.vmap(log_likelihood, (0, None)), (0, None)))
    return Model(network, log_density, of_draws, shapes, options)


def wave(redraw: int) -> waves.Wave:
    """Return a training set and its test points, the same for all variants."""
    return jax.jit(waves.wave)(common.key(SETTINGS["seed"], "data", redraw))


def measured(variant: str, redraw: int, power: float = 1.0) -> densities.Observed:
    """Return what a density takes: the weights of the points are the power of the likelihood."""
    points, scale = wave(redraw), build(variant).options["scale"]
    kind = {"weight": power, "num_classes": None}
    return densities.observe(points.x_train, points.y_train, [scale, scale], **kind)


@partial(jax.jit, static_argnums=0)
def curves(
    network: nn.Module, params: Any, x: Float[Array, "point 1"]
) -> Float[Array, "chain draw point"]:
    """Return the curve of every draw, one chain in memory at a time."""
    return jax.lax.map(lambda chain: jax.vmap(lambda one: network.apply(one, x))(chain), params)
