"""What a gradient costs in one process and in two, each with as much to do, and what that says of
more.

Weak scaling: every process has as many tasks, or rows, or a chain of its own. Process 0 alone and
both together are timed in turns, and processes are started anew several times, whose averages make
the intervals. Workers of Dask fit a list of groups in the same way. Units wait for each other,
since a machine that does something else measures that. Seconds are of the machine that ran this.

The model: a gradient of n tasks in each of P processes takes a + b n + c log2(P) microseconds: c is
a sum over two processes, which a tree of sums takes log2(P) times. With two processes a gradient is
90 % as fast as with one, each with n tasks, from n = (9 c - a) / b on. The coefficients of every
start are found by least squares of relative errors.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scipy import stats

from experiments.methods import joined_processes
from experiments.pages.scaling_out import timing, workers

SETTINGS = {
    "sizes": {
        "chains": [1000],
        "data": [1000, 100_000],
        "tasks": [100, 1000, 3000, 10_000, 100_000],
        "tasks, gathered": [1000, 10_000],
        "workers": [48],
    },
    "starts": 4,
    "turns": 4,  # of a start
    "seconds_a_turn": 0.3,  # at least, and one gradient
    "limit": 900,  # seconds that one start may take
    "asked": {"hosts": 64, "groups": 10**6},
}


def units():
    """A start of what is divided, and how much of it a process has; groups that workers fit."""
    sizes = [(kind, size) for kind, some in SETTINGS["sizes"].items() for size in some]
    starts = range(SETTINGS["starts"])
    return {
        f"{k} {n}, start {i}": {"kind": k, "size": n, "start": i} for i in starts for k, n in sizes
    }


SMALL = units()["chains 1000, start 0"]


def unit(kind, size, start):
    """Seconds, [one or two, turn]: of a gradient, or of all groups."""
    measured = workers_measured if kind == "workers" else gradients_measured
    with alone(), tempfile.TemporaryDirectory() as folder:
        return {"seconds": measured(kind, size, Path(folder))}


def gradients_measured(kind, size, folder):
    """Start two processes, a core each; seconds of a gradient, [alone or both, turn]."""
    file, address = folder / "seconds.npy", joined_processes.address()
    fixed = [file, kind, size, SETTINGS["turns"], SETTINGS["seconds_a_turn"]]
    run(
        [[timing.main.__module__, *fixed, number, address] for number in range(2)], f"{kind} {size}"
    )
    return np.load(file)


def workers_measured(kind, size, folder):
    """Start two workers, a core each, and return the seconds of all groups, [one or both, turn]."""
    file = folder / "seconds.npy"
    run([[workers.main.__module__, file, size]], f"{kind} {size}")
    return np.load(file)


def run(commands, name):
    """Run modules side by side. RuntimeError: one that failed."""
    folder = Path(__file__).resolve().parents[3]
    started = [
        subprocess.Popen([sys.executable, "-m", *map(str, command)], cwd=folder)
        for command in commands
    ]
    try:
        ended = [process.wait(SETTINGS["limit"]) for process in started]
    finally:
        for process in started:
            process.kill()
    if any(ended):
        raise RuntimeError(f"{name}: processes ended with {ended}")


@contextmanager
def alone():
    """Wait until no other worker of this machine measures."""
    with (Path(tempfile.gettempdir()) / f"scaling-out-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def score(drawn, kind, size, start):
    """Microseconds with one process and two, and the efficiency: work a second, 1 at best."""
    one, two = 1e6 * drawn["seconds"]
    # Two workers share one list, two processes have as much each.
    ratio = np.median(one) / two / (2 if kind == "workers" else 1)
    # Of the start alone; starts differ by more.
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    found = {
        "one": np.median(one),
        "two": np.median(two),
        "efficiency": np.median(ratio),
        "efficiency_error": error,
    }
    return {"kind": kind, "size": size, "start": start} | {
        name: float(value) for name, value in found.items()
    }


def rows(scored):
    """A row for all starts of a kind and size, and the model, with the hosts and groups asked."""
    found = []
    for kind, some in SETTINGS["sizes"].items():
        for size in some:
            starts = [row for row in scored.values() if (row["kind"], row["size"]) == (kind, size)]
            times = {name: [row[name] for row in starts] for name in ("one", "two")}
            of_all = estimated("efficiency", [row["efficiency"] for row in starts])
            found.append({"kind": kind, "size": size, **times, **of_all})
    of_tasks = [row for row in found if row["kind"] == "tasks"]
    sizes = np.array([row["size"] for row in of_tasks], float)
    # [start, size]
    one, two = (np.transpose([row[name] for row in of_tasks]) for name in ("one", "two"))
    fits = [fitted(sizes, *times) for times in zip(one, two, strict=True)]
    model = {"kind": "model"}
    for name in fits[0]:
        model |= estimated(name, [fit[name] for fit in fits])
    return [*found, model]


def estimated(name, values):
    """A mean of starts, and half of its interval of 95 %."""
    values = np.asarray(values)
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return {name: float(values.mean()), f"{name}_half": float(half)}


def fitted(sizes, one, two):
    """The coefficients, in microseconds, of the times of one start, and what follows from them."""
    together = np.repeat([0.0, 1.0], len(sizes))
    times = np.concatenate([one, two])
    terms = np.stack([np.ones_like(times), np.tile(sizes, 2), together], axis=1)
    a, b, c = np.linalg.lstsq(terms / times[:, None], np.ones_like(times), rcond=None)[0]
    hosts, groups = SETTINGS["asked"]["hosts"], SETTINGS["asked"]["groups"]
    on_one, on_all = a + b * groups, a + b * groups / hosts + c * np.log2(hosts)
    return {
        "a": a,
        "b": b,
        "c": c,
        "largest_misfit": np.abs(terms @ [a, b, c] / times - 1).max(),
        "pays_from": (9 * c - a) / b,
        "one_host": on_one,
        "all_hosts": on_all,
        "speed_up": on_one / on_all,
    }
