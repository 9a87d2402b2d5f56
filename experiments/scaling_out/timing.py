"""Times gradients in one process, or in several that sum them: ``python -m experiments.scaling_out.timing FILE ...``.

``costs`` starts it, once for each process, and reads the file.
"""

import os
import sys
import time

import jax
import numpy as np

from experiments.scaling_out import processes

KINDS = {"chains": "moons", "data": "moons", "tasks": "tasks"}  # what is divided, and of which problem


def main(file: str, kind: str, size: str, runs: str, seconds: str, num_processes: str, number: str, at: str) -> None:
    """Time gradients of ``size`` rows or tasks a process; chains have a problem each and do not sum."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(number)})  # a core each
    if int(num_processes) > 1:
        processes.join(int(num_processes), int(number), at)
    from jax.experimental import multihost_utils

    from experiments.scaling_out import problems, sharded

    alone = kind == "chains"
    total = int(size) * (1 if alone else int(num_processes))
    log_density, shapes, data = getattr(problems, KINDS[kind])(total)
    devices = jax.local_devices() if alone else jax.devices()
    line = jax.sharding.Mesh(devices, ("data",))
    position = jax.tree.map(lambda leaf: np.full(leaf.shape, 0.1, np.float32), shapes)

    @jax.jit
    def loop(position, data, count):
        def step(_, carry):
            value, slope = jax.value_and_grad(log_density)(carry[0], data)
            return jax.tree.map(lambda a, b: a + 1e-7 * b, carry[0], slope), carry[1] + value

        return jax.lax.fori_loop(0, count, step, (position, 0.0))

    with jax.set_mesh(line):
        arguments = sharded.place(position, line), sharded.place(data, line, "data")

        def timed(count):
            multihost_utils.sync_global_devices("begin")
            begin = time.perf_counter()
            jax.block_until_ready(loop(*arguments, count))
            return time.perf_counter() - begin

        timed(1)  # compiles
        count = 4
        while multihost_utils.broadcast_one_to_all(np.float32(timed(count))) < float(seconds):
            count *= 2
        found = np.array([timed(count) / count for _ in range(int(runs))])
    slowest = multihost_utils.process_allgather(found).max(axis=0)
    if jax.process_index() == 0:
        np.save(file, slowest)


if __name__ == "__main__":
    main(*sys.argv[1:])
