"""Boosted trees of a wider grid than that of ``column_baselines``, of one split: there they end at
depth 4 and 500 trees, and deeper ones err less on airfoil.
"""

from helpers import common

import itertools
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from experiments.methods import column_baselines, column_scores
from experiments.methods.column_rivals import repeated
from experiments.problems import usual_tables

SEED = 3311
RATES, DEPTHS, NUMBERS = (0.05, 0.1), (2, 4, 6, 8), (50, 100, 200, 500, 1000)
SETTINGS = {
    "seed": SEED,
    "folds": column_baselines.FOLDS,
    "rates": list(RATES),
    "depths": list(DEPTHS),
    "numbers": list(NUMBERS),
}


class Chosen(NamedTuple):
    """What folds choose, and its predictions of rows by trees that have not seen them."""

    rate: float
    depth: int
    number: int
    left: np.ndarray


def stages(seed, rate, depth, seen, y, asked):
    """Return predictions of rows after each of ``NUMBERS`` trees, [number, row]."""
    model = GradientBoostingRegressor(
        learning_rate=rate, max_depth=depth, n_estimators=NUMBERS[-1], subsample=0.8,
        random_state=seed,
    ).fit(seen, y)  # fmt: skip
    each = list(model.staged_predict(asked))
    return np.array([each[number - 1] for number in NUMBERS])


def choose(seed, rows):
    """Return the shape whose squared error of rows left out is least, by five folds."""
    best, least = None, np.inf
    for rate, depth in itertools.product(RATES, DEPTHS):
        left = np.empty((len(NUMBERS), len(rows.y_train)))
        for seen, out in column_baselines.folds().split(rows.x_train):
            x, y = rows.x_train[seen], rows.y_train[seen]
            left[:, out] = stages(seed, rate, depth, x, y, rows.x_train[out])
        errors = ((left - rows.y_train) ** 2).mean(axis=1)
        if errors.min() < least:
            least, at = errors.min(), int(errors.argmin())
            best = Chosen(rate, depth, NUMBERS[at], left[at])
    return best


def unit(table: str, split: int) -> dict:
    """Choose and fit trees on a split; keep the normals at the rows that test, and the choice."""
    seed = int(common.generator(common.key(SEED, table, split)).integers(2**31))
    rows = usual_tables.split(table, split)
    found = choose(seed, rows)
    given = rows.x_train, rows.y_train, rows.x_test
    mean = stages(seed, found.rate, found.depth, *given)[NUMBERS.index(found.number)]
    said = column_baselines.one_noise(mean, found.left, rows.y_train)
    shape = np.array([found.rate, found.depth, found.number])
    return {"mean": said.mean[0, 0], "sd": np.exp(said.log_noise[0, 0]), "shape": shape}


def score(drawn: dict, table: str, split: int) -> dict:
    """Return the scores on a split, and the rate, depth and number of trees that were chosen."""
    rows = usual_tables.split(table, split)
    said = repeated(drawn["mean"], drawn["sd"])
    found = column_scores.scored(said, rows.y_test, rows.sd, split)
    return found | dict(zip(("rate", "depth", "number"), drawn["shape"].tolist(), strict=True))
