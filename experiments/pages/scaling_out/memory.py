"""How far memory grows while minibatches come from files, as rows become more, and where the files
are read whole.

Each run has a process of its own, which compiles first. What it takes for itself is told apart from
pages of the files that the system has lent it, and takes back when memory is short. Linux tells
both.
"""

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from experiments.pages.scaling_out import streaming

SETTINGS = {
    "seed": 17,
    "rows": [10_000, 100_000, 1_000_000, 10_000_000],
    "ways": ["SG-MCMC", "SVI", "in memory"],
    "columns": 4,
    "part": 100_000,  # rows that are written at once
    "batch": 100,
    "steps": 2000,
    "stretch": 20,
    "runs": 3,
}
SCATTER = 5.0  # megabytes by which runs differ: the allocator, and what compiling leaves


def units():
    """A run of a way and a number of rows each."""
    each = itertools.product(SETTINGS["ways"], SETTINGS["rows"], range(SETTINGS["runs"]))
    return {
        f"{way} {rows}, run {run}": {"way": way, "rows": rows, "run": run}
        for way, rows, run in each
    }


SMALL = units()["SG-MCMC 100000, run 0"]


def unit(way, rows, run):
    """Megabytes of the files, and by how many the process grew: for itself, and at most."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        own, most = measured(way, rows, Path(folder))
    return {"files": np.array(size / 1e6), "own": np.array(own), "most": np.array(most)}


def write(folder, num_rows):
    """Write a linear regression to two files, a part at a time."""
    width, part = SETTINGS["columns"], SETTINGS["part"]
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (num_rows, width))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float32, (num_rows,))
    for start in range(0, num_rows, part):
        random, rows = np.random.default_rng([SETTINGS["seed"], start]), slice(start, start + part)
        x[rows] = random.normal(size=x[rows].shape)
        y[rows] = x[rows] @ np.arange(width) + random.normal(size=y[rows].shape)


def measured(way, rows, folder):
    """Run one way in a process, and return the megabytes that it prints."""
    given = [way, rows, folder, SETTINGS["batch"], SETTINGS["steps"], SETTINGS["stretch"]]
    command = [sys.executable, "-m", streaming.main.__module__, *map(str, given)]
    here = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        command, cwd=here, stdout=subprocess.PIPE, text=True, timeout=600, check=True
    )
    return [float(word) for word in done.stdout.split()]


def score(drawn, way, rows, run):
    """The same as numbers, with the error that ``--check`` goes by."""
    return {
        "way": way,
        "rows": rows,
        "own_error": SCATTER,
        **{name: float(value) for name, value in drawn.items()},
    }


def rows(scored):
    """A row for all runs of a way and a number of rows."""
    found = []
    for way in SETTINGS["ways"]:
        for size in SETTINGS["rows"]:
            runs = [row for row in scored.values() if (row["way"], row["rows"]) == (way, size)]
            row = {name: [run[name] for run in runs] for name in ("own", "most")}
            found.append({"way": way, "rows": size, "files": runs[0]["files"], **row})
    return found
