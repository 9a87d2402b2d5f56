"""The steps of ``many_chains``, each a process of its own on one device: prepare FOLDER, or KIND
FOLDER.

Chains, and what they begin with, are those of ``experiments.pages.scaling_out.many_chains``.
"""

from helpers import data, densities, mcmc, networks

import json
import platform
import sys
import time
from pathlib import Path

import jax
import numpy as np

from experiments.pages.scaling_out import many_chains

WIDE = networks.MLP(hidden=(100, 100))
WIDE_ROWS = 10_000
# The most chains of each problem, on a processor and on a GPU: beyond, a gradient hardly costs
# less.
MOST = {
    "flat": (1024, 65_536),
    "hierarchical": (256, 16_384),
    "hierarchical, all tasks at once": (64, 16_384),
    "wide": (4, 64),
}
SECONDS, ROUNDS = 0.2, 5
TOO_FAR = 7.0  # standard errors, of 900 predictions


def prepare(folder):
    """Keep what chains begin with, and what is expected of them, by posterior."""
    for name in many_chains.units():
        np.savez(Path(folder) / f"{name}.npz", **many_chains.prepared(name))


def kept(name, folder):
    """Return what was prepared for a problem, whose name may go on with the form of its density."""
    with np.load(Path(folder) / f"{name.split(',')[0]}.npz") as found:
        return dict(found)


def problem(name, folder):
    """Put a problem together from its parts and what was prepared."""
    if name == "wide":
        return wide()
    return many_chains.problem(many_chains.parts(name), kept(name, folder))


def wide():
    """Return the problem of a larger network, which is timed only: its chains stand near 0 and take
    short steps.
    """
    points = data.two_moons(jax.random.key(8101), WIDE_ROWS)
    observed = densities.observe(points.x, points.y, np.ones(3))
    shapes = networks.parameter_shapes(WIDE, 2)
    size = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    starts = 0.1 * np.random.default_rng(8103).standard_normal((64, size))
    begin = {
        "starts": starts.astype(np.float32),
        "step_size": 1e-4,
        "inverse_metric": np.ones(size, np.float32),
        "mean_steps": 8,
    }
    density = densities.flat_log_density(WIDE)
    of = many_chains.Parts(density, WIDE.apply, shapes, observed, points.x[:50])
    return many_chains.problem(of, begin)


def timer(of, chains, threads, together):
    """Return a function that times some draws of every chain: microseconds a gradient, over all
    chains.
    """
    run = many_chains.runner(of, chains, threads, together)

    def timed(count):
        begin = time.perf_counter()
        found = run(count)
        return time.perf_counter() - begin, sum(int(steps) * len(p) for steps, p, _ in found)

    timed(1)  # compiles
    count = 1
    while timed(count)[0] < SECONDS:
        count *= 2

    def microseconds():
        seconds, gradients = timed(count)
        return 1e6 * seconds / gradients

    return microseconds


def measure(kind, folder):
    """Measure all problems on this process's device, and compare what its chains predict with what
    was prepared.
    """
    # a GPU would multiply with ten bits
    jax.config.update("jax_default_matmul_precision", "highest")
    gpu, rows, apart = kind != "cpu", [], {}
    for name, most in MOST.items():
        of, chains = problem(name, folder), 1
        while chains <= most[gpu]:
            timed = timer(of, chains, 1 if gpu else min(chains, mcmc.cores()), gpu)
            microseconds = sorted(timed() for _ in range(ROUNDS))
            rows.append({"problem": name, "chains": chains, "microseconds": microseconds})
            print(
                f"{kind}, {name}, {chains} chains: {np.median(microseconds):.3g} us a gradient",
                flush=True,
            )
            chains *= 4
        if name != "wide":
            p = many_chains.compared(of, 1 if gpu else mcmc.cores(), gpu)
            apart[name] = many_chains.apart(p, kept(name, folder))
            print(f"{kind}, {name}: predictions apart {apart[name]}", flush=True)
            if apart[name]["largest"] > TOO_FAR:
                raise SystemExit(f"{kind}, {name}: predictions are not those of mcmc.sample")
    told = {"device": device(), "jax": jax.__version__, "rows": rows, "apart": apart}
    told |= {"wide_log_density": wide_densities(), "sample_seconds": sample_seconds()}
    (Path(folder) / f"{kind}.json").write_text(json.dumps(told))


def wide_densities():
    """Return the wide log density at one position as this device finds it, at JAX's default
    precision and highest.
    """
    of, found = wide(), {}
    for precision in ("default", "highest"):
        with jax.default_matmul_precision(precision):
            found[precision] = float(jax.jit(of.log_density)(10 * of.starts[0]))
    return found


def sample_seconds():
    """Return the seconds of ``mcmc.sample`` for four short chains of the flat network, compiled
    before.
    """
    density, _, shapes, observed, _ = many_chains.parts("flat")
    starts, seconds = mcmc.normal_starts(jax.random.key(8108), shapes, (4,)), []
    for _ in range(3):
        begin = time.perf_counter()
        mcmc.sample(
            jax.random.key(8109), density, starts, data=observed, num_warmup=100, num_samples=100
        )
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]


def device():
    """Return what this process computes on, in words."""
    first = jax.devices()[0]
    if first.platform != "cpu":
        return first.device_kind
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        known = dict((part.strip() for part in line.split(":", 1)) for line in lines if ":" in line)
        name = known.get("model name", name)
    return f"{mcmc.cores()} cores of {name}"


if __name__ == "__main__":
    step, to = sys.argv[1:]
    prepare(to) if step == "prepare" else measure(step, to)
