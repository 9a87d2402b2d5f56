"""The ladder of inference methods: its parts, a chain of its reference and a cell of it computed
again.
"""

from helpers import common, diagnostics
from helpers.common import read_result, take

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from experiments.engine import compare
from experiments.methods import approximations, budgets, catalogue
from experiments.pages.comparing_inference import (
    harder,
    ladder,
    measures,
    references,
    seconds,
)
from experiments.problems import six_tasks


def test_vectors_are_the_networks_and_the_density_is_the_books():
    task = take(six_tasks.problem().observed, 0)
    vector = jax.random.normal(common.key(1, "vector"), (six_tasks.SIZE,))
    params = six_tasks.params_of(vector)
    np.testing.assert_array_equal(ravel_pytree(params)[0], vector)
    np.testing.assert_array_equal(six_tasks.vector_of(params), vector)
    np.testing.assert_allclose(
        six_tasks.log_density(vector, task), catalogue.FLAT(params, task), rtol=1e-5
    )


def test_tuning_tasks_are_others():
    ours, others = six_tasks.tasks("ladder"), six_tasks.tasks("tuning")
    assert ours.x_train.shape[1:] == others.x_train.shape[1:]
    assert not np.isin(np.asarray(ours.x_train), np.asarray(others.x_train)).any()
    with pytest.raises(ValueError, match="given 'else', expected 'ladder' or 'tuning'"):
        six_tasks.tasks("else")


def test_a_chain_of_the_reference_computed_again():
    sizes = {"num_warmup": 150, "num_samples": 800, "max_tree_depth": 6}
    found = references.chains(
        common.key(2, "again"), take(six_tasks.problem().observed, 0), 2, **sizes
    )
    assert found["vectors"].dtype == np.float64 and not jax.config.jax_enable_x64
    where = np.arange(0, six_tasks.NUM_TEST, 10)
    x = np.asarray(six_tasks.problem().x[0])[where]
    p = np.stack([references.in_double(chain, x) for chain in found["vectors"]])
    truth = measures.reference("ladder")
    error = np.hypot(
        diagnostics.standard_error(p), np.sqrt((truth.p_error[0] ** 2).sum(axis=0))[where] / 2
    )
    assert (np.abs(p.mean(axis=(0, 1)) - truth.p[0].mean(axis=0)[where]) <= 6 * error).all()
    # And it would see a posterior that is another: that of the next task.
    assert (np.abs(p.mean(axis=(0, 1)) - truth.p[1].mean(axis=0)[where]) > 6 * error).any()


def test_a_cell_computed_again():
    check = read_result("comparing_inference/ladder")["check"]
    assert check["setting"] == ladder.SMALL
    small, stored = ladder.SMALL[0], check["scored"][0]
    found = ladder.score(ladder.unit(**small), **small)
    compared, _, wrong = compare.compare(stored, found)
    assert compared and not wrong
    assert found["gradients"] == stored["gradients"] == small["budget"]


def test_empty_cells_say_why_and_cannot_be_run():
    reasons = {
        name: method.undefined(1000, method.values[0]) for name, method in catalogue.METHODS.items()
    }
    assert reasons["MALA"] == reasons["MAP"] == "" and "warm-up" in reasons[catalogue.BOOK]
    with pytest.raises(ValueError, match="fewer than 20 draws of warm-up"):
        catalogue.run(catalogue.BOOK, "ladder", 1000, 5, 0)
    with pytest.raises(ValueError, match="given 'Gibbs', expected one of"):
        catalogue.run("Gibbs", "ladder", 1000, 5, 0)


def test_steps_of_unknown_cost_end_when_the_gradients_are_spent():
    def step(key, state):
        return state + 1, 3.0

    def spent(left):
        return budgets.spend(jax.random.key(0), step, jnp.zeros(1), left, 3.0, 50)

    kept, number, gradients = spent(100.0)
    assert number == 34 and gradients == 102 and kept[number - 1] == 34
    kept, number, gradients = spent(1200.0)
    assert number == 50 and gradients == 1200 and kept[-1] == 400  # every eighth is kept
    assert spent(-5.0)[1] == 10


def test_curvature_is_that_of_a_linear_network():
    task, vector = (
        take(six_tasks.problem().observed, 0),
        jax.random.normal(common.key(3, "vector"), (six_tasks.SIZE,)),
    )
    # In the last layer the network is linear, so that the generalised Gauss-Newton matrix is the
    # Hessian.
    hessian = jax.hessian(lambda v: -six_tasks.log_density(v, task))(vector)
    np.testing.assert_allclose(
        approximations.curvature(vector, task)[approximations.LAST :, approximations.LAST :],
        hessian[approximations.LAST :, approximations.LAST :],
        rtol=1e-3,
        atol=1e-3,
    )


def test_a_dropped_unit_reaches_nothing():
    vector = jax.random.normal(common.key(4, "vector"), (six_tasks.SIZE,))
    with jax.numpy_dtype_promotion("standard"):  # as the ladder runs it
        found = approximations.masked(vector, common.key(4, "mask"), 0.4)
    kept = np.asarray(found[approximations.LAST :] / vector[approximations.LAST :])
    assert all(np.isclose(one, 0) or np.isclose(one, 1 / 0.6) for one in kept)
    rows = np.asarray(found[10 : approximations.LAST] / vector[10 : approximations.LAST]).reshape(
        5, 5
    )
    np.testing.assert_allclose(rows, np.broadcast_to(rows[:, :1], (5, 5)), rtol=1e-5)


def test_the_reference_itself_is_at_no_distance_and_another_is():
    truth = measures.reference("ladder")
    test = slice(0, six_tasks.NUM_TEST)
    assert measures.apart(truth.p.mean(axis=1), truth, test, test)[0] == 0
    shifted = measures.apart(truth.p.mean(axis=1) + 0.02, truth, test, test)[0]
    np.testing.assert_allclose(shifted, 0.02, rtol=0.02)


def test_a_chain_of_a_harder_reference_computed_again(monkeypatch):
    rows = read_result("comparing_inference/harder")["rows"]
    stored = [row for row in rows if row["posterior"] == "regression"]
    monkeypatch.setitem(harder.RUN["sizes"], "regression", {"num_warmup": 300, "num_samples": 1200})
    monkeypatch.setitem(harder.RUN, "num_chains", 2)
    # as experiments are run: constants of TFP are in single precision
    with jax.numpy_dtype_promotion("standard"):
        found = harder.unit("regression", "chains", 7)
    assert not jax.config.jax_enable_x64
    p = np.asarray(found["predictions"], np.float64)
    error = np.hypot(diagnostics.standard_error(p), stored[0]["mean_error"])
    gap = np.abs(p.mean(axis=(0, 1)) - np.mean([row["mean"] for row in stored], axis=0))
    assert (gap <= 6 * error).all()
    # And it would see another curve: the same one from right to left.
    assert (np.abs(p.mean(axis=(0, 1)) - stored[0]["mean"][::-1]) > 6 * error).any()
    with pytest.raises(ValueError, match="given 'rings', expected one of"):
        harder.problem("rings")


def test_a_cloud_within_a_region_is_weighted():
    drawn = {
        "predictions": np.array([[0.2], [0.6]]),
        "log_scales": {"Dense_0": np.array([-1.0, -3.0])},
    }
    path = {
        "powers": np.array([0.5, 1.0, np.inf]),
        "log_evidence": np.array([-3.0, -5.0, np.inf]),
        "number": 2,
    }
    after = {
        "after": np.tile([0.1, 0.5], (2, 10))[..., None],
        "log_scales_after": {"Dense_0": np.full((2, 20), -2.0)},
    }
    found = harder.score(
        drawn | path | after | {"weights": np.array([0.75, 0.25])}, "hierarchical", "SMC", 0
    )
    assert found["mean_after_error"][0] > 0 and found.pop("mean_after_error")
    expected = {"log_evidence": -5.0, "power": 1.0, "mean": [0.3], "log_scales": {"Dense_0": -1.5}}
    assert found == expected | {"mean_after": [0.3], "log_scales_after": {"Dense_0": -2.0}}


def test_seconds_are_told_as_ratios():
    rounds = np.array([[6.0, 2e6, 1e-6], [12.0, 2e6, 2e-6], [3.0, 1e6, 1e-6]])
    found = seconds.score({"rounds": rounds}, "MAP", 1000)
    assert found["times_bare"] == 3.0 and found["times_bare_error"] == 0.0
    assert found["microseconds"] == pytest.approx(3.0) and found[
        "bare_microseconds"
    ] == pytest.approx(1.0)
    sizes = {
        name: unit["budget"]
        for name, unit in seconds.units().items()
        if not name.endswith(", longer")
    }
    assert set(sizes) == set(catalogue.METHODS)
    assert sizes.pop("Pathfinder") == 1000 and set(sizes.values()) == {100_000}
    longer = {
        unit["name"] for name, unit in seconds.units().items() if name not in catalogue.METHODS
    }
    assert longer == set(ladder.SETTINGS["longest"]["names"])
