"""The benchmark of chains by the thousand: its chains, its comparison of devices, and what is
stored of it.
"""

from helpers import mcmc
from helpers.common import read_result

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chapters import ROOT

from benchmarks.many_chains import __main__ as program
from benchmarks.many_chains import device
from experiments.pages.scaling_out import devices, many_chains


@pytest.fixture(scope="module")
def gaussian():
    """A density N(0, 1) whose predictions are its coordinates and their squares; chains begin in a
    corner of it.
    """
    starts = np.random.default_rng(1).uniform(0.9, 1.1, (4000, 2)).astype(np.float32)
    return many_chains.Problem(
        lambda v: -(v**2).sum() / 2,
        lambda v: jnp.concatenate([v, v**2]),
        starts,
        0.9,
        np.ones(2, np.float32),
        4,
    )


def keys(seed, chains):
    """Return the key of the steps, and those of the chains."""
    key_steps, key_chains = jax.random.split(jax.random.key(seed))
    return key_steps, jax.random.split(key_chains, chains)


@pytest.mark.parametrize("together", [True, False])
def test_chains_draw_from_the_density_each_with_random_numbers_of_its_own(gaussian, together):
    run, chains = many_chains.moves(gaussian, together), 500
    steps, p, acceptance = run(*keys(2, chains), jnp.asarray(gaussian.starts[:chains]), 400)
    assert np.abs(many_chains.in_errors(p, np.array([0.0, 0.0, 1.0, 1.0]), 0.02)).max() < 5
    assert 0.7 < np.mean(acceptance) < 0.99 and 400 <= steps <= 400 * 7
    same = jnp.tile(jnp.asarray(gaussian.starts[:1]), (chains, 1))
    _, p, _ = run(*keys(3, chains), same, 50)
    # one key for all would give one number
    assert len(np.unique(np.asarray(p)[:, 0])) > 0.99 * chains


def test_chains_in_turn_are_the_chains_together(gaussian):
    arguments = *keys(4, 3), jnp.asarray(gaussian.starts[:3]), 5
    (steps, p, _), (steps_too, p_too, _) = (
        many_chains.moves(gaussian, together)(*arguments) for together in (True, False)
    )
    assert steps == steps_too
    np.testing.assert_allclose(p, p_too, rtol=1e-3, atol=1e-4)


def test_threads_share_their_numbers_of_steps_and_not_their_random_numbers(gaussian):
    same = gaussian._replace(starts=np.repeat(gaussian.starts[:1], 5, axis=0))
    found = many_chains.runner(same, 5, 2, False)(20)
    assert [len(p) for _, p, _ in found] == [3, 2]
    assert len({int(steps) for steps, _, _ in found}) == 1
    assert len(np.unique(np.concatenate([p for _, p, _ in found])[:, 0])) == 5


def test_predictions_of_another_posterior_are_found():
    right = np.random.default_rng(5).standard_normal((64, 900))
    assert np.abs(many_chains.in_errors(right, np.zeros(900), 0.01)).max() < device.TOO_FAR
    assert np.abs(many_chains.in_errors(right + 1.0, np.zeros(900), 0.01)).max() > device.TOO_FAR
    np.testing.assert_allclose(many_chains.in_errors(np.ones((4, 1)), np.zeros(1), 0.5), 2.0)


def row(name, ess=0.1):
    """The row of a posterior."""
    return {"name": name, "ess_a_gradient": ess, "rhat": 1.0, "mean_steps": 9.0}


def test_devices_that_began_elsewhere_are_not_stored_together(tmp_path, monkeypatch):
    for name in ("flat", "hierarchical"):
        np.savez(tmp_path / f"{name}.npz", **row(name))
    (tmp_path / "cpu.json").write_text("{}")
    monkeypatch.setattr(
        "sys.argv", ["many_chains", "--folder", str(tmp_path), "--date", "2026-01-31"]
    )
    with pytest.raises(SystemExit, match="store --into another file"):
        program.main()


def test_a_device_that_is_measured_again_takes_its_own_place():
    stored = [row("flat"), {"device": "a", "date": "old"}, {"device": "b", "date": "old"}]
    found = devices.joined([row("flat", 0.1 + 1e-9)], stored, [{"device": "a", "date": "new"}])
    assert found == [row("flat", 0.1 + 1e-9), {"device": "a", "date": "new"}, stored[2]]
    with pytest.raises(ValueError, match=r"given .*0\.2.*, expected .*0\.1.*, with which stored"):
        devices.joined([row("flat", 0.2)], stored)


def test_the_program_that_starts_the_others_leaves_devices_alone():
    code = "import sys, benchmarks.many_chains.__main__; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_all_tasks_at_once_are_the_books_density():
    density, _, shapes, observed, _ = many_chains.parts("hierarchical")
    position = mcmc.normal_starts(jax.random.key(6), shapes, ())
    expected = density(position, observed)
    np.testing.assert_allclose(many_chains.all_at_once(position, observed), expected, rtol=1e-5)


def test_what_is_stored_is_what_the_readme_prints():
    rows = read_result("scaling_out/many_chains")["rows"]
    assert [one["name"] for one in rows if "name" in one] == list(many_chains.units())
    # what `make results` would write
    assert many_chains.rows({one["name"]: one for one in rows if "name" in one}) == rows
    measured = [one for one in rows if "device" in one]
    assert program.table(rows) in (ROOT / "benchmarks/README.md").read_text()
    for one in measured:
        assert {timed["problem"] for timed in one["rows"]} == set(device.MOST)
        assert all(len(timed["microseconds"]) == device.ROUNDS for timed in one["rows"])
