"""Models of a table of columns that are no networks, by scikit-learn: ridge, Gaussian processes,
boosted trees; of one split.

Each says a normal at each row. What is chosen is chosen by five folds of the rows that train, of a
process by its marginal likelihood.
"""

from helpers import common

import itertools
from functools import partial

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict

from experiments.methods import column_scores
from experiments.methods.column_rivals import best_noise, repeated
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables

SEED, FOLDS = 3304, 5
PENALTIES = np.logspace(-3, 3, 13)
TREES = {"rate": [0.05, 0.1], "depth": [2, 4], "number": [50, 100, 200, 500]}
QUANTILES = (0.159, 0.5, 0.841)  # mean of a normal, and one deviation to both sides
STRETCH = np.exp(np.linspace(np.log(0.5), np.log(4.0), 43))  # of that deviation
RESTARTS = 1  # of the search of a process's scales


def folds():
    """Return the folds of the rows that train, whose order is random."""
    return KFold(FOLDS)


def ridge(rows, seed):
    """Linear regression; penalty and noise by folds."""
    model = RidgeCV(PENALTIES, cv=folds()).fit(rows.x_train, rows.y_train)
    left = cross_val_predict(model, rows.x_train, rows.y_train, cv=folds())
    return one_noise(model.predict(rows.x_test), left, rows.y_train)


def one_noise(mean, left, y):
    """Return normals of a mean, their noise what predictions of left-out rows make likeliest."""
    return repeated(mean, best_noise(left[None], y))


def process(shape):
    """Return the fit of a Gaussian process, a length a column, by its marginal likelihood."""

    def fit(rows, seed):
        columns = rows.x_train.shape[1]
        bounds = {"length_scale_bounds": (1e-2, 1e6)}
        kernel = ConstantKernel(1.0, (1e-3, 1e5)) * shape(np.ones(columns), **bounds)
        kernel += WhiteKernel(0.1, (1e-7, 10.0))
        model = GaussianProcessRegressor(
            kernel, n_restarts_optimizer=RESTARTS, random_state=seed
        ).fit(rows.x_train, rows.y_train)
        mean, sd = model.predict(rows.x_test, return_std=True)
        return repeated(mean, sd)

    return fit


def boosted(seed, rate, depth, **loss):
    """Return trees of a rate and a depth, as many as ever."""
    return GradientBoostingRegressor(
        learning_rate=rate, max_depth=depth, n_estimators=TREES["number"][-1], subsample=0.8,
        random_state=seed, **loss,
    )  # fmt: skip


def staged(model, x):
    """Return predictions after each number of trees, [number, row]."""
    each = list(model.staged_predict(x))
    return np.array([each[number - 1] for number in TREES["number"]])


def left_out(rows, make):
    """Return predictions [number, row] of rows by trees that have not seen them."""
    found = np.empty((len(TREES["number"]), len(rows.y_train)))
    for seen, out in folds().split(rows.x_train):
        model = make().fit(rows.x_train[seen], rows.y_train[seen])
        found[:, out] = staged(model, rows.x_train[out])
    return found


def best_shape(rows, seed):
    """Return rate and depth, number of trees by index, and their predictions of left-out rows."""
    shapes = list(itertools.product(TREES["rate"], TREES["depth"]))
    left = np.array([left_out(rows, lambda s=s: boosted(seed, *s)) for s in shapes])
    errors = ((left - rows.y_train) ** 2).mean(axis=2)
    shape, number = np.unravel_index(np.argmin(errors), errors.shape)
    return shapes[shape], number, left[shape, number]


def trees(rows, seed):
    """Boosted trees whose depth, number and rate are chosen by folds; one noise, by folds too."""
    shape, number, left = best_shape(rows, seed)
    model = boosted(seed, *shape).fit(rows.x_train, rows.y_train)
    return one_noise(staged(model, rows.x_test)[number], left, rows.y_train)


def tree_quantiles(rows, seed):
    """Boosted trees of three quantiles, of which a normal is made at each row.

    Depth and rate are those of ``trees``; how many trees there are, and a factor of all deviations,
    are what left-out rows like best.
    """
    (rate, depth), _, _ = best_shape(rows, seed)
    made = [partial(boosted, seed, rate, depth, loss="quantile", alpha=q) for q in QUANTILES]
    left = np.array([left_out(rows, make) for make in made])
    settings = list(itertools.product(range(left.shape[1]), STRETCH))
    values = [
        column_scores.log_densities(normals(left[:, number], stretch), rows.y_train).mean()
        for number, stretch in settings
    ]
    number, stretch = settings[int(np.argmax(values))]
    models = [make().fit(rows.x_train, rows.y_train) for make in made]
    said = normals([staged(model, rows.x_test)[number] for model in models], stretch)
    return repeated(said.mean[0, 0], np.exp(said.log_noise[0, 0]))


def normals(quantiles, stretch):
    """Return normals [1, 1, row] of three quantiles; a deviation is 0.005 at least."""
    low, middle, high = quantiles
    sd = np.maximum(stretch * (high - low) / 2, 0.005)
    return Predicted(middle[None, None], np.log(sd)[None, None])


ARMS = {
    "ridge": ridge,
    "process, RBF": process(RBF),
    "process, Matern 5/2": process(lambda *a, **k: Matern(*a, nu=2.5, **k)),
    "trees": trees,
    "trees, quantiles": tree_quantiles,
}


def settings(table):
    """Return what a table's result is told to be."""
    return {
        "seed": SEED, "table": table, "folds": FOLDS, "penalties": PENALTIES.tolist(),
        "trees": TREES, "quantiles": list(QUANTILES), "restarts": RESTARTS,
    }  # fmt: skip


def units(table):
    """Return every arm on every split."""
    return {
        f"{arm}; split {split}": {"table": table, "arm": arm, "split": split}
        for arm in ARMS
        for split in range(usual_tables.NUM_SPLITS)
    }


def unit(table: str, arm: str, split: int) -> dict:
    """Fit an arm on a split; keep the normals at the rows that test."""
    seed = int(common.generator(common.key(SEED, arm, table, split)).integers(2**31))
    said = ARMS[arm](usual_tables.split(table, split), seed)
    return {"mean": said.mean[0, 0], "sd": np.exp(said.log_noise[0, 0])}


def score(drawn: dict, table: str, arm: str, split: int) -> dict:
    """Return the scores of an arm on a split."""
    rows = usual_tables.split(table, split)
    return column_scores.scored(repeated(drawn["mean"], drawn["sd"]), rows.y_test, rows.sd, split)
