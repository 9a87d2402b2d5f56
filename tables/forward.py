"""From a position of ``multilevel`` to the distribution of outcomes, block by block.

weights, shift, log_dispersion = forward.block_parameters(position, recipe, table)
output = jax.vmap(partial(forward.outputs, network))(weights, shift, table.x)
forward.outcome_distribution(recipe, output, log_dispersion)
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from tensorflow_probability.substrates.jax import distributions as tfd

from tables.frames import Recipe, Table, check_made


def block_parameters(
    position: dict, recipe: Recipe, table: Table
) -> tuple[dict, Float[Array, "block row output"], Float[Array, " block"]]:
    """Return the network's weights, what is added to its output, and the log dispersion.

    Weights have the leading axis [block]. They, or what is added, are NaN in a block with a group
    that the position does not have.

    ValueError: a table that another recipe made.
    """
    check_made(recipe, table)
    size = table.x.shape[0]
    weights = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape)), position["mean"]
    )
    shift = jnp.broadcast_to(jnp.array(recipe.baseline), (*table.y.shape, len(recipe.baseline)))
    for name, way in recipe.groups.items():
        deviation = _group_deviation(position, name, table.levels[name])
        if way == "intercept":
            shift = shift + deviation
        else:
            weights = weights | {
                layer: jax.tree.map(jnp.add, weights[layer], deviation[layer])
                for layer in deviation
            }
    # kernels [block, input, output] are divided by the root of the number of inputs, biases are not
    if recipe.fan_in:
        weights = jax.tree.map(
            lambda leaf: leaf / np.float32(leaf.shape[1] ** 0.5 if leaf.ndim == 3 else 1), weights
        )
    return weights, shift, jnp.broadcast_to(position.get("log_dispersion", jnp.zeros(())), size)


def _group_deviation(position, name, level):
    """Return by how much the levels of a column deviate from the mean, leading axes those of
    ``level``; NaN for a level that the position does not have.
    """

    def scaled(log_sd, offset):
        return jnp.exp(log_sd) * offset.at[level].get(mode="fill", fill_value=jnp.nan)

    return jax.tree.map(scaled, position["log_sd"][name], position["offset"][name])


def outputs(
    network: nn.Module,
    weights: dict,
    shift: Float[Array, "row output"],
    x: Float[Array, "row feature"],
) -> Float[Array, "row output"]:
    """Return the network's output for rows of one block, shifted.

    Args:
        network: with weights of its own in every block.
        weights, shift: of the block, as ``block_parameters`` gives them.
        x: features of the block's rows.
    """
    return network.apply({"params": weights}, x).reshape(shift.shape) + shift


def outcome_distribution(
    recipe: Recipe,
    output: Float[Array, "*batch row output"],
    log_dispersion: Float[Array, "*batch"],
) -> tfd.Distribution:
    """Return the distribution of outcomes as ``frames.encode`` has them, [*batch, row]: classes by
    index, counts, or measurements in standard deviations from the mean.
    """
    if recipe.kind == "categorical":
        return tfd.Categorical(logits=output)
    output, dispersion = output[..., 0], log_dispersion[..., None]
    if recipe.kind == "normal":
        return tfd.Normal(output, jnp.exp(dispersion))
    if recipe.kind == "negative binomial":
        return tfd.NegativeBinomial(jnp.exp(-dispersion), logits=output + dispersion)
    return (
        tfd.Bernoulli(logits=output) if recipe.kind == "bernoulli" else tfd.Poisson(log_rate=output)
    )
