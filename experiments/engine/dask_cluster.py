"""The cluster on which units run: that of ``DASK_SCHEDULER_ADDRESS``, or this machine's cores."""

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import dask
from distributed import Client, LocalCluster

from experiments.engine import plan

CONFIG = {
    # What a unit needs it may have up to the limit; Dask would spill draws, and then let the worker
    # wait for ever.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.profile.enabled": False,
    # units wait at the scheduler, and whoever is free takes the next
    "distributed.scheduler.worker-saturation": 1.0,
}


@contextlib.contextmanager
def connected() -> Iterator[Client]:
    """Yield a client of the cluster that Dask's configuration names, or of this machine's cores."""
    if dask.config.get("scheduler-address", None):
        with Client() as client:
            plan.say(f"{len(client.nthreads())} workers at {client.scheduler.address}")
            yield client
        return
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        dask.config.set(CONFIG),
        LocalCluster(
            n_workers=dask.system.cpu_count(),
            threads_per_worker=1,
            processes=True,
            # not the port of another run
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            local_directory=scratch,
            silence_logs=logging.CRITICAL,  # tracebacks of units are told here
            preload=__name__,  # for `dask_setup`
            # how many threads XLA starts
            env={} if hasattr(os, "sched_setaffinity") else {"NPROC": "1"},
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def dask_setup(worker: Any) -> None:
    """Bind a worker of this machine's cluster to a core of its own, before Dask asks anything."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.name) % len(cores)]})
