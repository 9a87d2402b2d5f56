"""Keeps a run by Orbax, one step after the other, and gives back what is there.

    with checkpoints.opened(folder, settings) as manager:
        checkpoints.save(manager, 0, tree, settings)
        checkpoints.read(manager, 0, like=tree)

A step is a tree of arrays.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp


@contextlib.contextmanager
def opened(folder: Path, settings: dict) -> Iterator[ocp.CheckpointManager]:
    """Yield Orbax's manager of a run's steps, in every process. A step is whole or not there.

    ValueError: the folder has a run of other settings, which are JSON.
    """
    options = {"enable_async_checkpointing": False, "cleanup_tmp_directories": True}
    options = ocp.CheckpointManagerOptions(**options)
    with ocp.CheckpointManager(
        Path(folder).resolve(), options=options, item_names=("tree", "settings")
    ) as manager:
        if manager.latest_step() is not None:
            step = manager.latest_step()
            args = ocp.args.Composite(settings=ocp.args.JsonRestore())
            found = manager.restore(step, args=args)["settings"]
            other = {
                name: (found.get(name), settings[name])
                for name in settings
                if found.get(name) != settings[name]
            }
            if other:
                other = f"with a run of other (found, expected) settings {other}"
                raise ValueError(f"folder: given {folder} {other}")
        yield manager


def save(manager: ocp.CheckpointManager, step: int, tree: Any, settings: dict) -> None:
    """Save a step, a tree of arrays that every process has."""
    named = {name: np.asarray(leaf) for name, leaf in _named(tree)}
    args = {"tree": ocp.args.StandardSave(named), "settings": ocp.args.JsonSave(settings)}
    manager.save(step, args=ocp.args.Composite(**args))


def read(manager: ocp.CheckpointManager, step: int, like: Any) -> Any:
    """Return a step, as a tree like that one, with arrays of NumPy."""
    found = manager.restore(step, args=ocp.args.Composite(tree=ocp.args.StandardRestore()))["tree"]
    leaves = [np.asarray(found[name]) for name, _ in _named(like)]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _named(tree):
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="_"), leaf) for path, leaf in leaves]
