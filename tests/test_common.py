"""A key is that of its names."""

from helpers import (
    common,
)

import jax


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
