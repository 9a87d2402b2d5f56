"""Networks, or logistic models, that differ from group to group of the insurance table.

The weights of a row are the mean plus ``sd * offset`` of each of its groups; means and offsets are
N(0, 1), the sds HalfNormal(1) unless said, sampled as logarithms; kernels are then divided by the
root of their inputs, unless the recipe says otherwise. A position is ``{"mean": the network's,
"log_sd": {group: ...}, "offset": {group: leading axis [level]}}``.
"""

from helpers import networks
from helpers.common import mixed_types
from helpers.hierarchical import log_prior, sum_over_tasks

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods.grouped_rows import Recipe, Table

SCALAR = jax.ShapeDtypeStruct((), jnp.float32)


def shapes(network: nn.Module, recipe: Recipe) -> dict:
    """Return the shapes and types of one position."""
    features = sum(1 + hole for *_, hole in recipe.numbers.values())
    mean = networks.parameter_shapes(network, features)["params"]
    last = f"Dense_{len(mean) - 1}"
    one_number = jax.ShapeDtypeStruct((1,), jnp.float32)
    ways = {"network": mean, "head": {last: mean[last]}, "intercept": one_number}
    log_sd, offset = {}, {}
    for name, way in recipe.groups.items():
        size = len(recipe.levels[name])
        log_sd[name] = jax.tree.map(lambda leaf: SCALAR, ways[way])
        offset[name] = jax.tree.map(
            lambda leaf, n=size: jax.ShapeDtypeStruct((n, *leaf.shape), leaf.dtype), ways[way]
        )
    return {"mean": mean, "log_sd": log_sd, "offset": offset}


def log_density(
    network: nn.Module, recipe: Recipe, hyperprior: Any = None
) -> Callable[[dict, Table], Float[Array, ""]]:
    """Return ``f(position, table)``, the log posterior, up to a constant.

    The hyperprior, a TFP distribution, is that of every sd; HalfNormal(1) by default.
    """
    hyperprior = tfd.HalfNormal(1.0) if hyperprior is None else hyperprior

    def log_likelihood(parameters, block):
        logits = _logits(network, *parameters, block.x)
        with mixed_types():  # as TFP does
            return (block.weight * tfd.Bernoulli(logits=logits).log_prob(block.y)).sum()

    total = sum_over_tasks(log_likelihood)

    def density(position, table):
        scales = position["log_sd"], ()
        # whatever else is not by block
        rows = table._replace(levels={}, place=jnp.zeros(table.x.shape[0]))
        return log_prior(position | {"log_sd": scales}, hyperprior) + total(
            _block_parameters(position, recipe, table), rows
        )

    return density


def predict(
    key: Key[Array, ""], network: nn.Module, recipe: Recipe, draws: dict, table: Table
) -> tfd.Distribution:
    """Return the outcome's distribution under each draw, [chain, draw, row], rows as in the data
    frame.

    A group that is new gets offsets of its own from N(0, 1) in every draw.

    Args:
        key: for the offsets of new groups.
        network, recipe: those that the draws were made with.
        draws: positions, leading axes [chain, draw].
        table: rows that ``grouped_rows.encode`` returned for the recipe.
    """
    more = {
        name: max(0, int(np.max(at)) + 1 - len(recipe.levels[name]))
        for name, at in table.levels.items()
    }

    def one(inputs):
        key, position = inputs
        position = position | {"offset": dict(position["offset"])}
        for i, name in enumerate(recipe.groups):
            leaves, structure = jax.tree.flatten(position["offset"][name])
            keys = jax.random.split(jax.random.fold_in(key, i), len(leaves))
            new = [
                jax.random.normal(k, (more[name], *leaf.shape[1:]))
                for k, leaf in zip(keys, leaves, strict=True)
            ]
            joined = [jnp.concatenate(pair) for pair in zip(leaves, new, strict=True)]
            position["offset"][name] = jax.tree.unflatten(structure, joined)
        logits = jax.vmap(lambda *block: _logits(network, *block))(
            *_block_parameters(position, recipe, table), table.x
        )
        return logits.reshape(-1)[table.place]

    keys = jax.random.split(key, jax.tree.leaves(draws)[0].shape[:2])
    logits = jax.jit(lambda all_: jax.lax.map(lambda chain: jax.lax.map(one, chain), all_))(
        (keys, draws)
    )
    return tfd.Bernoulli(logits=logits)


def _block_parameters(position, recipe, table):
    """Return the network's weights, [block, ...], and what is added to its output, [block, row];
    NaN in a block with a group that the position does not have.
    """
    size = table.x.shape[0]
    weights = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape)), position["mean"]
    )
    shift = jnp.broadcast_to(jnp.array([recipe.baseline]), (*table.y.shape, 1))
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
    return weights, shift[..., 0]


def _group_deviation(position, name, level):
    """Return by how much the levels of a column deviate from the mean, leading axes those of
    ``level``; NaN for a level that the position does not have.
    """

    def scaled(log_sd, offset):
        return jnp.exp(log_sd) * offset.at[level].get(mode="fill", fill_value=jnp.nan)

    return jax.tree.map(scaled, position["log_sd"][name], position["offset"][name])


def _logits(network, weights, shift, x):
    """Return the logits of the rows of one block, [row]."""
    return network.apply({"params": weights}, x) + shift
