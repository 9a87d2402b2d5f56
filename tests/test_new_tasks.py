"""The ceiling of new tasks and the heads on shared features, against the same by other means."""

from helpers import data

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from experiments.methods import known_shape, new_heads


@pytest.fixture(scope="module")
def tasks():
    return data.rotated_moons(jax.random.key(1), num_tasks=3, num_train=50, num_test=20)


def test_angles_have_their_wrapped_normal_distribution():
    angles, log_prior = known_shape.grid(180)
    for turns in (1, 2):
        assert np.exp(log_prior) @ np.cos(turns * angles) == pytest.approx(
            np.exp(-((turns * np.pi / 2) ** 2) / 2)
        )


@pytest.mark.parametrize("positions", [True, False])
def test_ceiling_is_bayes_rule_over_the_angle(tasks, positions):
    """A point at a time: the posterior after two labels is the prior of the next, and every angle
    is weighed anew.
    """
    sizes, num_angles = [0, 2, 50], 24
    p = known_shape.predict(tasks, sizes, num_angles, positions)
    angles, log_prior = known_shape.grid(num_angles)
    posterior = np.exp(log_prior) * np.ones((3, 1))
    of_points = jax.jit(data.moons_log_density)

    def joint(x):
        turns = np.stack(
            [np.stack([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
        )
        scale, location = (np.asarray(a)[:, None, None] for a in (tasks.scale, tasks.location))
        raw = np.einsum("tpi,aij->tapj", np.asarray(x), turns) * scale + location
        density = np.exp(of_points(jnp.float32(raw.reshape(-1, 2)))).reshape(2, *raw.shape[:3])
        each = np.moveaxis(density, 0, 2)
        return each if positions else each / each.sum(axis=2, keepdims=True)

    at_train, at_test = joint(tasks.x_train), joint(tasks.x_test)  # [task, angle, class, point]
    for size, expected in zip(sizes, p, strict=True):
        of_labels = np.array(
            [[at_train[t, :, int(tasks.y_train[t, i]), i] for i in range(size)] for t in range(3)]
        ).reshape(3, size, num_angles)
        weight = posterior * of_labels.prod(axis=1)
        of_class = np.einsum("ta,tacp->tcp", weight, at_test)
        np.testing.assert_allclose(expected, of_class[:, 1] / of_class.sum(axis=1), atol=1e-4)


def test_ceiling_with_fifty_labels_is_near_the_optimum_and_a_finer_grid_changes_nothing(tasks):
    p, finer = (known_shape.predict(tasks, [5, 50], num_angles) for num_angles in (180, 360))
    np.testing.assert_allclose(p, finer, atol=1e-5)
    assert np.abs(p[1] - data.bayes_optimum(tasks, tasks.x_test)).mean() < 0.03


def test_head_by_newton_is_ridge_regression():
    f = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32) * 4
    y = (f[:, 0] > 0).astype(np.int32)  # separable: full steps would overshoot
    seen = np.float32(np.arange(20) < 12)
    mode, _ = new_heads.laplace(jnp.asarray(f), jnp.asarray(y), jnp.asarray(seen))
    ridge = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8).fit(f[:12], y[:12])
    np.testing.assert_allclose(mode, ridge.coef_[0], atol=2e-3)


def test_weighted_heads_are_the_posterior():
    random = np.random.default_rng(2)
    f, f_test = (2 * random.normal(size=(1, n, 2)).astype(np.float32) for n in (5, 30))
    y, seen = np.array([[1, 0, 1, 1, 0]]), np.float32([[1, 1, 1, 0, 1]])
    normals = jax.random.normal(jax.random.key(3), (20_000, 2))
    p = new_heads.predict(f, y, seen, f_test, normals)[0, 0]
    line = np.linspace(-6, 6, 301)
    z = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    sign = seen[0] * (2 * y[0] - 1)
    log_weight = -0.5 * (z**2).sum(axis=1) - (seen[0] * np.logaddexp(0, -sign * (z @ f[0].T))).sum(
        axis=1
    )
    weight = np.exp(log_weight - log_weight.max())
    exact = weight @ (1 / (1 + np.exp(-z @ f_test[0].T))) / weight.sum()
    np.testing.assert_allclose(p, exact, atol=0.03)
