"""Flat fits, steps of SVI and steps from minibatches, by the book and by other libraries, with two
cores or with one: SEEDS DATE.

    make benchmark NAMES=others ARGUMENTS="--parts --seeds 5 --date 2026-01-31"

Flat fits are cold processes, seed by seed in turns; steps are timed in one process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.others import table
from benchmarks.others.flat import RIVALS
from benchmarks.others.session import CHAINS

STORED = Path(__file__).with_name("parts.json")


def child(program, *arguments, devices=None):
    """Run a program of this package in a process of its own; return what it prints."""
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"} if devices else {}
    command = [sys.executable, "-m", f"benchmarks.others.{program}", *map(str, arguments)]
    done = subprocess.run(
        command, env=os.environ | flags, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def measured(seeds, date):
    """Run all parts, seed by seed; return what is stored."""
    fits = {name: [] for name in RIVALS}
    for seed in range(seeds):
        for name in RIVALS:
            fits[name].append(child("flat", name, seed, devices=CHAINS))
            print(f"{name}, seed {seed}: {fits[name][-1]}", file=sys.stderr, flush=True)
    fixed = {"date": date, "machine": table.machine(), "versions": table.versions(sys.executable)}
    return fixed | {"flat": fits, "microseconds": child("steps", seeds)}


def of_flat(stored):
    """Return the table of flat fits."""
    rows = [
        "| eighteen flat posteriors | seconds | p5 ESS | p5 ESS/s | share of R-hat in bound |"
        " ours, times its ESS/s |"
    ]
    rows.append("|---" * 6 + "|")
    ours = np.array([run["ess"] / run["seconds"] for run in stored["flat"]["ours"]])
    for name, runs in stored["flat"].items():
        seconds, ess, within = (
            np.array([run[part] for run in runs]) for part in ("seconds", "ess", "rhat_within")
        )
        cells = [seconds, ess, ess / seconds, within, ours / (ess / seconds)]
        rows.append(f"| {name} | " + " | ".join(map(middle, cells)) + " |")
    return "\n".join(rows)


def of_steps(stored):
    """Return the table of steps; each is compared with ours of its kind, in the same round."""
    rows = ["| a step | microseconds of a core | times ours |", "|---|---|---|"]
    for name, values in stored["microseconds"].items():
        ours = np.array(stored["microseconds"][f"{name.split(',')[0]}, ours"])
        rows.append(f"| {name} | {middle(np.array(values))} | {middle(np.array(values) / ours)} |")
    return "\n".join(rows)


def middle(values):
    """Return median and range."""
    return table.number({"median": np.median(values), "least": values.min(), "most": values.max()})


def main():
    """Measure all parts, store them and print their tables."""
    stored = measured(int(sys.argv[1]), sys.argv[2])
    STORED.write_text(json.dumps(stored, indent=1) + "\n")
    print(of_flat(stored), of_steps(stored), sep="\n\n")


if __name__ == "__main__":
    main()
