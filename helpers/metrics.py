"""Scores of predicted probabilities of class 1. Points may have any shape; all are averaged."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Calibration(NamedTuple):
    """A reliability diagram and its summary."""

    error: Float[Array, ""]  # mean over points of |frequency - confidence| of their bin
    if_calibrated: Float[Array, ""]  # what the error averages to when the probabilities are right
    confidence: Float[Array, " bin"]  # mean predicted probability
    frequency: Float[Array, " bin"]  # share of class 1
    standard_error: Float[Array, " bin"]  # of the frequency, when the probabilities are right
    count: Int[Array, " bin"]


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


def selective_accuracy(p: Float[Array, "*point"], y: Int[Array, "*point"]) -> Float[Array, " kept"]:
    """Return the accuracy on the k points decided with most confidence, for k = 1 to all of them."""
    _check(p, y)
    p, y = p.ravel(), y.ravel()
    right = ((p > 0.5) == (y == 1))[jnp.argsort(-jnp.abs(p - 0.5))]
    return jnp.cumsum(right.astype(jnp.float32)) / jnp.arange(1.0, p.size + 1.0)


def _check(p, y):
    if jnp.shape(p) != jnp.shape(y) or jnp.size(p) == 0:
        raise ValueError(f"p, y: given shapes {jnp.shape(p)} and {jnp.shape(y)}, expected the same, not empty")
    p, y = np.asarray(p), np.asarray(y)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p: given values from {p.min()} to {p.max()}, expected probabilities")
    if not np.isin(y, (0, 1)).all():
        raise ValueError(f"y: given labels {np.unique(y).tolist()}, expected 0 and 1")
