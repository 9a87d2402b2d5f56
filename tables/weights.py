"""The weights of a model's network as one vector, some of which differ by group:
``weights.layout(made)`` says where each lies.
"""

from helpers import networks

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Layout(NamedTuple):
    """How a network's weights lie in one vector."""

    unravel: Any  # takes it apart
    size: int
    leaves: list[str]  # their names
    leaf: Int[np.ndarray, " weight"]  # of each weight, by index
    unit: Float[np.ndarray, " weight"]  # for a kernel, one over the root of its inputs


def layout(made: Any) -> Layout:
    """Return how the weights of a model's network lie in one vector."""
    unravel, size = networks.weights_of(made.network, len(made.inputs[0]))
    parts = jax.tree_util.tree_leaves_with_path(unravel(np.zeros(size, np.float32))["params"])
    names = [jax.tree_util.keystr(at, simple=True, separator=".") for at, _ in parts]
    leaf = np.repeat(np.arange(len(parts)), [part.size for _, part in parts])
    unit = np.array([1 / part.shape[0] ** 0.5 if part.ndim == 2 else 1.0 for _, part in parts])
    return Layout(unravel, size, names, leaf, unit[leaf])


def leaves(made: Any, part: Any = None) -> list[str]:
    """Return the leaves of a network whose standard deviation is learnt: in a term, those that
    differ by group; without one the last kernel, which the output is proportional to.
    """
    if made.network is None or (part is not None and part.spec is not None):
        return []
    names = layout(made).leaves
    # Dense_10 stands before Dense_2
    last = max((name.split(".")[0] for name in names), key=lambda name: (len(name), name))
    if part is None:
        return [f"{last}.kernel"]
    return [name for name in names if part.term.inner == "network" or name.startswith(last)]


def sds(made: Any, part: Any, sd: Float[Array, " leaf"]) -> Float[Array, " weight"]:
    """Return the standard deviation of each weight of a group's network, 0 where all have one."""
    every, names = layout(made), leaves(made, part)
    place = np.array([names.index(n) if n in names else -1 for n in every.leaves])[every.leaf]
    return jnp.where(place >= 0, sd[place], 0.0) * every.unit
