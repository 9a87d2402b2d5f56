"""A table in: rows in groups become arrays; what training rows taught is kept for rows to come.

    groups = {"clinic": "network", "doctor": "intercept"}  # nested or crossed; what differs by each: WAYS
    recipe = frames.learn(train, "visits", ["age", "sex"], groups, kind="poisson")
    table, later = frames.encode(recipe, train), frames.encode(recipe, test)

Rows of the same groups with a network of their own stand in blocks of at most 32; padding has
weight 0.
"""

from helpers import checks

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

KINDS = ("bernoulli", "categorical", "normal", "poisson", "negative binomial")
WAYS = ("network", "head", "intercept")  # what a group has of its own
# of rows whose gradient is found together: larger ones take longer, by 1.4 times where there are
# thousands
BLOCK = 32


class Recipe(NamedTuple):
    """What training rows taught, made of what JSON holds.

    ``numbers``: by column mean, standard deviation, what a missing value becomes (None: refused),
    and whether a feature says that it was missing. ``categories``: by column its levels; the first
    has no feature of its own. ``levels``: by column the groups of training rows, by index.
    ``classes``: of the outcome; of measurements mean and standard deviation. ``baseline``: log odds
    or log rate of all training rows, by output.
    """

    outcome: str
    kind: str
    numbers: dict
    categories: dict
    groups: dict
    levels: dict
    classes: list
    baseline: list
    fan_in: bool


class Table(NamedTuple):
    """Rows in blocks, features in the order of ``Recipe.numbers`` and ``categories``.

    ``y``: class by index, count, or measurement in standard deviations from the mean. ``weight``:
    power of the likelihood; 0: padding, or no outcome. ``levels``: group by column, [block], or
    [block, row] for an intercept. ``place``: of each row of the data frame among all rows of all
    blocks.
    """

    x: Float[Array, "block row feature"]
    y: Float[Array, "block row"]
    weight: Float[Array, "block row"]
    levels: dict
    place: Int[Array, " row"]


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
    """Return the ``Recipe`` of training rows, an outcome of a kind of KINDS.

    ``groups``: by column what each group has of its own, "network": all weights, "head": those of
    the last layer, "intercept": one number, added to the output. A number is centred and divided by
    its standard deviation; text, a bool or a pandas category gets a feature of 0 and 1 for each
    level but the first. ``missing="median"``: a missing number becomes the median, here and later,
    and a missing text a level of its own; where training rows miss some, a feature of 0 and 1 says
    so. With ``fan_in`` each kernel is divided by the root of the number of its inputs, so that the
    prior of the output depends little on how many features and units there are.

    ValueError: no rows or features, a column that is not there or named twice, an unknown kind, a
        missing value that is refused or is not a feature's, one value alone, text of more than half
        as many levels as rows, groups or classes that are neither text nor numbers, an outcome that
        is not of its kind.
    """
    if not (isinstance(groups, dict) and isinstance(features, list)):
        raise ValueError(
            f"groups, features: given {groups!r} and {features!r}, expected a dict and a list"
        )
    named, ways = [outcome, *groups, *features], [("groups", way, WAYS) for way in groups.values()]
    for name, value, known in [
        ("kind", kind, KINDS),
        ("missing", missing, ("refuse", "median")),
        *ways,
    ]:
        if value not in known:
            raise ValueError(f"{name}: given {value!r}, expected one of {known}")
    absent = [name for name in named if name not in frame]
    twice = sorted(
        {name for name in named if max(named.count(name), [*frame.columns].count(name)) > 1}
    )
    if not (len(frame) and features) or absent or twice:
        found = f"{len(frame)} rows, features {features}, no columns {absent}, twice {twice}"
        raise ValueError(f"frame: given {found}, expected rows, features, and each of {named} once")
    _refuse_holes(frame, named if missing == "refuse" else [outcome, *groups])
    numbers, categories, y = {}, {}, frame[outcome]
    for name in [*features, outcome]:
        if frame[name].nunique() + frame[name].isna().any() < 2:
            raise ValueError(
                f"{name}: given {frame[name].iloc[0]} in all {len(frame)} rows, expected several values"
            )
    for name in features:
        hole = bool(frame[name].isna().any())
        if pd.api.types.is_numeric_dtype(frame[name]) and frame[name].dtype != bool:
            _numbers(name, frame[name])
            filled = frame[name].fillna(frame[name].median())
            fill = None if missing == "refuse" else float(filled.median())
            numbers[name] = [float(filled.mean()), float(filled.std(ddof=0)), fill, hole]
        else:
            categories[name] = [
                *sorted(frame[name].dropna().astype(str).unique()),
                *["missing"] * hole,
            ]
            if 2 * len(categories[name]) > len(frame):
                raise ValueError(
                    f"{name}: given text of {len(categories[name])} levels, expected few (or numbers)"
                )
    levels = {name: _known(name, frame[name]) for name in groups}
    classes = _known(outcome, y) if kind in KINDS[:2] else []
    counts = np.array([(y == one).sum() for one in classes])
    if kind == "bernoulli" and len(classes) > 2:
        raise ValueError(
            f"{outcome}: given {len(classes)} classes, {classes[:9]}, expected two classes"
        )
    _check_outcome(outcome, y, kind)
    if kind == "normal":
        classes, baseline = [float(y.mean()), float(y.std(ddof=0))], [0.0]
    elif kind == "categorical":
        baseline = np.log(counts / len(y)).tolist()
    else:
        baseline = [float(np.log(counts[1] / counts[0]) if classes else np.log(y.mean()))]
    return Recipe(outcome, kind, numbers, categories, groups, levels, classes, baseline, fan_in)


def encode(recipe: Recipe, frame: pd.DataFrame) -> Table:
    """Return rows as training rows taught; without the outcome's column, or where it is missing, a
    row has weight 0.

    A group that training rows did not have is a new one: its index comes after theirs, in order of
    appearance.

    ValueError: no rows, a column that is not there, a missing value where training rows had none, a
        category or class that they did not have, text for groups that were numbers or the reverse,
        an outcome that is not of its kind.
    """
    columns = [*recipe.numbers, *recipe.categories, *recipe.groups]
    if not len(frame) or not {*columns} <= {*frame.columns}:
        raise ValueError(
            f"frame: given {len(frame)} rows of {[*frame.columns]}, expected rows with {columns}"
        )
    holes = {name for name, (*_, fill, _) in recipe.numbers.items() if fill is not None}
    _refuse_holes(
        frame,
        [
            name
            for name in columns
            if name not in holes and "missing" not in recipe.categories.get(name, [])
        ],
    )
    x, level = [], {}
    for name, (mean, sd, fill, hole) in recipe.numbers.items():
        column = _numbers(name, frame[name])
        x += [(column if fill is None else np.where(np.isnan(column), fill, column)) - mean]
        x[-1] /= sd
        x += [np.isnan(column)] if hole else []
    for name, known in recipe.categories.items():
        at = index(
            name,
            frame[name].astype(object).where(frame[name].notna(), "missing").astype(str),
            known,
        )
        x += [at == i for i in range(1, len(known))]
    for name, known in recipe.levels.items():
        # those of training rows first, new ones as they come
        every = dict.fromkeys([*known, *frame[name]])
        if odd := [one for one in every if isinstance(one, str) != isinstance(known[0], str)]:
            raise ValueError(f"{name}: given {odd[:9]}, expected groups like {known[0]!r}")
        level[name] = pd.Index([*every]).get_indexer(frame[name])
    y, seen = np.zeros(len(frame)), np.zeros(len(frame), bool)
    if recipe.outcome in frame:
        seen = frame[recipe.outcome].notna().to_numpy()
        given = frame[recipe.outcome][seen]
        if recipe.kind in KINDS[:2]:
            y[seen] = index(recipe.outcome, given, recipe.classes)
        else:
            mean, sd = recipe.classes or (0.0, 1.0)
            _check_outcome(recipe.outcome, given, recipe.kind)
            y[seen] = (given.to_numpy(float) - mean) / sd
    x = np.stack([np.asarray(one, float) for one in x], axis=1)
    apart = np.stack(
        [level[name] for name, way in recipe.groups.items() if way != "intercept"]
        or [np.zeros(len(x), int)]
    )
    order = np.lexsort(apart[::-1])
    starts = np.flatnonzero(np.any(np.diff(apart[:, order], prepend=-1), axis=0))
    parts = [
        part[a : a + BLOCK]
        for part in np.split(order, starts[1:])
        for a in range(0, len(part), BLOCK)
    ]
    longest = max(map(len, parts))
    # what is too short repeats itself
    rows = np.stack([np.resize(part, longest) for part in parts])
    real = np.stack([np.arange(longest) < len(part) for part in parts])
    place = np.empty(len(frame), np.int32)
    place[rows[real]] = np.flatnonzero(real)
    at = {
        name: level[name][rows if way == "intercept" else rows[:, 0]]
        for name, way in recipe.groups.items()
    }
    arrays = [jnp.asarray(a, jnp.float32) for a in (x[rows], y[rows], real & seen[rows])]
    return Table(
        *arrays, {name: jnp.asarray(a, jnp.int32) for name, a in at.items()}, jnp.asarray(place)
    )


def _refuse_holes(frame, names):
    holes = {name: int(frame[name].isna().sum()) for name in names if frame[name].isna().any()}
    if holes:
        raise ValueError(
            f"missing values: given {holes} by column, expected none there (or see `missing`)"
        )


def _numbers(name, column):
    if not pd.api.types.is_numeric_dtype(column):
        raise ValueError(f"{name}: given {column.dtype}, {column.iloc[0]!r}, expected numbers")
    checks.finite(**{name: column.dropna().to_numpy(float)})
    return column.to_numpy(float)


def _check_outcome(name, y, kind):
    if kind not in KINDS[:2]:
        _numbers(name, y)
        # float32 holds no more
        if kind != "normal" and not ((y >= 0) & (y == y.round()) & (y < 2**24)).all():
            raise ValueError(
                f"{name}: given {y.min()} to {y.max()}, expected values that are {kind}: 0 to 16777215"
            )


def _known(name, column):
    found = column.unique().tolist()
    if len(found) < 2 or not any(
        all(isinstance(one, kind) for one in found) for kind in (str, (int, float))
    ):
        raise ValueError(
            f"{name}: given {found[:9]}, expected two or more, text alone or numbers alone"
        )
    return sorted(found)


def index(name, values, known):
    """The place of each value among those known; ValueError for one that is not."""
    at = pd.Index(known).get_indexer(values)
    if (at < 0).any():
        raise ValueError(f"{name}: given {sorted({*values[at < 0]})[:9]}, expected one of {known}")
    return at
