"""Several processes are one program: the numbers of one process, and an end when one of them is
lost.
"""

import signal
import socket
import time

import numpy as np
import pytest

from experiments.methods import joined_processes
from tests.launch import LIMIT, starting

LOOP = """
import sys, time
from experiments.methods import joined_processes
import jax
import jax.numpy as jnp
number, address, talk = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "talk"
joined_processes.join(2, number, address, limit=300, heartbeat=10)
mesh, spec = jax.sharding.Mesh(jax.devices(), "data"), jax.sharding.PartitionSpec
line = jax.sharding.NamedSharding(mesh, spec("data"))
ones = jax.make_array_from_callback((2,), line, lambda index: jnp.ones(1))
total = jax.jit(jnp.sum, out_shardings=jax.sharding.NamedSharding(mesh, spec()))
print(total(ones), flush=True)
for _ in range(6000):
    time.sleep(0.1)
    if talk:
        total(ones).block_until_ready()
print("not ended")
"""


@pytest.fixture
def start(tmp_path):
    with starting(tmp_path) as begin:
        yield begin


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What one process found, and what each of two."""
    alone, joined, at = (
        tmp_path_factory.mktemp("alone"),
        tmp_path_factory.mktemp("joined"),
        joined_processes.address(),
    )
    with starting(joined) as begin:
        three = [
            begin("tests/joined.py", alone),
            *[begin("tests/joined.py", joined, 2, i, at) for i in range(2)],
        ]
        for process, log in three:
            assert process.wait(LIMIT) == 0, log.read_text()
    return [dict(np.load(path)) for path in (alone / "0.npz", joined / "0.npz", joined / "1.npz")]


def test_two_processes_find_density_and_gradient_of_one(found):
    one, *two = found
    assert one["processes"] == 1 and all(each["processes"] == 2 for each in two)
    names = [name for name in one if name.startswith(("value", "gradient"))]
    assert len(names) == 8
    for name in names:
        assert one[name].dtype == np.float64
        for each in two:
            np.testing.assert_allclose(each[name], one[name], rtol=1e-12, err_msg=name)


def test_a_gradient_talks_once(found):
    assert all(each[f"sums of {what}"] == 1 for each in found[1:] for what in ("data", "tasks"))
    assert all(each["gathers of tasks"] == 1 for each in found[1:])
    one, *two = found
    for each in two:
        np.testing.assert_allclose(
            each["gradient of each, gathered"], one["gradient of each"], rtol=1e-12
        )


def test_chains_in_two_processes_make_the_very_draws_of_one(found):
    one, *two = found
    for each in two:
        for what in ("draws", "log_density", "integration_steps", "energy"):
            np.testing.assert_array_equal(each[f"{what} over chains"], one[f"{what} over chains"])


def test_data_in_two_processes_make_the_first_draws_of_one(found):
    one, *two = found
    for each in two:
        np.testing.assert_allclose(
            each["draws over data"], one["draws over data"], rtol=1e-6, atol=1e-8
        )
        np.testing.assert_array_equal(
            each["integration_steps over data"], one["integration_steps over data"]
        )
        np.testing.assert_array_equal(each["draws over data"], two[0]["draws over data"])


def test_data_that_do_not_divide_are_named(found):
    for each in found[1:]:
        assert (
            str(each["odd"])
            == "given a leaf of shape (3,), expected a leading axis in 2 equal parts"
        )


LOST = {  # the process that is lost, how, and whether it was in the middle of sums
    "the first, killed": (0, signal.SIGKILL, "talk"),
    "the first, stopped": (0, signal.SIGSTOP, "talk"),
    "the second, killed": (1, signal.SIGKILL, "talk"),
    "the second, stopped": (1, signal.SIGSTOP, "quiet"),
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Two joined processes for each way of losing one; all run side by side, since they mostly
    wait.
    """
    with starting(tmp_path_factory.mktemp("pairs")) as begin:
        found = {}
        for name, (*_, talk) in LOST.items():
            at = joined_processes.address()
            found[name] = [begin("-c", LOOP, i, at, talk) for i in range(2)]
        yield found


@pytest.mark.parametrize("name", LOST)
def test_when_a_process_is_lost_the_other_ends_with_an_error(pairs, name):
    (number, lost, _), two = LOST[name], pairs[name]
    end = time.monotonic() + LIMIT
    while not all("2.0" in log.read_text() for _, log in two):
        assert time.monotonic() < end and all(process.poll() is None for process, _ in two)
        time.sleep(0.1)
    two[number][0].send_signal(lost)
    other, log = two[1 - number]
    assert other.wait(60) != 0
    assert "another task died" in log.read_text() or "JaxRuntimeError" in log.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 2, "127.0.0.1:1234"), "process: given 2, expected one of 0 to 1"),
        ((2, -1, "127.0.0.1:1234"), "process: given -1, expected one of 0 to 1"),
        ((0, 0, "127.0.0.1:1234"), "num_processes: given 0, expected an integer of 1 or more"),
        ((2, None, "127.0.0.1:1234"), "expected all of them or none"),
        ((2, 0, "127.0.0.1"), "given '127.0.0.1', expected \"host:port\""),
        (
            (10_000, 1, "127.0.0.1:1234"),
            "num_processes: given 10000 on this host, expected at most .*, one a core",
        ),
    ],
)
def test_wrong_numbers_are_named_before_jax_sees_them(arguments, message):
    with pytest.raises(ValueError, match=message):
        joined_processes.join(*arguments, limit=1)


def test_a_number_that_is_taken_twice_is_named(start, monkeypatch):
    at = joined_processes.address()
    with pytest.raises(TimeoutError, match=r"processes \[1\] of 2 are not there after 1 s$"):
        joined_processes.join(2, 0, at, limit=1)
    join = f"joined_processes.join(2, 1, {at!r}, limit={LIMIT})"
    start("-c", f"from experiments.methods import joined_processes; {join}")
    monkeypatch.setattr(joined_processes, "_taken", [])
    with monkeypatch.context() as patch:
        patch.setattr(joined_processes.jax.distributed, "initialize", lambda *_, **__: None)
        joined_processes.join(2, 0, at, limit=LIMIT)  # until number 1 is there
    with pytest.raises(
        ValueError, match="given 1, which another process has already, expected each of 0 to 1 once"
    ):
        joined_processes.join(2, 1, at, limit=1)
    for stack in joined_processes._taken:
        stack.close()


def test_a_coordinator_that_is_not_there_is_named():
    at = joined_processes.address()
    port = at.split(":")[1]
    with pytest.raises(
        TimeoutError, match=rf"processes \[0\] of 2 are .* 1 s: no coordinator at port {port}"
    ):
        joined_processes.join(2, 1, at, limit=1)
    with pytest.raises(
        TimeoutError, match=rf"no coordinator at 127.0.0.2:{port} after 1 s: is process 0 there?"
    ):
        joined_processes.join(2, 1, f"127.0.0.2:{port}", limit=1)


def test_a_port_that_is_taken_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f"coordinator: given port {port}, which is taken"):
            joined_processes.join(2, 0, f"127.0.0.1:{port}", limit=1)


def test_rows_of_devices_are_of_one_length():
    with pytest.raises(ValueError, match="num_rows: given 3, expected a divisor of the 1 devices"):
        joined_processes.grid(3)
