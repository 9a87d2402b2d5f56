"""Evidence equals closed forms: of a normal model by bridge and by Laplace, of a network's copies
by counting.
"""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from experiments.methods import evidence_estimates

POWERS = np.linspace(0, 1, 6) ** 3
NOISE, WIDTH, Y = 0.5, 2.0, np.random.default_rng(0).normal(1.0, 0.5, size=8)
EXACT = scipy.stats.multivariate_normal(np.zeros(8), NOISE**2 * np.eye(8) + WIDTH**2).logpdf(Y)


def tempered_draws(power, num_draws, random, width=WIDTH):
    """Log likelihoods at exact draws of the mean's tempered posterior: y ~ N(mean, NOISE), mean ~
    N(0, width).
    """
    precision = 1 / width**2 + power * Y.size / NOISE**2
    centre = power * Y.sum() / NOISE**2 / precision
    mean = random.normal(centre, precision**-0.5, size=num_draws)
    return scipy.stats.norm(mean[:, None], NOISE).logpdf(Y).sum(axis=1)


def test_bridge_finds_the_exact_evidence():
    random = np.random.default_rng(1)
    values = np.stack([tempered_draws(power, 4000, random) for power in POWERS])
    found = [evidence_estimates.log_evidence(part, POWERS) for part in np.split(values, 8, axis=1)]
    assert abs(np.mean(found) - EXACT) < 4 * np.std(found) / np.sqrt(8) and np.std(found) < 0.2


def test_the_error_of_the_evidence_is_that_of_many_runs():
    """Six of them hold right runs; a run with another prior is farther off."""
    random = np.random.default_rng(2)

    def one_run(width):
        values = np.stack([tempered_draws(power, 1600, random, width) for power in POWERS])
        error = evidence_estimates.log_evidence_error(values.reshape(len(POWERS), 4, 400), POWERS)
        return evidence_estimates.log_evidence(values, POWERS) - EXACT, error

    off, error = np.array([one_run(WIDTH) for _ in range(40)]).T
    np.testing.assert_allclose(np.median(error), np.sqrt(np.mean(off**2)), rtol=0.4)
    assert (np.abs(off) <= 6 * error).all()
    wrong, wrong_error = np.array([one_run(2 * WIDTH) for _ in range(10)]).T
    assert (np.abs(wrong) > 6 * wrong_error).all()


@pytest.mark.parametrize("shape", [(6, 400), (6, 4, 39)])
def test_too_few_draws_for_an_error_are_refused(shape):
    with pytest.raises(ValueError, match="40 draws or more"):
        evidence_estimates.log_evidence_error(np.zeros(shape), POWERS)


def test_bridge_holds_far_from_zero():
    random = np.random.default_rng(1)
    values = np.stack([tempered_draws(power, 500, random) for power in POWERS])
    shifted = evidence_estimates.log_evidence(values - 1e4, POWERS)
    np.testing.assert_allclose(
        shifted, evidence_estimates.log_evidence(values, POWERS) - 1e4, atol=1e-6
    )


def test_laplace_is_exact_for_a_normal_posterior():
    precision = 1 / WIDTH**2 + Y.size / NOISE**2
    mode = Y.sum() / NOISE**2 / precision
    height = scipy.stats.norm(mode, NOISE).logpdf(Y).sum() + scipy.stats.norm(0, WIDTH).logpdf(mode)
    np.testing.assert_allclose(evidence_estimates.laplace(height, np.array([[precision]])), EXACT)


def test_copies_are_counted():
    for hidden in (1, 2, 3):
        orders, signs = (
            itertools.permutations(range(hidden)),
            itertools.product((-1, 1), repeat=hidden),
        )
        copies = len(list(itertools.product(orders, signs)))
        np.testing.assert_allclose(evidence_estimates.log_copies(hidden), math.log(copies))
        np.testing.assert_allclose(
            evidence_estimates.log_copies(hidden, odd=False),
            math.log(math.factorial(hidden)),
            atol=1e-12,
        )


VALUES = np.zeros((6, 10))


@pytest.mark.parametrize(
    "values, powers, message",
    [
        (VALUES[:5], POWERS, r"given shapes \(5, 10\) and \(6,\)"),
        (VALUES[0], POWERS, r"given shapes \(10,\) and \(6,\)"),
        (VALUES[:, :0], POWERS, "none 0"),
        (VALUES - np.inf, POWERS, "60 values that are not finite"),
        (VALUES, POWERS[::-1], r"powers: given \[1.0, .* expected increasing numbers from 0 to 1"),
        (VALUES, POWERS + 0.1, "powers: given"),
        (VALUES[:1], [0.0], r"powers: given \[0.0\]"),
    ],
)
def test_impossible_draws_are_refused(values, powers, message):
    with pytest.raises(ValueError, match=message):
        evidence_estimates.log_evidence(values, powers)


def test_what_is_no_mode_and_no_network_is_refused():
    for matrix, message in (
        (np.diag([1.0, -2.0]), "least eigenvalue of -2, expected positive"),
        (np.ones((2, 3)), r"given shape \(2, 3\), expected a square matrix"),
        (np.full((2, 2), np.nan), "of finite numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            evidence_estimates.laplace(0.0, matrix)
    for hidden in (0, 2.5):
        with pytest.raises(
            ValueError, match=f"hidden: given {hidden}, expected an integer of 1 or more"
        ):
            evidence_estimates.log_copies(hidden)
