"""Stochastic Gradient Fisher Scoring (Ahn, Korattikara and Welling 2012), in BlackJAX's shape:
``init`` and ``step``.

A step of size ``e``, from a minibatch of ``n`` out of ``N`` data, is

    position <- position + 2 M^-1 (grad log prior + N g + noise),    noise ~ N(0, 4 B / e),
    M = gamma N I + P + 4 B / e,

with ``g`` the mean score of the minibatch, ``I`` the running mean of the scores' covariance within
minibatches, ``P`` the prior's precision and ``B`` the preconditioner. If the posterior is normal
with precision ``A = N I + P``, its covariance is stationary exactly if ``M = A + Cov(N g) + 4 B /
e``: ``gamma = (n + N) / n`` for minibatches drawn with replacement, ``N / n`` for those without.
The paper leaves ``P`` out; with it no direction is too flat to step in. Minibatch ``t`` enters the
mean with weight ``(1 + forget) / (t + forget)`` (Shamir and Zhang 2013): with the paper's 1 / t,
scores from a far start shrink the steps, which keeps the chain there and the mean large.
"""

from helpers import checks

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

PROPORTIONAL = "proportional"


class SGFSState(NamedTuple):
    """A position, and what has been learnt of the likelihood's curvature.

    The matrices are in the order of ``ravel_pytree``.
    """

    position: Any
    fisher: Float[Array, "size size"]  # running mean of the scores' covariance, of one datum
    prior_precision: Float[Array, "size size"]  # minus the Hessian of the log prior at the start
    count: Float[Array, ""]  # of minibatches seen


class Minibatched(NamedTuple):
    """An algorithm in BlackJAX's shape that says of which minibatches it is; ``sgmcmc.sample``
    compares that with those it draws.
    """

    init: Callable
    step: Callable
    data_size: int  # of all data
    replace: bool | None  # whether a minibatch may hold a datum twice; None: by a gamma of its own


def sgfs(
    logprior_fn: Callable,
    loglikelihood_fn: Callable,
    data_size: int,
    *,
    preconditioner: Float[Array, "size size"] | str | None = None,
    replace: bool = True,
    gamma: float | None = None,
    forget: float = 3.0,
) -> Minibatched:
    """Return ``init(position)`` and ``step(key, state, minibatch, step_size)``, both pure.

    A minibatch is a pytree like the data, leading axis [datum].

    Args:
        logprior_fn: log density of one position, any pytree.
        loglikelihood_fn: log likelihood of one position and one datum.
        data_size: number of data, N.
        preconditioner: the matrix B, in the order of ``ravel_pytree``; None for the identity;
            "proportional" for ``gamma I + P / N``, which needs one factorisation a step and stays
            positive definite.
        replace: whether a minibatch may hold a datum twice.
        gamma: another factor, for minibatches drawn in another way.
        forget: how much more late minibatches count in the running mean than early ones; 0 for a
            plain mean.

    ValueError: a data size below 2, a gamma that is not positive, a negative forget, a
        preconditioner that is not symmetric positive definite; in ``init``, one of the wrong size,
        a prior whose gradient is not finite or whose precision is not positive semidefinite; in
        ``step``, a minibatch below 2 or above N data.
    """
    checks.count(least=2, data_size=data_size)
    checks.number(gamma=1.0 if gamma is None else gamma)
    checks.number(forget=forget, closed=True)
    proportional = isinstance(preconditioner, str) and preconditioner == PROPORTIONAL
    matrix, root = (
        (None, None) if proportional or preconditioner is None else _check_matrix(preconditioner)
    )

    def init(position, rng_key=None):
        del rng_key
        vector, unravel = ravel_pytree(position)
        if matrix is not None and matrix.shape[0] != vector.size:
            raise ValueError(
                f"preconditioner: given shape {matrix.shape}, expected {2 * (vector.size,)}"
            )
        slope, precision = _prior_at(lambda v: logprior_fn(unravel(v)), vector)
        if not isinstance(precision, jax.core.Tracer):
            _check_prior(slope, precision)
        return SGFSState(
            position, jnp.zeros_like(precision), precision, jnp.zeros((), vector.dtype)
        )

    def step(rng_key, state, minibatch, step_size):
        size = jax.tree.leaves(minibatch)[0].shape[0]
        if not 2 <= size <= data_size:
            raise ValueError(f"minibatch: given {size} data, expected 2 to data_size = {data_size}")
        factor = gamma or (data_size / size + 1 if replace else data_size / size)
        vector, unravel = ravel_pytree(state.position)
        scores = jax.vmap(
            lambda datum: jax.grad(lambda v: loglikelihood_fn(unravel(v), datum))(vector)
        )(minibatch)
        mean = scores.mean(axis=0)
        centred = scores - mean[None, :]
        count = state.count + 1
        recent = (1 + forget) / (count + forget)
        fisher = state.fisher + recent * (centred.T @ centred / (size - 1) - state.fisher)
        slope = jax.grad(lambda v: logprior_fn(unravel(v)))(vector) + data_size * mean
        normal = jax.random.normal(rng_key, vector.shape, vector.dtype)
        curvature = factor * data_size * fisher + state.prior_precision
        weight = 4 / step_size
        if proportional:  # B is the curvature a datum: one factorisation serves both
            weight = weight / data_size
            factored = jnp.linalg.cholesky(curvature, symmetrize_input=False)
            noise, scale = factored @ normal, 1 + weight
        else:
            b, b_root = (jnp.eye(vector.size), None) if matrix is None else (matrix, root)
            factored = jnp.linalg.cholesky(curvature + weight * b, symmetrize_input=False)
            noise, scale = normal if b_root is None else b_root @ normal, 1.0
        move = cho_solve((factored, True), slope + jnp.sqrt(weight) * noise) * (2 / scale)
        return SGFSState(unravel(vector + move), fisher, state.prior_precision, count)

    return Minibatched(init, step, data_size, replace if gamma is None else None)


def _prior_at(log_prior, vector):
    """Return the log prior's gradient and minus its Hessian."""
    return jax.jit(lambda v: (jax.grad(log_prior)(v), -jax.hessian(log_prior)(v)))(vector)


def _check_matrix(preconditioner):
    """Return B and its Cholesky factor."""
    matrix = (
        np.zeros(0) if isinstance(preconditioner, str) else np.asarray(preconditioner, np.float64)
    )
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        given = repr(preconditioner) if isinstance(preconditioner, str) else f"shape {matrix.shape}"
        raise ValueError(
            f"preconditioner: given {given}, expected None, {PROPORTIONAL!r} or a square matrix"
        )
    symmetric = np.isfinite(matrix).all() and np.allclose(matrix, matrix.T, rtol=1e-5, atol=1e-8)
    smallest = np.linalg.eigvalsh(matrix).min() if symmetric else np.nan
    if not smallest > 0:
        what = (
            f"one with smallest eigenvalue {smallest:.3g}"
            if symmetric
            else "one that is not symmetric and finite"
        )
        raise ValueError(
            f"preconditioner: given {what}, expected a symmetric positive definite matrix"
        )
    return jnp.asarray(matrix, jnp.float32), jnp.asarray(np.linalg.cholesky(matrix), jnp.float32)


def _check_prior(slope, precision):
    checks.finite(position=(slope, precision))
    smallest = np.linalg.eigvalsh(precision).min()
    if smallest < -1e-5 * max(1.0, np.abs(precision).max()):
        raise ValueError(
            f"logprior_fn: minus its Hessian has eigenvalue {smallest:.3g}, expected none below 0"
        )
