"""Checks of what functions are given, such as ``checks.count(least=2, size=size)``.

Each raises a ValueError that names the argument, what was given and what was expected.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike


def count(least: int = 1, **sizes: int) -> None:
    """Check that each size, by its name, is an integer of ``least`` or more.

    ValueError: one that is not.
    """
    for name, size in sizes.items():
        if not np.isfinite(size) or size != int(size) or size < least:
            raise ValueError(f"{name}: given {size}, expected an integer of {least} or more")


def number(low: float = 0.0, high: float = np.inf, closed: bool = False, **numbers: float) -> None:
    """Check that each number, by its name, lies between two bounds.

    Args:
        low: the lower bound, which a number must exceed.
        high: the upper bound, which a number must stay below; infinity for any finite number.
        closed: whether a number may be equal to ``low``.
        numbers: the numbers, by the names that the error says.

    ValueError: one that does not, or is not a number.
    """
    for name, value in numbers.items():
        if not (low < value < high or (closed and value == low)):
            words = f"between {low:g} and {high:g}" if high < np.inf else f"above {low:g}"
            raise ValueError(
                f"{name}: given {value}, expected a finite number {words}{' or equal' * closed}"
            )


def finite(**trees: ArrayLike) -> None:
    """Check that every number of each pytree, by its name, is finite.

    ValueError: one that has others; it says how many.
    """
    for name, tree in trees.items():
        bad = sum(np.count_nonzero(~np.isfinite(leaf)) for leaf in jax.tree.leaves(tree))
        if bad:
            raise ValueError(f"{name}: given {bad} values that are not finite, expected none")


def leading(name: str, tree, axes: tuple[str, ...]) -> tuple[int, ...]:
    """Return the lengths of the leading axes that all leaves of a pytree have in common.

    ``axes`` are their names, as the error says them.

    ValueError: no leaves, too few axes, lengths that differ between leaves, a length of 0.
    """
    shapes = [jnp.shape(leaf)[: len(axes)] for leaf in jax.tree.leaves(tree)]
    if not shapes or len(set(shapes)) > 1 or len(shapes[0]) < len(axes) or 0 in shapes[0]:
        raise ValueError(
            f"{name}: given leaves that begin {shapes}, expected the same {axes} in all, none 0"
        )
    return shapes[0]


def labels(y: ArrayLike, num_classes: int = 2) -> None:
    """Check that labels, of any shape, are among 0, 1, ..., ``num_classes - 1``.

    ValueError: another label.
    """
    if not np.isin(y, range(num_classes)).all():
        raise ValueError(
            f"y: given labels {np.unique(y).tolist()}, "
            f"expected {' and '.join(map(str, range(num_classes)))}"
        )


def probabilities(p: Array, y: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of class 1 and their labels, of one shape, as vectors [point].

    ValueError: shapes that differ, no points, values outside [0, 1], labels other than 0 and 1.
    """
    if jnp.shape(p) != jnp.shape(y) or jnp.size(p) == 0:
        raise ValueError(
            f"p, y: given shapes {jnp.shape(p)} and {jnp.shape(y)}, expected the same, not empty"
        )
    p, y = np.asarray(p).ravel(), np.asarray(y).ravel()
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p: given values from {p.min()} to {p.max()}, expected probabilities")
    labels(y)
    return p, y
