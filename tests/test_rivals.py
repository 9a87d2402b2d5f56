"""Rivals of the hierarchical network: a process's basis gives its kernel, heads by Laplace and by
quadrature agree.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.methods import gaussian_processes, heads, latent_angle
from experiments.problems import moons_redrawn


@pytest.mark.parametrize("odd", [True, False])
@pytest.mark.parametrize(
    "length, most", [(0.5, 0.02), (0.7, 1e-3), (1.0, 1e-3), (1.5, 1e-3), (2.0, 0.01)]
)
def test_basis_of_a_process_gives_its_kernel(odd, length, most):
    x = moons_redrawn.drawn(0, num_tasks=2).x_test[0, ::10]
    phi = np.asarray(gaussian_processes.functions(x, odd), np.float64)
    root = np.asarray(
        gaussian_processes.root_density(
            jnp.log(jnp.array([1.0, length])), gaussian_processes.squared_frequencies(odd)
        )
    )

    def kernel(b):
        return np.exp(-0.5 * ((np.asarray(x)[:, None] - b[None]) ** 2).sum(axis=-1) / length**2)

    x = np.asarray(x, np.float64)
    exact = (kernel(x) - kernel(-x)) / 2 if odd else kernel(x)
    assert np.abs((phi * root**2) @ phi.T - exact).max() < most
    if odd:
        assert np.abs(np.asarray(gaussian_processes.functions(-x, odd)) + phi).max() < 1e-4


def test_root_of_a_density_that_is_nearly_zero_has_a_finite_gradient():
    squared = gaussian_processes.squared_frequencies(True)
    gradient = jax.grad(lambda at: gaussian_processes.root_density(at, squared).sum())(
        jnp.log(jnp.array([3.0, 50.0]))
    )
    assert np.isfinite(gradient).all()


def test_head_by_laplace_is_near_the_posterior_of_one_feature():
    random = np.random.default_rng(1)
    phi = random.normal(size=(1, 80, 1))
    y = (random.uniform(size=(1, 80)) < 1 / (1 + np.exp(-1.5 * phi[..., 0]))).astype(int)
    at = np.array([[[-1.0], [0.5], [3.0]]])
    found = heads.laplace(phi, y, 2.0, at)[0]
    w = np.linspace(-2, 6, 4001)
    f = phi[0] * w
    log_posterior = (y[0][:, None] * f - np.logaddexp(0, f)).sum(axis=0) - 0.5 * (w / 2.0) ** 2
    weight = np.exp(log_posterior - log_posterior.max())
    exact = (1 / (1 + np.exp(-at[0] * w))) @ weight / weight.sum()
    assert np.abs(found - exact).max() < 0.02


def test_features_of_several_networks_are_those_of_each():
    tasks = moons_redrawn.drawn(0, num_tasks=2)
    keys, seen = jax.random.split(jax.random.key(1), 2), jnp.ones((2, 50))
    with jax.numpy_dtype_promotion("standard"):  # as Optax needs
        weights = heads.train(keys, tasks, seen, 0.1, 3, 0.01, 20, 10)["network"]
    found = heads.features_of(3, weights, tasks.x_train)
    one = jax.tree.map(lambda a: a[1, 0], weights)
    assert found.shape == (2, 2, 2, 50, 3)
    np.testing.assert_allclose(found[1, 0], heads.features(3, one, tasks.x_train), atol=1e-6)


def test_turning_back_undoes_a_tasks_angle():
    x = jnp.array([[[1.0, 0.0], [0.0, 2.0]]])
    np.testing.assert_allclose(
        latent_angle.turned(jnp.array([np.pi / 2]), x), [[[0.0, -1.0], [2.0, 0.0]]], atol=1e-6
    )


def test_new_task_of_a_latent_angle_is_predicted_as_if_its_angle_were_known():
    tasks = moons_redrawn.drawn(0, num_tasks=2)
    position = jax.tree.map(lambda a: jnp.ones((1, 2, *a.shape)), latent_angle.shapes(2))
    kernel = jnp.array([[3.0, -1.0, 2.0, 0.5, 1.0], [-1.0, 2.0, 0.3, 1.5, -2.0]])
    position["network"]["params"]["Dense_0"]["kernel"] = jnp.broadcast_to(kernel, (1, 2, 2, 5))
    position["log_sd"] = {name: jnp.zeros((1, 2)) for name in position["log_sd"]}
    weights = latent_angle.weights_of(jax.tree.map(lambda a: a[0, 0], position))
    angle = float(latent_angle.GRID[40])
    f = 4 * moons_redrawn.NETWORK.apply(
        weights, latent_angle.turned(jnp.full(2, angle), tasks.x_train)
    )
    new = tasks._replace(y_train=(f > 0).astype(jnp.int32))
    found = latent_angle.of_new_tasks(position, new)
    exact = moons_redrawn.NETWORK.apply(
        weights, latent_angle.turned(jnp.full(2, angle), tasks.x_test)
    )
    assert found.shape == (2, 2, 500)
    assert ((found.mean(axis=0) > 0.5) == (np.asarray(exact) > 0)).mean() > 0.9
