"""A formula as lme4 writes it, and the columns that it asks of a data frame.

``formulas.parse("invest ~ value + (value | firm)")`` reads the parentheses. formulaic makes the
columns, here those of ``1 + value``, once in common and once for each firm's own part.
"""

import reprlib
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from formulaic import ModelSpec
from formulaic.errors import DataMismatchWarning, FormulaicError
from jaxtyping import Float, Int

from tables import sides

# what of a network may differ by group, beside columns: weights, the last layer, all of it
WAYS = ("network", "head", "separate")


class Term(NamedTuple):
    """What differs by group: one pair of parentheses."""

    name: str  # of its parameters, such as "firm"
    factors: tuple[str, ...]  # columns; a group is a combination of their values
    inner: str  # right side of the formula of what differs, or one of `WAYS`
    correlated: bool  # whether its parts are, as after ``|``; not after ``||``


def parse(formula: str) -> tuple[str, str, tuple[Term, ...]]:
    """Return outcome, common right side and terms of groups of ``outcome ~ x + (x | group)``.

    ``(x | a/b)`` is ``(x | a) + (x | a:b)``; behind ``||`` the parts of a group are independent.

    ValueError: not one ``~``, parentheses that do not close, two terms that are the same.
    """
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise ValueError(f"formula: given {formula!r}, expected 'outcome ~ x + (x | group)'")
    sides.refuse_intercepts(formula)
    outcome, right = (part.strip() for part in formula.split("~"))
    kept, terms, begun, depth = "", [], 0, 0
    for at, sign in enumerate(right):
        depth += (sign == "(") - (sign == ")")
        if sign == "(" and depth == 1:
            kept, begun = kept + right[begun:at], at
        elif sign == ")" and depth == 0:
            inside, begun = right[begun : at + 1], at + 1
            terms += _terms(inside[1:-1]) if "|" in inside else []
            kept += "" if "|" in inside else inside
    if depth or not outcome:
        raise ValueError(f"formula: given {formula!r}, expected an outcome and closed parentheses")
    names = [term.name for term in terms]
    terms = [
        term._replace(name=f"{term.name}: {term.inner}") if names.count(term.name) > 1 else term
        for term in terms
    ]
    if len({term.name for term in terms}) < len(terms):
        raise ValueError(f"formula: given {formula!r}, expected each term of a group once")
    kept += right[begun:]
    if "|" in kept:
        raise ValueError(f"formula: given {formula!r}, expected parentheses about {kept!r}")
    parts = [part.strip() for part in kept.split("+")]
    return outcome.strip("`"), " + ".join(part for part in parts if part) or "1", tuple(terms)


def _terms(inside):
    """Return the terms of what stands between parentheses."""
    inner, bar, group = inside.partition("||" if "||" in inside else "|")
    nested = [[one.strip(" `") for one in part.split(":")] for part in group.split("/")]
    factors = [[one for part in nested[: i + 1] for one in part] for i in range(len(nested))]
    found = []
    for of in factors:
        name = ":".join(of)
        if bar == "|" or inner.strip() in WAYS:
            found += [Term(name, tuple(of), inner.strip(), bar == "|")]
            continue
        parts = [str(part) for part in sides.formula(inner)]
        for part in parts:  # each a term of its own, so that nothing correlates
            label, side = (name, "1") if part == "1" else (f"{name}: {part}", f"0 + {part}")
            found += [Term(label, tuple(of), side, False)]
    return found


def clean(frame: Any, names: Sequence[str], fills: dict | None = None) -> pd.DataFrame:
    """Return the named columns as formulaic takes them: nullable numbers as floats, text as it is.

    Args:
        frame: a pandas data frame.
        names: of columns; a name that is a number is its text.
        fills: by column, what a missing value becomes; where there is none, it is refused.

    ValueError: no data frame, no rows, a column that is absent or twice there, of dates or mixed
        values, missing or infinite ones; it names column, row and remedy.
    """
    if not isinstance(frame, pd.DataFrame) or not len(frame):
        given = "no rows" if isinstance(frame, pd.DataFrame) else type(frame).__name__
        raise ValueError(f"frame: given {given}, expected a pandas.DataFrame (frame.to_pandas())")
    labels, found = [str(name) for name in frame.columns], {}
    for name in names:
        if labels.count(name) != 1:
            near = [one for one in get_close_matches(name, labels, 1) if one != name]
            raise ValueError(
                f"frame: given {reprlib.repr(labels)}, expected the column {name!r} in it once"
                + "".join(f"; is it {one!r}?" for one in near)
            )
        column = frame.iloc[:, labels.index(name)].reset_index(drop=True).infer_objects()
        if fills and name in fills and column.isna().any():
            number = is_number(column)
            column = (column.astype(float) if number else column).fillna(fills[name])
            column = column.infer_objects()
        if column.isna().any():
            raise ValueError(
                f"{name}: given nothing in {column.isna().sum()} rows, first in row "
                f"{frame.index[column.isna()].tolist()[0]!r}, expected a value in each: "
                f"frame.dropna(subset=[{name!r}]), or for the model's columns missing='median'"
            )
        found[name] = _as_known(name, column, frame.index)
    return pd.DataFrame(found, index=range(len(frame)))


def fills(frame: pd.DataFrame, names: Sequence[str]) -> dict:
    """Return what a missing value becomes, by column: the median, or what is most frequent. What
    is no column of numbers, bools or text ``clean`` will refuse.
    """
    found = {}
    labels = [str(label) for label in getattr(frame, "columns", ())]
    for name in names:
        if labels.count(name) != 1:
            continue
        column = frame.iloc[:, labels.index(name)].dropna().infer_objects()
        if len(column) and is_number(column):
            found[name] = float(column.median())
        elif len(column) and (
            isinstance(column.dtype, pd.CategoricalDtype)
            or all(isinstance(one, str | bool | np.bool_) for one in column)
        ):
            found[name] = column.mode().iloc[0]
    return found


def is_number(column: pd.Series) -> bool:
    """Return whether a column holds real numbers, and not bools."""
    types = pd.api.types
    odd = types.is_bool_dtype(column) or types.is_complex_dtype(column)
    return types.is_numeric_dtype(column) and not odd


def _as_known(name, column, index):
    """Return a column of floats, bools, text or a pandas Categorical."""
    types = pd.api.types
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.rename_categories(column.cat.categories.astype(str))
    if types.is_bool_dtype(column):
        return column.astype(bool)
    if is_number(column):
        column = column.astype(float)
        if not np.isfinite(column).all():
            bad = index[~np.isfinite(column)][0]
            raise ValueError(f"{name}: given an infinite number in row {bad!r}, expected finite")
        return column
    if all(isinstance(one, str) for one in column):
        return column.astype(object)
    kinds = sorted({type(one).__name__ for one in column})
    raise ValueError(
        f"{name}: given {column.dtype} of {kinds}, expected numbers, bools or text; a date as a "
        f"number: (frame[{name!r}] - frame[{name!r}].min()).dt.days; others: .astype(str)"
    )


def columns(
    what: str | ModelSpec, frame: pd.DataFrame
) -> tuple[Float[np.ndarray, "row column"], ModelSpec]:
    """Return the columns of a right side, and the spec by which formulaic makes them again.

    Args:
        what: the right side, or the spec of earlier rows.
        frame: of ``clean``.

    ValueError: what formulaic cannot read or make, a level that earlier rows did not have.
    """
    side = what if isinstance(what, str) else str(what.formula)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataMismatchWarning)
        try:
            spec = what if isinstance(what, ModelSpec) else ModelSpec(formula=what)
            made = spec.get_model_matrix(frame, na_action="raise")
        except DataMismatchWarning as error:
            raise ValueError(
                f"frame: given levels that are new, {error}".split("They")[0]
            ) from error
        except (FormulaicError, TypeError, ValueError) as error:
            raise ValueError(
                f"formula: given {side}, expected formulaic's language: {sides.plain(error)}"
            ) from error
    array = np.asarray(made, np.float64)
    if not np.isfinite(array).all():
        bad = [
            n for n, ok in zip(made.columns, np.isfinite(array).all(axis=0), strict=True) if not ok
        ]
        raise ValueError(f"formula: given {bad}, which are not finite in every row")
    return array, made.model_spec


def references(spec: ModelSpec) -> dict[str, str]:
    """Return the level that the others of a column of text are compared with, by column."""
    found = {}
    for factor, (_, state) in spec.encoder_state.items():
        levels = [str(level) for level in state.get("categories", [])]
        shown = {name for name in spec.column_names if name.startswith(f"{factor}[")}
        absent = [level for level in levels if f"{factor}[T.{level}]" not in shown]
        if shown and len(absent) == 1:
            found[factor] = absent[0]
    return found


def refuse_constant(names: Sequence[str], array: Float[np.ndarray, "row column"]) -> None:
    """Check that columns have several values, but for the intercept.

    ValueError: one that has not.
    """
    for name, values in zip(names, array.T, strict=True):
        if name != "Intercept" and np.ptp(values) == 0:
            raise ValueError(f"{name}: given {values[0]:g} in all rows, expected several values")


def same_kinds(frame: pd.DataFrame, known: pd.DataFrame) -> None:
    """Check that columns of later rows are numbers, or text, where those of earlier rows are.

    ValueError: one that is not.
    """
    for name in frame:
        now, then = (of[name].dtype.kind in "fb" for of in (frame, known))
        if now != then:
            words = ("text", "numbers")
            raise ValueError(f"{name}: given {words[now]}, expected {words[then]} as in fitting")


def as_text(value: Any) -> str:
    """Return a value as a label: a whole number without its point."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)


def groups(
    factors: Sequence[str], frame: pd.DataFrame, known: Sequence[str] | None = None
) -> tuple[Int[np.ndarray, " row"], list[str]]:
    """Return each row's group by index, and the groups' labels, new ones after those known.

    Labels are text, those of a combination joined by a colon.

    Args:
        factors: columns whose combination is a group.
        frame: of ``clean``.
        known: labels of earlier rows.
    """
    texts = [frame[name].map(as_text).astype(str) for name in factors]
    joined = texts[0].str.cat(texts[1:], sep=":") if texts[1:] else texts[0]
    seen = dict.fromkeys(joined)
    numeric = len(factors) == 1 and is_number(frame[factors[0]])
    every = [*(known or sorted(seen, key=float if numeric else None))]
    every += [one for one in seen if one not in {*every}]
    return pd.Index(every).get_indexer(joined), every
