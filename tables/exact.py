"""A normal outcome whose groups' effects are linear: integrated out, then drawn, by
``exact.log_density(made, table, mean, noise, lowers)`` and ``exact.draw``.

Given the coefficients, the covariance of effects and the noise, the effects are normal, and so is
the outcome without them. Its density needs sums over rows that are made once, so that a gradient
takes as long for a thousand rows a group as for ten (as in Bates et al. 2015, section 3).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

SMALL = 4  # effects of a group whose matrix is taken apart entry by entry
MOST = 60  # effects of groups that cross, whose one matrix is taken apart in every step


class Sums(NamedTuple):
    """Of a table: z are columns of effects, x the common ones, r what least squares leave."""

    zz: Float[np.ndarray, "group effect effect"]
    zx: Float[np.ndarray, "group effect column"]
    zr: Float[np.ndarray, "group effect"]
    xx: Float[np.ndarray, "column column"]
    rr: float
    least: Float[np.ndarray, " column"]  # coefficients by least squares
    num_rows: float


def applies(made: Any) -> bool:
    """Return whether a model's effects can be integrated out, and are fast to."""
    crossed = len({part.term.factors for part in made.parts}) > 1
    sizes = [len(part.levels) * len(part.columns) for part in made.parts]
    return (
        made.family == "normal"
        and bool(made.parts)
        and made.network is None
        and made.noise is None
        and not {"weights", "censored"} & {*made.options}
        and (not crossed or sum(sizes) <= MOST)
    )


def sums(made: Any, weights: np.ndarray) -> Sums:
    """Return the sums of a model's table over rows of weight 1; others have weight 0."""
    data, kept = made.data, weights > 0
    x, y = ((data["x"] - made.center)[kept], (data["y"] - data["offset"])[kept])
    least = np.linalg.lstsq(x, y, rcond=None)[0]
    r = y - x @ least
    parts = [
        ((z - part.center)[kept], group[kept], len(part.levels))
        for z, part, group in zip(data["z"], made.parts, data["group"], strict=True)
    ]
    if crossed(made):
        one = [(np.eye(n)[of][:, :, None] * z[:, None]).reshape(len(y), -1) for z, of, n in parts]
        z, group, size = np.hstack(one), np.zeros(len(y), int), 1
    else:
        z, group, size = np.hstack([z for z, *_ in parts]), *parts[0][1:]

    def summed(right):
        of = [np.bincount(group, a * b, size) for a in z.T for b in right.T]
        return np.stack(of, axis=-1).reshape(size, z.shape[1], right.shape[1])

    each = summed(z), summed(x), summed(r[:, None])[..., 0]
    return Sums(*each, x.T @ x, r @ r, least, float(len(y)))


def crossed(made: Any) -> bool:
    """Return whether terms have different groups."""
    return len({part.term.factors for part in made.parts}) > 1


def log_density(
    made: Any, table: Sums, mean: Array, noise: Array, lowers: list[Array]
) -> Float[Array, ""]:
    """Return the log density of the outcome, effects integrated out, up to a constant.

    Args:
        made: the model.
        table: its table.
        mean: the coefficients [column, 1].
        noise: standard deviation of a row.
        lowers: by term, what its effects' covariance is the square of.
    """
    _, lower, along = _conditional(made, table, mean, noise, lowers)
    apart = mean[:, 0] - table.least
    squares = (table.rr + apart @ table.xx @ apart) / noise**2
    diagonal = jnp.diagonal(lower, axis1=-2, axis2=-1)
    return (
        -table.num_rows * jnp.log(noise)
        - 0.5 * squares
        - jnp.log(diagonal).sum()
        + 0.5 * (along**2).sum()
    )


def draw(
    key: Array, made: Any, table: Sums, mean: Array, noise: Array, lowers: list[Array]
) -> list[Float[Array, "level column"]]:
    """Draw the effects of each term from what they are given everything else.

    Args:
        key: for the draw.
        made, table, mean, noise, lowers: as of ``log_density``.
    """
    together, lower, along = _conditional(made, table, mean, noise, lowers)
    unit = _solve(lower, along + jax.random.normal(key, along.shape), transposed=True)
    effects = unit @ together.T
    sizes = [len(part.columns) * (len(part.levels) if crossed(made) else 1) for part in made.parts]
    parts = jnp.split(effects, np.cumsum(sizes)[:-1], axis=1)
    return [one.reshape(len(part.levels), -1) for one, part in zip(parts, made.parts, strict=True)]


def _conditional(made, table, mean, noise, lowers):
    """Return the effects' matrix, the Cholesky factor of their precision, in its units, and their
    mean along it.
    """
    if crossed(made):
        each = zip(made.parts, lowers, strict=True)
        lowers = [lower for part, lower in each for _ in part.levels]
    together = jax.scipy.linalg.block_diag(*lowers)
    left = table.zr - table.zx @ (mean[:, 0] - table.least)
    precision = jnp.eye(len(together)) + together.T @ table.zz @ together / noise**2
    lower = _cholesky(precision)
    return together, lower, _solve(lower, left @ together / noise**2)


def _cholesky(matrix):
    """Return lower factors, [group, effect, effect]; of few effects entry by entry, for all groups
    at once, where a routine would be called for each.
    """
    size = matrix.shape[-1]
    if size > SMALL:
        return jnp.linalg.cholesky(matrix)
    none = jnp.zeros(len(matrix))
    found = {(i, j): none for i in range(size) for j in range(size)}
    for i, j in zip(*np.tril_indices(size), strict=True):
        rest = matrix[:, i, j] - sum(found[i, k] * found[j, k] for k in range(j))
        found[i, j] = jnp.sqrt(rest) if i == j else rest / found[j, j]
    return jnp.stack(list(found.values()), axis=-1).reshape(matrix.shape)


def _solve(lower, aim, transposed=False):
    """Return what a lower factor, or its transpose, takes to ``aim`` [group, effect]."""
    size = aim.shape[-1]
    if size > SMALL:
        solve = jax.scipy.linalg.solve_triangular
        return solve(lower, aim[..., None], lower=True, trans=int(transposed))[..., 0]
    matrix, order = (
        (jnp.swapaxes(lower, 1, 2), range(size)[::-1]) if transposed else (lower, range(size))
    )
    found = {}
    for i in order:
        rest = aim[:, i] - sum(matrix[:, i, k] * found[k] for k in found)
        found[i] = rest / matrix[:, i, i]
    return jnp.stack([found[i] for i in range(size)], axis=-1)
