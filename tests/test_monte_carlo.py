"""Monte Carlo errors against closed forms and simulation."""

from helpers import (
    metrics,
    monte_carlo,
)

import jax.numpy as jnp
import numpy as np
from scipy import stats

random = np.random.default_rng(0)


def test_the_jackknife_finds_the_error_of_a_mean_and_of_a_spread():
    values = random.normal(size=4000)
    found = monte_carlo.jackknife(lambda part: np.array([part.mean(), part.std()]), values)
    # An error of 19 degrees of freedom, two of them: each is wrong by chance at most 1e-5.
    low, high = np.sqrt(stats.chi2.ppf([2.5e-6, 1 - 2.5e-6], 19) / 19)
    ratio = found / np.array([1.0, np.sqrt(0.5)]) * np.sqrt(4000)
    assert ((low < ratio) & (ratio < high)).all()
    difference = monte_carlo.jackknife(lambda one, other: one.mean() - other.mean(), values, values)
    assert difference == 0.0


def test_the_error_of_an_accuracy_is_never_below_one_point():
    y = np.array([0, 1, 1, 0])
    sure = np.broadcast_to([0.1, 0.9, 0.8, 0.7], (4, 80, 4))
    assert monte_carlo.percent_right(sure, y) == (75.0, 25.0)
    moved = sure.copy()
    # chains that disagree about the last point: right in half of the 32 stretches
    moved[2:, :, 3] = 0.2
    value, error = monte_carlo.percent_right(moved, y)
    assert value == 100.0
    np.testing.assert_allclose(
        error, 100 * np.hypot(1 / 4, np.std([0, 0.25] * 16, ddof=1) / np.sqrt(32))
    )


def test_the_error_of_a_mixtures_nll_is_the_spread_over_repeated_draws():
    y = jnp.linspace(-1, 1, 5)
    f, noise = random.normal(size=(600, 4, 100, 5)), np.exp(0.2 * random.normal(size=(600, 4, 100)))
    nll = [metrics.mixture_nll(*one, y) for one in zip(f, noise, strict=True)]
    errors = [
        monte_carlo.mixture_nll_error(*one, y) for one in zip(f[:60], noise[:60], strict=True)
    ]
    # The spread of 600 is known to 3 % and normal; what is left allows for the first order.
    assert abs(np.mean(errors) / np.std(nll) - 1) < 0.2
    flat = monte_carlo.mixture_nll_error(f[0].reshape(400, 5), noise[0].reshape(400), y)
    np.testing.assert_allclose(flat, errors[0], rtol=1e-6)
