"""The code that the page ``which-method`` offers for copying runs as it stands, here with fewer
draws.
"""

import re

import jax
import numpy as np
import pytest

from experiments.pages.which_method.code_to_copy import RECIPES

GROUPS, ROWS = 3, 10


def shortened(source):
    """The same code with fewer draws."""
    found = re.sub(r'("num_(?:warmup|samples)": )\d+', r"\g<1>20", source)
    found = found.replace("(keys[2], labelled, 5000)", "(keys[2], labelled, 80)")
    assert found != source
    return found


@pytest.fixture
def table():
    """Rows of three groups, their classes, and new rows."""
    x = np.asarray(jax.random.normal(jax.random.key(1), (GROUPS, ROWS, 2)))
    y = (x[..., 0] > 0).astype(np.int32)
    return {"x": x, "y": y, "x_new": x + 1, "x_few": x[0, :4], "y_few": y[0, :4]}


def test_mixed_model(table):
    # as outside of these tests
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        exec(shortened(RECIPES["A"]), table)
    draws = table["sampler"].get_samples()
    assert draws["offset"].shape == (80, GROUPS, 3)
    assert np.isfinite(draws["mean"]).all()


def test_chosen_scales(table, capsys):
    table |= {name: table[name][0] for name in ("x", "y", "x_new")}
    exec(shortened(RECIPES["C"]), table)
    assert len(table["found"]) == 3
    assert all(0 < value < 5 for value in table["found"].values())
    assert table["p"].shape == (4, 20, ROWS)
    assert "R-hat" in capsys.readouterr().out


def test_hierarchical_and_new_group(table):
    exec(shortened(RECIPES["D"]), table)
    assert table["p"].shape == (4, 8, GROUPS, ROWS)
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        exec(RECIPES["G"], table)
    assert table["p"].shape == (ROWS,)
    assert (table["p"] > 0).all() and (table["p"] < 1).all()
    np.testing.assert_allclose(table["weight"].sum(), 1, rtol=1e-5)
