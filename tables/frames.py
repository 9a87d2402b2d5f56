"""A table in: rows in groups become arrays; what training rows taught is kept for rows to come.

    groups = {"clinic": "network", "doctor": "intercept"}  # nested or crossed; what differs by each: WAYS
    recipe = frames.learn(train, "visits", ["age", "sex"], groups, kind="poisson")
    table, later = frames.encode(recipe, train), frames.encode(recipe, test)

Rows of the same groups with a network of their own stand in blocks of at most 32; padding has weight 0.
"""

from helpers import checks

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

KINDS = ("bernoulli", "categorical", "normal", "poisson", "negative binomial")
WAYS = ("network", "head", "intercept")  # what a group has of its own: all weights, the last layer's, one number
BLOCK = 32  # of rows whose gradient is found together: larger ones take longer, by 1.4 times where there are thousands


class Recipe(NamedTuple):
    """What training rows taught, made of what JSON holds."""

    outcome: str
    kind: str  # of the outcome, one of KINDS
    numbers: dict  # column -> [mean, sd, what a missing value becomes or None, whether a feature says so]
    categories: dict  # column -> levels; the first has no feature of its own
    groups: dict  # column -> one of WAYS
    levels: dict  # column -> the groups that training rows have, by index
    classes: list  # of the outcome; of measurements mean and sd
    baseline: list  # log odds or log rate of all training rows together, by output
    fan_in: bool  # whether kernels are divided by the root of their inputs


class Table(NamedTuple):
    """Rows in blocks."""

    x: Float[Array, "block row feature"]
    y: Float[Array, "block row"]  # class, count, or measurement in sd from the mean
    weight: Float[Array, "block row"]  # power of the likelihood; 0: padding, or an outcome that is not known
    levels: dict  # group by column, [block], or [block, row] for an intercept
    place: Int[Array, " row"]  # of each row of the data frame among all rows of all blocks


def learn(
    frame: pd.DataFrame, outcome: str, features: list, groups: dict, *, kind="bernoulli", missing="refuse", fan_in=True
) -> Recipe:
    """Return the ``Recipe`` of training rows.

    A number is centred and divided by its standard deviation; text, a bool or a pandas category gets a feature of 0
    and 1 for each level but the first. ``missing="median"``: a missing number becomes the median, here and later, and
    a missing text a level of its own; where training rows miss some, a feature of 0 and 1 says so. With ``fan_in``
    each kernel is divided by the root of the number of its inputs, so that the prior of the output depends little on
    how many features and units there are; without it, it is as it is.

    ValueError: no rows or features, a column that is not there or named twice, an unknown kind, a missing value that is
        refused or is not a feature's, a feature or outcome with one value, an outcome that is not of its kind.
    """
    named, choices = [outcome, *groups, *features], (KINDS, ("refuse", "median"), WAYS)
    for value, known in [(kind, choices[0]), (missing, choices[1]), *((way, choices[2]) for way in groups.values())]:
        if value not in known:
            raise ValueError(f"given {value!r}, expected one of {known}")
    if not (len(frame) and features) or len(set(named)) < len(named) or not {*named} <= {*frame.columns}:
        given = f"{len(frame)} rows of {[*frame.columns]}"
        raise ValueError(f"frame: given {given}, expected each of {named}, named once, one feature or more")
    _refuse_holes(frame, named if missing == "refuse" else [outcome, *groups])
    numbers, categories, y = {}, {}, frame[outcome]
    for name in [*features, outcome]:
        if frame[name].nunique() + frame[name].isna().any() < 2:
            raise ValueError(f"{name}: given {frame[name].iloc[0]} in all {len(frame)} rows, expected several values")
    for name in features:
        hole = bool(frame[name].isna().any())
        if pd.api.types.is_numeric_dtype(frame[name]) and frame[name].dtype != bool:
            checks.finite(**{name: frame[name].dropna().to_numpy(float)})
            filled = frame[name].fillna(frame[name].median())
            fill = None if missing == "refuse" else float(filled.median())
            numbers[name] = [float(filled.mean()), float(filled.std(ddof=0)), fill, hole]
        else:
            categories[name] = [*sorted(frame[name].dropna().astype(str).unique()), *["missing"] * hole]
    levels = {name: sorted(frame[name].unique().tolist()) for name in groups}
    classes = sorted(y.unique().tolist()) if kind in KINDS[:2] else []
    counts = np.array([(y == one).sum() for one in classes])
    if kind == "bernoulli" and len(classes) > 2:
        raise ValueError(f"{outcome}: given {classes}, expected two classes")
    _check_outcome(outcome, y, kind)
    if kind == "normal":
        classes, baseline = [float(y.mean()), float(y.std(ddof=0))], [0.0]
    elif kind == "categorical":
        baseline = np.log(counts / len(y)).tolist()
    else:
        baseline = [float(np.log(counts[1] / counts[0]) if classes else np.log(y.mean()))]
    return Recipe(outcome, kind, numbers, categories, groups, levels, classes, baseline, fan_in)


def encode(recipe: Recipe, frame: pd.DataFrame) -> Table:
    """Return rows as training rows taught; without the outcome's column, or where it is missing, a row has weight 0.

    A group that training rows did not have is a new one: its index comes after theirs.

    ValueError: no rows, a column that is not there, a missing value where training rows had none, a category or class
        that they did not have, an outcome that is not of its kind.
    """
    columns = [*recipe.numbers, *recipe.categories, *recipe.groups]
    if not len(frame) or not {*columns} <= {*frame.columns}:
        raise ValueError(f"frame: given {len(frame)} rows of {[*frame.columns]}, expected {columns}")
    holes = {name for name, (*_, fill, _) in recipe.numbers.items() if fill is not None}
    _refuse_holes(
        frame, [name for name in columns if name not in holes and "missing" not in recipe.categories.get(name, [])]
    )
    x, level = [], {}
    for name, (mean, sd, fill, hole) in recipe.numbers.items():
        column = _numbers(name, frame[name])
        x += [(column if fill is None else np.where(np.isnan(column), fill, column)) - mean]
        x[-1] /= sd
        x += [np.isnan(column)] if hole else []
    for name, known in recipe.categories.items():
        index = _index(name, frame[name].astype(object).where(frame[name].notna(), "missing").astype(str), known)
        x += [index == i for i in range(1, len(known))]
    for name, known in recipe.levels.items():
        every = dict.fromkeys([*known, *frame[name]])  # those of training rows first, new ones as they come
        level[name] = pd.Index([*every]).get_indexer(frame[name])
    y, seen = np.zeros(len(frame)), np.zeros(len(frame), bool)
    if recipe.outcome in frame:
        seen = frame[recipe.outcome].notna().to_numpy()
        given = frame[recipe.outcome][seen]
        if recipe.kind in KINDS[:2]:
            y[seen] = _index(recipe.outcome, given, recipe.classes)
        else:
            mean, sd = recipe.classes or (0.0, 1.0)
            _check_outcome(recipe.outcome, given, recipe.kind)
            y[seen] = (given.to_numpy(float) - mean) / sd
    x = np.stack([np.asarray(one, float) for one in x], axis=1)
    checks.finite(x=x, y=y)
    apart = np.stack(
        [level[name] for name, way in recipe.groups.items() if way != "intercept"] or [np.zeros(len(x), int)]
    )
    order = np.lexsort(apart[::-1])
    starts = np.flatnonzero(np.any(np.diff(apart[:, order], prepend=-1), axis=0))
    parts = [part[a : a + BLOCK] for part in np.split(order, starts[1:]) for a in range(0, len(part), BLOCK)]
    longest = max(map(len, parts))
    rows = np.stack([np.resize(part, longest) for part in parts])  # what is too short repeats itself
    real = np.stack([np.arange(longest) < len(part) for part in parts])
    place = np.empty(len(frame), np.int32)
    place[rows[real]] = np.flatnonzero(real)
    at = {name: level[name][rows if way == "intercept" else rows[:, 0]] for name, way in recipe.groups.items()}
    arrays = [jnp.asarray(a, jnp.float32) for a in (x[rows], y[rows], real & seen[rows])]
    return Table(*arrays, {name: jnp.asarray(a, jnp.int32) for name, a in at.items()}, jnp.asarray(place))


def _refuse_holes(frame, names):
    holes = {name: int(frame[name].isna().sum()) for name in names if frame[name].isna().any()}
    if holes:
        raise ValueError(f"missing values: given {holes} by column, expected none there (or see `missing`)")


def _numbers(name, column):
    if not pd.api.types.is_numeric_dtype(column):
        raise ValueError(f"{name}: given {column.dtype}, {column.iloc[0]!r}, expected numbers")
    return column.to_numpy(float)


def _check_outcome(name, y, kind):
    """Measurements are numbers; counts are whole ones, not negative."""
    if kind not in KINDS[:2]:
        checks.finite(**{name: _numbers(name, y)})
        if kind != "normal" and not ((y >= 0) & (y == y.round())).all():
            raise ValueError(f"{name}: given {y.min()} to {y.max()}, expected values that are {kind}: 0, 1, 2, ...")


def _index(name, values, known):
    index = pd.Index(known).get_indexer(values)
    if (index < 0).any():
        raise ValueError(f"{name}: given {sorted({*values[index < 0]})[:9]}, expected one of {known}")
    return index
