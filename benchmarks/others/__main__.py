"""The book's hierarchical posterior by other libraries and by the book, from cold to 400 effective
draws.

    make benchmark NAMES=others ARGUMENTS="--seeds 5 --limit 7200 --date 2026-01-31"

runs what is missing, seed by seed, prints the table, and writes results.json. A run that exists is
not repeated, unless it was given up at a lower limit. ``--table`` only reads.
"""

from helpers import data

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from benchmarks.others import table
from benchmarks.others.judge import Judge
from benchmarks.others.session import COUNTS, SHORT

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / "_build/others/bin/python"
KEPT = ROOT / ".units/benchmarks/others"
# Each rival: its program, and its kind.
RIVALS = {
    "ours, float32": ("ours", "float32"),
    "ours, float64": ("ours", "float64"),
    "NumPyro NUTS": ("with_numpyro", ""),
    "NumPyro NUTS, our density": ("with_numpyro", "our density"),
    "BlackJAX NUTS, the port's settings": ("with_blackjax", ""),
    "BlackJAX NUTS, our density": ("with_blackjax", "our density"),
    "nutpie, diagonal, our JAX density": ("with_nutpie", "jax diagonal"),
    "nutpie, low rank, our JAX density": ("with_nutpie", "jax low rank"),
    "nutpie, diagonal, PyMC model": ("with_nutpie", "pymc diagonal"),
    "nutpie, low rank, PyMC model": ("with_nutpie", "pymc low rank"),
    "PyMC NUTS": ("with_pymc", ""),
}
# Those whose runs go on until every R-hat is at most 1.01, if that is asked for.
FIXED = tuple(name for name in RIVALS if name.startswith(("ours", "NumPyro", "BlackJAX")))


def main():
    """Read the command line, run what is missing, print the table."""
    parser = argparse.ArgumentParser(prog="others", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to this one, less one")
    parser.add_argument(
        "--limit", type=float, default=7200.0, help="seconds after which a run is given up"
    )
    parser.add_argument(
        "--rivals", nargs="*", choices=RIVALS, metavar="RIVAL", help="all, or the six of --fixed"
    )
    parser.add_argument(
        "--fixed", action="store_true", help="go on until all R-hat are at most 1.01: fixed.json"
    )
    parser.add_argument(
        "--date",
        help="the date that is stored with the results: they are written only if it is given",
    )
    parser.add_argument(
        "--stop-at", type=float, default=np.inf, help="start no run after so many seconds"
    )
    parser.add_argument("--runs", type=Path, default=KEPT, help="folder of the runs, one file each")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument(
        "--short", action="store_true", help="a few draws of each, to see that all run; not kept"
    )
    parser.add_argument(
        "--parts", action="store_true", help="flat fits and single steps instead: parts.json"
    )
    asked = parser.parse_args()
    if asked.parts:
        pin()
        with tempfile.TemporaryDirectory() as folder:
            command = program("parts", str(asked.seeds), asked.date or "undated")
            return subprocess.run(command, env=environment(folder), check=True).returncode
    begun = time.perf_counter()
    asked.runs = asked.runs / ("fixed" if asked.fixed else "") / ("short" if asked.short else "")
    asked.runs.mkdir(parents=True, exist_ok=True)
    if not asked.table:
        cores = pin()
        tasks = data.source_moons()
        check_densities(tasks, asked.runs / "densities.txt")
        for seed in range(asked.seeds):
            for name in asked.rivals or (FIXED if asked.fixed else RIVALS):
                path = asked.runs / f"{name.replace(', ', '-').replace(' ', '_')}-{seed}.json"
                if missing(path, asked.limit) and time.perf_counter() - begun < asked.stop_at:
                    most = table.FIXED_RHAT[-1] if asked.fixed else None
                    one = run(name, seed, asked.limit, tasks, asked.runs, asked.short, most)
                    one["cores"] = cores
                    path.with_suffix(".part").write_text(json.dumps(one, indent=1) + "\n")
                    path.with_suffix(".part").replace(path)
                    print(table.line(one), flush=True)
    runs = [json.loads(path.read_text()) for path in sorted(asked.runs.glob("*.json"))]
    if asked.date and runs and not asked.short:
        path = table.STORED_FIXED if asked.fixed else table.STORED
        path.write_text(json.dumps(table.result(runs, asked.date), indent=1) + "\n")
    print(table.of_runs(runs, table.of_fixed if asked.fixed else table.of_result))
    return 0


def pin():
    """Keep this process and those that it starts on two cores; return how many there are, where
    that can be done.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    return len(os.sched_getaffinity(0))


def missing(path, limit):
    """Whether a run is to be made: there is none, or it was given up earlier than is asked for."""
    if not path.exists():
        return True
    one = json.loads(path.read_text())
    return one["censored"] and one["limit"] < limit


def environment(folder):
    """Return the environment of a cold process: nothing compiled is found, nothing of the caller's
    settings of JAX.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JAX_", "XLA_", "NUMBA_", "PYTENSOR"))
    }
    cold = {
        "PYTENSOR_FLAGS": f"base_compiledir={folder}/pytensor",
        "NUMBA_CACHE_DIR": f"{folder}/numba",
    }
    return kept | cold | {"PYTHONPATH": str(ROOT)}


def program(name, *arguments):
    """Return the command that runs a program of this package in the second environment."""
    return [PYTHON, "-m", f"benchmarks.others.{name}", *arguments]


def start(name, asked, folder):
    """Start a program of the second environment."""
    command = program(name, json.dumps(asked | {"folder": str(folder)}))
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with open(Path(folder) / "stderr", "a") as errors:
        return subprocess.Popen(command, env=environment(folder), stderr=errors, **streams)


def save_data(tasks, folder):
    """Put the tasks where programs of the second environment find them."""
    np.savez(
        Path(folder) / "data.npz",
        **{name: np.asarray(values) for name, values in tasks._asdict().items()},
    )


def check_densities(tasks, path):
    """Stop if the log densities differ; what was found is kept, and found once."""
    if path.exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        save_data(tasks, folder)
        process = start("equal", {}, folder)
        said = process.communicate()[0]
        if process.returncode:
            raise SystemExit(said + (Path(folder) / "stderr").read_text())
        path.write_text(said)
        print(said, end="", flush=True)


def run(name, seed, limit, tasks, kept, short, most):
    """Run one rival until its draws are enough or its time is over; where ``most`` is given, until
    every R-hat is at most that, too.
    """
    sampler, kind = RIVALS[name]
    load, judge = os.getloadavg()[0], Judge(tasks)
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        save_data(tasks, folder)
        every = SHORT if short else COUNTS
        asked = {"kind": kind, "seed": seed, "short": short, "counts": every}
        process, killed = start(sampler, asked, folder), []
        killer = threading.Timer(1.5 * limit + 120, lambda: (killed.append(True), process.kill()))
        killer.start()
        for line in process.stdout:
            told = json.loads(line)
            with np.load(Path(folder) / "draws.npz") as found:
                draws = dict(found)
            judge.hear(told, draws)
            found = judge.verdicts[-1]["all_chains"]
            done = table.enough(found, None) and (most is None or table.enough(found, most))
            on = not done and not over(judge.verdicts, every, limit)
            process.stdin.write("on\n" if on else "stop\n")
            process.stdin.flush()
        killer.cancel()
        # killed between two checkpoints, or before the first
        if process.wait() and not killed:
            said = (Path(folder) / "stderr").read_text()[-4000:]
            raise SystemExit(f"{name}, seed {seed}:\n{said}")
    last = judge.verdicts[-1] if judge.verdicts else None
    censored = last is None or not done or last["seconds"] > limit
    fixed = {"rival": name, "seed": seed, "limit": limit, "censored": censored, "load_before": load}
    return fixed | {
        "machine": table.machine(),
        "versions": table.versions(PYTHON),
        "checkpoints": judge.verdicts,
    }


def over(verdicts, every, limit):
    """Whether the next checkpoint would lie beyond the limit, at the speed of the last."""
    last, before = verdicts[-1], verdicts[-2] if len(verdicts) > 1 else None
    if last["draws"] >= every[-1]:
        return True
    further = next(count for count in every if count > last["draws"]) - last["draws"]
    if before is None:
        a_draw = (last["seconds"] - last["compiling"] - last["warm_up"]) / last["draws"]
    else:
        a_draw = (last["seconds"] - before["seconds"]) / (last["draws"] - before["draws"])
    return last["seconds"] + max(0.0, a_draw) * further > limit


if __name__ == "__main__":
    sys.exit(main())
