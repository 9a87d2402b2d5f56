"""Predictions are those of every draw, and both splits of uncertainty add up."""

from helpers import networks, predict

import jax
import jax.numpy as jnp
import numpy as np
import pytest

# [chain, draw, point]
P = jnp.asarray(np.random.default_rng(0).beta(0.5, 0.7, size=(2, 30, 50)), jnp.float32)
SPLITS = (predict.variance_split, predict.entropy_split)


def bits(p):
    return -p * np.log2(p) - (1 - p) * np.log2(1 - p)


def test_probabilities_equal_a_loop_over_draws():
    random = np.random.default_rng(1)
    draws = {
        "w": random.normal(size=(2, 3, 4)).astype(np.float32),
        "b": random.normal(size=(2, 3)).astype(np.float32),
    }
    x = random.normal(size=(5, 4)).astype(np.float32)
    found = predict.probabilities(
        lambda position, x: x @ position["w"] + position["b"], draws, jnp.asarray(x)
    )
    assert found.shape == (2, 3, 5)
    for chain in range(2):
        for draw in range(3):
            expected = 1 / (1 + np.exp(-(x @ draws["w"][chain, draw] + draws["b"][chain, draw])))
            np.testing.assert_allclose(found[chain, draw], expected, rtol=1e-5)


def test_variance_split_is_that_of_the_draws():
    p = np.asarray(P, np.float64).reshape(-1, 50)
    split = predict.variance_split(P)
    np.testing.assert_allclose(split.total, p.mean(axis=0) * (1 - p.mean(axis=0)), rtol=1e-5)
    np.testing.assert_allclose(split.aleatoric, (p * (1 - p)).mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(split.epistemic, ((p - p.mean(axis=0)) ** 2).mean(axis=0), rtol=1e-4)


def test_entropy_split_is_in_bits_and_its_rest_is_mutual_information():
    p = np.clip(np.asarray(P, np.float64).reshape(-1, 50), 1e-12, 1 - 1e-7)
    split, mean = predict.entropy_split(P), p.mean(axis=0)
    # of each draw from the mean
    divergence = p * np.log2(p / mean) + (1 - p) * np.log2((1 - p) / (1 - mean))
    np.testing.assert_allclose(split.total, bits(mean), rtol=1e-5)
    np.testing.assert_allclose(split.aleatoric, bits(p).mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(split.epistemic, divergence.mean(axis=0), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("split", SPLITS)
def test_parts_add_up_and_none_is_negative(split):
    total, aleatoric, epistemic = split(P)
    np.testing.assert_allclose(total, aleatoric + epistemic, atol=1e-6)
    # these draws disagree everywhere
    assert min(total.min(), aleatoric.min(), epistemic.min()) > 1e-3
    agreeing = split(jnp.broadcast_to(P[:1, :1], P.shape))
    np.testing.assert_allclose(agreeing.epistemic, 0, atol=2e-5)


def test_certain_draws_that_contradict_each_other_are_one_bit_of_epistemic_uncertainty():
    p = jnp.array([[[0.0], [1.0]]])
    assert [float(part[0]) for part in predict.entropy_split(p)] == [1.0, 0.0, 1.0]
    assert [float(part[0]) for part in predict.variance_split(p)] == [0.25, 0.0, 0.25]
    assert predict.entropy_split(P).total.max() <= 1.0 + 1e-6


@pytest.mark.parametrize(
    "draws, message",
    [
        ({}, r"draws: given leaves that begin \[\], expected the same .*'chain', 'draw'"),
        ({"w": jnp.ones(3)}, r"draws: given leaves that begin \[\(3,\)\]"),
        (
            {"w": jnp.ones((2, 3, 4)), "b": jnp.ones((2, 5))},
            r"draws: given leaves that begin \[\(2, 5\), \(2, 3\)\]",
        ),
    ],
)
def test_draws_without_chains_are_refused(draws, message):
    with pytest.raises(ValueError, match=message):
        predict.probabilities(
            lambda position, x: jax.tree.leaves(position)[0], draws, jnp.ones((5, 4))
        )


def test_classes_are_split_as_two_of_them_are():
    both = jnp.stack([1 - P, P], axis=-1)
    for found, expected in zip(
        predict.class_entropy_split(both), predict.entropy_split(P), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    # [chain, draw, point, class]: three draws, each sure of another class
    certain = jnp.eye(3)[:, None, None]
    total, aleatoric, epistemic = predict.class_entropy_split(certain)
    np.testing.assert_allclose(
        [total[0], aleatoric[0], epistemic[0]], [np.log2(3), 0, np.log2(3)], rtol=1e-6
    )


RANDOM = np.random.default_rng(0)
DRAWS = {
    "a": jnp.asarray(RANDOM.normal(size=(3, 4, 50)), jnp.float32),
    "b": jnp.asarray(RANDOM.normal(size=(3, 4, 50, 2)), jnp.float32),
}
FIRST = jax.tree.map(lambda leaf: leaf[0], DRAWS)


def position(one):
    """Two functions of a draw."""
    return {"sum": one["a"] + one["b"].sum(), "product": one["b"] * one["a"]}


@pytest.mark.parametrize(
    "draws, num_axes", [(FIRST, 2), (DRAWS, 3)], ids=["chain, draw", "task, chain, draw"]
)
def test_functions_of_draws_and_their_means_are_those_of_a_loop(draws, num_axes):
    every = predict.of_draws(position, draws, num_axes)
    means = predict.chain_means(position, draws, num_axes)
    expected = {
        "sum": draws["a"] + draws["b"].sum(axis=-1),
        "product": draws["b"] * jnp.expand_dims(draws["a"], -1),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(every[name], values, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            means[name], values.mean(axis=num_axes - 1), rtol=1e-4, atol=1e-5
        )


def test_a_network_of_classes_gives_probabilities_that_add_up_to_one():
    network, x = networks.MLP((3,), num_outputs=3), np.ones((5, 2), np.float32)
    params = network.init(jax.random.key(1), x)
    draws = jax.tree.map(lambda a: jnp.stack([jnp.stack([a, 2 * a])]), params)
    p = predict.probabilities(network.apply, draws, x)
    assert p.shape == (1, 2, 5, 3)
    np.testing.assert_allclose(p.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(p[0, 0], jax.nn.softmax(network.apply(params, x)), rtol=1e-5)
    with pytest.raises(ValueError, match="apply: given logits"):
        predict.probabilities(lambda params, x: jnp.zeros(4), draws, x)
