"""How many gradients a second one device finds when it runs chains by the thousand: a processor, or
a GPU.

    make benchmark NAMES=many_chains ARGUMENTS="--kinds cpu cuda --date 2026-01-31"

measures on JAX's platforms of those names, and stores it beside what was measured of other devices;
the page ``scaling-out`` shows it. For a GPU the environment needs a build of JAX for it. This
process uses no device.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
STORED = ROOT / "book/results/many_chains.json"
HEADS = ("1 chain", "4", "64", "fastest (chains)", "ESS/s there")


def table(stored):
    """Return the README's table: microseconds a gradient, all chains together, medians of
    rounds.
    """
    lines = ["| problem | device | " + " | ".join(HEADS) + " |", "|---" * (len(HEADS) + 2) + "|"]
    for name in dict.fromkeys(row["problem"] for row in stored["devices"][0]["rows"]):
        for one in stored["devices"]:
            of_chains = {
                row["chains"]: np.median(row["microseconds"])
                for row in one["rows"]
                if row["problem"] == name
            }
            best = min(of_chains, key=of_chains.get)
            ess = stored["prepared"].get(name.split(",")[0], {}).get("ess_a_gradient")
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
        done = {"prepare": folder / "hierarchical.npz"} | {
            kind: folder / f"{kind}.json" for kind in asked.kinds
        }
        for step, path in done.items():
            if not path.exists():
                on = os.environ | {
                    "JAX_PLATFORMS": "cpu" if step == "prepare" else step,
                    "PYTHONPATH": str(ROOT),
                }
                command = [sys.executable, Path(__file__).with_name("device.py"), step, folder]
                subprocess.run(command, env=on, check=True)
        prepared = {}
        for name in ("flat", "hierarchical"):
            with np.load(folder / f"{name}.npz") as found:
                prepared[name] = {
                    part: float(found[part]) for part in ("ess_a_gradient", "rhat", "mean_steps")
                }
        stored = json.loads(asked.into.read_text()) if asked.into.exists() else {"devices": []}
        for name, parts in stored.get("prepared", prepared).items():
            if any(
                not np.isclose(prepared[name][part], value, rtol=1e-3)
                for part, value in parts.items()
            ):
                known = f"given {prepared}, expected {stored['prepared']}"
                raise SystemExit(
                    f"prepared: {known}, which stored devices began with; store --into another file"
                )
        devices = {one["device"]: one for one in stored["devices"]}
        for kind in asked.kinds:
            one = json.loads(done[kind].read_text()) | {"date": asked.date}
            devices[one["device"]] = one
    stored = {"prepared": prepared, "devices": list(devices.values())}
    print(table(stored))
    if asked.date:
        asked.into.write_text(json.dumps(stored, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
