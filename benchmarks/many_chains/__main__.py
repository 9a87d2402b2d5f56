"""How many gradients a second one device finds when it runs chains by the thousand: a processor, or
a GPU.

    make benchmark NAMES=many_chains ARGUMENTS="--kinds cpu cuda --date 2026-01-31"

measures on JAX's platforms of those names, and stores it beside what was measured of other devices;
the page ``scaling-out`` shows it. For a GPU the environment needs a build of JAX for it. This
process uses no device, and imports nothing that would.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from experiments.engine import store
from experiments.pages.scaling_out import devices

ROOT = Path(__file__).parents[2]
STORED = ROOT / "book/results/scaling_out/many_chains.json"
HEADS = ("1 chain", "4", "64", "fastest (chains)", "ESS/s there")


def table(rows):
    """Return the README's table: microseconds a gradient, all chains together, medians of
    rounds.
    """
    measured = [row for row in rows if "device" in row]
    ess_of = {row["name"]: row["ess_a_gradient"] for row in rows if "name" in row}
    lines = ["| problem | device | " + " | ".join(HEADS) + " |", "|---" * (len(HEADS) + 2) + "|"]
    for name in dict.fromkeys(row["problem"] for row in measured[0]["rows"]):
        for one in measured:
            of_chains = {
                row["chains"]: np.median(row["microseconds"])
                for row in one["rows"]
                if row["problem"] == name
            }
            best = min(of_chains, key=of_chains.get)
            ess = ess_of.get(name.split(",")[0])
            cells = [f"{of_chains[n]:.3g}" if n in of_chains else "-" for n in (1, 4, 64)]
            cells += [
                f"{of_chains[best]:.3g} ({best})",
                two_digits(1e6 * ess / of_chains[best]) if ess else "-",
            ]
            lines.append(f"| {name} | {one['device']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def two_digits(value):
    """Return a number rounded to two digits: an effective size is not known better."""
    return f"{float(f'{value:.2g}'):,.0f}"


def main():
    """Read the command line; prepare and measure, each in a process of its own, what is not there
    yet.
    """
    parser = argparse.ArgumentParser(prog="many_chains", description=__doc__)
    parser.add_argument(
        "--date",
        help="the date that is stored with the results: they are written only if it is given",
    )
    parser.add_argument("--kinds", nargs="*", default=["cpu"], help="JAX's platforms: cpu, cuda")
    parser.add_argument("--folder", help="where steps that are done are kept and found")
    parser.add_argument(
        "--into", type=Path, default=STORED, help="the file that results are stored in"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(asked.folder or temporary)
        run_what_is_missing(asked.kinds, folder)
        posteriors = [posterior(path) for path in sorted(folder.glob("*.npz"))]
        measured = [
            json.loads((folder / f"{kind}.json").read_text()) | {"date": asked.date}
            for kind in asked.kinds
        ]
    stored = json.loads(asked.into.read_text()) if asked.into.exists() else {"rows": []}
    try:
        rows = devices.joined(posteriors, stored["rows"], measured)
    except ValueError as error:
        raise SystemExit(f"{error}; store --into another file") from error
    print(table(rows))
    if asked.date:
        store.save(asked.into, stored | {"rows": rows})
    return 0


def run_what_is_missing(kinds, folder):
    """Run each step whose file is not in the folder in a process of its own, on its device."""
    done = {"prepare": folder / "hierarchical.npz"}
    for step, path in (done | {kind: folder / f"{kind}.json" for kind in kinds}).items():
        if not path.exists():
            platform = "cpu" if step == "prepare" else step
            on = os.environ | {"JAX_PLATFORMS": platform, "PYTHONPATH": str(ROOT)}
            command = [sys.executable, "-m", "benchmarks.many_chains.device", step, folder]
            subprocess.run(command, env=on, check=True)


def posterior(path):
    """Return the row of a posterior that was prepared."""
    with np.load(path) as found:
        return {"name": path.stem} | {part: float(found[part]) for part in devices.FOUND}


if __name__ == "__main__":
    sys.exit(main())
