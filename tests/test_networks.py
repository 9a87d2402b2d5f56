"""The network is the formula it says, whatever the shape of its points, and odd without biases."""

from helpers import mcmc
from helpers.networks import MLP

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = jnp.array([[0.5, -1.0], [2.0, 0.3], [-0.2, 0.1]])


@pytest.mark.parametrize("biases, weights", [(False, 40), (True, 51)])
def test_default_is_the_network_of_the_sources(biases, weights):
    params = MLP(use_bias=biases).init(jax.random.key(0), X)
    leaves = jax.tree.leaves(params)
    assert sum(leaf.size for leaf in leaves) == weights and {leaf.dtype for leaf in leaves} == {
        jnp.dtype("float32")
    }
    assert list(params["params"]) == ["Dense_0", "Dense_1", "Dense_2"]


@pytest.mark.parametrize("x", [X, X[0], jnp.stack([X, 2 * X])], ids=lambda x: f"{x.ndim} axes")
@pytest.mark.parametrize("width", [5, 40], ids=["small kernels", "large kernels"])
def test_logits_and_gradients_are_those_of_products_layer_by_layer(width, x):
    network = MLP((4, width), jax.nn.softplus, use_bias=True)
    shapes = jax.eval_shape(network.init, jax.random.key(0), x)
    params = mcmc.normal_starts(jax.random.key(1), shapes, ())

    def by_hand(params):
        values = x
        for i in range(3):
            layer = params["params"][f"Dense_{i}"]
            values = jnp.matmul(values, layer["kernel"]) + layer["bias"].reshape(
                (1,) * (x.ndim - 1) + (-1,)
            )
            values = jax.nn.softplus(values) if i < 2 else values[..., 0]
        return values

    def with_gradient(logits):
        return jax.jit(lambda p: (logits(p), jax.grad(lambda q: (logits(q) ** 2).sum())(p)))(params)

    found, gradient = with_gradient(lambda p: network.apply(p, x))
    expected, gradient_by_hand = with_gradient(by_hand)
    assert found.shape == x.shape[:-1]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-3), gradient, gradient_by_hand
    )


def test_without_biases_the_network_is_odd():
    for biases in (False, True):
        network = MLP(use_bias=biases)
        params = jax.tree.map(lambda leaf: leaf + 0.1, network.init(jax.random.key(0), X))
        odd = jnp.allclose(network.apply(params, -X), -network.apply(params, X), atol=1e-6)
        assert odd != biases


def test_without_hidden_layers_the_network_is_linear():
    network = MLP(hidden=(), use_bias=True)
    params = {
        "params": {"Dense_0": {"kernel": jnp.array([[2.0], [-1.0]]), "bias": jnp.array([0.5])}}
    }
    np.testing.assert_allclose(
        network.apply(params, X), X @ jnp.array([2.0, -1.0]) + 0.5, rtol=1e-6
    )


def test_several_outputs_keep_their_axis():
    network = MLP(hidden=(), num_outputs=3)
    kernel = jnp.array([[2.0, 0.0, 1.0], [-1.0, 1.0, 0.5]])
    found = network.apply({"params": {"Dense_0": {"kernel": kernel}}}, X)
    np.testing.assert_allclose(found, np.asarray(X) @ np.asarray(kernel), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"hidden": (5, 0)},
            r"hidden\[1\]: given 0, expected an integer of 1 or more",
        ),
        ({"hidden": [-2]}, r"hidden\[0\]: given -2, expected"),
        ({"hidden": (2.5,)}, r"hidden\[0\]: given 2.5, expected"),
        ({"hidden": 10}, "hidden: given 10, expected a sequence"),
        ({"num_outputs": 0}, "num_outputs: given 0, expected an integer of 1 or more"),
        (
            {"activation": "tanh"},
            "activation: given 'tanh', expected a function such as flax.linen.tanh",
        ),
        ({"activation": None}, "activation: given None, expected"),
    ],
)
def test_impossible_networks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        MLP(**arguments)
