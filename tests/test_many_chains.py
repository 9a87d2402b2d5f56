"""The benchmark of chains by the thousand: its chains, its comparison of devices, and what is stored of it."""

from helpers.common import read_result

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chapters import ROOT


def load(name):
    """Import one of the benchmark's two programs, whose names others have, too."""
    spec = importlib.util.spec_from_file_location(f"many_chains_{name}", ROOT / f"benchmarks/many_chains/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


device, program = load("device"), load("__main__")


@pytest.fixture(scope="module")
def gaussian():
    """A density whose predictions are its own coordinates, N(0, 1)."""
    starts = np.random.default_rng(1).standard_normal((4000, 2)).astype(np.float32)
    return device.Problem(lambda v: -(v**2).sum() / 2, lambda v: v, starts, 0.5, np.ones(2, np.float32), 4)


@pytest.mark.parametrize("together", [True, False])
def test_chains_draw_from_the_density_each_with_random_numbers_of_its_own(gaussian, together):
    run, chains = device.moves(gaussian, together), 500
    steps, p, acceptance = run(jax.random.key(2), jnp.asarray(gaussian.starts[:chains]), 50)
    z = device.in_errors(p, np.zeros(2), 0.0)
    assert np.abs(z).max() < 5 and 0.8 < np.mean(acceptance) <= 1 and 50 <= steps <= 50 * 7
    same = jnp.tile(jnp.asarray(gaussian.starts[:1]), (chains, 1))
    _, p, _ = run(jax.random.key(3), same, 50)
    assert len(np.unique(np.asarray(p)[:, 0])) > 0.99 * chains  # one key for all would give one number


def test_chains_in_turn_are_the_chains_together(gaussian):
    arguments = jax.random.key(4), jnp.asarray(gaussian.starts[:3]), 5
    (steps, p, _), (steps_too, p_too, _) = (device.moves(gaussian, together)(*arguments) for together in (True, False))
    assert steps == steps_too
    np.testing.assert_allclose(p, p_too, rtol=1e-3, atol=1e-4)


def test_groups_of_threads_are_all_chains(gaussian):
    found = device.runner(gaussian, 5, 2)(3)
    assert [len(p) for _, p, _ in found] == [3, 2]
    assert device.timer(gaussian, 4, 1)() > 0


def test_predictions_of_another_posterior_are_found():
    right = np.random.default_rng(5).standard_normal((64, 900))
    assert np.abs(device.in_errors(right, np.zeros(900), 0.01)).max() < device.TOO_FAR
    assert np.abs(device.in_errors(right + 1.0, np.zeros(900), 0.01)).max() > device.TOO_FAR


def test_all_tasks_at_once_are_the_books_density():
    density, _, shapes, observed, _ = device.parts("hierarchical")
    position = device.mcmc.normal_starts(jax.random.key(6), shapes, ())
    expected = density(position, observed)
    np.testing.assert_allclose(device.all_at_once(position, observed), expected, rtol=1e-5)


def test_what_is_stored_is_what_the_readme_prints_and_every_device_drew_from_the_same_posteriors():
    stored = read_result("many_chains")
    assert program.table(stored) in (ROOT / "benchmarks/README.md").read_text()
    for one in stored["devices"]:
        assert {row["problem"] for row in one["rows"]} == set(device.MOST)
        assert all(len(row["microseconds"]) == device.ROUNDS for row in one["rows"])
        assert set(one["apart"]) == {"flat", "hierarchical", "hierarchical, all tasks at once"}
        assert all(z["largest"] < device.TOO_FAR and z["root_mean_square"] < 2 for z in one["apart"].values())
