"""A table in: rows in groups become arrays; what training rows taught is kept for rows to come.

    # nested or crossed; what differs by each, of WAYS
    groups = {"clinic": "network", "doctor": "intercept"}
    recipe = frames.learn(train, "visits", ["age", "sex"], groups, kind="poisson")
    table, later = frames.encode(recipe, train), frames.encode(recipe, test)

Rows of the same groups with a network of their own stand in blocks of at most 32; padding has
weight 0.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

from tables import columns

KINDS = ("bernoulli", "categorical", "normal", "poisson", "negative binomial")
CLASSES = KINDS[:2]  # the outcome is a class, not a number
WAYS = ("network", "head", "intercept")  # what a group has of its own
# of rows whose gradient is found together: larger ones take longer, by 1.4 times where there are
# thousands
BLOCK = 32


class Recipe(NamedTuple):
    """What training rows taught, made of what JSON holds."""

    outcome: str  # its column
    kind: str  # of the outcome, one of KINDS
    # by column: mean, standard deviation, what a missing value becomes (None: refused), and whether
    # a feature says that it was missing
    numbers: dict
    categories: dict  # by column: its levels; the first has no feature of its own
    groups: dict  # by column: what each group has of its own, one of WAYS
    levels: dict  # by column: the groups of training rows, by index
    classes: list  # of the outcome; of measurements mean and standard deviation
    # of all training rows, by output: log odds, log shares of classes, log rate; 0 of measurements
    baseline: list
    fan_in: bool  # whether kernels are divided by the root of the number of their inputs


@jax.tree_util.register_static
@dataclass(frozen=True)
class Made:
    """By which recipe a table was made: part of its structure, so that programs know it."""

    digest: str


class Table(NamedTuple):
    """Rows in blocks."""

    x: Float[Array, "block row feature"]  # in the order of ``Recipe.numbers`` and ``categories``
    # class by index, count, or measurement in standard deviations from the mean
    y: Float[Array, "block row"]
    weight: Float[Array, "block row"]  # power of the likelihood; 0: padding, or no outcome
    levels: dict  # by column: group by index, [block], or [block, row] for an intercept
    place: Int[Array, " row"]  # of each row of the data frame among all rows of all blocks
    made: Made | None = None  # by the recipe, which is compared where both are given


def learn(
    frame: pd.DataFrame,
    outcome: str,
    features: list,
    groups: dict,
    *,
    kind="bernoulli",
    missing="refuse",
    fan_in=True,
) -> Recipe:
    """Return the ``Recipe`` of training rows.

    A number is centred and divided by its standard deviation. Text, a bool or a pandas category
    gets a feature of 0 and 1 for each level but the first.

    Args:
        frame: the training rows.
        outcome: column of what is to be predicted.
        features: columns that it is predicted from.
        groups: by column what each group has of its own, "network": all weights, "head": those of
            the last layer, "intercept": one number, added to the output.
        kind: of the outcome, one of KINDS.
        missing: what a missing feature means. "refuse": an error. "median": a number becomes the
            median, here and later, and a text a level of its own; where training rows miss some, a
            feature of 0 and 1 says so.
        fan_in: whether each kernel is divided by the root of the number of its inputs, so that the
            prior of the output depends little on how many features and units there are.

    ValueError: no rows or features, a column that is not there or named twice, an unknown kind, a
        missing value that is refused or is not a feature's, one value alone, text of more than half
        as many levels as rows, groups or classes that are neither text nor numbers, an outcome that
        is not of its kind.
    """
    _check_choices(features, groups, kind, missing)
    named = [outcome, *groups, *features]
    _check_columns(frame, features, named)
    columns.refuse_missing(frame, named if missing == "refuse" else [outcome, *groups])
    for name in [*features, outcome]:
        if frame[name].nunique() + frame[name].isna().any() < 2:
            given = f"{frame[name].iloc[0]} in all {len(frame)} rows"
            raise ValueError(f"{name}: given {given}, expected several values")
    numbers, categories = {}, {}
    for name in features:
        if columns.is_number(frame[name]):
            numbers[name] = _learn_number(name, frame[name], missing)
        else:
            categories[name] = _learn_category(name, frame[name])
    levels = {name: columns.levels(name, frame[name]) for name in groups}
    classes, baseline = _learn_outcome(outcome, frame[outcome], kind)
    return Recipe(outcome, kind, numbers, categories, groups, levels, classes, baseline, fan_in)


def _check_choices(features, groups, kind, missing):
    if not (isinstance(groups, dict) and isinstance(features, list)):
        raise ValueError(
            f"groups, features: given {groups!r} and {features!r}, expected a dict and a list"
        )
    choices = [("kind", kind, KINDS), ("missing", missing, ("refuse", "median"))]
    for name, value, known in [*choices, *(("groups", way, WAYS) for way in groups.values())]:
        if value not in known:
            raise ValueError(f"{name}: given {value!r}, expected one of {known}")


def _check_columns(frame, features, named):
    absent = [name for name in named if name not in frame]
    twice = sorted(
        {name for name in named if max(named.count(name), [*frame.columns].count(name)) > 1}
    )
    if not (len(frame) and features) or absent or twice:
        found = f"{len(frame)} rows, features {features}, no columns {absent}, twice {twice}"
        raise ValueError(f"frame: given {found}, expected rows, features, and each of {named} once")


def _learn_number(name, column, missing):
    """Return what ``Recipe.numbers`` holds of a column."""
    columns.numbers(name, column)
    filled = column.fillna(column.median())
    fill = None if missing == "refuse" else float(filled.median())
    return [float(filled.mean()), float(filled.std(ddof=0)), fill, bool(column.isna().any())]


def _learn_category(name, column):
    """Return what ``Recipe.categories`` holds of a column."""
    levels = [
        *sorted(column.dropna().astype(str).unique()),
        *["missing"] * bool(column.isna().any()),
    ]
    if 2 * len(levels) > len(column):
        raise ValueError(f"{name}: given text of {len(levels)} levels, expected few (or numbers)")
    return levels


def _learn_outcome(name, y, kind):
    """Return what ``Recipe.classes`` and ``Recipe.baseline`` hold."""
    classes = columns.levels(name, y) if kind in CLASSES else []
    counts = np.array([(y == one).sum() for one in classes])
    if kind == "bernoulli" and len(classes) > 2:
        given = f"{len(classes)} classes, {classes[:9]}"
        raise ValueError(f"{name}: given {given}, expected two classes")
    _check_outcome(name, y, kind)
    if kind == "normal":
        return [float(y.mean()), float(y.std(ddof=0))], [0.0]
    if kind == "categorical":
        return classes, np.log(counts / len(y)).tolist()
    return classes, [float(np.log(counts[1] / counts[0]) if classes else np.log(y.mean()))]


def _check_outcome(name, y, kind):
    if kind not in CLASSES:
        columns.numbers(name, y)
        # float32 holds no more
        if kind != "normal" and not ((y >= 0) & (y == y.round()) & (y < 2**24)).all():
            expected = f"values that are {kind}: 0 to 16777215"
            raise ValueError(f"{name}: given {y.min()} to {y.max()}, expected {expected}")


def encode(recipe: Recipe, frame: pd.DataFrame) -> Table:
    """Return rows as training rows taught; without the outcome's column, or where it is missing, a
    row has weight 0.

    A group that training rows did not have is a new one: its index comes after theirs, in order of
    appearance.

    ValueError: no rows, a column that is not there, a missing value where training rows had none, a
        category or class that they did not have, text for groups that were numbers or the reverse,
        an outcome that is not of its kind.
    """
    needed = [*recipe.numbers, *recipe.categories, *recipe.groups]
    if not len(frame) or not {*needed} <= {*frame.columns}:
        raise ValueError(
            f"frame: given {len(frame)} rows of {[*frame.columns]}, expected rows with {needed}"
        )
    may_miss = {name for name, (*_, fill, _) in recipe.numbers.items() if fill is not None}
    may_miss |= {name for name, known in recipe.categories.items() if "missing" in known}
    columns.refuse_missing(frame, [name for name in needed if name not in may_miss])
    x = _features(recipe, frame)
    levels = {
        name: _group_indices(name, frame[name], known) for name, known in recipe.levels.items()
    }
    y, seen = _outcomes(recipe, frame)
    own = [levels[name] for name, way in recipe.groups.items() if way != "intercept"]
    rows, real = _blocks(np.stack(own or [np.zeros(len(frame), int)]))
    place = np.empty(len(frame), np.int32)
    place[rows[real]] = np.flatnonzero(real)
    arrays = [jnp.asarray(a, jnp.float32) for a in (x[rows], y[rows], real & seen[rows])]
    by_block = {
        name: jnp.asarray(levels[name][rows if way == "intercept" else rows[:, 0]], jnp.int32)
        for name, way in recipe.groups.items()
    }
    return Table(*arrays, by_block, jnp.asarray(place), made_by(recipe))


def made_by(recipe: Recipe) -> Made:
    """Return what a table has of the recipe that made it."""
    text = json.dumps(recipe._asdict())  # the order of columns is that of features
    return Made(hashlib.sha256(text.encode()).hexdigest())


def check_made(recipe: Recipe, table: Table) -> None:
    """Check that a table was made by a recipe.

    ValueError: it was made by another.
    """
    if table.made is not None and table.made != made_by(recipe):
        raise ValueError(
            f"table: given one that another recipe made, expected that of {recipe.outcome!r} by "
            f"{[*recipe.numbers, *recipe.categories, *recipe.groups]}: encode the rows again"
        )


def _features(recipe, frame):
    """Return the features of rows, [row, feature]."""
    found = []
    for name, (mean, sd, fill, says_missing) in recipe.numbers.items():
        column = columns.numbers(name, frame[name])
        missing = np.isnan(column)
        found.append(((column if fill is None else np.where(missing, fill, column)) - mean) / sd)
        found += [missing] if says_missing else []
    for name, known in recipe.categories.items():
        text = frame[name].astype(object).where(frame[name].notna(), "missing").astype(str)
        found += [columns.indices(name, text, known) == i for i in range(1, len(known))]
    return np.stack([np.asarray(one, float) for one in found], axis=1)


def _group_indices(name, column, known):
    """Return the group of each row, by index: those of training rows first, new ones as they
    come.
    """
    every = dict.fromkeys([*known, *column])
    if odd := [one for one in every if isinstance(one, str) != isinstance(known[0], str)]:
        raise ValueError(f"{name}: given {odd[:9]}, expected groups like {known[0]!r}")
    return pd.Index([*every]).get_indexer(column)


def _outcomes(recipe, frame):
    """Return the outcomes of rows, 0 where there is none, and which rows have one."""
    y, seen = np.zeros(len(frame)), np.zeros(len(frame), bool)
    if recipe.outcome in frame:
        seen = frame[recipe.outcome].notna().to_numpy()
        given = frame[recipe.outcome][seen]
        if recipe.kind in CLASSES:
            y[seen] = columns.indices(recipe.outcome, given, recipe.classes)
        else:
            mean, sd = recipe.classes or (0.0, 1.0)
            _check_outcome(recipe.outcome, given, recipe.kind)
            y[seen] = (given.to_numpy(float) - mean) / sd
    return y, seen


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
