"""The insurance table's rows in groups as arrays, for the networks of ``grouped_networks``.

    groups = {"site": "intercept", "plan": "network"}
    recipe = grouped_rows.learn(train, "binexp", ["age", "child"], groups)
    table, later = grouped_rows.encode(recipe, train), grouped_rows.encode(recipe, test)

Rows of the same groups with a network of their own stand in blocks of at most 32; padding has
weight 0.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

# of rows whose gradient is found together: larger ones take longer, by 1.4 times where there are
# thousands
BLOCK = 32


class Recipe(NamedTuple):
    """What training rows taught."""

    outcome: str  # its column, of 0 and 1
    # by column: mean, standard deviation, what a missing value becomes, and whether a feature says
    # that it was missing
    numbers: dict
    groups: dict  # by column: what each group has of its own, as ``learn`` takes it
    levels: dict  # by column: the groups of training rows, by index
    baseline: float  # log odds of all training rows
    fan_in: bool  # whether kernels are divided by the root of the number of their inputs


class Table(NamedTuple):
    """Rows in blocks."""

    x: Float[Array, "block row feature"]
    y: Float[Array, "block row"]
    weight: Float[Array, "block row"]  # power of the likelihood; 0: padding
    levels: dict  # by column: group by index, [block], or [block, row] for an intercept
    place: Int[Array, " row"]  # of each row of the data frame among all rows of all blocks


def learn(frame: pd.DataFrame, outcome: str, features: list, groups: dict, *, fan_in=True):
    """Return the ``Recipe`` of training rows.

    A number is centred and divided by its standard deviation; a missing one is the median, and a
    feature of 0 and 1 says so.

    Args:
        frame: the training rows.
        outcome: column of 0 and 1.
        features: columns of numbers.
        groups: by column what each group has of its own, "network": all weights, "head": those of
            the last layer, "intercept": one number, added to the output.
        fan_in: whether each kernel is divided by the root of the number of its inputs.
    """
    numbers = {}
    for name in features:
        column, fill = frame[name], frame[name].median()
        filled = column.fillna(fill)
        has_hole = bool(column.isna().any())
        numbers[name] = [float(filled.mean()), float(filled.std(ddof=0)), float(fill), has_hole]
    levels = {name: sorted(frame[name].unique().tolist()) for name in groups}
    counts = np.array([(frame[outcome] == label).sum() for label in (0, 1)])
    baseline = float(np.log(counts[1] / counts[0]))
    return Recipe(outcome, numbers, groups, levels, baseline, fan_in)


def encode(recipe: Recipe, frame: pd.DataFrame) -> Table:
    """Return rows as training rows taught.

    A group that training rows did not have is a new one: its index comes after theirs, in order of
    appearance.
    """
    x, y = _features(recipe, frame), frame[recipe.outcome].to_numpy(float)
    levels = {}
    for name, known in recipe.levels.items():
        levels[name] = pd.Index([*dict.fromkeys([*known, *frame[name]])]).get_indexer(frame[name])
    own = [levels[name] for name, way in recipe.groups.items() if way != "intercept"]
    rows, real = _blocks(np.stack(own or [np.zeros(len(frame), int)]))
    place = np.empty(len(frame), np.int32)
    place[rows[real]] = np.flatnonzero(real)
    arrays = [jnp.asarray(a, jnp.float32) for a in (x[rows], y[rows], real)]
    by_block = {
        name: jnp.asarray(levels[name][rows if way == "intercept" else rows[:, 0]], jnp.int32)
        for name, way in recipe.groups.items()
    }
    return Table(*arrays, by_block, jnp.asarray(place))


def _features(recipe, frame):
    """Return the features of rows, [row, feature]."""
    found = []
    for name, (mean, sd, fill, says_missing) in recipe.numbers.items():
        column = frame[name].to_numpy(float)
        missing = np.isnan(column)
        found.append((np.where(missing, fill, column) - mean) / sd)
        found += [missing] if says_missing else []
    return np.stack([np.asarray(one, float) for one in found], axis=1)


def _blocks(levels):
    """Return the rows of each block, [block, row], and which of them are not padding.

    ``levels`` [column, row] are those of groups that have weights of their own: the rows of a block
    agree in them. A block that is too short repeats its rows.
    """
    order = np.lexsort(levels[::-1])
    starts = np.flatnonzero(np.any(np.diff(levels[:, order], prepend=-1), axis=0))
    parts = [
        part[a : a + BLOCK]
        for part in np.split(order, starts[1:])
        for a in range(0, len(part), BLOCK)
    ]
    longest = max(map(len, parts))
    rows = np.stack([np.resize(part, longest) for part in parts])
    return rows, np.stack([np.arange(longest) < len(part) for part in parts])
