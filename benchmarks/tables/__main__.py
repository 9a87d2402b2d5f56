"""Eight mixed models by ``tables`` and by Bambi with NumPyro's sampler, side by side.

    make benchmark NAMES=tables ARGUMENTS="--seeds 3 --date 2026-01-31"

runs what is missing, seed by seed, prints the tables, and writes results.json. A run is a file in
.units/benchmarks/tables and is not repeated. ``--table`` only reads.
"""

from helpers.diagnostics import arviz

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tables
from benchmarks.others.__main__ import environment, pin
from benchmarks.others.table import machine
from benchmarks.tables import report
from benchmarks.tables.data import TABLES

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".units/benchmarks/tables"
STORED = Path(__file__).with_name("results.json")
BAMBI = ROOT / "_build/bambi/bin/python"
PROGRAMS = {"ours": sys.executable, "with_bambi": BAMBI}


def main():
    """Read the command line, run what is missing, print what was found."""
    parser = argparse.ArgumentParser(prog="tables", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0 to this one, less one")
    parser.add_argument("--date", help="stored with the results, which are written only with it")
    parser.add_argument("--table", action="store_true", help="run nothing")
    asked = parser.parse_args()
    if asked.table:
        print(report.of(json.loads(STORED.read_text())))
        return
    KEPT.mkdir(parents=True, exist_ok=True)
    pin()
    runs = []
    for seed in range(asked.seeds):
        for name in TABLES:
            for program in PROGRAMS:
                path = KEPT / f"{name}-{program}-{seed}.json"
                if not path.exists():
                    found = run(program, name, seed)
                    path.write_text(json.dumps(found, indent=1) + "\n")
                    print(report.line(found), flush=True)
                runs.append(json.loads(path.read_text()))
    stored = {"date": asked.date, "machine": machine(), "versions": versions(), "runs": runs}
    if asked.date:
        STORED.write_text(json.dumps(stored, indent=1) + "\n")
    print(report.of(stored))


def priors(name: str) -> dict[str, tuple[float, float]]:
    """Return location and scale of the priors that ``tables`` has for a table, by parameter."""
    table = TABLES[name]
    options = {"trials": table.trials} if table.trials else {}
    made = tables.model(table.formula, table.read(), family=table.family, **options)
    return {  # of parts that are independent, "sd_city: both" is "sd_city[both]"
        f"{key.replace(': ', '[')}]" if ": " in key else key: (
            float(getattr(of, "loc", 0.0)),
            float(of.scale),
        )
        for key, of in made.priors.items()
    }


def run(program: str, name: str, seed: int) -> dict:
    """Run a table once by one of the programs, in a cold process, and judge its draws."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        asked = {"table": name, "seed": seed, "priors": priors(name), "folder": folder}
        command = [PROGRAMS[program], "-m", f"benchmarks.tables.{program}", json.dumps(asked)]
        done = subprocess.run(
            command, env=environment(folder), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{name} by {program}:\n{done.stderr[-4000:]}")
        told = json.loads((Path(folder) / "told.json").read_text())
        with np.load(Path(folder) / "draws.npz") as found:
            judged = {key: judge(values) for key, values in found.items()}
    of = {"table": name, "program": program, "seed": seed, "load_before": load}
    return of | told | {"parameters": judged}


def judge(draws: np.ndarray) -> dict[str, float]:
    """Return what is kept of a parameter's draws, [chain, draw]."""
    found = {
        "mean": draws.mean(),
        "sd": draws.std(),
        "ess": arviz.ess(draws, method="bulk"),
        "rhat": arviz.rhat(draws),
    }
    return {key: float(f"{value:.6g}") for key, value in found.items()}


def versions() -> dict[str, str]:
    """Return the versions in Bambi's environment of what the draws depend on."""
    names = ("bambi", "jax", "numpyro", "pymc", "pytensor")
    code = "import importlib.metadata as m, json; print(json.dumps({n: m.version(n) for n in %r}))"
    said = subprocess.run(
        [BAMBI, "-c", code % (names,)], capture_output=True, text=True, check=True
    )
    return json.loads(said.stdout)


if __name__ == "__main__":
    main()
