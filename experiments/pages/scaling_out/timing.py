"""Times gradients of two joined processes, in turns of one alone and both together: ``costs``
starts both.

Process 0 writes a file that ``costs`` reads.
"""

import os
import sys
import time

import jax
import numpy as np

from experiments.methods import joined_processes

# What is divided, of which problem; and whether the gradient of each task's own weights is
# gathered.
KINDS = {
    "chains": ("moons", {}),
    "data": ("moons", {}),
    "tasks": ("tasks", {"gathered": False}),
    "tasks, gathered": ("tasks", {"gathered": True}),
}


def main(file: str, kind: str, size: str, turns: str, seconds: str, number: str, at: str) -> None:
    """Time gradients of ``size`` rows or tasks in process 0 alone, and in each, in turns.

    Chains have a problem each and do not sum; data and tasks are of one problem, twice as large,
    and sum.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(number)})  # a core each
    joined_processes.join(2, int(number), at, limit=300, heartbeat=300)
    from jax.experimental import multihost_utils

    here = jax.sharding.Mesh(jax.local_devices(), ("data",))
    both = here if kind == "chains" else jax.sharding.Mesh(jax.devices(), ("data",))
    alone, together = (timer(kind, int(size) * mesh.size, mesh) for mesh in (here, both))
    count = 1
    while multihost_utils.broadcast_one_to_all(np.float32(together(count))) < float(seconds):
        count *= 2
    found = np.zeros((2, int(turns)))
    for turn in range(int(turns)):
        for i, timed in enumerate((alone, together)):
            multihost_utils.sync_global_devices("begin")
            # the other one waits for the next turn
            if timed is together or jax.process_index() == 0:
                found[i, turn] = timed(count) / count
    slowest = multihost_utils.process_allgather(found).max(axis=0)
    if jax.process_index() == 0:
        np.save(file, slowest)


def timer(kind, size, mesh):
    """Return a function that takes so many gradients on a mesh, and returns the seconds."""
    from experiments.methods import meshes
    from experiments.problems import large_problems

    name, options = KINDS[kind]
    log_density, shapes, data = getattr(large_problems, name)(size, **options)
    position = jax.tree.map(lambda leaf: np.full(leaf.shape, 0.1, np.float32), shapes)

    @jax.jit
    def loop(position, data, count):
        def step(_, carry):
            value, slope = jax.value_and_grad(log_density)(carry[0], data)
            return jax.tree.map(lambda a, b: a + 1e-7 * b, carry[0], slope), carry[1] + value

        return jax.lax.fori_loop(0, count, step, (position, 0.0))

    divided = {"offset"} if options.get("gathered") is False else set()
    placed = {
        name: meshes.place(part, mesh, "data" if name in divided else None)
        for name, part in position.items()
    }
    arguments = placed, meshes.place(data, mesh, "data")

    def timed(count):
        with jax.set_mesh(mesh):
            begin = time.perf_counter()
            jax.block_until_ready(loop(*arguments, count))
            return time.perf_counter() - begin

    timed(1)  # compiles
    return timed


if __name__ == "__main__":
    main(*sys.argv[1:])
