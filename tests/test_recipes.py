"""The code that the page ``which-method`` offers for copying runs as it stands, here with fewer
draws.
"""

import warnings

import jax
import numpy as np
import pandas as pd
import pytest

from experiments.pages.which_method.code_to_copy import RECIPES

GROUPS, ROWS = 4, 12
FIT = "tables.fit(jax.random.key(0), model)"
pytestmark = pytest.mark.usefixtures("as_readers_run")


def run(name, space):
    """Run a recipe with fewer draws, too few for a verdict."""
    assert FIT in RECIPES[name] or name == "G"
    code = RECIPES[name].replace(FIT, f"{FIT[:-1]}, num_warmup=100, num_samples=100)")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not ")  # to be used
        warnings.filterwarnings("ignore", message="Pareto k")
        exec(code, space)
    return space


@pytest.fixture
def space():
    """Rows of four groups, their classes, and new rows."""
    x = np.asarray(jax.random.normal(jax.random.key(1), (GROUPS * ROWS, 2)), float)
    group = np.repeat([f"g{i}" for i in range(GROUPS)], ROWS)
    frame = pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "y": x[:, 0] > 0, "group": group})
    new = frame[:5].assign(group="new")
    return {"frame": frame, "later": frame[["x1", "x2", "group"]], "few": new[:3]}


def test_mixed_model(space):
    assert run("A", space)["p"].shape[2] == GROUPS * ROWS
    right = (space["p"].mean(axis=(0, 1)) > 0.5) == space["frame"].y
    assert right.mean() > 0.8


def test_numbers(space):
    x = np.linspace(-1, 1, 30)
    space = {"frame": pd.DataFrame({"x": x, "y": 2 * x}), "later": pd.DataFrame({"x": x})}
    run("B", space)
    assert ((space["low"] < 2 * x) & (2 * x < space["high"])).mean() > 0.8


def test_one_group_of_classes(space):
    space["frame"] = space["frame"].drop(columns="group")
    run("C", space)
    assert len(space["found"]) == 3 and space["p"].shape[2] == GROUPS * ROWS


def test_hierarchical_and_new_group(space):
    assert run("D", space)["p"].shape[2] == GROUPS * ROWS
    space["later"] = space["later"][:2].assign(group="new")
    run("G", space)
    assert space["p"].shape[2] == 2 and np.isfinite(space["forecast"].pareto_k)
    p = space["p"].mean(axis=(0, 1))  # one draw of a steep network may round to 0 or 1
    assert (p > 0).all() and (p < 1).all()
