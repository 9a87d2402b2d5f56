"""Who predicts best whether a person will have a medical expense, for whom, and by how much.

Four questions: a new family in a cell (site and plan) that was seen, with 4, 16 or all other
families a cell; and, with 16, a family in a cell, a site or a plan that was not. For the first a
quarter of each cell's families are kept for testing, the same for all sizes and arms, and all cells
are there at every size: one with fewer families gives what it has. For the others cells and plans
are left out in turn, in three parts, and sites one by one. Settings of the arms that have some are
chosen by five folds of training families, but for the networks' size and the splines' knots, which
were set before. Every sampled arm has an effect of its own for each family.

With splines, every number among the covariates with more than ten values becomes a cubic spline
with five knots at its quantiles in the training rows, all under the prior of the other slopes.

Fixed before any run: a difference in NLL whose interval lies within 0.005 is called none.
"""

from helpers import common, diagnostics, metrics

import time

import jax
import numpy as np
import pandas as pd

from experiments.methods import runs
from experiments.pages.real_data import table_fits
from experiments.pages.real_data.table_fits import SETTINGS
from experiments.problems import health

ELSEWHERE = {
    "cell": (
        *table_fits.CLASSIC[:3],
        table_fits.LINES,
        table_fits.CURVES,
        table_fits.SHIFTED,
        table_fits.LEARNT,
    ),
    "site": (*table_fits.CLASSIC[:3], table_fits.LINES, table_fits.CURVES),
    "plan": (*table_fits.CLASSIC[:3], table_fits.LINES, table_fits.CURVES),
}


def units():
    """An arm on one training set each, those that take longest first."""
    arms = (*reversed(table_fits.SAMPLED), *table_fits.CLASSIC)
    found = {
        f"family, {n}: {arm}": setting(arm, "family", n, 0)
        for n in reversed(SETTINGS["sizes"])
        for arm in arms
    }
    for what, arms in ELSEWHERE.items():
        for i in range(SETTINGS["num_parts"][what]):
            found |= {
                f"{what}, {i}: {arm}": setting(arm, what, SETTINGS["size_elsewhere"], i)
                for arm in arms
            }
    return found


def setting(arm, what, size, part):
    """Return a unit's setting."""
    lengths = (
        {"num_warmup": SETTINGS["num_warmup"], "num_samples": SETTINGS["num_samples"]}
        if arm in table_fits.SAMPLED
        else {}
    )
    return {"arm": arm, "what": what, "size": size, "part": part, **lengths}


SMALL = setting(table_fits.LINES, "family", 4, 0)


def unit(arm, what, size, part, **lengths):
    """Fit an arm; keep p of an expense for every test row, [chain, draw, row]."""
    train, test = table_fits.split(what, size, part)
    begun = time.perf_counter()
    if arm not in table_fits.SAMPLED:
        p = table_fits.FITS[arm](train, test)
        return {"p": np.float32(p)[None, None], "seconds": np.array(time.perf_counter() - begun)}
    key = common.key(SETTINGS["seed"], arm, what, size, part)
    return table_fits.sampled(key, train, test, table_fits.SAMPLED[arm], **lengths)


def score(drawn, arm, what, size, part, **_):
    """Scores of the mean over draws, sums by family, and how the run went."""
    return scores_of(drawn, *table_fits.split(what, size, part)) | {
        "arm": arm,
        "what": what,
        "size": size,
    }


def scores_of(drawn, train, test):
    """Score what was drawn for the test rows."""
    y, p = test[health.OUTCOME].to_numpy(np.int32), np.asarray(drawn["p"])
    mean = p.mean(axis=(0, 1))
    nll = -np.log(np.where(y == 1, mean, 1 - mean), dtype=np.float64)
    found = {"num_train": len(train), "seconds": float(drawn["seconds"])}
    found |= {
        "mean": mean.tolist(),
        "y": y.tolist(),
        "family": test.family.tolist(),
        "cell": test.cell.tolist(),
    }
    found |= {"nll": float(nll.mean()), "nll_error": 0.0}
    if "stats" in drawn:
        found["nll_error"] = diagnostics.nll_error(p, y)
        found["check"] = runs.diagnosis(runs.run_from(drawn), drawn["seen"], log_sd=drawn["log_sd"])
        found["sd"] = jax.tree.map(lambda leaf: float(np.exp(leaf).mean()), drawn["log_sd"])
    return found


def rows(scored):
    """A row an arm, question and size, parts joined; differences by a bootstrap of families."""
    joined = {}
    for one in scored.values():
        joined.setdefault((one["what"], one["size"], one["arm"]), []).append(one)
    found = []
    for (what, size, arm), parts in joined.items():
        at = joined_parts(parts)
        less = {
            other: difference(at, joined_parts(joined[what, size, other]))
            for other in (table_fits.LINES, table_fits.CURVES)
        }
        row = {
            "what": what,
            "families": size,
            "arm": arm,
            "num_train": [one["num_train"] for one in parts],
        }
        row |= {"num_test": len(at["y"]), "num_families": len(np.unique(at["family"]))}
        row |= {
            "scores": metrics.scores(np.float32(at["mean"]), np.int32(at["y"])),
            "less_than": less,
        }
        row |= {
            "nll_error": float(np.hypot.reduce([one["nll_error"] for one in parts]) / len(parts))
        }
        row["cells"] = by_cell(at)
        row["seconds"] = float(np.mean([one["seconds"] for one in parts]))
        if "check" in parts[0]:
            row |= {"checks": [one["check"] for one in parts], "sds": [one["sd"] for one in parts]}
        found.append(row)
    return found


def by_cell(at):
    """Rows, share with an expense, mean probability and NLL of each cell's test families."""
    frame = pd.DataFrame({"share": at["y"], "p": at["mean"], "nll": at["nll"]}).groupby(at["cell"])
    return frame.mean().round(4).assign(rows=frame.size()).reset_index(names="cell").to_dict("list")


def joined_parts(parts):
    """The rows of all parts, with what each scores."""
    at = {
        name: np.concatenate([one[name] for one in parts])
        for name in ("mean", "y", "family", "cell")
    }
    at["nll"] = -np.log(np.where(at["y"] == 1, at["mean"], 1 - at["mean"]))
    return at | {"brier": (at["mean"] - at["y"]) ** 2}


def difference(at, other):
    """Paired differences of NLL and Brier score between two arms on the same rows."""
    return {score: paired(at[score] - other[score], at["family"]) for score in ("nll", "brier")}


def paired(by_row, family):
    """Mean of a paired difference over rows, and its 95 % interval, by a bootstrap of families.

    The design effect is the squared standard error of families over that of independent rows.
    """
    total = pd.Series(by_row).groupby(family).agg(["sum", "size"]).to_numpy()
    random = np.random.default_rng(SETTINGS["seed"])
    counts = random.multinomial(
        len(total), np.full(len(total), 1 / len(total)), SETTINGS["num_resamples"]
    )
    means = (counts @ total[:, 0]) / (counts @ total[:, 1])
    low, high = np.quantile(means, [0.025, 0.975])
    effect = means.var() / (by_row.var() / len(by_row)) if by_row.any() else 1.0
    return {
        "mean": float(by_row.mean()),
        "low": float(low),
        "high": float(high),
        "design_effect": float(effect),
    }
