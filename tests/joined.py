"""What tests of several processes run in each of them: ``python tests/joined.py FOLDER [PROCESSES
NUMBER ADDRESS]``.
"""

import sys
from pathlib import Path

import jax
import numpy as np

from experiments.methods import joined_processes


def log_likelihood(w, x, y):
    """Logistic regression."""
    return (y * (x @ w) - jax.nn.softplus(x @ w)).sum()


def of_tasks(mean, offsets, tasks):
    """Each task's regression has coefficients of its own, N(mean, 1)."""
    pairs = offsets, tasks["x"], tasks["y"]
    return jax.vmap(
        lambda offset, x, y: log_likelihood(mean + offset, x, y) - (offset**2).sum() / 2
    )(*pairs).sum()


def main(folder, *given):
    """Find log densities and gradients, then sample, with data and with chains divided; each
    process writes a file.
    """
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", 1)
    if given:
        joined_processes.join(int(given[0]), int(given[1]), given[2], limit=300, heartbeat=100)
    from experiments.methods import meshes, sharded
    from experiments.problems import sharded_sums  # imports BlackJAX, which starts JAX

    random = np.random.default_rng(1)
    data = {"x": random.normal(size=(40, 3)), "y": random.integers(0, 2, 40)}
    tasks = jax.tree.map(lambda a: a.reshape(4, 10, *a.shape[1:]), data)
    mean, offsets, starts = (
        random.normal(size=3),
        random.normal(size=(4, 3)),
        random.normal(size=(4, 3)),
    )
    over_data = sharded_sums.summed(lambda w, _, data: log_likelihood(w, data["x"], data["y"]))
    over_tasks, gathered = (
        sharded_sums.summed(of_tasks),
        sharded_sums.summed(of_tasks, gathered=True),
    )

    def log_density(w, data):  # prior N(0, 1)
        return over_data(w, None, data) - (w**2).sum() / 2

    found = {"processes": jax.process_count()}
    whole, rows = joined_processes.grid(1), joined_processes.grid(len(jax.devices()))
    line = jax.sharding.Mesh(whole.devices[0], ("data",))
    with jax.set_mesh(line):
        arguments = mean, meshes.place(data, line, "data")
        program = jax.jit(jax.value_and_grad(log_density)).lower(*arguments).compile()
        found["sums of data"] = program.as_text().count(" all-reduce(")
        found["value"], found["gradient"] = program(*arguments)
        arguments = mean, *meshes.place((offsets, tasks), line, "data")
        program = (
            jax.jit(jax.value_and_grad(over_tasks, argnums=(0, 1))).lower(*arguments).compile()
        )
        found["sums of tasks"] = program.as_text().count(" all-reduce(")
        found["value of tasks"], (found["gradient of mean"], of_each) = program(*arguments)
        found["gradient of each"] = jax.experimental.multihost_utils.process_allgather(
            of_each, tiled=True
        )
        arguments = mean, meshes.place(offsets, line), arguments[2]
        program = jax.jit(jax.value_and_grad(gathered, argnums=(0, 1))).lower(*arguments).compile()
        found["gathers of tasks"] = program.as_text().count(" all-gather(")
        (
            found["value gathered"],
            (found["gradient gathered"], found["gradient of each, gathered"]),
        ) = program(*arguments)
    if given:
        try:
            meshes.place(np.zeros(3), line, "data")
        except ValueError as error:
            found["odd"] = str(error)
    sizes = {"data": data, "num_warmup": 20, "num_samples": 20, "max_tree_depth": 3}
    for name, (mesh, num_chains) in {"chains": (rows, 4), "data": (whole, 2)}.items():
        posterior = sharded.sample(
            jax.random.key(2), log_density, starts[:num_chains], mesh, **sizes
        )
        found |= {f"{key} over {name}": value for key, value in posterior.stats._asdict().items()}
        found[f"draws over {name}"] = posterior.draws
    np.savez(Path(folder) / f"{jax.process_index()}.npz", **jax.tree.map(np.asarray, found))


if __name__ == "__main__":
    main(*sys.argv[1:])
