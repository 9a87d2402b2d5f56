"""What is asked of input, in one place, such as ``checks.count(least=2, size=size)``: if not, a
``ValueError``.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike


def count(least: int = 1, **sizes: int) -> None:
    """Each size, by its name, is an integer of ``least`` or more."""
    for name, size in sizes.items():
        if not np.isfinite(size) or size != int(size) or size < least:
            raise ValueError(f"{name}: given {size}, expected an integer of {least} or more")


def number(low: float = 0.0, high: float = np.inf, closed: bool = False, **numbers: float) -> None:
    """Each number, by its name, lies between ``low`` and ``high``; ``closed``: it may be ``low``
    itself.
    """
    for name, value in numbers.items():
        if not (low < value < high or (closed and value == low)):
            words = f"between {low:g} and {high:g}" if high < np.inf else f"above {low:g}"
            raise ValueError(
                f"{name}: given {value}, expected a finite number {words}{' or equal' * closed}"
            )


def finite(**trees: ArrayLike) -> None:
    """Every number of each tree, by its name, is finite."""
    for name, tree in trees.items():
        bad = sum(np.count_nonzero(~np.isfinite(leaf)) for leaf in jax.tree.leaves(tree))
        if bad:
            raise ValueError(f"{name}: given {bad} values that are not finite, expected none")


def leading(name: str, tree, axes: tuple[str, ...]) -> tuple[int, ...]:
    """All leaves begin with the same axes, none empty; return their lengths."""
    shapes = [jnp.shape(leaf)[: len(axes)] for leaf in jax.tree.leaves(tree)]
    if not shapes or len(set(shapes)) > 1 or len(shapes[0]) < len(axes) or 0 in shapes[0]:
        raise ValueError(
            f"{name}: given leaves that begin {shapes}, expected the same {axes} in all, none 0"
        )
    return shapes[0]


def labels(y: ArrayLike, num_classes: int = 2) -> None:
    """Labels are 0, 1 and so on."""
    if not np.isin(y, range(num_classes)).all():
        raise ValueError(
            f"y: given labels {np.unique(y).tolist()}, expected {' and '.join(map(str, range(num_classes)))}"
        )


def probabilities(p: Array, y: Array) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of class 1 and labels of one shape, not empty; return both as vectors."""
    if jnp.shape(p) != jnp.shape(y) or jnp.size(p) == 0:
        raise ValueError(
            f"p, y: given shapes {jnp.shape(p)} and {jnp.shape(y)}, expected the same, not empty"
        )
    p, y = np.asarray(p).ravel(), np.asarray(y).ravel()
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p: given values from {p.min()} to {p.max()}, expected probabilities")
    labels(y)
    return p, y
