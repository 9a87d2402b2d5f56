"""A run that was stopped goes on with the very draws of one that was not, whatever number of
processes it has.
"""

from helpers import common, mcmc

import signal
import time

import jax
import numpy as np
import pytest

from experiments.methods import checkpoints, joined_processes, sharded
from experiments.problems import large_problems
from tests.launch import LIMIT, starting

SIZES = [
    "--data-size",
    "64",
    "--chains",
    "2",
    "--warmup",
    "20",
    "--samples",
    "35",
    "--every",
    "4",
    "--seed",
    "3",
]
FIT = ["-m", "experiments.pages.scaling_out.fit", "moons"]


@pytest.fixture
def start(tmp_path):
    with starting(tmp_path) as begin:
        yield begin


def draws(folder):
    with np.load(folder / "draws.npz") as arrays:
        return dict(arrays)


def steps(folder):
    """Steps of a run that are kept whole."""
    return sorted(int(path.name) for path in (folder / "steps").glob("*") if path.name.isdigit())


def test_a_run_that_lost_a_process_goes_on_with_the_draws_of_an_unbroken_one(start, tmp_path):
    whole, broken, at = tmp_path / "whole", tmp_path / "broken", joined_processes.address()
    by_hand = ["--processes", "2", "--coordinator", at, "--limit", "200", "--number"]
    unbroken = start(*FIT, whole, *SIZES)
    two = [start(*FIT, broken, *SIZES, *by_hand, number) for number in range(2)]
    end = time.monotonic() + LIMIT
    while len(steps(broken)) < 4:  # after warm-up and three stretches of ten
        assert time.monotonic() < end and not [
            log.read_text() for one, log in two if one.poll() is not None
        ]
        time.sleep(0.02)
    two[1][0].send_signal(signal.SIGKILL)
    assert two[0][0].wait(60) != 0
    at_stop = steps(broken)
    assert not (broken / "draws.npz").exists() and at_stop[-1] < 10
    for process, log in (unbroken, start(*FIT, broken, *SIZES)):
        assert process.wait(LIMIT) == 0, log.read_text()
    assert steps(whole) == steps(broken) == list(range(11))
    found, expected = draws(broken), draws(whole)
    assert found.keys() == expected.keys() and found["stats/log_density"].shape == (2, 35)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    # The folder knows whose it is: other data are found before anything is drawn.
    log_density, shapes, data = large_problems.moons(60)
    starts = mcmc.normal_starts(jax.random.key(1), shapes, (2,))
    sizes = {"num_warmup": 20, "num_samples": 35, "every": 4, "folder": broken / "steps"}
    key = common.key(3, "chains")
    with pytest.raises(ValueError, match="of other data, or of another density"):
        sharded.sample(key, log_density, starts, joined_processes.grid(1), data=data, **sizes)


def test_what_is_kept_comes_back(tmp_path):
    tree = {"a": (np.arange(3), np.float32(2.5)), "b": [np.array([True, False])]}
    settings = {"key": [1, 2]}
    with checkpoints.opened(tmp_path / "run", settings) as manager:
        assert manager.latest_step() is None
        checkpoints.save(manager, 0, tree, settings)
    with checkpoints.opened(tmp_path / "run", settings) as manager:
        found = checkpoints.read(manager, manager.latest_step(), tree)
    assert jax.tree.structure(found) == jax.tree.structure(tree)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
        assert one.dtype == np.asarray(other).dtype
        np.testing.assert_array_equal(one, other)
    message = r"other \(found, expected\) settings {'key': \(\[1, 2\], \[3\]\)}"
    with (
        pytest.raises(ValueError, match=message),
        checkpoints.opened(tmp_path / "run", {"key": [3]}),
    ):
        pass
