"""Networks, or linear models, that differ from group to group of a table, under scales that the
table teaches.

The weights of a row are the mean plus ``sd * offset`` of each of its groups; means and offsets are
N(0, 1), the sds HalfNormal(1) unless said, sampled as logarithms; kernels are then divided by the
root of their inputs, unless the recipe says otherwise. A position is ``{"mean": the network's,
"log_sd": {group: ...}, "offset": {group: leading axis [level]}, "log_dispersion": []}``; the last
is of normal outcomes (the log noise) and negative binomial ones (variance ``rate + dispersion
rate^2``).

    network = networks.MLP(hidden=(8,), use_bias=True)  # hidden=(): a linear, logistic or log-linear model
    starts = mcmc.normal_starts(key_start, multilevel.shapes(network, recipe), (4,), scale=0.5)
    posterior = mcmc.sample(key, multilevel.log_density(network, recipe), starts, data=table)
    multilevel.predict(key_new, network, recipe, posterior.draws, later).mean()  # [chain, draw, row]
"""

from helpers import checks, networks
from helpers.common import take
from helpers.diagnostics import arviz
from helpers.hierarchical import log_prior, sum_over_tasks
from helpers.mcmc import cores

import time
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from tensorflow_probability.substrates.jax import distributions as tfd

from tables import frames
from tables.frames import Recipe, Table

DISPERSED = ("normal", "negative binomial")
SCALAR = jax.ShapeDtypeStruct((), jnp.float32)


def shapes(network: nn.Module, recipe: Recipe) -> dict:
    """Return the shapes of one position.

    ValueError: a network with another number of outputs than the outcome needs.
    """
    if network.num_outputs != len(recipe.baseline):
        raise ValueError(
            f"network: given {network.num_outputs} outputs, expected {len(recipe.baseline)}"
        )
    features = sum(1 + hole for *_, hole in recipe.numbers.values())
    mean = networks.parameter_shapes(
        network, features + sum(len(k) - 1 for k in recipe.categories.values())
    )["params"]
    last = f"Dense_{len(mean) - 1}"
    one_number = jax.ShapeDtypeStruct((network.num_outputs,), jnp.float32)
    ways = {"network": mean, "head": {last: mean[last]}, "intercept": one_number}
    log_sd, offset = {}, {}
    for name, way in recipe.groups.items():
        size = len(recipe.levels[name])
        log_sd[name] = jax.tree.map(lambda leaf: SCALAR, ways[way])
        offset[name] = jax.tree.map(
            lambda leaf, n=size: jax.ShapeDtypeStruct((n, *leaf.shape), leaf.dtype), ways[way]
        )
    found = {"mean": mean, "log_sd": log_sd, "offset": offset}
    return found | ({"log_dispersion": SCALAR} if recipe.kind in DISPERSED else {})


def _deviation(position, name, level):
    """Deviations of the rows' or blocks' levels of one group; NaN for a level that the position
    does not have.
    """

    def one(log_sd, offset):
        return jnp.exp(log_sd) * offset.at[level].get(mode="fill", fill_value=jnp.nan)

    return jax.tree.map(one, position["log_sd"][name], position["offset"][name])


def _by_block(position, recipe, table):
    """Weights, what is added to the output, and log dispersion: leading axis [block]."""
    size = table.x.shape[0]
    weights = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (size, *leaf.shape)), position["mean"]
    )
    shift = jnp.broadcast_to(jnp.array(recipe.baseline), (*table.y.shape, len(recipe.baseline)))
    for name, way in recipe.groups.items():
        deviation = _deviation(position, name, table.levels[name])
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


def _outcome(recipe, output, log_dispersion):
    """The distribution of outcomes as ``frames.encode`` has them, given the output [..., row,
    output].
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


def _output(network, weights, shift, x):
    return network.apply({"params": weights}, x).reshape(shift.shape) + shift


def log_density(
    network: nn.Module, recipe: Recipe, hyperprior: Any = None
) -> Callable[[dict, Table], Float[Array, ""]]:
    """Return the log posterior, up to a constant; every sd and the dispersion have the hyperprior,
    a TFP distribution.

    It is NaN, which ``mcmc.sample`` refuses, for a table with a group that the recipe does not
    know.
    """
    hyperprior = tfd.HalfNormal(1.0) if hyperprior is None else hyperprior

    def of_block(learnt, block):
        weights, shift, log_dispersion = learnt
        of_rows = _outcome(recipe, _output(network, weights, shift, block.x), log_dispersion)
        # TFP mixes types and ranks
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return (block.weight * of_rows.log_prob(block.y)).sum()

    total = sum_over_tasks(of_block)

    def density(position, table):
        scales = position["log_sd"], position.get("log_dispersion", ())
        # whatever else is not by block
        rows = table._replace(levels={}, place=jnp.zeros(table.x.shape[0]))
        return log_prior(position | {"log_sd": scales}, hyperprior) + total(
            _by_block(position, recipe, table), rows
        )

    return density


def predict(
    key: Key[Array, ""], network: nn.Module, recipe: Recipe, draws: dict, table: Table
) -> tfd.Distribution:
    """Return the outcome's distribution under each draw, [chain, draw, row], rows as in the data
    frame.

    A group that is new gets offsets of its own from N(0, 1) in every draw, so that the mean over
    draws is its predictive; two calls draw different ones. A measurement is in its own unit;
    classes are indices, so take ``probs_parameter()`` of three or more and not the mean.

    ValueError: draws that are not of this network and recipe.
    """
    num_chains, num_draws = axes(network, recipe, draws)
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
        weights, shift, log_dispersion = _by_block(position, recipe, table)
        output = jax.vmap(lambda *block: _output(network, *block))(weights, shift, table.x)
        return output.reshape(-1, output.shape[-1])[table.place], log_dispersion[0]

    keys = jax.random.split(key, (num_chains, num_draws))
    output, log_dispersion = jax.jit(
        lambda all_: jax.lax.map(lambda chain: jax.lax.map(one, chain), all_)
    )((keys, draws))
    found = _outcome(recipe, output, log_dispersion)
    if recipe.kind != "normal":
        return found
    mean, sd = recipe.classes
    return tfd.Normal(mean + sd * found.loc, sd * found.scale)


def of_group(
    network: nn.Module, recipe: Recipe, draws: dict, levels: dict
) -> tuple[dict, Float[Array, "..."]]:
    """Return the network's weights in known groups, and what is added to its output: leading axes
    [chain, draw].

    ``levels``: a level by column, ``{"firm": "US Steel"}``; in a column that is left out, an
    average group. The kernel multiplies features as ``frames.encode`` has them: a number less its
    mean, divided by its standard deviation, both in ``recipe.numbers``; a measurement is in units
    of ``recipe.classes``, its mean and standard deviation.

    ValueError: an unknown column or level, draws that are not of this network and recipe.
    """
    axes(network, recipe, draws)
    frames.index("levels", np.array([*levels]), [*recipe.groups])
    at = {
        name: jnp.asarray(frames.index(name, np.array([one]), recipe.levels[name]))
        for name, one in levels.items()
    }
    row = Table(*3 * [jnp.zeros(1)], at, jnp.zeros(1))
    named = recipe._replace(groups={name: recipe.groups[name] for name in levels})
    found = jax.vmap(jax.vmap(lambda position: _by_block(position, named, row)[:2]))(draws)
    return jax.tree.map(lambda leaf: leaf[:, :, 0], found)


def weigh(
    log_likelihood: Float[Array, "chain draw row"],
) -> tuple[Float[np.ndarray, "chain draw"], float]:
    """Return what each draw weighs once these rows of a new group are seen, and the Pareto k of the
    weights.

    Weights add up to 1. Above a k of 0.7 they are not to be trusted (Vehtari et al. 2024): fit
    again with these rows. They are for what the same call of ``predict`` says of the group's
    further rows: ``found = predict(...)`` of all its rows, then ``weigh(found.log_prob(y)[...,
    seen])``, y in its own unit.

    ValueError: other axes, an axis of length 0, values that are not finite.
    """
    checks.leading("log_likelihood", log_likelihood, ("chain", "draw", "row"))
    checks.finite(log_likelihood=log_likelihood)
    total = np.asarray(log_likelihood, np.float64).sum(axis=-1)
    log_weights, pareto_k = arviz.psislw(total.ravel())
    return np.exp(log_weights).reshape(total.shape), float(pareto_k)


def leave_out(recipe: Recipe, table: Table, name: str) -> Float[Array, "level block row"]:
    """Return the table's weights with each known level of a group left out in turn, for fits side
    by side.

    ``table`` has the training rows, and starts have the axes [level, chain]:

        tasks = leave_out(recipe, table, "firm")
        mcmc.sample(key, lambda at, w, t: density(at, t._replace(weight=w)), starts, tasks=tasks, data=table)

    A level whose rows have weight 0 is predicted as a new one, from ``take(draws, i)`` of level i.
    What ``frames.learn`` took from all rows it keeps.

    ValueError: a group that the recipe does not have.
    """
    if name not in recipe.groups:
        raise ValueError(f"name: given {name!r}, expected one of {[*recipe.groups]}")
    level = table.levels[name].reshape(len(table.y), -1)
    return jnp.stack(
        [jnp.where(level == i, 0.0, table.weight) for i in range(len(recipe.levels[name]))]
    )


def cost(
    log_density: Callable, starts: dict, table: Table, *, num_draws: int = 1300, num_steps: int = 31
) -> dict:
    """Return about how many seconds and megabytes ``mcmc.sample`` will take, from the time of one
    gradient here.

    ``num_draws`` are those of each chain, warm-up included; ``num_steps`` is the mean length of a
    trajectory, 15 to 150 for most tables, and known only once a short run has said it. Compilation,
    some seconds, is not counted.
    """
    checks.count(num_draws=num_draws, num_steps=num_steps)
    gradient, one = jax.jit(jax.grad(log_density)), take(starts, 0)
    times = []
    for _ in range(6):  # the first compiles
        begun = time.perf_counter()
        jax.block_until_ready(gradient(one, table))
        times.append(time.perf_counter() - begun)
    (num_chains,) = checks.leading("starts", starts, ("chain",))
    rounds = -(-num_chains // cores())
    megabytes = 4e-6 * num_chains * num_draws * sum(leaf.size for leaf in jax.tree.leaves(one))
    return {"seconds": min(times) * num_steps * num_draws * rounds, "megabytes": megabytes}


def axes(network, recipe, draws):
    """How many chains and draws there are, which are of this network and recipe."""
    expected = jax.tree.map(lambda leaf: leaf.shape, shapes(network, recipe))
    given = jax.tree.map(lambda leaf: leaf.shape[2:], draws)
    if given != expected:
        raise ValueError(f"draws: given shapes {given} after [chain, draw], expected {expected}")
    return checks.leading("draws", draws, ("chain", "draw"))
