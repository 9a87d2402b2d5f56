"""How far predictions are from the references, and by what."""

from helpers import diagnostics, metrics
from helpers.common import read_result

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import xlogy

from experiments.methods import total_variation
from experiments.problems import six_tasks


class Reference(NamedTuple):
    """Independent long runs of each task, leading axes [task, run]; of tuning tasks one."""

    p: Float[np.ndarray, "task run point"]
    p_error: Float[np.ndarray, "task run compared"]
    quantiles: Float[np.ndarray, "task run spread level"]


@cache
def reference(kind: str) -> Reference:
    """Return the stored runs of a kind of tasks."""
    rows = [
        row
        for row in read_result("comparing_inference/references")["rows"]
        if row["method"] == "chains"
    ]
    rows = [row for row in rows if row["kind"] == kind]
    count = 1 + max(row["task"] for row in rows)
    by_task = [[row for row in rows if row["task"] == task] for task in range(count)]
    return Reference(
        *(
            np.array([[row[name] for row in of_task] for of_task in by_task])
            for name in Reference._fields
        )
    )


def apart(
    p: Float[np.ndarray, "task point"], truth: Reference, where: slice, of_error: slice
) -> tuple[float, Float[np.ndarray, " task"]]:
    """Total variation from the reference's mean prediction, less its own Monte Carlo variance.

    Of all tasks together, and by task.
    """
    gap = np.abs(p - truth.p.mean(axis=1))[:, where].mean(axis=1)
    variance = (truth.p_error**2).mean(axis=1) / truth.p_error.shape[1]
    chance = np.sqrt(2 / np.pi * variance)[:, of_error].mean(axis=1)
    by_task = np.array([total_variation.beyond(*pair) for pair in zip(gap, chance, strict=True)])
    return total_variation.beyond(gap.mean(), chance.mean()), by_task


def entropy(p: np.ndarray) -> np.ndarray:
    """Entropy of a label, bits."""
    return -(xlogy(p, p) + xlogy(1 - p, 1 - p)) / np.log(2)


def measured(found: dict, kind: str) -> dict:
    """Return what a row keeps of a run of ``catalogue.run``: numbers of one seed; only its cost
    where it failed.
    """
    groups = np.asarray(found["groups"], np.float64)  # [task, group, point]
    cost = {"gradients": float(found["gradients"].mean()), "seconds": float(found["seconds"])}
    if not np.isfinite(groups).all():
        return cost | {"failed": True}
    truth, y = reference(kind), np.asarray(six_tasks.problem(kind).y)
    p = np.asarray(found["mean"], np.float64)
    test, far, num_test = slice(0, six_tasks.NUM_TEST), slice(-six_tasks.NUM_FAR, None), y.shape[1]
    tv, by_task = apart(p, truth, test, test)
    scores = metrics.scores(p[:, :num_test], y)
    by_group = np.array(
        [[_nll(q[:num_test], labels) for q in each] for each, labels in zip(groups, y, strict=True)]
    )
    within = np.sqrt(2 / np.pi * groups[..., test].var(axis=1, ddof=1) / groups.shape[1])
    mean = truth.p.mean(axis=1)
    ess = np.asarray(found["ess"], np.float64)
    return cost | {
        "failed": False,
        "tv": tv,
        "tv_by_task": six_tasks.rounded(by_task),
        "tv_far": apart(p, truth, far, far)[0],
        # the distance that chance alone makes, as its groups say
        "within": float(within.mean()),
        "agreement": float(((p > 0.5) == (mean > 0.5))[:, test].mean()),
        "wasserstein": float(np.abs(found["quantiles"] - truth.quantiles.mean(axis=1)).mean()),
        "nll": scores["NLL"],
        "nll_error": float(
            np.sqrt((by_group.var(axis=1, ddof=1) / groups.shape[1]).mean() / len(y))
        ),
        "brier": scores["Brier"],
        "calibration": scores["calibration error"],
        "if_calibrated": scores["if calibrated"],
        "entropy_far": float(entropy(p)[:, far].mean()),
        "ess": None if np.isnan(ess).any() else float(np.median(ess)),
        "p": six_tasks.rounded(six_tasks.compared(p)[:, : six_tasks.NUM_TEST], 4),
    }


def _nll(p, y):
    return metrics.negative_log_likelihood(np.clip(p, 1e-12, 1 - 1e-12), y)


def floor(kind: str) -> dict:
    """Return how far two independent references are apart: nothing can be told to be nearer."""
    truth, y = reference(kind), np.asarray(six_tasks.problem(kind).y)
    first, second = truth.p[:, 0], truth.p[:, 1]
    test, far = np.s_[:, : six_tasks.NUM_TEST], np.s_[:, -six_tasks.NUM_FAR :]
    scores = metrics.scores(truth.p.mean(axis=1)[:, : y.shape[1]], y)
    return {
        "tv": float(np.abs(first - second)[test].mean()),
        "tv_far": float(np.abs(first - second)[far].mean()),
        "agreement": float(((first > 0.5) == (second > 0.5))[test].mean()),
        "wasserstein": float(np.abs(truth.quantiles[:, 0] - truth.quantiles[:, 1]).mean()),
        "chance": float(np.sqrt(2 / np.pi * (truth.p_error**2).mean(axis=1) / 2)[test].mean()),
        "nll": scores["NLL"],
        "brier": scores["Brier"],
        "calibration": scores["calibration error"],
        "if_calibrated": scores["if calibrated"],
        "entropy_far": float(entropy(truth.p.mean(axis=1))[far].mean()),
        "least_ess": diagnostics.LEAST_ESS,
    }


def together(seeds: list[dict], kind: str) -> dict:
    """Return what seeds share and what not: bias of their mean, spread, chance within a run.

    ``between`` is the total variation from the mean of very many seeds that one seed has;
    ``restarts`` the part of it that the run's own Monte Carlo error does not explain.
    """
    truth = reference(kind).p[:, :, : six_tasks.NUM_TEST]
    p = np.array([one["p"] for one in seeds])
    runs = p.reshape(len(p), -1), truth.swapaxes(0, 1).reshape(truth.shape[1], -1)
    if len(p) < 2 or truth.shape[1] < 2:
        return {}
    gap, chance = total_variation.distance(*runs)
    between = float(np.sqrt(2 / np.pi * p.var(axis=0, ddof=1)).mean())
    within = float(np.mean([one["within"] for one in seeds]))
    return {
        "bias": total_variation.beyond(gap, chance),
        "bias_chance": chance,
        "between": between,
        "restarts": total_variation.beyond(between, within),
    }
