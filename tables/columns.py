"""Columns of a data frame, checked: ``columns.numbers("age", frame["age"])`` is an array of floats.

Each error names the column, what was given and what was expected.
"""

from helpers import checks

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float, Int


def refuse_missing(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Check that the named columns have no missing values.

    ValueError: some have; it says how many by column.
    """
    missing = {name: int(frame[name].isna().sum()) for name in names if frame[name].isna().any()}
    if missing:
        raise ValueError(
            f"missing values: given {missing} by column, expected none there (or see `missing`)"
        )


def is_number(column: pd.Series) -> bool:
    """Return whether a column holds numbers, not text, bools or a pandas category."""
    return pd.api.types.is_numeric_dtype(column) and column.dtype != bool


def numbers(name: str, column: pd.Series) -> Float[np.ndarray, " row"]:
    """Return a column as floats, missing values as NaN.

    ValueError: values that are not numbers, or are infinite.
    """
    if not pd.api.types.is_numeric_dtype(column):
        raise ValueError(f"{name}: given {column.dtype}, {column.iloc[0]!r}, expected numbers")
    checks.finite(**{name: column.dropna().to_numpy(float)})
    return column.to_numpy(float)


def levels(name: str, column: pd.Series) -> list:
    """Return the different values of a column, sorted.

    ValueError: fewer than two, or values that are neither all text nor all numbers.
    """
    found = column.unique().tolist()
    if len(found) < 2 or not any(
        all(isinstance(one, kind) for one in found) for kind in (str, (int, float))
    ):
        raise ValueError(
            f"{name}: given {found[:9]}, expected two or more, text alone or numbers alone"
        )
    return sorted(found)


def indices(name: str, values: Sequence, known: Sequence) -> Int[np.ndarray, " row"]:
    """Return the index of each value among those that are known.

    ValueError: a value that is not.
    """
    found = pd.Index(known).get_indexer(values)
    if (found < 0).any():
        unknown = sorted({*values[found < 0]})[:9]
        raise ValueError(f"{name}: given {unknown}, expected one of {known}")
    return found
