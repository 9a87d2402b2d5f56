"""Fits one posterior over processes, and goes on with a run that was stopped.

    python -m experiments.pages.scaling_out.fit moons FOLDER            # one process, one device
    python -m experiments.pages.scaling_out.fit moons FOLDER --divide data \\
        --processes 2 --number 0 --coordinator HOST:PORT                # by hand, one of two
    srun python -m experiments.pages.scaling_out.fit moons FOLDER --cluster  # JAX asks SLURM

Every process runs the same command, but for its number. All see the folder, which holds what the
run has done so far and in the end ``draws.npz``.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from experiments.engine import nests, store
from experiments.methods import joined_processes

COUNTS = {"chains": 4, "warmup": 300, "samples": 1000, "every": 0, "depth": 10, "seed": 0}
LIMITS = {"limit": 60, "heartbeat": 20}  # seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.pages.scaling_out.fit", description="Fit one posterior."
    )
    parser.add_argument("problem", help="a function of experiments/problems/large_problems.py")
    parser.add_argument("folder", type=Path, help="where the run is kept; all processes see it")
    parser.add_argument(
        "--divide", choices=("chains", "data"), default="chains", help="what devices have parts of"
    )
    parser.add_argument(
        "--data-size", type=int, default=1000, metavar="N", help="rows or tasks of the problem"
    )
    parser.add_argument(
        "--devices", type=int, default=1, metavar="D", help="of this process, where they are cores"
    )
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="JAX finds number and coordinator in the surroundings",
    )
    parser.add_argument("--processes", type=int, metavar="P")
    parser.add_argument("--number", type=int, metavar="I", help="of this process, from 0")
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="where process 0 listens")
    for name, default in COUNTS.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N")
    for name, default in LIMITS.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="SECONDS")
    given = parser.parse_args(arguments)
    jax.config.update("jax_num_cpu_devices", given.devices)
    by_hand = given.processes, given.number, given.coordinator
    if given.cluster or any(one is not None for one in by_hand):
        joined_processes.join(*by_hand, limit=given.limit, heartbeat=given.heartbeat)
    from helpers import common, mcmc  # imports BlackJAX, which starts JAX

    from experiments.methods import sharded
    from experiments.problems import large_problems

    log_density, shapes, data = getattr(large_problems, given.problem)(given.data_size)
    mesh = joined_processes.grid(len(jax.devices()) if given.divide == "chains" else 1)
    starts = mcmc.normal_starts(common.key(given.seed, "starts"), shapes, (given.chains,))
    sizes = {
        "num_warmup": given.warmup,
        "num_samples": given.samples,
        "max_tree_depth": given.depth,
    }
    kept = {"folder": given.folder / "steps", "every": given.every or None}
    key = common.key(given.seed, "chains")
    posterior = sharded.sample(key, log_density, starts, mesh, data=data, **sizes, **kept)
    if jax.process_index() == 0:
        drawn = {"draws": posterior.draws, "stats": posterior.stats._asdict()}
        store.save(given.folder / "draws.npz", nests.flat(jax.tree.map(np.asarray, drawn), "draws"))


if __name__ == "__main__":
    main()
