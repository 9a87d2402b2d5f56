"""Networks of numeric columns whose prior scales and noise are learnt, in one or two outputs.

Every number of a position is N(0, 1) a priori, scales apart. A layer's kernel is its numbers times
the layer's scale over the root of its inputs, its bias its numbers times the scale. The second
output, where there is one, is added to the log of the noise.
"""

from helpers import common, densities, networks

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from tensorflow_probability.substrates.jax import distributions as tfd

SCALE, NOISE, CHANGE = 2.0, 1.0, 1.0  # of half normal priors: of scales, noise, second output's
START_OF_CHANGE = 0.1  # the second output's scale at the start: noise that hardly depends on x


class Model(NamedTuple):
    """What is sampled, and what its draws say of rows."""

    log_density: Callable  # of a position and densities.Observed
    predict: Callable  # of a position and x [row, column]: mean and log noise, both [row]
    shapes: dict  # of a position


def model(num_columns: int, hidden: tuple[int, ...], noise: str, fixed: tuple | None) -> Model:
    """Return a model of outcomes that are standardized.

    Args:
        hidden: units of each hidden layer.
        noise: "number", the same for all rows; "output", it depends on x.
        fixed: scales of the layers; None: learnt.
    """
    outputs = 1 if noise == "number" else 2
    network = networks.MLP(hidden, nn.tanh, use_bias=True, num_outputs=outputs)
    shapes = networks.parameter_shapes(network, num_columns)
    sizes = {"log_noise": ()}
    sizes |= {"log_scales": (len(hidden) + 1,)} if fixed is None else {}
    sizes |= {"log_change": ()} if noise == "output" else {}

    def predict(position, x):
        scales = jnp.exp(position["log_scales"]) if fixed is None else jnp.asarray(fixed)
        change = jnp.exp(position["log_change"]) if noise == "output" else None
        out = network.apply(scaled(position["params"], scales, change), x)
        if noise == "number":
            return out, jnp.broadcast_to(position["log_noise"], out.shape)
        return out[..., 0], position["log_noise"] + out[..., 1]

    def log_density(position, observed):
        mean, log_noise = predict(position, observed.x)
        z = (observed.y - mean) * jnp.exp(-log_noise)
        of_points = -0.5 * z**2 - log_noise - 0.5 * jnp.log(2 * jnp.pi)
        of_weights = sum(-0.5 * (leaf**2).sum() for leaf in jax.tree.leaves(position["params"]))
        of_scales = half_normal(position["log_noise"], NOISE)
        if fixed is None:
            of_scales += half_normal(position["log_scales"], SCALE).sum()
        if noise == "output":
            of_scales += half_normal(position["log_change"], CHANGE)
        return (observed.weight * of_points).sum() + of_weights + of_scales

    return Model(log_density, predict, {"params": shapes, **common.float_shapes(sizes)})


def half_normal(log_value: Float[Array, "*any"], scale: float) -> Float[Array, "*any"]:
    """Return the log density, of the logarithm, of a number that is half normal."""
    return tfd.HalfNormal(scale).log_prob(jnp.exp(log_value)) + log_value


def scaled(
    params: dict, scales: Float[Array, " layer"], change: Float[Array, ""] | None = None
) -> dict:
    """Return weights and biases of numbers that are N(0, 1) a priori; ``change`` is the scale of a
    second output.
    """
    layers, found = params["params"], {}
    for i in range(len(layers)):
        layer, scale = layers[f"Dense_{i}"], scales[i]
        if change is not None and i == len(layers) - 1:
            scale = jnp.stack([scale, change])
        kernel = layer["kernel"] * scale / layer["kernel"].shape[0] ** 0.5
        found[f"Dense_{i}"] = {"kernel": kernel, "bias": layer["bias"] * scale}
    return {"params": found}


def observed(x: Any, y: Any, weight: Any = 1.0) -> densities.Observed:
    """Return the rows that train as a density takes them."""
    return densities.observe(x, y, None, weight=weight, num_classes=None)
