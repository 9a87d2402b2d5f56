"""Scores equal scikit-learn's, and the floor of the calibration error is what right probabilities reach."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from helpers import metrics

random = np.random.default_rng(0)
P = random.uniform(0.03, 0.97, size=(4, 250)).astype(np.float32)  # [task, point]
Y = (random.uniform(size=P.shape) < P**2).astype(np.int32)  # labels of other probabilities: not calibrated


def sorted_bins(values, p=P):
    """Return values [..., point] as [..., bin, point], in ten bins of equally many points."""
    return values[..., np.argsort(p.ravel())].reshape(*values.shape[:-1], 10, -1)


def test_scores_equal_scikit_learns():
    for scale in (1.0, 1e-3):  # hardly sure, and sure
        p = jnp.asarray(np.where(Y == 1, 1 - scale * (1 - P), scale * P), jnp.float32)
        flat, y = np.asarray(p, np.float64).ravel(), Y.ravel()
        np.testing.assert_allclose(metrics.accuracy(p, Y), accuracy_score(y, flat > 0.5), rtol=1e-6)
        np.testing.assert_allclose(metrics.negative_log_likelihood(p, Y), log_loss(y, flat), rtol=1e-3)
        np.testing.assert_allclose(metrics.brier_score(p, Y), brier_score_loss(y, flat), rtol=1e-3)


def test_a_label_of_probability_0_costs_infinitely_much():
    assert metrics.negative_log_likelihood(jnp.array([0.5, 1.0]), jnp.array([1, 0])) == jnp.inf
    assert metrics.negative_log_likelihood(jnp.array([0.0, 1.0]), jnp.array([0, 1])) == 0


def test_reliability_diagram_equals_scikit_learns():
    frequency, confidence = calibration_curve(Y.ravel(), P.ravel(), n_bins=10, strategy="quantile")
    found = metrics.calibration_error(P, Y)
    np.testing.assert_allclose(found.frequency, frequency, rtol=1e-5)
    np.testing.assert_allclose(found.confidence, confidence, rtol=1e-5)
    assert found.count.tolist() == [100] * 10
    np.testing.assert_allclose(found.error, abs(frequency - confidence).mean(), rtol=1e-5)
    assert found.error > 3 * found.if_calibrated


def test_bins_that_cannot_be_equal_differ_by_one_point():
    found = metrics.calibration_error(P[0, :23], Y[0, :23], num_bins=5)
    assert sorted(found.count.tolist()) == [4, 4, 5, 5, 5]
    expected = np.abs(found.frequency - found.confidence) @ np.asarray(found.count, np.float32) / 23
    np.testing.assert_allclose(found.error, expected, rtol=1e-5)


def test_right_probabilities_reach_the_floor_that_is_reported():
    found = metrics.calibration_error(P, Y)
    labels = random.uniform(size=(20_000, P.size)) < P.ravel()
    gaps = sorted_bins(labels).mean(axis=2) - sorted_bins(P.ravel()).mean(axis=1)
    errors = np.abs(gaps).mean(axis=1)  # Monte Carlo error 0.2 %, the normal approximation about 1 %
    np.testing.assert_allclose(found.if_calibrated, errors.mean(), rtol=0.03)
    np.testing.assert_allclose(found.standard_error, gaps.std(axis=0), rtol=0.03)


def test_selective_accuracy_decides_the_surest_points_first():
    found = metrics.selective_accuracy(P, Y)
    order = np.argsort(-abs(P.ravel() - 0.5), kind="stable")
    right = (P.ravel() > 0.5) == Y.ravel()
    np.testing.assert_allclose(found, [right[order[: k + 1]].mean() for k in range(P.size)], rtol=1e-5)
    np.testing.assert_allclose(found[-1], metrics.accuracy(P, Y), rtol=1e-6)


def test_one_row_of_a_table_holds_every_score():
    calibration = metrics.calibration_error(P, Y)
    row = metrics.scores(P, Y)
    assert list(row) == ["accuracy %", "NLL", "Brier", "calibration error", "if calibrated"]
    expected = [100 * metrics.accuracy(P, Y), metrics.negative_log_likelihood(P, Y), metrics.brier_score(P, Y)]
    np.testing.assert_allclose(list(row.values()), [*expected, calibration.error, calibration.if_calibrated], rtol=1e-6)


SCORES = [
    metrics.accuracy,
    metrics.negative_log_likelihood,
    metrics.brier_score,
    metrics.calibration_error,
    metrics.scores,
    metrics.selective_accuracy,
]


@pytest.mark.parametrize(
    "p, y, message",
    [
        (P[:2], Y, r"p, y: given shapes \(2, 250\) and \(4, 250\), expected the same, not empty"),
        (P[:0], Y[:0], r"p, y: given shapes \(0, 250\)"),
        (1.5 * P, Y, r"p: given values from 0.0\d+ to 1.4\d+, expected probabilities"),
        (np.where(P > 0.9, np.nan, P), Y, "p: given values from nan to nan, expected probabilities"),
        (P, 2 * Y, r"y: given labels \[0, 2\], expected 0 and 1"),
    ],
)
@pytest.mark.parametrize("score", SCORES)
def test_every_score_refuses_what_is_no_probability_or_label(score, p, y, message):
    with pytest.raises(ValueError, match=message):
        score(jnp.asarray(p), jnp.asarray(y))


@pytest.mark.parametrize("num_bins", [0, 1001])
def test_empty_bins_are_refused(num_bins):
    with pytest.raises(ValueError, match=f"num_bins: given {num_bins}, expected 1 to 1000, the number of points"):
        metrics.calibration_error(P, Y, num_bins)
