"""What the stored runs say: one entry a rival over its seeds, and the README's table."""

import json
import os
import platform
import subprocess
from pathlib import Path

import numpy as np

STORED = Path(__file__).parent / "results.json"
STORED_FIXED = STORED.with_name("fixed.json")
FIXED_RHAT = (1.05, 1.01)  # bounds that do not depend on how many effective draws there are
# effective draws: 5th percentile, over the test probabilities, of the smaller of bulk and tail
TARGET = 400.0
FIGURES = {"all_chains": "all", "of_kept": "one mode"}
PACKAGES = ("jax", "blackjax", "numpyro", "pymc", "pytensor", "numba", "nutpie", "arviz")
LAYERS = ("input", "hidden", "output")
COLUMNS = (
    "sampler",
    "seconds to 400",
    "times the first row's",
    "p5 ESS/s, all included",
    "without compiling",
)
COLUMNS += (
    "compiling",
    "warm-up",
    "one mode's chains: seconds",
    "ESS/s",
    "chains that ended in the mode",
)
IN_SHORT = COLUMNS[:4]  # for the README


def machine():
    """Return the processor's name and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        known = dict(line.split(":", 1) for line in lines if ":" in line)
        stripped = {key.strip(): value.strip() for key, value in known.items()}
        name = stripped.get("model name", name)
        if {"cpu family", "model"} <= set(stripped):
            name += f" (family {stripped['cpu family']}, model {stripped['model']})"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"processor": name, "cores": cores}


def versions(python):
    """Return the versions of what the second environment holds."""
    versions = f"{{p: m.version(p) for p in {PACKAGES}}}"
    code = f"import importlib.metadata as m, json; print(json.dumps({versions}))"
    return json.loads(
        subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    )


def enough(found, most):
    """Whether there are enough effective draws, and every R-hat is at most as large; with None, is
    within the bound of its effective size.
    """
    if most is None:
        return found["reached"]
    return found["ess"] >= TARGET and found["rhat_largest"] <= most


def read(run, which, most=None):
    """Return one run's figures by all chains, or by those that were in the mode with the mass
    throughout.

    At the first checkpoint that suffices, by ``enough``; of a run without one, at its last, and
    censored.
    """
    points = [point for point in run["checkpoints"] if point[which]]
    sufficient = [
        point for point in points if enough(point[which], most) and point["seconds"] <= run["limit"]
    ]
    if not points:
        return {
            "censored": True,
            "mode": run["checkpoints"][-1]["mode"] if run["checkpoints"] else [],
        }
    point = (sufficient or points)[0 if sufficient else -1]
    found, running = point[which], point["seconds"] - point["compiling"]
    return {
        "censored": not sufficient,
        "draws": point["draws"],
        "seconds": point["seconds"],
        "compiling": point["compiling"],
        "warm_up": point["warm_up"],
        "ess_a_second": found["ess"] / point["seconds"],
        "ess_a_second_running": found["ess"] / running,
        **{
            name: found[name]
            for name in ("ess", "median_ess", "rhat", "rhat_log_sd", "rhat_within_bound")
        },
        "diverging": sum(point["diverging"]),
        "mode": point["mode"],
        "mode_found_after": None if None in point["found_after"] else max(point["found_after"]),
    }


def spread(runs, name):
    """Return median, least and largest of a figure over the runs that have it."""
    values = [run[name] for run in runs if run.get(name) is not None]
    return (
        {"median": float(np.median(values)), "least": min(values), "most": max(values)}
        if values
        else None
    )


def waited(runs):
    """Return median, least and largest of the seconds to enough draws; None where a censored run
    stands there.
    """
    seconds = [np.inf if run["censored"] else run["seconds"] for run in runs]
    found = {"median": np.median(seconds), "least": min(seconds), "most": max(seconds)}
    return {name: float(value) if np.isfinite(value) else None for name, value in found.items()}


def entry(runs, which, most=None):
    """Join the runs of a rival."""
    read_ones = [read(run, which, most) for run in runs]
    names = (
        "compiling",
        "warm_up",
        "ess_a_second",
        "ess_a_second_running",
        "mode_found_after",
        "draws",
    )
    return {
        "runs": len(read_ones),
        "censored": sum(run["censored"] for run in read_ones),
        "seconds": waited(read_ones),
        **{name: spread(read_ones, name) for name in names},
        "by_seed": read_ones,
    }


def result(runs, date):
    """Return what is stored: by rival, with machine, date, versions and the limit. ValueError: of
    several machines.
    """
    for name in ("machine", "versions"):
        if len({json.dumps(run[name], sort_keys=True) for run in runs}) > 1:
            raise ValueError(f"{name}: given runs of several, expected one")
    rivals = {}
    for run in sorted(runs, key=lambda run: run["seed"]):
        rivals.setdefault(run["rival"], []).append(run)
    return {
        "date": date,
        "machine": runs[0]["machine"],
        "versions": runs[0]["versions"],
        "rivals": {
            name: {
                "seeds": [run["seed"] for run in of_rival],
                "limit": [run["limit"] for run in of_rival],
                "load_before": [run["load_before"] for run in of_rival],
                **{which: entry(of_rival, which) for which in FIGURES},
                **at_fixed(of_rival),
            }
            for name, of_rival in rivals.items()
        },
    }


def at_fixed(runs):
    """Return the entries of a rival by fixed bounds of R-hat, if its runs told the largest."""
    told = [one["all_chains"] for run in runs for one in run["checkpoints"]]
    if not all("rhat_largest" in found for found in told):
        return {}
    return {f"all_chains, {most}": entry(runs, "all_chains", most) for most in FIXED_RHAT}


def of_runs(runs, table=None):
    """Return the table of runs that are not yet stored; "no runs" if there are none."""
    return (table or of_result)(result(runs, None)) if runs else "no runs"


def fastest_first(stored):
    """Return pairs of a rival's name and entry, those that were given up last."""
    return sorted(
        stored["rivals"].items(),
        key=lambda pair: (pair[1]["all_chains"]["seconds"]["median"] or np.inf, pair[0]),
    )


def of_fixed(stored):
    """Return the table of seconds to enough effective draws, by the bound of R-hat and by fixed
    ones, and of effective draws a second at the bound, fastest first.
    """
    kinds = ["all_chains", *(f"all_chains, {most}" for most in FIXED_RHAT)]
    fixed = " | ".join(f"every R-hat at most {most}" for most in FIXED_RHAT)
    head = f"| sampler | seconds to 400, R-hat within its bound | {fixed} |"
    rows = [f"{head} p5 ESS/s at the bound | compiling |", "|---" * 6 + "|"]
    for name, one in fastest_first(stored):
        cells = [name, *(seconds(one[kind], min(one["limit"])) for kind in kinds)]
        cells += [number(one["all_chains"][part]) for part in ("ess_a_second", "compiling")]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def of_result(stored, columns=COLUMNS):
    """Return the table of those columns, fastest first."""
    ranked = fastest_first(stored)
    first = ranked[0][1]["all_chains"]["seconds"]["median"]
    rows = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for name, one in ranked:
        every, kept, limit = one["all_chains"], one["of_kept"], min(one["limit"])
        ends = [layer for run in every["by_seed"] for layer in run["mode"]]
        cells = [name, seconds(every, limit), times(every, limit, first)]
        cells += [
            number(every[part])
            for part in ("ess_a_second", "ess_a_second_running", "compiling", "warm_up")
        ]
        cells += [
            seconds(kept, limit),
            number(kept["ess_a_second"]),
            f"{ends.count(2)} of {len(ends)}",
        ]
        told = dict(zip(COLUMNS, cells, strict=True))
        rows.append("| " + " | ".join(told[column] for column in columns) + " |")
    return "\n".join(rows)


def of_ratios(stored):
    """Return the table of what ours has of effective draws a second, all included, beside each
    rival that has some.
    """
    medians = {
        name: one["all_chains"]["ess_a_second"]["median"] for name, one in stored["rivals"].items()
    }
    ours = [name for name in medians if name.startswith("ours")]
    rows = ["| beside | " + " | ".join(ours) + " |", "|---" * (len(ours) + 1) + "|"]
    for name in sorted(medians.keys() - set(ours), key=lambda name: -medians[name]):
        rows.append(
            f"| {name} | "
            + " | ".join(plain(float(f"{medians[one] / medians[name]:.2g}")) for one in ours)
            + " |"
        )
    return "\n".join(rows)


def seconds(entry, limit):
    """Return median and range of the seconds; that they were not enough, where the median is a
    censored run.
    """
    median, least, most = (entry["seconds"][name] for name in ("median", "least", "most"))
    done = f"{entry['runs'] - entry['censored']} of {entry['runs']} runs"
    if median is None:
        return f"not within {plain(limit)} ({done})"
    if least == most:
        return plain(median)
    return plain(median) + (
        f" ({plain(least)} to {plain(most)})" if most else f" (from {plain(least)}; {done})"
    )


def times(entry, limit, first):
    """Return how many times the fastest rival's median a median is, or at least is."""
    if first is None:
        return "-"
    median = entry["seconds"]["median"]
    return plain(median / first) if median else f"more than {plain(limit / first)}"


def number(spread_of):
    """Return a median and its range."""
    if spread_of is None:
        return "-"
    low, high = plain(spread_of["least"]), plain(spread_of["most"])
    return plain(spread_of["median"]) + ("" if low == high else f" ({low} to {high})")


def plain(value):
    """Return a number in three digits at most."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 0.1 else f"{value:.2f}"


def line(run):
    """Return what a run came to, in a line."""
    one = read(run, "all_chains")
    if not run["checkpoints"]:
        return f"{run['rival']}, seed {run['seed']}: given up before the first checkpoint"
    said = "given up" if one["censored"] else "reached"
    modes = ", ".join(LAYERS[mode] for mode in one["mode"])
    return (
        f"{run['rival']}, seed {run['seed']}: {said} after {one['seconds']:.1f} s "
        f"({one['compiling']:.1f} compiling, "
        f"{one['warm_up']:.1f} warm-up), {one['draws']} draws a chain, p5 ESS {one['ess']:.0f}, "
        f"R-hat {one['rhat']:.3f}, of log sd {one['rhat_log_sd']:.3f}, widest layer {modes}"
    )
