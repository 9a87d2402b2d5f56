"""Many fits on Dask's workers: nothing is lost with a worker, and one that runs out of memory says
so.
"""

import os
import signal
import time

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

from experiments.pages.scaling_out import sweep

SIZES = {"num_warmup": 20, "num_samples": 10}


def cluster(**settings):
    """Two workers on this machine, each a process."""
    quiet = {"scheduler_kwargs": {"dashboard": False, "dashboard_address": "127.0.0.1:0"}}
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **quiet, **settings)


def test_a_worker_that_is_killed_in_the_middle_loses_nothing():
    groups = [sweep.group(number) for number in range(6)]
    expected = {of["number"]: sweep.fit(of, **SIZES) for of in groups}
    with cluster() as local, Client(local) as client:
        found, killed = {}, None
        for number, one in sweep.sweep(client, sweep.fit, groups, **SIZES):
            found[number] = one
            if killed is None:
                killed = client.run(os.getpid)
                os.kill(next(iter(killed.values())), signal.SIGKILL)
        assert len(found) == 6 and len(killed) == 2
    assert found == expected


def test_a_worker_that_runs_out_of_memory_says_so_and_the_others_go_on():
    def grow(of):
        kept = []
        while of["number"] == 1:
            kept.append(np.ones(2**22))  # 32 MB
            time.sleep(0.05)
        return of["number"]

    with (
        dask.config.set(
            {"distributed.scheduler.allowed-failures": 0, "distributed.worker.memory.pause": False}
        ),
        cluster(memory_limit="700MB") as local,
        Client(local) as client,
    ):
        found = dict(sweep.sweep(client, grow, [{"number": number} for number in range(3)]))
    assert (found[0], found[2]) == (0, 2)
    with pytest.raises(
        MemoryError, match=r"group 1: its workers exceeded their memory, with \d+ MB"
    ):
        raise found[1]


def test_groups_differ_in_size_and_share_a_shape():
    groups = [sweep.group(number) for number in range(20)]
    assert {of["x"].shape for of in groups} == {(60, 2)}
    assert (
        len({of["weight"].sum() for of in groups}) > 5
        and min(of["weight"].sum() for of in groups) >= 20
    )
