"""Times a list of groups that one worker fits, and two.

    python -m experiments.pages.scaling_out.workers FILE GROUPS

``costs`` starts it, and reads the file. The workers are those of ``make results``, one core each.
"""

import os
import sys
import tempfile
import time

if __name__ == "__main__" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, range(2))  # Dask asks for the cores when it is imported

import dask
import numpy as np
from distributed import Client, LocalCluster

from experiments.engine import dask_cluster
from experiments.pages.scaling_out import sweep


def main(file: str, num_groups: str) -> None:
    """Time groups on one worker, both, both, one; the workers have compiled before."""
    groups = [sweep.group(number) for number in range(int(num_groups))]
    settings = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "preload": dask_cluster.dask_setup.__module__,
        "silence_logs": 50,
    }
    quiet = {"scheduler_kwargs": {"dashboard": False, "dashboard_address": "127.0.0.1:0"}}
    with (
        tempfile.TemporaryDirectory() as scratch,
        dask.config.set({**dask_cluster.CONFIG, "scheduler-address": None}),
        LocalCluster(**settings, **quiet, local_directory=scratch) as cluster,
        Client(cluster) as client,
    ):
        both = sorted(client.scheduler_info(n_workers=-1)["workers"])

        def timed(some):
            """Fit all groups; Dask's ``submit`` takes the workers that may do so."""
            begin = time.perf_counter()
            done = dict(sweep.sweep(client, sweep.fit, groups, workers=some))
            if any(isinstance(one, Exception) for one in done.values()):
                raise RuntimeError(f"groups: {done}")
            return time.perf_counter() - begin

        for one in both:
            dict(sweep.sweep(client, sweep.fit, groups[:1], workers=[one]))
        first, *pair, last = [timed(some) for some in (both[:1], both, both, both[:1])]
    np.save(file, [[first, last], pair])


if __name__ == "__main__":
    main(*sys.argv[1:])
