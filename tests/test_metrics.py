"""Scores equal scikit-learn's, and the floor of the calibration error is what right probabilities
reach.
"""

from helpers import metrics

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from experiments.methods import crps

random = np.random.default_rng(0)
P = random.uniform(0.03, 0.97, size=(4, 250)).astype(np.float32)  # [task, point]
# labels of other probabilities: not calibrated
Y = (random.uniform(size=P.shape) < P**2).astype(np.int32)


def sorted_bins(values, p=P):
    """Return values [..., point] as [..., bin, point], in ten bins of equally many points."""
    return values[..., np.argsort(p.ravel())].reshape(*values.shape[:-1], 10, -1)


def test_scores_equal_scikit_learns():
    for scale in (1.0, 1e-3):  # hardly sure, and sure
        p = jnp.asarray(np.where(Y == 1, 1 - scale * (1 - P), scale * P), jnp.float32)
        flat, y = np.asarray(p, np.float64).ravel(), Y.ravel()
        np.testing.assert_allclose(metrics.accuracy(p, Y), accuracy_score(y, flat > 0.5), rtol=1e-6)
        np.testing.assert_allclose(
            metrics.negative_log_likelihood(p, Y), log_loss(y, flat), rtol=1e-3
        )
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
    # Monte Carlo error 0.2 %, the normal approximation about 1 %
    errors = np.abs(gaps).mean(axis=1)
    np.testing.assert_allclose(found.if_calibrated, errors.mean(), rtol=0.03)
    np.testing.assert_allclose(found.standard_error, gaps.std(axis=0), rtol=0.03)


def test_one_row_of_a_table_holds_every_score():
    calibration = metrics.calibration_error(P, Y)
    row = metrics.scores(P, Y)
    assert list(row) == ["accuracy %", "NLL", "Brier", "calibration error", "if calibrated"]
    expected = [
        100 * metrics.accuracy(P, Y),
        metrics.negative_log_likelihood(P, Y),
        metrics.brier_score(P, Y),
    ]
    np.testing.assert_allclose(
        list(row.values()), [*expected, calibration.error, calibration.if_calibrated], rtol=1e-6
    )


SCORES = [
    metrics.accuracy,
    metrics.negative_log_likelihood,
    metrics.brier_score,
    metrics.calibration_error,
    metrics.scores,
]


@pytest.mark.parametrize(
    "p, y, message",
    [
        (P[:2], Y, r"p, y: given shapes \(2, 250\) and \(4, 250\), expected the same, not empty"),
        (P[:0], Y[:0], r"p, y: given shapes \(0, 250\)"),
        (1.5 * P, Y, r"p: given values from 0.0\d+ to 1.4\d+, expected probabilities"),
        (
            np.where(P > 0.9, np.nan, P),
            Y,
            "p: given values from nan to nan, expected probabilities",
        ),
        (P, 2 * Y, r"y: given labels \[0, 2\], expected 0 and 1"),
    ],
)
@pytest.mark.parametrize("score", SCORES)
def test_every_score_refuses_what_is_no_probability_or_label(score, p, y, message):
    with pytest.raises(ValueError, match=message):
        score(jnp.asarray(p), jnp.asarray(y))


@pytest.mark.parametrize(
    "num_bins, expected", [(0, "an integer of 1"), (1001, "1 to 1000, the number of points")]
)
def test_empty_bins_are_refused(num_bins, expected):
    with pytest.raises(ValueError, match=f"num_bins: given {num_bins}, expected {expected}"):
        metrics.calibration_error(P, Y, num_bins)


# [chain, draw, point]
MEAN, SD = random.normal(size=(2, 300, 5)), random.uniform(0.3, 2.0, size=(2, 300))
AT = random.normal(size=5)


def test_mixture_of_one_normal_is_that_normal():
    mean, sd = np.array([[0.5, 0.5, 0.5]]), np.array([2.0])
    normal = scipy.stats.norm(0.5, 2.0)
    np.testing.assert_allclose(metrics.mixture_cdf(mean, sd, AT[:3]), normal.cdf(AT[:3]))
    np.testing.assert_allclose(metrics.mixture_nll(mean, sd, AT[:3]), -normal.logpdf(AT[:3]).mean())


def test_mixture_averages_densities_over_draws():
    by_draw = scipy.stats.norm(MEAN, SD[..., None])
    np.testing.assert_allclose(metrics.mixture_cdf(MEAN, SD, AT), by_draw.cdf(AT).mean(axis=(0, 1)))
    np.testing.assert_allclose(
        metrics.mixture_nll(MEAN, SD, AT), -np.log(by_draw.pdf(AT).mean(axis=(0, 1))).mean()
    )


def test_coverage_of_a_right_prediction_is_its_level_and_of_a_narrow_one_less():
    y = random.normal(size=200_000)
    for level in (0.5, 0.9, 0.95):
        right, narrow = (
            metrics.coverage(scipy.stats.norm(0, sd).cdf(y), level) for sd in (1.0, 0.5)
        )
        assert abs(right - level) < 4 * np.sqrt(level * (1 - level) / y.size)
        assert (
            abs(narrow - (2 * scipy.stats.norm.cdf(scipy.stats.norm.ppf(0.5 + level / 2) / 2) - 1))
            < 0.005
        )
    assert metrics.coverage(np.array([0.02, 0.03, 0.5, 0.97, 0.98]), 0.95) == 0.6


def test_crps_of_normal_draws_is_the_closed_form():
    z, count = AT / 1.5, 40_000
    draws = 1.5 * random.normal(size=(2, count // 2, 5))
    normal = scipy.stats.norm
    # Gneiting and Raftery
    expected = 1.5 * (z * (2 * normal.cdf(z) - 1) + 2 * normal.pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(crps.crps(draws, AT), expected.mean(), rtol=0.01)


def test_crps_is_the_mean_over_distinct_pairs():
    draws = random.normal(size=(6, 1))
    pairs = [
        abs(a - b) for i, a in enumerate(draws[:, 0]) for j, b in enumerate(draws[:, 0]) if i != j
    ]
    np.testing.assert_allclose(
        crps.crps(draws, AT[:1]), abs(draws - AT[0]).mean() - np.mean(pairs) / 2
    )


@pytest.mark.parametrize("score", [metrics.mixture_cdf, metrics.mixture_nll])
@pytest.mark.parametrize(
    "mean, y, message",
    [
        (MEAN, AT[:4], r"mean, sd, y: given shapes \(2, 300, 5\), \(2, 300\) and \(4,\), expected"),
        (AT, AT, r"given shapes \(5,\), \(2, 300\) and \(5,\)"),
        (MEAN[..., :0], AT[:0], r"given shapes \(2, 300, 0\), \(2, 300\) and \(0,\), .* none 0"),
        (np.where(MEAN > 1, np.nan, MEAN), AT, r"mean: given \d+ values that are not finite"),
        (MEAN, np.where(AT[0] == AT, np.inf, AT), "y: given 1 values that are not finite"),
    ],
)
def test_every_score_of_a_curve_refuses_what_does_not_fit(score, mean, y, message):
    with pytest.raises(ValueError, match=message):
        score(mean, SD, y)


@pytest.mark.parametrize(
    "draws, y, message",
    [
        (MEAN, AT[:4], r"draws, y: given shapes \(2, 300, 5\) and \(4,\), expected .* finite"),
        (MEAN[..., 0], AT[0], r"given shapes \(2, 300\) and \(\)"),
        (np.where(MEAN > 1, np.nan, MEAN), AT, "expected .* finite"),
        (MEAN, np.where(AT[0] == AT, np.inf, AT), "expected .* finite"),
        (MEAN[0, 0], AT, "draws: given 1, expected 2 or more"),
    ],
)
def test_crps_refuses_what_does_not_fit(draws, y, message):
    with pytest.raises(ValueError, match=message):
        crps.crps(draws, y)


def test_impossible_noise_and_levels_are_refused():
    for sd, message in (
        (SD[0], r"mean, sd, y: given shapes \(2, 300, 5\), \(300,\) and \(5,\)"),
        (0 * SD, "sd: given a least value of 0.0, expected all positive"),
        (np.where(SD > 1, np.nan, SD), r"sd: given \d+ values that are not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.mixture_cdf(MEAN, sd, AT)
    for cdf in (np.array([]), np.array([0.5, 1.5]), np.array([np.nan])):
        with pytest.raises(ValueError, match="cdf: given shape"):
            metrics.coverage(cdf, 0.9)
    for level in (0, 1, 95):
        with pytest.raises(
            ValueError, match=f"level: given {level}, expected a finite number between 0 and 1"
        ):
            metrics.coverage(np.array([0.5]), level)


def classes():
    """Return probabilities of three classes, and labels that they do not fit."""
    p = np.random.default_rng(1).dirichlet([0.5, 0.7, 1.0], size=300)
    y = np.array(
        [
            np.random.default_rng(i).choice(3, p=row)
            for i, row in enumerate(p**0.5 / (p**0.5).sum(1)[:, None])
        ]
    )
    return jnp.asarray(p / p.sum(axis=1, keepdims=True), jnp.float32), jnp.asarray(y, jnp.int32)


def test_scores_of_classes_equal_scikit_learns():
    p, y = classes()
    found = metrics.class_scores(p, y)
    wide = np.asarray(p, np.float64) / np.asarray(p, np.float64).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        found["accuracy %"], 100 * accuracy_score(y, wide.argmax(axis=1)), rtol=1e-5
    )
    np.testing.assert_allclose(found["NLL"], log_loss(y, wide), rtol=1e-4)
    np.testing.assert_allclose(
        found["Brier"], ((wide - np.eye(3)[y]) ** 2).sum(axis=1).mean(), rtol=1e-4
    )
    assert found["calibration error"] > found["if calibrated"] > 0


def test_two_classes_are_scored_as_one_probability_but_for_the_brier_score():
    p, y = jnp.asarray(P[0]), jnp.asarray(Y[0])
    one, two = metrics.scores(p, y), metrics.class_scores(jnp.stack([1 - p, p], axis=-1), y)
    np.testing.assert_allclose(two["NLL"], one["NLL"], rtol=1e-5)
    np.testing.assert_allclose(two["accuracy %"], one["accuracy %"], rtol=1e-5)
    np.testing.assert_allclose(two["Brier"], 2 * one["Brier"], rtol=1e-4)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda p, y: (p[:5], y), r"p, y: given shapes \(5, 3\) and \(300,\), expected"),
        (lambda p, y: (2 * p, y), "p: given sums over classes from .* expected 1"),
        (lambda p, y: (p, y + 1), r"y: given labels \[1, 2, 3\], expected 0 and 1 and 2"),
    ],
)
def test_impossible_classes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        metrics.class_scores(*change(*classes()))


def test_the_interval_of_runs_is_that_of_the_t_test():
    values = np.random.default_rng(0).normal(size=(6, 2)) + 3
    mean, half = metrics.interval(values)
    low, high = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose([mean - half, mean + half], [low, high])


@pytest.mark.parametrize("values", [1.0, [1.0], [[1.0, 2.0]], [1.0, np.nan]])
def test_an_interval_needs_two_finite_runs(values):
    with pytest.raises(
        ValueError, match=r"values: given shape .*, expected two runs or more, all finite"
    ):
        metrics.interval(values)
