"""Who predicts best whether a person will have a medical expense, for whom, and by how much.

Three questions: a new family in a cell (site and plan) that was seen, with 4, 16 or all other families a cell; and,
with all, a family in a cell or a site that was not. For the first a quarter of each cell's families are kept for
testing, the same for all sizes and arms; for the others cells are left out in turn, in five parts, and sites one by
one. Settings of the arms that have some are chosen by five folds of training families, but for the networks' size,
which was set before. Every sampled arm has an effect of its own for each family.

Fixed before any run: a difference in NLL whose interval lies within 0.005 is called none.
"""

from helpers import diagnostics, mcmc, metrics, networks
from helpers.common import take

import time

import jax
import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from experiments import shared
from experiments.real_data import health
from tables import frames, multilevel

SETTINGS = {
    "seed": 3030,
    "sizes": [4, 16, 1000],  # families a cell that train; all of them in the end
    "num_parts": 5,
    "num_chains": 4,
    "num_warmup": 300,
    "num_samples": 700,
    "thin": 7,
    "hidden": [5],
    "penalties": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0],
    "trees": {"learning_rate": [0.05], "max_iter": [50, 100, 200], "max_leaf_nodes": [4, 8]},
    "num_resamples": 4000,
    "threshold_nll": 0.005,
}
OWN = {"site": "network", "plan": "network", "family": "intercept"}
HEADS = {"site": "head", "plan": "head", "family": "intercept"}
SAMPLED = {
    "mixed logistic": ([], health.EFFECTS),
    "mixed logistic, slopes too": ([], OWN),
    "one network, groups shift it": (SETTINGS["hidden"], health.EFFECTS),
    "shared features, a head a group": (SETTINGS["hidden"], HEADS),
    "a network a group": (SETTINGS["hidden"], OWN),
}
CLASSIC = ("base rate", "logistic", "boosted trees", "boosted trees, calibrated")
ELSEWHERE = ("cell", "site")
CHEAP = (*CLASSIC[:3], "mixed logistic")


def units():
    """An arm on one training set each."""
    arms = (*CLASSIC, *SAMPLED)
    found = {f"family, {n}: {arm}": setting(arm, "family", n, 0) for n in SETTINGS["sizes"] for arm in arms}
    for what in ELSEWHERE:
        for i in range(6 if what == "site" else SETTINGS["num_parts"]):
            found |= {f"{what}, {i}: {arm}": setting(arm, what, SETTINGS["sizes"][-1], i) for arm in CHEAP}
    return found


def setting(arm, what, size, part):
    """Return a unit's setting."""
    lengths = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")} if arm in SAMPLED else {}
    return {"arm": arm, "what": what, "size": size, "part": part, **lengths}


SMALL = setting("mixed logistic", "family", 4, 0)


def split(what, size, part):
    """Return training and test rows."""
    frame = health.load()
    if what == "family":
        place = frame.family.map(health.parts(frame, SETTINGS["seed"]))
        return frame[(place >= 0) & (place < size)], frame[place < 0]
    levels = np.random.default_rng(SETTINGS["seed"]).permutation(np.sort(frame[what].unique()))
    out = frame[what].isin(np.array_split(levels, 6 if what == "site" else SETTINGS["num_parts"])[part])
    return frame[~out], frame[out]


def unit(arm, what, size, part, **lengths):
    """Fit an arm; keep the probability of an expense for every test row under each draw kept, [chain, draw, row]."""
    train, test = split(what, size, part)
    begun = time.perf_counter()
    if arm not in SAMPLED:
        p = FITS[arm](train, test)
        return {"p": np.float32(p)[None, None], "seconds": np.array(time.perf_counter() - begun)}
    hidden, groups = SAMPLED[arm]
    key = shared.key(SETTINGS["seed"], arm, what, size, part)
    return sampled(key, train, test, health.FEATURES, hidden, groups, **lengths)


def sampled(key, train, test, features, hidden, groups, **lengths):
    """Sample a model of the training rows; keep what it predicts, and what its diagnostics need."""
    key_starts, key_chains, key_new = jax.random.split(key, 3)
    recipe = frames.learn(train, health.OUTCOME, features, groups, missing="median")
    network = networks.MLP(hidden=tuple(hidden), use_bias=True)
    density, table = multilevel.log_density(network, recipe), frames.encode(recipe, train)
    starts = mcmc.normal_starts(key_starts, multilevel.shapes(network, recipe), (SETTINGS["num_chains"],), scale=0.3)
    posterior = mcmc.sample(key_chains, density, starts, data=table, **lengths)
    kept = take(posterior.draws, np.s_[:, :: SETTINGS["thin"]])
    p = multilevel.predict(key_new, network, recipe, kept, frames.encode(recipe, test)).mean()
    at_train = frames.encode(recipe, train.iloc[:: len(train) // 100])
    seen = multilevel.predict(key_new, network, recipe, posterior.draws, at_train).mean()
    sds = {"log_sd": posterior.draws["log_sd"], "seen": np.asarray(seen)}
    seconds = np.asarray(posterior.warmup.seconds).sum()
    return {"p": np.asarray(p), "seconds": seconds, **sds, **shared.kept_of(posterior)}


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
    columns = make_column_transformer((StandardScaler(), health.FEATURES), (encoder, ["site", "plan"]))
    model = make_pipeline(columns, LogisticRegression(max_iter=2000))
    grid = {"logisticregression__C": SETTINGS["penalties"]}
    return chosen(model, grid, train).predict_proba(*prepared(train, test))[:, 1]


def best_trees(train):
    """Gradient-boosted trees that see site and plan as categories."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns = make_column_transformer((encoder, ["site", "plan"]), remainder="passthrough")
    trees = HistGradientBoostingClassifier(categorical_features=[0, 1], min_samples_leaf=50, random_state=0)
    grid = {f"histgradientboostingclassifier__{name}": values for name, values in SETTINGS["trees"].items()}
    return chosen(make_pipeline(columns, trees), grid, train)


def boosted(train, test):
    """Their probabilities as they are."""
    return best_trees(train).predict_proba(*prepared(train, test))[:, 1]


def calibrated(train, test):
    """And through a logistic curve fitted on folds of families."""
    x, at = prepared(train, train, test)
    folds = list(GroupKFold(5).split(x, groups=train.family))
    return CalibratedClassifierCV(best_trees(train), cv=folds).fit(x, train[health.OUTCOME]).predict_proba(at)[:, 1]


FITS = dict(zip(CLASSIC, (base_rate, logistic, boosted, calibrated), strict=True))


def score(drawn, arm, what, size, part, **_):
    """Scores of the mean over draws, sums by family, and how the run went."""
    train, test = split(what, size, part)
    y, p = test[health.OUTCOME].to_numpy(np.int32), np.asarray(drawn["p"])
    mean = p.mean(axis=(0, 1))
    nll = -np.log(np.where(y == 1, mean, 1 - mean), dtype=np.float64)
    found = {"arm": arm, "what": what, "size": size, "num_train": len(train), "seconds": float(drawn["seconds"])}
    found |= {"mean": mean.tolist(), "y": y.tolist(), "family": test.family.tolist(), "cell": test.cell.tolist()}
    found |= {"nll": float(nll.mean()), "nll_error": 0.0}
    if "stats" in drawn:
        found["nll_error"] = diagnostics.nll_error(p, y)
        found["check"] = shared.diagnosed(shared.run_of(drawn), drawn["seen"], log_sd=drawn["log_sd"])
        found["sd"] = jax.tree.map(lambda leaf: float(np.exp(leaf).mean()), drawn["log_sd"])
    return found


def rows(scored, rival="mixed logistic", name="less_than_mixed"):
    """A row an arm, question and size: parts joined; differences to one arm by a bootstrap of families."""
    joined = {}
    for one in scored.values():
        joined.setdefault((one["what"], one["size"], one["arm"]), []).append(one)
    found = []
    for (what, size, arm), parts in joined.items():
        at, other = (_joined(joined[what, size, one]) for one in (arm, rival))
        less = {score: _difference(at[score] - other[score], at["family"]) for score in ("nll", "brier")}
        row = {"what": what, "families": size, "arm": arm, "num_train": [one["num_train"] for one in parts]}
        row |= {"num_test": len(at["y"]), "num_families": len(np.unique(at["family"]))}
        row |= {"scores": metrics.scores(np.float32(at["mean"]), np.int32(at["y"])), name: less}
        row |= {"nll_error": float(np.hypot.reduce([one["nll_error"] for one in parts]) / len(parts))}
        row |= {"nll_by_cell": pd.Series(at["nll"]).groupby(at["cell"].astype(str)).mean().round(4).to_dict()}
        row["seconds"] = float(np.mean([one["seconds"] for one in parts]))
        if "check" in parts[0]:
            row |= {"checks": [one["check"] for one in parts], "sds": [one["sd"] for one in parts]}
        found.append(row)
    return found


def _joined(parts):
    at = {name: np.concatenate([one[name] for one in parts]) for name in ("mean", "y", "family", "cell")}
    at["nll"] = -np.log(np.where(at["y"] == 1, at["mean"], 1 - at["mean"]))
    return at | {"brier": (at["mean"] - at["y"]) ** 2}


def _difference(by_row, family):
    """Mean of a paired difference over rows; its 95 % interval from families drawn with replacement; its standard error
    of families over that of independent rows, squared: the design effect."""
    total = pd.Series(by_row).groupby(family).agg(["sum", "size"]).to_numpy()
    random = np.random.default_rng(SETTINGS["seed"])
    counts = random.multinomial(len(total), np.full(len(total), 1 / len(total)), SETTINGS["num_resamples"])
    means = (counts @ total[:, 0]) / (counts @ total[:, 1])
    low, high = np.quantile(means, [0.025, 0.975])
    effect = means.var() / (by_row.var() / len(by_row)) if by_row.any() else 1.0
    return {"mean": float(by_row.mean()), "low": float(low), "high": float(high), "design_effect": float(effect)}
