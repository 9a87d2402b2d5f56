"""What is asked of input: right input passes in silence, wrong input is named with what was
expected.
"""

from helpers import checks

import jax.numpy as jnp
import numpy as np
import pytest


def test_right_input_passes():
    checks.count(chains=1, draws=np.int64(3), steps=2.0)
    checks.count(least=0, warm_up=0)
    checks.number(low=-1.0, high=1.0, correlation=0.0)
    checks.number(noise=0.0, closed=True)
    checks.finite(draws={"a": jnp.ones(3), "b": [np.zeros(2), 1]})
    checks.labels([0, 1, 2], 3)
    assert checks.leading(
        "draws", {"a": jnp.ones((2, 3)), "b": jnp.ones((2, 3, 4))}, ("chain", "draw")
    ) == (2, 3)
    p, y = checks.probabilities(jnp.array([[0.0, 1.0]]), jnp.array([[1, 0]]))
    assert p.tolist() == [0.0, 1.0] and y.tolist() == [1, 0]


@pytest.mark.parametrize("size", [0, -1, 1.5, np.nan, np.inf])
def test_what_is_no_count_is_refused(size):
    with pytest.raises(ValueError, match=f"chains: given {size}, expected an integer of 1 or more"):
        checks.count(draws=2, chains=size)


@pytest.mark.parametrize(
    "bounds, value, words",
    [
        ({}, 0.0, "above 0$"),
        ({"closed": True}, -0.1, "above 0 or equal$"),
        ({"low": 0.05, "closed": True}, 0.01, "above 0.05 or equal$"),
        ({"high": 1.0}, 1.0, "between 0 and 1$"),
        ({"high": 1.0, "closed": True}, 1.0, "between 0 and 1 or equal$"),
        ({}, np.nan, "above 0$"),
        ({}, np.inf, "above 0$"),
    ],
)
def test_a_number_out_of_bounds_is_refused(bounds, value, words):
    with pytest.raises(ValueError, match=f"noise: given {value}, expected a finite number {words}"):
        checks.number(**bounds, noise=value)


def test_values_that_are_not_finite_are_counted():
    with pytest.raises(ValueError, match="x: given 3 values that are not finite, expected none"):
        checks.finite(
            y=np.ones(2), x={"a": np.array([1.0, np.nan]), "b": np.array([np.inf, -np.inf])}
        )


@pytest.mark.parametrize(
    "tree",
    [{}, {"a": np.ones(3)}, {"a": np.ones((2, 3)), "b": np.ones((2, 4))}, {"a": np.ones((2, 0))}],
    ids=["nothing", "one axis", "unlike", "empty"],
)
def test_leaves_that_do_not_begin_alike_are_refused(tree):
    with pytest.raises(
        ValueError, match=r"draws: given leaves that begin .*, expected the same .*'chain', 'draw'"
    ):
        checks.leading("draws", tree, ("chain", "draw"))


@pytest.mark.parametrize("y", [[0, 2], [-1], [0.5], [np.nan]])
def test_labels_outside_the_classes_are_refused(y):
    with pytest.raises(ValueError, match=r"y: given labels .*, expected 0 and 1"):
        checks.labels(y)
