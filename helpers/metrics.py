"""Scores of predictions; all points are averaged.

Of probabilities of class 1, points of any shape; and of curves, where the prediction at a point is
a mixture of normals, one for each draw: ``mean`` [*draw, point] and ``sd`` [*draw], the noise.

    metrics.scores(p, y)  # {"accuracy %": 89.2, "NLL": 0.26, "Brier": 0.08, ...}
"""

from helpers import checks

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int
from scipy import special, stats
from sklearn.metrics import accuracy_score, brier_score_loss


class Calibration(NamedTuple):
    """A reliability diagram and its summary."""

    error: float  # mean over points of |frequency - confidence| of their bin
    if_calibrated: float  # what the error averages to when the probabilities are right
    confidence: Float[np.ndarray, " bin"]  # mean predicted probability
    frequency: Float[np.ndarray, " bin"]  # share of class 1
    standard_error: Float[np.ndarray, " bin"]  # of the frequency, when the probabilities are right
    count: Int[np.ndarray, " bin"]  # points


def interval(
    values: Float[ArrayLike, "..."],
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Return the mean over independent runs, the leading axis, and half the width of its 95 % t
    interval.

    ValueError: fewer than two runs, a value that is not finite.
    """
    values = np.asarray(values)
    if not values.ndim or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(
            f"values: given shape {values.shape}, expected two runs or more, all finite"
        )
    return values.mean(axis=0), stats.t.ppf(0.975, len(values) - 1) * stats.sem(values, axis=0)


def accuracy(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> float:
    """Return the share of points whose more probable class is the label.

    ValueError: as ``checks.probabilities``.
    """
    p, y = checks.probabilities(p, y)
    return float(accuracy_score(y, p > 0.5))


def negative_log_likelihood(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> float:
    """Return the mean negative log probability of the labels, in nats; infinite if one had
    probability 0.

    scikit-learn's ``log_loss`` would clip that one.

    ValueError: as ``checks.probabilities``.
    """
    p, y = checks.probabilities(p, y)
    with np.errstate(divide="ignore"):
        return float(-np.log(np.where(y == 1, p, 1 - p), dtype=np.float64).mean())


def brier_score(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> float:
    """Return the mean squared difference of probability and label (Brier 1950, one class).

    ValueError: as ``checks.probabilities``.
    """
    p, y = checks.probabilities(p, y)
    return float(brier_score_loss(y, p, pos_label=1))


def calibration_error(
    p: Float[Array, "*point"], y: Int[Array, "*point"], num_bins: int = 10
) -> Calibration:
    """Compare probabilities with frequencies in bins of equally many points.

    The error is never 0: even right probabilities miss the frequencies of finitely many labels.
    ``if_calibrated`` is that floor, sqrt(2 / pi) standard errors a bin (the mean absolute deviation
    of a sum of independent labels, if normal). scikit-learn's ``calibration_curve`` gives no
    counts, and so no errors.

    ValueError: shapes that do not fit, values out of range, more bins than points.
    """
    p, y = checks.probabilities(p, y)
    checks.count(num_bins=num_bins)
    if num_bins > p.size:
        raise ValueError(
            f"num_bins: given {num_bins}, expected 1 to {p.size}, the number of points"
        )
    bins = np.empty(p.size, int)
    bins[np.argsort(p, kind="stable")] = np.arange(p.size) * num_bins // p.size
    count = np.bincount(bins)
    confidence, frequency, variance = (
        np.bincount(bins, values) / count for values in (p, y, p * (1.0 - p))
    )
    standard_error, share = np.sqrt(variance / count), count / p.size
    error, floor = (
        share @ np.abs(frequency - confidence),
        share @ standard_error * np.sqrt(2 / np.pi),
    )
    return Calibration(float(error), float(floor), confidence, frequency, standard_error, count)


def scores(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> dict[str, float]:
    """Return one row of the book's tables, so that no accuracy stands alone.

    It has "accuracy %", "NLL" in nats, "Brier", "calibration error" and "if calibrated", what that
    error averages to when the probabilities are right.

    ValueError: as ``checks.probabilities``; fewer points than the ten bins.
    """
    return _row(
        accuracy(p, y), negative_log_likelihood(p, y), brier_score(p, y), calibration_error(p, y)
    )


def _row(right, nll, brier, calibration):
    names = "accuracy %", "NLL", "Brier", "calibration error", "if calibrated"
    values = 100 * right, nll, brier, calibration.error, calibration.if_calibrated
    return dict(zip(names, map(float, values), strict=True))


def top_label(
    p: Float[Array, "*point class"], y: Int[Array, "*point"]
) -> tuple[Float[Array, "*point"], Int[Array, "*point"]]:
    """Return the probability of the most probable class, and whether it is the label: what
    ``calibration_error`` takes.

    ValueError: shapes that do not fit, labels outside the classes, probabilities that do not add up
    to 1.
    """
    if jnp.shape(p)[:-1] != jnp.shape(y) or jnp.size(p) == 0:
        raise ValueError(
            f"p, y: given shapes {jnp.shape(p)} and {jnp.shape(y)}, "
            "expected [*point, class] and [*point]"
        )
    total = np.asarray(p).sum(axis=-1)
    if not (np.abs(total - 1) < 1e-4).all():
        raise ValueError(
            f"p: given sums over classes from {total.min()} to {total.max()}, expected 1"
        )
    checks.labels(y, p.shape[-1])
    return jnp.minimum(p.max(axis=-1), 1.0), (p.argmax(axis=-1) == y).astype(jnp.int32)


def class_scores(p: Float[Array, "*point class"], y: Int[Array, "*point"]) -> dict[str, float]:
    """Return ``scores`` of several classes: the Brier score sums over classes, calibration is the
    top label's.

    ValueError: as ``top_label``.
    """
    confidence, right = top_label(p, y)
    of_label = jnp.take_along_axis(p, y[..., None], axis=-1)[..., 0]
    brier = (p**2).sum(axis=-1).mean() - 2 * of_label.mean() + 1
    return _row(
        right.astype(p.dtype).mean(),
        -jnp.log(of_label).mean(),
        brier,
        calibration_error(confidence, right),
    )


def mixture_cdf(
    mean: Float[Array, "*draw point"], sd: Float[Array, "*draw"], y: Float[Array, " point"]
) -> Float[np.ndarray, " point"]:
    """Return the predictive probability of a value below y, at each point: what ``coverage`` takes.

    ``sd`` is the noise under each draw, in the unit of y.

    ValueError: shapes that do not fit, values that are not finite, a noise that is not positive.
    """
    return special.ndtr(_standardized(mean, sd, y)[0]).mean(axis=0)


def mixture_nll(
    mean: Float[Array, "*draw point"], sd: Float[Array, "*draw"], y: Float[Array, " point"]
) -> float:
    """Return the mean negative log predictive density, in nats: each density is averaged over the
    draws first. It depends on the unit of y.

    ValueError: as ``mixture_cdf``.
    """
    z, sd = _standardized(mean, sd, y)
    log_density = -0.5 * z**2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return float(-(special.logsumexp(log_density, axis=0) - np.log(len(z))).mean())


def coverage(cdf: Float[np.ndarray, " point"], level: float) -> float:
    """Return the share of points within the central interval of probability ``level``; ``cdf`` from
    ``mixture_cdf``.

    ValueError: no points, values that are no probabilities, a level that is not between 0 and 1.
    """
    cdf = np.asarray(cdf)
    if not cdf.size or not ((cdf >= 0) & (cdf <= 1)).all():
        raise ValueError(
            f"cdf: given shape {cdf.shape}, values {cdf.ravel()[:3]}..., "
            "expected probabilities, not none"
        )
    checks.number(high=1.0, level=level)
    return float((np.abs(cdf - 0.5) <= level / 2).mean())


def _standardized(mean, sd, y):
    """Return (y - mean) / sd as [draw, point], and sd as [draw, 1]."""
    mean, sd, y = (np.asarray(a, np.float64) for a in (mean, sd, y))
    if (
        y.ndim != 1
        or mean.ndim < 2
        or mean.shape[-1:] != y.shape
        or mean.shape[:-1] != sd.shape
        or not mean.size
    ):
        given = f"{mean.shape}, {sd.shape} and {y.shape}"
        raise ValueError(
            f"mean, sd, y: given shapes {given}, "
            "expected [*draw, point], [*draw] and [point], none 0"
        )
    checks.finite(mean=mean, sd=sd, y=y)
    if not (sd > 0).all():
        raise ValueError(f"sd: given a least value of {sd.min()}, expected all positive")
    sd = sd.reshape(-1, 1)
    return (y - mean.reshape(-1, y.size)) / sd, sd
