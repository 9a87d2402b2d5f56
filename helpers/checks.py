"""Checks of what functions are given, such as ``checks.count(least=2, size=size)``.

Each raises a ValueError that names the argument, what was given and what was expected.
"""

from numbers import Integral, Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike


def count(least: int = 1, **sizes: int) -> None:
    """Check that each size, by its name, is an integer of ``least`` or more.

    ValueError: one that is not, such as 2.0 or "2".
    """
    for name, size in sizes.items():
        whole = isinstance(size, Integral) and not isinstance(size, bool)
        if not whole or size < least:
            raise ValueError(f"{name}: given {size!r}, expected an integer of {least} or more")


def number(low: float = 0.0, high: float = np.inf, closed: bool = False, **numbers: float) -> None:
    """Check that each number, by its name, lies between two bounds.

    Args:
        low: the lower bound, which a number must exceed.
        high: the upper bound, which a number must stay below; infinity for any finite number.
        closed: whether a number may be equal to ``low``.
        numbers: the numbers, by the names that the error says; arrays of no axis are numbers.

    Within a compiled program there is no number to look at.

    ValueError: one that does not, or is not a number.
    """
    for name, value in numbers.items():
        if isinstance(value, jax.core.Tracer):
            continue
        real = isinstance(value, Real) or (np.ndim(value) == 0 and hasattr(value, "dtype"))
        if not real or not (low < value < high or (closed and value == low)):
            words = f"between {low:g} and {high:g}" if high < np.inf else f"above {low:g}"
            raise ValueError(
                f"{name}: given {value!r}, expected a finite number {words}{' or equal' * closed}"
            )


def finite(**trees: ArrayLike) -> None:
    """Check that every number of each pytree, by its name, is finite.

    ValueError: one that has others; it says how many; or what is no number.
    """
    for name, tree in trees.items():
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
        if odd := [leaf.dtype for leaf in leaves if leaf.dtype.kind not in "biufc"]:
            raise ValueError(f"{name}: given {odd[0]}, expected numbers")
        bad = sum(np.count_nonzero(~np.isfinite(leaf)) for leaf in leaves)
        if bad:
            raise ValueError(f"{name}: given {bad} values that are not finite, expected none")


def cast(array: Any) -> np.ndarray:
    """Return an array in the precision that JAX will give it, in which 1e39 may be infinite."""
    array = np.asarray(array)
    with np.errstate(over="ignore"):  # whoever asks looks for what is not finite
        return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def array(
    name: str,
    values: Any,
    axes: tuple[str | int, ...],
    low: float = -np.inf,
    high: float = np.inf,
    single: bool = True,
) -> Any:
    """Return an array as it is given, when it has the axes and the numbers that are expected.

    Within a compiled program there are no numbers to look at, and the axes alone are checked.

    Args:
        name: what the error calls it.
        values: the array.
        axes: their names, or their lengths; one that begins with "*" stands for any number of axes.
        low, high: bounds of its numbers, both included.
        single: whether JAX will hold it, in its precision, in which it has to be finite.

    ValueError: other axes, one of length 0, a number that is not finite or beyond a bound.
    """
    shape = np.shape(values)
    stars = [i for i, axis in enumerate(axes) if str(axis).startswith("*")]
    front, back = (stars[0], len(axes) - stars[0] - 1) if stars else (len(axes), 0)
    fixed = (*axes[:front], *axes[len(axes) - back :])
    fits = len(shape) >= len(fixed) if stars else len(shape) == len(fixed)
    given = (*shape[:front], *shape[len(shape) - back :])
    fits = fits and all(n == m for n, m in zip(given, fixed, strict=True) if not isinstance(m, str))
    if not fits or 0 in shape:
        expected = ", ".join(map(str, axes))
        raise ValueError(f"{name}: given shape {shape}, expected [{expected}], none 0")
    if isinstance(values, jax.core.Tracer):
        return values
    finite(**{name: cast(values) if single else values})
    least, most = np.min(values), np.max(values)
    if least < low or most > high:
        raise ValueError(
            f"{name}: given numbers from {least} to {most}, expected {low:g} to {high:g}"
        )
    return values


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

    ValueError: another label, or a number of classes below 2.
    """
    count(least=2, num_classes=num_classes)
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
