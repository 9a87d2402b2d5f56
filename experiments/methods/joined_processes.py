"""Joins processes into one JAX program, after a look for what would make JAX abort, or wait.

    joined_processes.join()  # in a job of SLURM, Open MPI or a cloud, whose settings JAX reads
    joined_processes.join(2, 0, "127.0.0.1:9876")  # by hand: this is process 0 of 2
    mesh = joined_processes.grid(num_rows=2)

``join`` calls ``jax.distributed.initialize``. It comes before BlackJAX is imported, which would
start JAX alone. When a process dies JAX ends the others with a message; when one stops without
dying, ``heartbeat`` seconds later.
"""

from helpers import checks

import contextlib
import fcntl
import os
import socket
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh

HERE = ("localhost", "127.0.0.1")
_taken = []  # locks


def address() -> str:
    """Return a free address of this host, for processes that are started here by hand."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def join(
    num_processes: int | None = None,
    process: int | None = None,
    coordinator: str | None = None,
    *,
    limit: int = 60,
    heartbeat: int = 20,
) -> None:
    """Join ``num_processes`` processes, of which this is the one with that number, and start JAX.

    Without arguments JAX reads them from the settings of the cluster. All of them or none are
    given.

    Args:
        coordinator: "host:port" at which process 0 listens; any port of its host that is free.
        limit: seconds that any wait may take: for the others to come, and for them to end.
        heartbeat: seconds without a sign of life after which a process counts as dead.

    ValueError: a number that is not one of the processes, or that another process of this host has,
        an address that is none or whose port is taken, more processes on this host than cores, no
        cluster that JAX knows.
    TimeoutError: the coordinator, or one of the processes on this host, is not there.
    """
    checks.count(limit=limit, heartbeat=heartbeat)
    given, bound = (num_processes, process, coordinator), None
    if any(one is not None for one in given):
        if None in given:
            given = f"given {given}, expected all of them or none"
            raise ValueError(f"num_processes, process, coordinator: {given}")
        checks.count(num_processes=num_processes)
        if process not in range(num_processes):
            raise ValueError(f"process: given {process}, expected one of 0 to {num_processes - 1}")
        host, _, port = coordinator.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 2**16:
            raise ValueError(f'coordinator: given {coordinator!r}, expected "host:port"')
        if process == 0:
            _check_port(int(port))
        if host in HERE:
            _roll_call(num_processes, process, port, limit)
            bound = coordinator  # and not on all of this host's addresses
        elif process:
            _find(host, int(port), limit)
    limits = {"initialization_timeout": limit, "shutdown_timeout_seconds": limit}
    limits |= {"heartbeat_timeout_seconds": heartbeat}
    processes = coordinator, num_processes, process
    jax.distributed.initialize(*processes, coordinator_bind_address=bound, **limits)
    # Processes connect when they first sum, and wait for each other for half a minute then: now,
    # while all are here.
    multihost_utils.sync_global_devices("joined")


def grid(num_rows: int) -> Mesh:
    """Return all devices as a mesh of axes "row" and "data"; a chain runs on the devices of a row.

    ValueError: the devices do not make as many rows of one length.
    """
    checks.count(num_rows=num_rows)
    devices = np.array(jax.devices())  # those of a process stand together
    if len(devices) % num_rows:
        expected = f"a divisor of the {len(devices)} devices"
        raise ValueError(f"num_rows: given {num_rows}, expected {expected}")
    rows = devices.reshape(num_rows, -1)
    return Mesh(rows, ("row", "data"))


def _check_port(port):
    """JAX would share the port with whoever listens there already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise ValueError(
                f"coordinator: given port {port}, which is taken, expected one that is free"
            ) from error


def _find(host, port, limit):
    """Wait for the coordinator, without which JAX aborts."""
    end = time.monotonic() + limit
    while True:
        try:
            socket.create_connection((host, port), timeout=limit).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                raise TimeoutError(
                    f"no coordinator at {host}:{port} after {limit} s: is process 0 there?"
                ) from error
        time.sleep(0.2)


def _roll_call(num_processes, process, port, limit):
    """Take this process's number, see others of this host take theirs: locks that end with them."""
    if num_processes > os.cpu_count():  # of the host: a process may be bound to one
        expected = f"expected at most {os.cpu_count()}, one a core"
        raise ValueError(f"num_processes: given {num_processes} on this host, {expected}")
    stem = Path(tempfile.gettempdir()) / f"jax-{os.getuid()}-{port}"
    paths = [stem.with_name(f"{stem.name}-{number}.lock") for number in range(num_processes)]
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(paths[process].open("w"))
        # another may be looking at it
        if not any(_lock(file, fcntl.LOCK_EX) or time.sleep(0.1) for _ in range(10)):
            expected = f"expected each of 0 to {num_processes - 1} once"
            given = f"given {process}, which another process has already"
            raise ValueError(f"process: {given}, {expected}")
        end = time.monotonic() + limit
        while missing := [
            number for number, path in enumerate(paths) if number != process and _free(path)
        ]:
            if time.monotonic() > end:
                lost = f"processes {missing} of {num_processes} are not there after {limit} s"
                here = "" if 0 not in missing else f": no coordinator at port {port}"
                raise TimeoutError(lost + here)
            time.sleep(0.1)
        _taken.append(stack.pop_all())  # held until this process ends


def _lock(file, kind):
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _free(path):
    if not path.exists():
        return True
    with path.open() as file:
        return _lock(file, fcntl.LOCK_SH)
