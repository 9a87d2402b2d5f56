"""What every chapter and every experiment repeats.

Stored results are read by name, and all leaves of a tree are indexed at once.

    rows = common.read_result("flat_bnn/prior_scale")["rows"]
    every_fifth = common.take(posterior.draws, np.s_[:, ::5])
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

# An installed package has the stored results inside; a checkout has them where `make results`
# writes them.
IN_PACKAGE, IN_CHECKOUT = (
    Path(__file__).with_name("results"),
    Path(__file__).resolve().parents[1] / "book/results",
)
RESULTS = IN_PACKAGE if IN_PACKAGE.is_dir() else IN_CHECKOUT


def take(tree: Any, index: Any) -> Any:
    """Return ``leaf[index]`` of every leaf of a pytree: of a posterior of several tasks,
    ``take(posterior, 3)`` is that of task 3.

    ValueError: an index that lies outside of a leaf, whose last entry JAX would return.
    """
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, jax.core.Tracer) for part in parts):
        parts = tuple(np.asarray(p) if isinstance(p, jax.Array) else p for p in parts)
        for shape in {np.shape(leaf) for leaf in jax.tree.leaves(tree)}:
            try:
                # NumPy looks; if it copies, then a byte an entry
                np.broadcast_to(np.int8(0), shape)[parts]
            except IndexError as error:
                raise ValueError(
                    f"index: given {index}, expected one within shape {shape}: {error}"
                ) from None
    return jax.tree.map(lambda leaf: leaf[index], tree)


def stack(trees: Sequence[Any]) -> Any:
    """Return trees of one structure as one tree of NumPy's arrays, leading axis [tree]."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def float_shapes(sizes: Any) -> Any:
    """Return a tree of tuples, ``{"mean": (3,), "log_sd": ()}``, as shapes of a position."""
    is_shape = {"is_leaf": lambda part: isinstance(part, tuple)}
    return jax.tree.map(lambda size: jax.ShapeDtypeStruct(size, jnp.float32), sizes, **is_shape)


def read_result(name: str) -> dict:
    """Return a stored result, ``{"settings": ..., "rows": [...], ...}``, by the name of its chapter
    and its own.

    ValueError: there is none of that name.
    """
    path = RESULTS / f"{name}.json"
    if not path.exists():
        known = sorted(
            str(file.relative_to(RESULTS).with_suffix("")) for file in RESULTS.rglob("*.json")
        )
        raise ValueError(
            f"name: given {name!r}, expected one of {known or f'the files of {RESULTS}'}"
        )
    return json.loads(path.read_text())


@contextmanager
def mixed_types() -> Iterator[None]:
    """Let a library mix types and ranks of arrays within a ``with``, whatever JAX is set to."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def generator(key: Key[Array, ""]) -> np.random.Generator:
    """Return NumPy's generator of a key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def key(seed: int, *names: str | int) -> Key[Array, ""]:
    """Return the key of a name, ``key(3001, "data", redraw)``: it depends on nothing that stands
    beside it.
    """
    found = jax.random.key(seed)
    for name in names:
        found = jax.random.fold_in(found, zlib.crc32(str(name).encode()))
    return found
