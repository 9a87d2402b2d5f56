"""The weights of a model's network as one vector, some of which differ by group:
``weights.layout(made)`` says where each lies.
"""

from helpers import mcmc, networks

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int, Key

QUIET = -2.3  # log of the standard deviation from which a second output starts
SD_NOISE = "second output"  # the site that draws it
NOISE = "noise"  # the leaf of a second output's weights, which is added to the log of the noise


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
    unit = unit[leaf]
    if made.noisy:
        for i in (i for i, name in enumerate(names) if name.startswith(last(names))):
            leaf[np.flatnonzero(leaf == i)[1::2]] = len(names)  # of every pair of outputs
        names = [*names, NOISE]
    return Layout(unravel, size, names, leaf, unit)


def last(names: list[str]) -> str:
    """Return the last layer of a network whose leaves have these names."""
    layers = (name.split(".")[0] for name in names if name != NOISE)
    return max(layers, key=lambda name: (len(name), name))  # Dense_10 stands before Dense_2


def last_kernel(made: Any) -> str:
    """Return the leaf that the output is proportional to."""
    return f"{last(layout(made).leaves)}.kernel"


def leaves(made: Any, part: Any = None) -> list[str]:
    """Return the leaves of a network that have a standard deviation: in a term, those that differ
    by group; without one those that all groups share, which is no last bias beside an intercept.
    """
    if made.network is None or (part is not None and part.spec is not None):
        return []
    names = layout(made).leaves
    if part is None:
        separate = any(part.term.inner == "separate" for part in made.parts)
        idle = f"{last(names)}.bias" if made.columns else None
        return [] if separate else [name for name in names if name != idle]
    ends = (last(names), NOISE)
    return [name for name in names if part.term.inner != "head" or name.startswith(ends)]


def learnt(made: Any) -> list[str]:
    """Return those of all groups' leaves whose standard deviation is learnt."""
    return [leaf for leaf in leaves(made) if not fixed(made.priors[f"sd_network[{leaf}]"])]


def fixed(prior: dist.Distribution) -> bool:
    """Return whether a prior leaves nothing to learn."""
    return isinstance(prior, dist.Delta)


def is_fixed(draw: np.ndarray) -> np.ndarray:
    """Return which scalars of [chain, draw, ...] a prior fixes, but for rounding."""
    return np.ptp(draw, axis=(0, 1)) <= 1e-12 * np.abs(draw).max(axis=(0, 1))


def sds(made: Any, part: Any, sd: Float[Array, " leaf"]) -> Float[Array, " weight"]:
    """Return the standard deviation of each weight, 0 where it has none: of a term, by group."""
    every, names = layout(made), leaves(made, part)
    place = np.array([names.index(n) if n in names else -1 for n in every.leaves])[every.leaf]
    return jnp.where(place >= 0, sd[place], 0.0) * every.unit


def starts(key: Key[Array, ""], shapes: dict, batch: tuple[int, ...]) -> dict:
    """Return dispersed starts; noise that depends on a network begins near noise that does not."""
    found = mcmc.normal_starts(key, shapes, batch, scale=0.3)
    return {
        name: leaf + QUIET if name.startswith(f"{SD_NOISE} ") else leaf
        for name, leaf in found.items()
    }
