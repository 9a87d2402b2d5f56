"""What of the winners of ``predictions`` is it that wins: bends, effects of families, or sampling?

The question of new families in cells that were seen, at the three sizes of ``predictions``, with
its split and its rules. Straight lines, splines or a network, each with effects of families and
without, sampled; the two that have no hidden units by penalised regression, too, where families
have none and sites and plans are columns. And trees whose settings are searched by the same five
folds of training families until no neighbour is better, so that no end of a grid binds.
"""

from helpers import common

import itertools
import time

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, SplineTransformer, StandardScaler

from experiments.pages.real_data import predictions, table_fits
from experiments.problems import health

SETTINGS = {
    "sizes": table_fits.SETTINGS["sizes"],
    "least_gain": 0.0002,  # nats, for which a search moves on
    # By setting: where the search begins, and the factor of one step.
    "ridge": {"C": [0.1, 10**0.25]},
    "trees": {
        "learning_rate": [0.05, 2.0],
        "max_iter": [100, 2.0],
        "max_leaf_nodes": [8, 2.0],
        "min_samples_leaf": [50, 2.0],
    },
    "least": {"max_leaf_nodes": 2, "max_iter": 1, "min_samples_leaf": 1},
}
LENGTHS = {name: table_fits.SETTINGS[name] for name in ("num_warmup", "num_samples")}
GROUPS = {name: how for name, how in health.EFFECTS.items() if name != "family"}
HIDDEN = table_fits.SETTINGS["hidden"]
SAMPLED = {
    "lines, families": table_fits.Arm([], health.EFFECTS),
    "lines": table_fits.Arm([], GROUPS),
    "curves, families": table_fits.Arm([], health.EFFECTS, curved=True),
    "curves": table_fits.Arm([], GROUPS, curved=True),
    "network, families": table_fits.Arm(HIDDEN, health.EFFECTS),
    "network": table_fits.Arm(HIDDEN, GROUPS),
}
PENALISED = {"lines, penalised": False, "curves, penalised": True}
TREES = "trees"
SMALL = [
    {"arm": "curves", "size": 4, **LENGTHS},
    {"arm": "curves, penalised", "size": 4},
]


def units():
    """Each arm at each size, those that take longest first."""
    return {
        f"{arm}, {size}": {"arm": arm, "size": size, **(LENGTHS if arm in SAMPLED else {})}
        for size in reversed(SETTINGS["sizes"])
        for arm in (*reversed(SAMPLED), TREES, *PENALISED)
    }


def unit(arm, size, **lengths):
    """Fit an arm; keep p of an expense for every test row, [chain, draw, row]."""
    train, test = table_fits.split("family", size, 0)
    if arm in SAMPLED:
        key = common.key(table_fits.SETTINGS["seed"], "ingredients", arm, size)
        return table_fits.sampled(key, train, test, SAMPLED[arm], **lengths)
    begun = time.perf_counter()
    grid, build = (
        (SETTINGS["trees"], trees) if arm == TREES else (SETTINGS["ridge"], ridge(PENALISED[arm]))
    )
    setting = searched(grid, build, train)
    x, at = table_fits.prepared(train, train, test)
    p = build(**setting).fit(x, train[health.OUTCOME]).predict_proba(at)[:, 1]
    chosen = {name: np.asarray(value) for name, value in setting.items()}
    seconds = np.array(time.perf_counter() - begun)
    return {"p": np.float32(p)[None, None], "seconds": seconds, "setting": chosen}


def ridge(curved):
    """Return what builds a ridge logistic regression on features, sites and plans."""
    wide = [
        name
        for name in health.FEATURES
        if health.load()[name].nunique() > table_fits.SETTINGS["more_values_than"]
    ]
    bent = wide if curved else []
    spline = SplineTransformer(
        table_fits.SETTINGS["num_knots"], knots="quantile", include_bias=False
    )

    def build(**setting):
        columns = make_column_transformer(
            (StandardScaler(), [name for name in health.FEATURES if name not in bent]),
            (spline, bent),
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["site", "plan"]),
        )
        return make_pipeline(columns, LogisticRegression(max_iter=5000, **setting))

    return build


def trees(**setting):
    """Build gradient-boosted trees that see site and plan as categories."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns = make_column_transformer((encoder, ["site", "plan"]), remainder="passthrough")
    boosted = table_fits.HistGradientBoostingClassifier(
        categorical_features=[0, 1], random_state=0, **setting
    )
    return make_pipeline(columns, boosted)


def searched(grid, build, train):
    """Return the setting of least NLL in five folds of training families: a walk on a grid."""
    (x,) = table_fits.prepared(train, train)
    found, best, better = {}, None, (0,) * len(grid)
    while best is None or found[best] - found[better] >= SETTINGS["least_gain"]:
        best = better
        for move in neighbours(len(grid)):
            place = tuple(np.add(best, move).tolist())
            if place in found or (setting := setting_at(grid, place)) is None:
                continue
            scores = cross_val_score(
                build(**setting),
                x,
                train[health.OUTCOME],
                groups=train.family,
                cv=GroupKFold(5),
                scoring="neg_log_loss",
            )
            found[place] = -scores.mean()
        better = min(found, key=found.get)
    return setting_at(grid, best)


def neighbours(count):
    """Return the steps to a place's neighbours, and none: one setting moves, or two."""
    moves = itertools.product((-1, 0, 1), repeat=count)
    return [move for move in moves if np.abs(move).sum() <= 2]


def setting_at(grid, place):
    """Return the setting at a place; None where it is no setting."""
    found = {}
    for power, (name, (start, factor)) in zip(place, grid.items(), strict=True):
        value = start * factor**power
        found[name] = round(value) if isinstance(start, int) else float(value)
        if found[name] < SETTINGS["least"].get(name, 0):
            return None
    return found


def score(drawn, arm, size, **_):
    """Scores of the mean over draws, sums by family, and how the run went."""
    chosen = {name: float(value) for name, value in drawn.get("setting", {}).items()}
    scored = predictions.scores_of(drawn, *table_fits.split("family", size, 0))
    return scored | {"arm": arm, "size": size, "setting": chosen}


def rows(scored):
    """A row an arm and size; differences from every other arm, by a bootstrap of families."""
    found = []
    joined = {(one["size"], one["arm"]): predictions.joined_parts([one]) for one in scored.values()}
    for one in scored.values():
        at = joined[one["size"], one["arm"]]
        row = {name: one[name] for name in ("arm", "size", "setting", "nll", "nll_error")}
        row["less_than"] = {
            other: predictions.difference(at, its)["nll"]
            for (size, other), its in joined.items()
            if size == one["size"] and other != one["arm"]
        }
        if "check" in one:
            row |= {"check": one["check"], "sd": one["sd"]}
        found.append(row)
    return found
