"""The exact class probabilities of the moons: right by integration, and beaten by nobody.

Statistical bounds are 4 standard errors of the points drawn.
"""

from helpers import data, metrics

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

KEY = jax.random.key(0)
# Expected accuracy and NLL of the exact probabilities, integrated over the plane in double
# precision.
OPTIMUM = {0.3: (0.91459, 0.21029), 0.2: (0.97104, 0.07626)}


def t_value(values, expected=0.0):
    """Return how many standard errors the mean of independent values lies above a number."""
    values = np.asarray(values, np.float64)
    return (values.mean() - expected) / (values.std() / np.sqrt(values.size))


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.3, 1.0])
def test_class_densities_equal_a_brute_force_integral(noise):
    x = np.array([[0.0, 0.0], [0.5, 0.25], [-1.0, 0.2], [1.2, -0.6], [2.2, 0.6]], np.float32)
    t = (np.arange(20_000) + 0.5) / 20_000 * np.pi  # the midpoint rule, in double precision
    found = data.moons_log_density(jnp.asarray(x), noise)
    for label, arc in enumerate([(np.cos(t), np.sin(t)), (1 - np.cos(t), 0.5 - np.sin(t))]):
        squared = (x[:, :1] - arc[0]) ** 2 + (x[:, 1:] - arc[1]) ** 2
        expected = scipy.special.logsumexp(-squared / (2 * noise**2), axis=1) - np.log(
            t.size * 2 * np.pi * noise**2
        )
        np.testing.assert_allclose(found[label], expected, rtol=1e-6, atol=1e-4)


def test_probability_is_bayes_rule_for_equally_frequent_classes():
    x, _ = data.two_moons(KEY, 200)
    first, second = np.exp(np.asarray(data.moons_log_density(x), np.float64))
    np.testing.assert_allclose(data.moons_probability(x), second / (first + second), atol=1e-5)


def test_coordinates_of_a_task_change_no_probability():
    raw, _ = data.two_moons(KEY, 200)
    task = data.Tasks(
        None, None, None, None, jnp.array([0.7]), jnp.array([[0.4, 0.3]]), jnp.array([[0.9, 0.6]])
    )
    z = (np.asarray(raw) - [0.4, 0.3]) / [0.9, 0.6] @ [1, 1j] * np.exp(0.7j)
    x = jnp.stack([jnp.asarray(z.real, jnp.float32), jnp.asarray(z.imag, jnp.float32)], axis=-1)
    np.testing.assert_allclose(data.to_raw(task, x[None])[0], raw, atol=1e-5)
    np.testing.assert_allclose(
        data.bayes_optimum(task, x[None])[0], data.moons_probability(raw), atol=1e-4
    )


@pytest.mark.parametrize("noise", OPTIMUM)
def test_scores_what_the_integral_says_on_redrawn_tasks(noise):
    tasks = data.redraw_test(KEY, data.source_moons(), 2000, noise)
    p, y = data.bayes_optimum(tasks, tasks.x_test, noise).ravel(), tasks.y_test.ravel()
    accuracy, nll = OPTIMUM[noise]
    assert abs(t_value((p > 0.5) == (y == 1), accuracy)) < 4
    assert abs(t_value(-jnp.log(jnp.where(y == 1, p, 1 - p)), nll)) < 4
    bins = metrics.calibration_error(p, y, num_bins=20)
    assert (jnp.abs(bins.frequency - bins.confidence) < 4 * bins.standard_error).all()


def test_no_distortion_scores_better():
    x, y = data.two_moons(KEY, 50_000)
    logits = scipy.special.logit(np.asarray(data.moons_probability(x), np.float64))
    against = 1 - 2 * np.asarray(y)
    loss = np.logaddexp(0, against * logits)
    for slope, shift in ((0.8, 0.0), (1.25, 0.0), (1.0, 0.4), (1.0, -0.4)):
        assert t_value(np.logaddexp(0, against * (slope * logits + shift)) - loss) > 4
