"""Five tables of the UCI repository on their twenty published splits, standardized by the rows that
train.

The splits are those of the experiments of Hernandez-Lobato and Adams (2015) and of Gal and
Ghahramani (2016): ninety per cent of the rows train, ten test.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

FOLDER = Path(__file__).with_name("uci")
NAMES = ("yacht", "energy", "concrete", "wine", "airfoil")
NUM_SPLITS = 20


class Split(NamedTuple):
    """Rows that train and rows that test, in units of the mean and deviation of those that train.

    A log density in the outcome's unit is the one here less ``log(sd)``.
    """

    x_train: Float[np.ndarray, "row column"]
    y_train: Float[np.ndarray, " row"]
    x_test: Float[np.ndarray, "row column"]
    y_test: Float[np.ndarray, " row"]
    mean: float  # of the outcome, in its unit
    sd: float


@cache
def read(name: str) -> pd.DataFrame:
    """Return a table, the outcome its last column; ValueError for a name that is none."""
    if name not in NAMES:
        raise ValueError(f"name: given {name!r}, expected one of {NAMES}")
    return pd.read_csv(FOLDER / f"{name}.csv").astype(float)


@cache
def published(num_rows: int) -> list[tuple[Int[np.ndarray, " row"], Int[np.ndarray, " row"]]]:
    """Return the rows that train and that test of each published split, by NumPy's old generator at
    seed 1.
    """
    random, most = np.random.RandomState(1), round(0.9 * num_rows)
    orders = [random.permutation(num_rows) for _ in range(NUM_SPLITS)]
    return [(order[:most], order[most:]) for order in orders]


def split(name: str, number: int) -> Split:
    """Return a published split of a table; ValueError for a number that is not 0 to 19."""
    if number not in range(NUM_SPLITS):
        raise ValueError(f"number: given {number}, expected 0 to {NUM_SPLITS - 1}")
    rows = read(name).to_numpy()
    return standardized(*(rows[part] for part in published(len(rows))[number]))


def standardized(train: Float[np.ndarray, "row all"], test: Float[np.ndarray, "row all"]) -> Split:
    """Return rows, the outcome last, in units of mean and deviation of those that train."""
    mean, sd = train.mean(axis=0), train.std(axis=0)
    (x_train, y_train), (x_test, y_test) = (
        ((part[:, :-1] - mean[:-1]) / sd[:-1], (part[:, -1] - mean[-1]) / sd[-1])
        for part in (train, test)
    )
    return Split(x_train, y_train, x_test, y_test, float(mean[-1]), float(sd[-1]))
