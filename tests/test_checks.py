"""What is asked of input: right input passes in silence, wrong input is named with what was
expected.
"""

from helpers import checks

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def test_right_input_passes():
    checks.count(chains=1, draws=np.int64(3))
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


@pytest.mark.parametrize("size", [0, -1, 1.5, 2.0, np.nan, np.inf, "2", None, [2], True])
def test_what_is_no_count_is_refused(size):
    words = re.escape(f"chains: given {size!r}, expected an integer of 1 or more")
    with pytest.raises(ValueError, match=words):
        checks.count(draws=2, chains=size)


@pytest.mark.parametrize("value", ["0.5", None, [0.5], np.ones(1)])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match=r"noise: given .*, expected a finite number above 0"):
        checks.number(noise=value)


def test_what_holds_no_numbers_is_refused():
    with pytest.raises(ValueError, match="x: given object, expected numbers"):
        checks.finite(x=np.array([None, 1.0]))


def test_a_number_is_looked_at_in_the_precision_that_jax_gives_it():
    assert checks.array("x", [1e39], ("point",), single=False) == [1e39]
    with pytest.raises(ValueError, match="x: given 1 values that are not finite"):
        checks.array("x", [1e39], ("point",))


@pytest.mark.parametrize(
    "axes, fits",
    [
        (("chain", "draw", "point"), True),
        ((2, "draw", 4), True),
        (("*draw", "point"), True),
        (("chain", "*point"), True),
        (("chain", "draw", "point", "*class"), True),
        (("chain", "draw"), False),
        ((2, 2, 4), False),
        (("*draw", 3), False),
        (("a", "b", "c", "d", "*e"), False),
    ],
)
def test_axes_are_names_or_lengths(axes, fits):
    values = np.zeros((2, 3, 4))
    if fits:
        assert checks.array("x", values, axes) is values
        return
    with pytest.raises(ValueError, match=r"x: given shape \(2, 3, 4\), expected \["):
        checks.array("x", values, axes)


def test_within_a_program_axes_alone_are_looked_at():
    checked = jax.jit(lambda x: checks.array("x", x, ("point",), 0, 1))
    assert checked(np.array([2.0])) == 2.0
    with pytest.raises(ValueError, match="x: given shape"):
        checked(np.ones((2, 2)))


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
