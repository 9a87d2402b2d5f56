"""A score of predictive draws in the unit of the measurement."""

import numpy as np
from jaxtyping import Array, Float


def crps(draws: Float[Array, "*draw point"], y: Float[Array, " point"]) -> float:
    """Return the mean continuous ranked probability score of predictive draws, noise included.

    E|X - y| - E|X - X'| / 2 for independent X, X' (Gneiting and Raftery 2007, eq. 21), estimated
    without bias from distinct pairs. In the unit of y; smaller is better; of a single value it is
    the absolute error.

    Raises:
        ValueError: shapes that do not fit, fewer than 2 draws, values that are not finite.
    """
    draws, y = np.asarray(draws, np.float64), np.asarray(y, np.float64)
    if (
        y.ndim != 1
        or not y.size
        or draws.shape[-1:] != y.shape
        or not (np.isfinite(draws).all() and np.isfinite(y).all())
    ):
        raise ValueError(
            f"draws, y: given shapes {draws.shape} and {y.shape}, "
            "expected [*draw, point], [point], finite"
        )
    draws = np.sort(draws.reshape(-1, y.size), axis=0)
    count = len(draws)
    if count < 2:
        raise ValueError(f"draws: given {count}, expected 2 or more")
    # the sum over pairs of |x_i - x_j|, once sorted
    weights = 2 * np.arange(1, count + 1) - count - 1.0
    return float((np.abs(draws - y).mean(axis=0) - weights @ draws / (count * (count - 1))).mean())
