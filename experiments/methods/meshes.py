"""Trees and programs on the rows of a mesh of devices, and what all processes have of them."""

from helpers.common import take

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from experiments.problems import sharded_sums


def place(tree: Any, mesh: Mesh, axis: str | None = None) -> Any:
    """Put a tree on a mesh's devices, its leading axis divided along one of the mesh's, or whole.

    Every process has the tree, or a memory map of it, and reads of it what its own devices take.

    ValueError: a length that the mesh does not divide.
    """
    sharding = NamedSharding(mesh, PartitionSpec(*[axis] * (axis is not None)))
    parts = 1 if axis is None else mesh.shape[axis]

    def one(leaf):
        if axis is not None and (not np.ndim(leaf) or len(leaf) % parts):
            raise ValueError(
                f"given a leaf of shape {np.shape(leaf)}, "
                f"expected a leading axis in {parts} equal parts"
            )
        whole = leaf if np.ndim(leaf) else np.asarray(leaf)
        return jax.make_array_from_callback(
            whole.shape, sharding, lambda index: np.asarray(whole[index]), whole.dtype
        )

    return jax.tree.map(one, tree)


def together(found: dict[int, Any], rows: dict[int, Mesh]) -> Any:
    """Return what was found of chains, by chain, as one tree [chain], in every process.

    A chain's numbers come from the process that has the first device of its row.
    """
    owner = np.array([row.devices.flat[0].process_index for row in rows.values()])
    first, count = next(iter(found.values())), len(rows)
    shape = jax.tree.map(lambda a: np.zeros((count, *a.shape), a.dtype), first)
    for chain, tree in found.items():
        jax.tree.map(lambda whole, part: whole.__setitem__(chain, part), shape, tree)
    return take(multihost_utils.process_allgather(shape), np.s_[owner, np.arange(len(rows))])


def rows_of_chains(mesh, num_chains):
    """Return the row of devices of each chain, as a mesh of its own."""
    rows = [Mesh(devices, (sharded_sums.AXIS,)) for devices in mesh.devices]
    return {chain: rows[chain * len(rows) // num_chains] for chain in range(num_chains)}


def is_mine(row):
    """Whether a row has a device of this process."""
    return any(device.process_index == jax.process_index() for device in row.devices.flat)


def whole(program):
    """Compile a program so that each device of a row has all that it returns."""
    return jax.jit(lambda *args: jax.lax.with_sharding_constraint(program(*args), PartitionSpec()))
