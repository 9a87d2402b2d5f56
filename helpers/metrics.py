"""Scores of predictions; all points are averaged.

Of probabilities of class 1, points of any shape; and of curves, where the prediction at a point is
a mixture of normals, one for each draw: ``mean`` [*draw, point] and ``sd`` [*draw], the noise.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int
from scipy import special, stats


class Calibration(NamedTuple):
    """A reliability diagram and its summary."""

    error: Float[Array, ""]  # mean over points of |frequency - confidence| of their bin
    if_calibrated: Float[Array, ""]  # what the error averages to when the probabilities are right
    confidence: Float[Array, " bin"]  # mean predicted probability
    frequency: Float[Array, " bin"]  # share of class 1
    standard_error: Float[Array, " bin"]  # of the frequency, when the probabilities are right
    count: Int[Array, " bin"]


def interval(values: Float[ArrayLike, "..."]) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Return the mean over independent runs, the leading axis, and half the width of its 95 % t interval.

    Raises:
        ValueError: fewer than two runs, a value that is not finite.
    """
    values = np.asarray(values)
    if not values.ndim or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(f"values: given shape {values.shape}, expected two runs or more, all finite")
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return values.mean(axis=0), stats.t.ppf(0.975, len(values) - 1) * error


def accuracy(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> Float[Array, ""]:
    """Return the share of points whose more probable class is the label."""
    _check(p, y)
    return ((p > 0.5) == (y == 1)).mean()


def negative_log_likelihood(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> Float[Array, ""]:
    """Return the mean negative log probability of the labels, in nats; infinite if one had probability 0."""
    _check(p, y)
    return -jnp.log(jnp.where(y == 1, p, 1 - p)).mean()


def brier_score(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> Float[Array, ""]:
    """Return the mean squared difference of probability and label (Brier 1950, one class)."""
    _check(p, y)
    return ((p - y.astype(p.dtype)) ** 2).mean()


def calibration_error(p: Float[Array, "*point"], y: Int[Array, "*point"], num_bins: int = 10) -> Calibration:
    """Compare probabilities with frequencies in bins of equally many points.

    The error is never 0: even right probabilities miss the frequencies of finitely many
    labels. ``if_calibrated`` is that floor, sqrt(2 / pi) standard errors a bin (the normal
    approximation to the mean absolute deviation of a sum of independent labels).

    Raises:
        ValueError: shapes that do not fit, values out of range, more bins than points.
    """
    _check(p, y)
    if not 1 <= num_bins <= p.size:
        raise ValueError(f"num_bins: given {num_bins}, expected 1 to {p.size}, the number of points")
    return _calibration(p.ravel(), y.ravel(), num_bins)


@partial(jax.jit, static_argnames="num_bins")
def _calibration(p, y, num_bins):
    order = jnp.argsort(p)
    bins = jnp.zeros(p.size, jnp.int32).at[order].set(jnp.arange(p.size) * num_bins // p.size)

    def total(values):
        return jnp.zeros(num_bins).at[bins].add(values)

    count = total(jnp.ones(p.size))
    confidence, frequency = total(p) / count, total(y.astype(p.dtype)) / count
    standard_error = jnp.sqrt(total(p * (1 - p))) / count
    share = count / p.size
    return Calibration(
        error=(share * jnp.abs(frequency - confidence)).sum(),
        if_calibrated=(share * standard_error).sum() * np.sqrt(2 / np.pi).astype(np.float32),
        confidence=confidence,
        frequency=frequency,
        standard_error=standard_error,
        count=count.astype(jnp.int32),
    )


def scores(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> dict[str, float]:
    """Return one row of the book's tables: no accuracy stands alone."""
    calibration = calibration_error(p, y)
    return {
        "accuracy %": 100 * float(accuracy(p, y)),
        "NLL": float(negative_log_likelihood(p, y)),
        "Brier": float(brier_score(p, y)),
        "calibration error": float(calibration.error),
        "if calibrated": float(calibration.if_calibrated),
    }


def top_label(
    p: Float[Array, "*point class"], y: Int[Array, "*point"]
) -> tuple[Float[Array, "*point"], Int[Array, "*point"]]:
    """Return the probability of the most probable class, and whether it is the label: what ``calibration_error`` takes.

    Raises:
        ValueError: shapes that do not fit, labels outside the classes, probabilities that do not add up to 1.
    """
    if jnp.shape(p)[:-1] != jnp.shape(y) or jnp.size(p) == 0:
        raise ValueError(f"p, y: given shapes {jnp.shape(p)} and {jnp.shape(y)}, expected [*point, class] and [*point]")
    total = np.asarray(p).sum(axis=-1)
    if not (np.abs(total - 1) < 1e-4).all():
        raise ValueError(f"p: given sums over classes from {total.min()} to {total.max()}, expected 1")
    if not np.isin(y, range(p.shape[-1])).all():
        raise ValueError(f"y: given labels {np.unique(y).tolist()}, expected 0 to {p.shape[-1] - 1}")
    return jnp.minimum(p.max(axis=-1), 1.0), (p.argmax(axis=-1) == y).astype(jnp.int32)


def class_scores(p: Float[Array, "*point class"], y: Int[Array, "*point"]) -> dict[str, float]:
    """Return ``scores`` of several classes: the Brier score sums over classes, calibration is the top label's.

    Raises:
        ValueError: as ``top_label``.
    """
    confidence, right = top_label(p, y)
    calibration = calibration_error(confidence, right)
    of_label = jnp.take_along_axis(p, y[..., None], axis=-1)[..., 0]
    return {
        "accuracy %": 100 * float(right.astype(p.dtype).mean()),
        "NLL": -float(jnp.log(of_label).mean()),
        "Brier": float((p**2).sum(axis=-1).mean() - 2 * of_label.mean() + 1),
        "calibration error": float(calibration.error),
        "if calibrated": float(calibration.if_calibrated),
    }


def selective_accuracy(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> Float[Array, " kept"]:
    """Return the accuracy on the k points decided with most confidence, for k = 1 to all of them."""
    _check(p, y)
    p, y = p.ravel(), y.ravel()
    right = ((p > 0.5) == (y == 1))[jnp.argsort(-jnp.abs(p - 0.5))]
    return jnp.cumsum(right.astype(jnp.float32)) / jnp.arange(1.0, p.size + 1.0)


def mixture_cdf(
    mean: Float[Array, "*draw point"], sd: Float[Array, "*draw"], y: Float[Array, " point"]
) -> Float[np.ndarray, " point"]:
    """Return the predictive probability of a value below y, at each point: what ``coverage`` takes.

    Raises:
        ValueError: shapes that do not fit, values that are not finite, a noise that is not positive.
    """
    return special.ndtr(_standardized(mean, sd, y)[0]).mean(axis=0)


def mixture_nll(mean: Float[Array, "*draw point"], sd: Float[Array, "*draw"], y: Float[Array, " point"]) -> float:
    """Return the mean negative log predictive density, in nats: each density is averaged over the draws first.

    Raises:
        ValueError: as ``mixture_cdf``.
    """
    z, sd = _standardized(mean, sd, y)
    log_density = -0.5 * z**2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    return float(-(special.logsumexp(log_density, axis=0) - np.log(len(z))).mean())


def coverage(cdf: Float[np.ndarray, " point"], level: float) -> float:
    """Return the share of points within the central interval of probability ``level`` (0.95, say).

    Args:
        cdf: predictive probability of a value below the one that occurred, by ``mixture_cdf``.

    Raises:
        ValueError: no points, values that are no probabilities, a level that is not between 0 and 1.
    """
    cdf = np.asarray(cdf)
    if not cdf.size or not ((cdf >= 0) & (cdf <= 1)).all():
        raise ValueError(f"cdf: given shape {cdf.shape}, values {cdf.ravel()[:3]}..., expected probabilities, not none")
    if not 0 < level < 1:
        raise ValueError(f"level: given {level}, expected a number between 0 and 1")
    return float((np.abs(cdf - 0.5) <= level / 2).mean())


def crps(draws: Float[Array, "*draw point"], y: Float[Array, " point"]) -> float:
    """Return the mean continuous ranked probability score of draws of the predictive, noise included.

    E|X - y| - E|X - X'| / 2 for independent X, X' (Gneiting and Raftery 2007, eq. 21), estimated without
    bias from distinct pairs. In the unit of y; smaller is better; of a single value it is the absolute error.

    Raises:
        ValueError: shapes that do not fit, fewer than 2 draws, values that are not finite.
    """
    draws, y = np.asarray(draws, np.float64), np.asarray(y, np.float64)
    _check_curve(draws, y)
    draws = np.sort(draws.reshape(-1, y.size), axis=0)
    count = len(draws)
    if count < 2:
        raise ValueError(f"draws: given {count}, expected 2 or more")
    weights = 2 * np.arange(1, count + 1) - count - 1.0  # the sum over pairs of |x_i - x_j|, once sorted
    return float((np.abs(draws - y).mean(axis=0) - weights @ draws / (count * (count - 1))).mean())


def _standardized(mean, sd, y):
    """Return (y - mean) / sd as [draw, point], and sd as [draw, 1]."""
    mean, sd, y = (np.asarray(a, np.float64) for a in (mean, sd, y))
    _check_curve(mean, y)
    if sd.shape != mean.shape[:-1] or not (np.isfinite(sd) & (sd > 0)).all():
        raise ValueError(
            f"sd: given shape {sd.shape}, least value {sd.min(initial=np.inf)}, "
            f"expected {mean.shape[:-1]}, all positive and finite"
        )
    sd = sd.reshape(-1, 1)
    return (y - mean.reshape(-1, y.size)) / sd, sd


def _check_curve(values, y):
    if y.ndim != 1 or values.shape[-1:] != y.shape or values.ndim < 2 or 0 in values.shape:
        raise ValueError(
            f"predictions, y: given shapes {values.shape} and {y.shape}, expected [*draw, point] and [point], none 0"
        )
    if not (np.isfinite(values).all() and np.isfinite(y).all()):
        raise ValueError("predictions, y: given values that are not finite, expected none")


def _check(p, y):
    if jnp.shape(p) != jnp.shape(y) or jnp.size(p) == 0:
        raise ValueError(f"p, y: given shapes {jnp.shape(p)} and {jnp.shape(y)}, expected the same, not empty")
    p, y = np.asarray(p), np.asarray(y)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p: given values from {p.min()} to {p.max()}, expected probabilities")
    if not np.isin(y, (0, 1)).all():
        raise ValueError(f"y: given labels {np.unique(y).tolist()}, expected 0 and 1")
