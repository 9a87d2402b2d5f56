"""Networks, or linear models, that differ from group to group of a table, under scales that the
table teaches.

The weights of a row are the mean plus ``sd * offset`` of each of its groups; means and offsets are
N(0, 1), the sds HalfNormal(1) unless said, sampled as logarithms; kernels are then divided by the
root of their inputs, unless the recipe says otherwise. A position is ``{"mean": the network's,
"log_sd": {group: ...}, "offset": {group: leading axis [level]}, "log_dispersion": []}``; the last
is of normal outcomes (the log noise) and negative binomial ones (variance ``rate + dispersion
rate^2``).

    # hidden=() is a linear, logistic or log-linear model
    network = networks.MLP(hidden=(8,), use_bias=True)
    starts = mcmc.normal_starts(key_start, multilevel.shapes(network, recipe), (4,), scale=0.5)
    posterior = mcmc.sample(key, multilevel.log_density(network, recipe), starts, data=table)
    forecast = multilevel.predict(key_new, network, recipe, posterior.draws, later)
    forecast.mean()  # [chain, draw, row]
"""

from helpers import checks, networks
from helpers.common import mixed_types, take
from helpers.diagnostics import arviz
from helpers.hierarchical import log_prior, sum_over_tasks
from helpers.mcmc import cores

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from tensorflow_probability.substrates.jax import distributions as tfd

from tables import columns, forward
from tables.frames import Recipe, Table, check_made

WITH_DISPERSION = ("normal", "negative binomial")  # kinds of outcomes
SCALAR = jax.ShapeDtypeStruct((), jnp.float32)


def shapes(network: nn.Module, recipe: Recipe) -> dict:
    """Return the shapes and types of one position.

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
    return found | ({"log_dispersion": SCALAR} if recipe.kind in WITH_DISPERSION else {})


def log_density(
    network: nn.Module, recipe: Recipe, hyperprior: Any = None
) -> Callable[[dict, Table], Float[Array, ""]]:
    """Return ``f(position, table)``, the log posterior, up to a constant.

    The hyperprior, a TFP distribution, is that of every sd and of the dispersion; HalfNormal(1) by
    default. The log posterior is NaN, which ``mcmc.sample`` refuses, for a table with a group that
    the recipe does not know.
    """
    hyperprior = tfd.HalfNormal(1.0) if hyperprior is None else hyperprior

    def log_likelihood(parameters, block):
        weights, shift, log_dispersion = parameters
        output = forward.outputs(network, weights, shift, block.x)
        outcomes = forward.outcome_distribution(recipe, output, log_dispersion)
        with mixed_types():  # as TFP does
            return (block.weight * outcomes.log_prob(block.y)).sum()

    total = sum_over_tasks(log_likelihood)

    def density(position, table):
        scales = position["log_sd"], position.get("log_dispersion", ())
        # whatever else is not by block
        rows = table._replace(levels={}, place=jnp.zeros(table.x.shape[0]))
        return log_prior(position | {"log_sd": scales}, hyperprior) + total(
            forward.block_parameters(position, recipe, table), rows
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

    Args:
        key: for the offsets of new groups.
        network, recipe: those that the draws were made with.
        draws: positions, leading axes [chain, draw].
        table: rows that ``frames.encode`` returned for the recipe.

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
        weights, shift, log_dispersion = forward.block_parameters(position, recipe, table)
        output = jax.vmap(partial(forward.outputs, network))(weights, shift, table.x)
        return output.reshape(-1, output.shape[-1])[table.place], log_dispersion[0]

    keys = jax.random.split(key, (num_chains, num_draws))
    output, log_dispersion = jax.jit(
        lambda all_: jax.lax.map(lambda chain: jax.lax.map(one, chain), all_)
    )((keys, draws))
    found = forward.outcome_distribution(recipe, output, log_dispersion)
    if recipe.kind != "normal":
        return found
    mean, sd = recipe.classes
    return tfd.Normal(mean + sd * found.loc, sd * found.scale)


def of_group(
    network: nn.Module, recipe: Recipe, draws: dict, levels: dict
) -> tuple[dict, Float[Array, "..."]]:
    """Return the network's weights in known groups, and what is added to its output: leading axes
    [chain, draw].

    The kernel multiplies features as ``frames.encode`` has them: a number minus its mean, divided
    by its standard deviation, both in ``recipe.numbers``. A measurement, likewise, is in units of
    ``recipe.classes``, its mean and standard deviation.

    Args:
        network, recipe: those that the draws were made with.
        draws: positions, leading axes [chain, draw].
        levels: a level by column, ``{"firm": "US Steel"}``; in a column that is left out, an
            average group.

    ValueError: an unknown column or level, draws that are not of this network and recipe.
    """
    axes(network, recipe, draws)
    columns.indices("levels", np.array([*levels]), [*recipe.groups])
    at = {
        name: jnp.asarray(columns.indices(name, np.array([one]), recipe.levels[name]))
        for name, one in levels.items()
    }
    row = Table(*3 * [jnp.zeros(1)], at, jnp.zeros(1))
    named = recipe._replace(groups={name: recipe.groups[name] for name in levels})

    def one(position):
        weights, shift, _ = forward.block_parameters(position, named, row)
        return weights, shift

    return jax.tree.map(lambda leaf: leaf[:, :, 0], jax.vmap(jax.vmap(one))(draws))


def weigh(
    log_likelihood: Float[Array, "chain draw row"],
) -> tuple[Float[np.ndarray, "chain draw"], float]:
    """Return what each draw weighs once these rows of a new group are seen, and the Pareto k of the
    weights (Pareto smoothed importance sampling, Vehtari et al. 2024).

    Weights add up to 1. Above a k of 0.7 they are not to be trusted: fit again with these rows.
    They are for what the same call of ``predict`` says of the group's further rows: ``found =
    predict(...)`` of all its rows, then ``weigh(found.log_prob(y)[..., seen])``, y in its own unit.

    ValueError: other axes, an axis of length 0, values that are not finite.
    """
    checks.leading("log_likelihood", log_likelihood, ("chain", "draw", "row"))
    checks.finite(log_likelihood=log_likelihood)
    total = np.asarray(log_likelihood, np.float64).sum(axis=-1)
    log_weights, pareto_k = arviz.psislw(total.ravel())
    return np.exp(log_weights).reshape(total.shape), float(pareto_k)


def leave_out(recipe: Recipe, table: Table, name: str) -> Float[Array, "level block row"]:
    """Return the table's weights with each known level of a column of groups left out in turn, for
    fits side by side.

    ``table`` has the training rows, and starts have the axes [level, chain]:

        tasks = leave_out(recipe, table, "firm")
        without = lambda position, weight, table: density(position, table._replace(weight=weight))
        mcmc.sample(key, without, starts, tasks=tasks, data=table)

    A level whose rows have weight 0 is predicted as a new one, from ``take(draws, i)`` of level i.
    What ``frames.learn`` took from all rows it keeps.

    ValueError: a group that the recipe does not have, a table that another recipe made.
    """
    check_made(recipe, table)
    if name not in recipe.groups:
        raise ValueError(f"name: given {name!r}, expected one of {[*recipe.groups]}")
    level = table.levels[name].reshape(len(table.y), -1)
    return jnp.stack(
        [jnp.where(level == i, 0.0, table.weight) for i in range(len(recipe.levels[name]))]
    )


def cost(
    log_density: Callable, starts: dict, table: Table, *, num_draws: int = 1300, num_steps: int = 31
) -> dict:
    """Return about how many "seconds" and "megabytes" ``mcmc.sample`` will take, from the time of
    one gradient here.

    Compilation, some seconds, is not counted.

    Args:
        log_density: of one position and the table.
        starts: positions, leading axis [chain].
        table: what is trained on.
        num_draws: of each chain, warm-up included.
        num_steps: mean length of a trajectory, 15 to 150 for most tables, and known only once a
            short run has said it.

    ValueError: no draws, no steps, starts without chains.
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


def axes(network: nn.Module, recipe: Recipe, draws: dict) -> tuple[int, int]:
    """Return how many chains and draws there are.

    ValueError: draws that are not of this network and recipe.
    """
    expected = jax.tree.map(lambda leaf: leaf.shape, shapes(network, recipe))
    given = jax.tree.map(lambda leaf: leaf.shape[2:], draws)
    if given != expected:
        raise ValueError(f"draws: given shapes {given} after [chain, draw], expected {expected}")
    return checks.leading("draws", draws, ("chain", "draw"))
