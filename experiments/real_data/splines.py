"""Is it the network, or a curve? The mixed model with splines beside the best network of ``predictions``.

Every number among the covariates with more than ten values becomes a cubic spline with five knots at its quantiles in
the training rows, all under the prior of the other slopes. New families in cells that were seen; sizes, split and
lengths are those of ``predictions``, and the two rivals are drawn again, so that differences pair row by row.
"""

import pandas as pd
from sklearn.preprocessing import SplineTransformer

from experiments import shared
from experiments.real_data import health, predictions

SETTINGS = {**predictions.SETTINGS, "num_knots": 5, "more_values_than": 10}
CURVES = "mixed logistic, splines"
ARMS = ("mixed logistic", CURVES, "one network, groups shift it")
score = predictions.score


def units():
    """An arm at one size each."""
    return {
        f"{n}: {arm}": predictions.setting(arm, "family", n, 0) | lengths() for n in SETTINGS["sizes"] for arm in ARMS
    }


def lengths():
    """Draws of each chain."""
    return {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}


def rows(scored):
    """Rows of ``predictions``, with differences to the splines."""
    return predictions.rows(scored, CURVES, "less_than_splines")


SMALL = predictions.setting(CURVES, "family", 4, 0) | lengths()


def unit(arm, what, size, part, **lengths):
    """Fit an arm to the same training rows as ``predictions`` does."""
    if arm != CURVES:
        return predictions.unit(arm, what, size, part, **lengths)
    train, test, features = bent(*predictions.split(what, size, part))
    key = shared.key(SETTINGS["seed"], arm, what, size, part)
    return predictions.sampled(key, train, test, features, [], health.EFFECTS, **lengths)


def bent(train, test):
    """Return both parts with splines in place of numbers, and the names of all features."""
    median = train[health.FEATURES].median()
    train, test = (one.fillna(median) for one in (train, test))
    curved = [name for name in health.FEATURES if train[name].nunique() > SETTINGS["more_values_than"]]
    features = [name for name in health.FEATURES if name not in curved]
    for name in curved:
        spline = SplineTransformer(SETTINGS["num_knots"], knots="quantile", include_bias=False).fit(train[[name]])
        columns = [f"{name} {i}" for i in range(spline.n_features_out_)]
        parts = [pd.DataFrame(spline.transform(one[[name]]), one.index, columns) for one in (train, test)]
        several = [column for column in columns if parts[0][column].nunique() > 1]
        train, test = (one.join(part[several]) for one, part in zip((train, test), parts, strict=True))
        features += several
    return train, test, features
