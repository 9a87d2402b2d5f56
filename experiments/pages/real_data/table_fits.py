"""The arms of ``predictions``: what is fitted to the insurance table, sampled or not.

With splines, every number among the covariates with more than ten values becomes a cubic spline
with five knots at its quantiles in the training rows, all under the prior of the other slopes.
"""

from helpers import mcmc, networks
from helpers.common import take

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, SplineTransformer, StandardScaler

from experiments.methods import grouped_networks, grouped_rows, runs
from experiments.problems import health

SETTINGS = {
    "seed": 3030,
    "sizes": [4, 16, 1000],  # families a cell that train; all of them in the end
    "size_elsewhere": 16,
    "num_parts": {"cell": 3, "plan": 3, "site": 6},  # in which they are left out
    "num_chains": 4,
    "num_warmup": 300,
    "num_samples": 1000,
    "thin": 10,
    "hidden": [5],
    "num_knots": 5,
    "more_values_than": 10,  # a number with so few is not bent
    "penalties": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0],
    "trees": {"learning_rate": [0.05], "max_iter": [50, 100, 200], "max_leaf_nodes": [4, 8]},
    "num_resamples": 4000,
    "threshold_nll": 0.005,
}


class Arm(NamedTuple):
    """A sampled model."""

    hidden: list  # units of each hidden layer
    groups: dict  # what differs by group, as ``grouped_rows.learn`` takes it
    curved: bool = False  # numbers as splines
    alone: bool = False  # networks of cells share no mean and no learnt scale


FAMILY = {"family": "intercept"}
OF_CELLS = {"cell": "network", **FAMILY}
OWN = {"site": "network", "plan": "network", **FAMILY}
HEADS = {"site": "head", "plan": "head", **FAMILY}
LINES, CURVES, SHIFTED, LEARNT = (
    "mixed logistic",
    "mixed logistic, splines",
    "one network, groups shift it",
    "a network a cell, shared prior",
)
SAMPLED = {
    LINES: Arm([], health.EFFECTS),
    "mixed logistic, slopes too": Arm([], OWN),
    CURVES: Arm([], health.EFFECTS, curved=True),
    "one network for all": Arm(SETTINGS["hidden"], FAMILY),
    SHIFTED: Arm(SETTINGS["hidden"], health.EFFECTS),
    "shared features, a head a group": Arm(SETTINGS["hidden"], HEADS),
    "a network a group": Arm(SETTINGS["hidden"], OWN),
    LEARNT: Arm(SETTINGS["hidden"], OF_CELLS),
    "a network a cell, alone": Arm(SETTINGS["hidden"], OF_CELLS, alone=True),
}
CLASSIC = ("base rate", "logistic", "boosted trees", "boosted trees, calibrated")


def split(what, size, part):
    """Return training and test rows."""
    frame = health.load()
    place = frame.family.map(health.parts(frame, SETTINGS["seed"]))
    if what == "family":
        return frame[(place >= 0) & (place < size)], frame[place < 0]
    levels = np.random.default_rng(SETTINGS["seed"]).permutation(np.sort(frame[what].unique()))
    out = frame[what].isin(np.array_split(levels, SETTINGS["num_parts"][what])[part])
    return frame[~out & (place >= 0) & (place < size)], frame[out]


def sampled(key, train, test, arm, hyperprior=None, fan_in=True, **lengths):
    """Sample a model of the training rows; keep what it predicts, and what its diagnostics need."""
    key_starts, key_chains, key_new = jax.random.split(key, 3)
    train, test, features = bent(train, test) if arm.curved else (train, test, health.FEATURES)
    recipe = grouped_rows.learn(train, health.OUTCOME, features, arm.groups, fan_in=fan_in)
    network = networks.MLP(hidden=tuple(arm.hidden), use_bias=True)
    density, shapes = (
        grouped_networks.log_density(network, recipe, hyperprior),
        grouped_networks.shapes(network, recipe),
    )
    whole = without_sharing(shapes) if arm.alone else identity
    shapes = (
        {"log_sd": {"family": shapes["log_sd"]["family"]}, "offset": shapes["offset"]}
        if arm.alone
        else shapes
    )
    starts = mcmc.normal_starts(key_starts, shapes, (SETTINGS["num_chains"],), scale=0.3)
    table = grouped_rows.encode(recipe, train)
    posterior = mcmc.sample(
        key_chains, lambda at, table: density(whole(at), table), starts, data=table, **lengths
    )
    draws = jax.vmap(jax.vmap(whole))(posterior.draws)
    kept = take(draws, np.s_[:, :: SETTINGS["thin"]])
    p = grouped_networks.predict(
        key_new, network, recipe, kept, grouped_rows.encode(recipe, test)
    ).mean()
    at_train = grouped_rows.encode(recipe, train.iloc[:: len(train) // 100])
    seen = grouped_networks.predict(key_new, network, recipe, draws, at_train).mean()
    sds = {"log_sd": posterior.draws["log_sd"], "seen": np.asarray(seen)}
    seconds = np.asarray(posterior.warmup.seconds).sum()
    return {"p": np.asarray(p), "seconds": seconds, **sds, **runs.kept_run(posterior)}


def identity(position):
    """A position as it is."""
    return position


def without_sharing(shapes):
    """Return what makes a whole position where cells share nothing: mean 0 and sd 1."""

    def whole(position):
        mean, of_cells = (
            jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), shapes[name])
            for name in ("mean", "log_sd")
        )
        return position | {"mean": mean, "log_sd": of_cells | position["log_sd"]}

    return whole


def bent(train, test):
    """Return both parts with splines in place of numbers, and the names of all features."""
    median = train[health.FEATURES].median()
    train, test = (one.fillna(median) for one in (train, test))
    curved = [
        name for name in health.FEATURES if train[name].nunique() > SETTINGS["more_values_than"]
    ]
    features = [name for name in health.FEATURES if name not in curved]
    for name in curved:
        spline = SplineTransformer(SETTINGS["num_knots"], knots="quantile", include_bias=False).fit(
            train[[name]]
        )
        columns = [f"{name} {i}" for i in range(spline.n_features_out_)]
        parts = [
            pd.DataFrame(spline.transform(one[[name]]), one.index, columns) for one in (train, test)
        ]
        several = [column for column in columns if parts[0][column].nunique() > 1]
        train, test = (
            one.join(part[several]) for one, part in zip((train, test), parts, strict=True)
        )
        features += several
    return train, test, features


def base_rate(train, test):
    """The share of training rows, whoever is asked about."""
    return np.full(len(test), train[health.OUTCOME].mean())


def prepared(train, *frames_):
    """Features and groups, missing numbers as the median of training rows."""
    columns = [*health.FEATURES, "site", "plan"]
    return [one[columns].fillna(train[health.FEATURES].median()) for one in frames_]


def chosen(model, grid, train):
    """The setting of least NLL in five folds of training families, fitted to all training rows."""
    (x,) = prepared(train, train)
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=GroupKFold(5))
    return search.fit(x, train[health.OUTCOME], groups=train.family).best_estimator_


def logistic(train, test):
    """Ridge logistic regression on features, sites and plans."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (StandardScaler(), health.FEATURES), (encoder, ["site", "plan"])
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=2000))
    grid = {"logisticregression__C": SETTINGS["penalties"]}
    return chosen(model, grid, train).predict_proba(*prepared(train, test))[:, 1]


def best_trees(train):
    """Gradient-boosted trees that see site and plan as categories."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns = make_column_transformer((encoder, ["site", "plan"]), remainder="passthrough")
    trees = HistGradientBoostingClassifier(
        categorical_features=[0, 1], min_samples_leaf=50, random_state=0
    )
    grid = {
        f"histgradientboostingclassifier__{name}": values
        for name, values in SETTINGS["trees"].items()
    }
    return chosen(make_pipeline(columns, trees), grid, train)


def boosted(train, test):
    """Their probabilities as they are."""
    return best_trees(train).predict_proba(*prepared(train, test))[:, 1]


def calibrated(train, test):
    """And through a logistic curve fitted on folds of families."""
    x, at = prepared(train, train, test)
    folds = list(GroupKFold(5).split(x, groups=train.family))
    return (
        CalibratedClassifierCV(best_trees(train), cv=folds)
        .fit(x, train[health.OUTCOME])
        .predict_proba(at)[:, 1]
    )


FITS = dict(zip(CLASSIC, (base_rate, logistic, boosted, calibrated), strict=True))
