"""Distributions fitted to the weights of networks of a task not yet seen.

Weights are a matrix, one network a row, in the order of ``ravel_pytree``. A fitted prior is a
distribution of such a row, with ``log_prob`` and ``sample``.
"""

from helpers import mcmc
from helpers.common import take
from helpers.copies import task_weights

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Key
from scipy import optimize, special
from scipy.linalg import solve_triangular
from sklearn.mixture import GaussianMixture
from tensorflow_probability.substrates.jax import bijectors as tfb
from tensorflow_probability.substrates.jax import distributions as tfd


def group_predictive(key: Key[Array, ""], draws: dict) -> Float[Array, "chain draw weight"]:
    """Return the weights of a task not yet seen, ``mean + sd * offset`` with a fresh offset each.

    Args:
        draws: positions of ``helpers.hierarchical``, leading axes [chain, draw], every layer
            special.
    """
    one_task = take(draws["offset"], np.s_[0, 0, :1])
    fresh = mcmc.normal_starts(key, one_task, jax.tree.leaves(draws)[0].shape[:2])
    return _vectors(task_weights({**draws, "offset": fresh}, 1))


@jax.jit
def _vectors(weights):
    return jax.vmap(jax.vmap(lambda one: ravel_pytree(one)[0]))(weights)


def layer_of_weight(layers: dict) -> Int[np.ndarray, " weight"]:
    """Number a network's weights by layer, 0 for the first, in ``ravel_pytree``'s order."""
    numbered = {
        name: jax.tree.map(lambda a, i=i: np.full(a.shape, i), layers[name])
        for i, name in enumerate(sorted(layers))
    }
    return np.asarray(ravel_pytree(numbered)[0])


def fit_scales(
    w: Float[Array, "draw weight"], layer: Int[np.ndarray, " weight"]
) -> tfd.Distribution:
    """Fit independent normals of mean 0, one scale a layer: the root mean square of its weights."""
    w = _check(w, least=1)
    scales = np.sqrt([np.mean(w[:, layer == i] ** 2) for i in range(layer.max() + 1)])[layer]
    return tfd.MultivariateNormalDiag(np.zeros(w.shape[1], np.float32), scales.astype(np.float32))


def fit_layers(
    w: Float[Array, "draw weight"], layer: Int[np.ndarray, " weight"]
) -> tfd.Distribution:
    """Fit one normal a layer, with its means and correlations, and none between layers."""
    mean, covariance = _moments(_check(w))
    return _normal(mean, np.where(layer[:, None] == layer, covariance, 0.0))


def fit_normal(w: Float[Array, "draw weight"]) -> tfd.Distribution:
    """Fit one normal with all correlations."""
    return _normal(*_moments(_check(w)))


def fit_student_t(w: Float[Array, "draw weight"]) -> dist.Distribution:
    """Fit one Student-t by expectation maximisation, its df by line search from 2.1 to 200.

    Location and scale: Lange, Little and Taylor (1989), section 4.
    """
    w = _check(w)
    (count, size), (location, scatter), df = w.shape, _moments(w), 10.0
    for _ in range(100):
        factor = _cholesky(scatter)
        squared = (solve_triangular(factor, (w - location).T, lower=True) ** 2).sum(axis=0)

        def loss(df, squared=squared):
            constant = special.gammaln((df + size) / 2) - special.gammaln(df / 2)
            constant -= size / 2 * np.log(df)
            return (df + size) / 2 * np.log1p(squared / df).mean() - constant

        df = optimize.minimize_scalar(loss, bounds=(2.1, 200.0), method="bounded").x
        known = (df + size) / (df + squared)
        before, location = location, known @ w / known.sum()
        scatter = (known * (w - location).T) @ (w - location) / count
        if np.abs(location - before).max() < 1e-4:
            break
    else:
        raise RuntimeError("fit_student_t: not converged in 100 iterations")
    # NumPyro's, since TFP's warns at every use: it casts a constant through double precision.
    parts = (jnp.asarray(a, jnp.float32) for a in (df, location, _cholesky(scatter)))
    return dist.MultivariateStudentT(*parts)


def fit_mixture(
    w: Float[Array, "draw weight"], num_components: int, seed: int = 0
) -> tfd.Distribution:
    """Fit a mixture of normals, each with all correlations, by expectation maximisation.

    Raises:
        ValueError: what ``fit_normal`` raises; fewer draws than dimensions a component.
        RuntimeError: expectation maximisation has not converged.
    """
    w = _check(w, least=num_components * w.shape[-1])
    mean, covariance = _moments(w)
    factor = _cholesky(covariance)
    # so that distances between draws mean something
    white = solve_triangular(factor, (w - mean).T, lower=True).T
    fit = GaussianMixture(num_components, max_iter=500, random_state=seed).fit(white)
    if not fit.converged_:
        raise RuntimeError(f"fit_mixture: not converged in {fit.n_iter_} iterations")
    parts = [factor @ np.linalg.cholesky(covariance) for covariance in fit.covariances_]
    return tfd.MixtureSameFamily(
        tfd.Categorical(probs=np.float32(fit.weights_)),
        tfd.MultivariateNormalTriL(np.float32(mean + fit.means_ @ factor.T), np.float32(parts)),
    )


def whiten(w: Float[Array, "draw weight"]) -> tfb.Bijector:
    """Return the linear map from white noise to weights with the draws' mean and covariance."""
    mean, covariance = _moments(_check(w))
    factor = tfb.ScaleMatvecTriL(np.float32(_cholesky(covariance)))
    return tfb.Chain([tfb.Shift(np.float32(mean)), factor])


def _moments(w):
    return w.mean(axis=0), np.cov(w.T)


def _normal(mean, covariance):
    return tfd.MultivariateNormalTriL(np.float32(mean), np.float32(_cholesky(covariance)))


def _cholesky(covariance):
    least, *_, most = np.linalg.eigvalsh(covariance)
    if least <= 1e-10 * most:  # rounding may leave a singular matrix a tiny positive eigenvalue
        raise ValueError(
            f"w: given draws whose covariance has eigenvalues {least:.3g} to {most:.3g}, "
            "expected all positive"
        )
    return np.linalg.cholesky(covariance)


def _check(w, least=None):
    """In double precision; a covariance needs more draws than it has dimensions."""
    w = np.asarray(w, np.float64)
    if w.ndim != 2 or not np.isfinite(w).all():
        raise ValueError(
            f"w: given shape {w.shape}, all finite: {np.isfinite(w).all()}, "
            "expected finite [draw, weight]"
        )
    if len(w) < (least or w.shape[1] + 1):
        raise ValueError(f"w: given {len(w)} draws, expected at least {least or w.shape[1] + 1}")
    return w
