"""A key is that of its names, and what is taken of a tree is there."""

from helpers import common

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def test_a_key_is_its_names_in_their_order():
    def same(one, other):
        return (jax.random.key_data(one) == jax.random.key_data(other)).all()

    found = common.key(1, "data", 2)
    assert same(found, common.key(1, "data", 2)) and same(found, common.key(1, "data", "2"))
    for other in (
        common.key(2, "data", 2),
        common.key(1, "data", 3),
        common.key(1, 2, "data"),
        common.key(1, "data"),
    ):
        assert not same(found, other)
    assert jax.random.key_data(common.key(3001, "data", 0)).tolist() == [
        2393788613,
        46360979,
    ]  # stored results rest on it


@pytest.mark.parametrize(
    "index",
    [3, -4, np.array([0, 3]), jnp.array([0, 3]), (0, 2), np.s_[:, [2]], np.ones(4, bool)],
)
def test_an_entry_that_is_not_there_is_refused_and_not_the_last_one(index):
    tree = {"a": jnp.zeros((3, 2)), "b": np.zeros((3, 2, 5))}
    with pytest.raises(ValueError, match="index: given"):
        common.take(tree, index)


@pytest.mark.parametrize(
    "index", [2, -3, np.array([0, 2]), jnp.array([2]), (0, 1), np.s_[:, ::5], np.s_[..., 0], None]
)
def test_an_entry_that_is_there_is_returned(index):
    tree = {"a": jnp.arange(6.0).reshape(3, 2), "b": np.arange(30.0).reshape(3, 2, 5)}
    for leaf, name in ((common.take(tree, index)[name], name) for name in tree):
        np.testing.assert_array_equal(leaf, np.asarray(tree[name])[index])


def test_within_a_program_an_index_is_taken_as_it_is():
    taken = jax.jit(common.take)(jnp.arange(3.0), jnp.array(1))
    assert taken == 1.0
