"""What a gradient costs in one process and in two, each with as much to do, and what that says of more.

Weak scaling: every process has as many tasks, or rows, or a chain of its own. Both arms are timed in turns on the same
machine, and units wait for each other, since a machine that does something else measures that. Seconds are of the
machine that ran this.

The model: a gradient of n tasks in each of P processes takes a + b n seconds, and a sum over processes c log2(P) more.
Two processes are 90 % efficient from n = (9 c - a) / b on. Its coefficients are found by least squares of relative
errors from the rows of tasks.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from experiments.scaling_out import processes, timing

SETTINGS = {
    "sizes": {"chains": [1000], "data": [1000, 10_000, 100_000], "tasks": [100, 1000, 10_000, 100_000]},
    "turns": 3,
    "runs": 5,  # of a turn
    "seconds_a_run": 0.5,
    "limit": 900,  # seconds that one start may take
    "asked": {"hosts": 64, "groups": 10**6},
}


def units():
    """What is divided, and how much each process has of it."""
    sizes = SETTINGS["sizes"].items()
    return {f"{kind} {size}": {"kind": kind, "size": size} for kind, some in sizes for size in some}


SMALL = units()["chains 1000"]


def unit(kind, size):
    """Seconds of a gradient, [processes: 1 or 2, turn, run]."""
    with alone(), tempfile.TemporaryDirectory() as folder:
        turns = [[timed(kind, size, count, Path(folder)) for count in (1, 2)] for _ in range(SETTINGS["turns"])]
    return {"seconds": np.swapaxes(turns, 0, 1)}


def timed(kind, size, num_processes, folder):
    """Start so many processes, a core each, and return the seconds of the slowest in each run."""
    at, file, root = processes.address(), folder / f"{num_processes}.npy", Path(timing.__file__).parents[2]
    fixed = [file, kind, size, SETTINGS["runs"], SETTINGS["seconds_a_run"], num_processes]
    command = [sys.executable, "-m", timing.__name__, *map(str, fixed)]
    started = [subprocess.Popen([*command, str(i), at], cwd=root) for i in range(num_processes)]
    try:
        ended = [process.wait(SETTINGS["limit"]) for process in started]
    finally:
        for process in started:
            process.kill()
    if any(ended):
        raise RuntimeError(f"{kind} {size}: processes ended with {ended}")
    return np.load(file)


@contextmanager
def alone():
    """Wait until no other worker of this machine measures."""
    with (Path(tempfile.gettempdir()) / f"scaling-out-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def score(drawn, kind, size):
    """Microseconds of a gradient with one process and with two, and the efficiency: the ratio, 1 at best."""
    of_turns = np.median(1e6 * drawn["seconds"], axis=2)
    ratio = of_turns[0] / of_turns[1]
    return {
        "kind": kind,
        "size": size,
        "microseconds": of_turns.tolist(),
        "efficiency": float(np.median(ratio)),
        "efficiency_error": float(np.sqrt(np.pi / 2) * ratio.std(ddof=1) / np.sqrt(len(ratio))),
    }


def rows(scored):
    """The rows of the units, and the model with what it says of the hosts and groups that are asked for."""
    of_tasks = [row for row in scored.values() if row["kind"] == "tasks"]
    size = np.array([row["size"] for row in of_tasks], float)
    one, two = np.median([row["microseconds"] for row in of_tasks], axis=2).T
    apart, together = np.zeros_like(size), np.ones_like(size)
    terms = np.stack([np.tile(together, 2), np.tile(size, 2), np.concatenate([apart, together])], axis=1)
    seconds = np.concatenate([one, two])
    a, b, c = np.linalg.lstsq(terms / seconds[:, None], np.ones_like(seconds), rcond=None)[0]
    off = terms @ [a, b, c] / seconds - 1
    hosts, groups = SETTINGS["asked"]["hosts"], SETTINGS["asked"]["groups"]
    on_one, on_all = a + b * groups, a + b * groups / hosts + c * np.log2(hosts)
    model = {"a": a, "b": b, "c": c, "largest_error": np.abs(off).max(), "one_host": on_one, "all_hosts": on_all}
    model |= {"speed_up": on_one / on_all, "pays_from": (9 * c - a) / b}
    return [*scored.values(), {"kind": "model", **{name: float(value) for name, value in model.items()}}]
