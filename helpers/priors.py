"""Priors learnt from tasks: the weights of a task not yet seen, and distributions fitted to them.

Weights are a matrix, one network a row, in the order of ``ravel_pytree``. A fitted prior is a
TFP distribution of such a row, with ``log_prob`` and ``sample``.
"""

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

from helpers import hierarchical, mcmc


def group_predictive(key: Key[Array, ""], draws: dict) -> Float[Array, "chain draw weight"]:
    """Return the weights of a task not yet seen, ``mean + sd * offset`` with a fresh offset for every draw.

    Args:
        draws: positions of ``helpers.hierarchical``, leading axes [chain, draw], every layer special.
    """
    one_task = jax.tree.map(lambda a: jax.ShapeDtypeStruct((1, *a.shape[3:]), a.dtype), draws["offset"])
    fresh = mcmc.normal_starts(key, one_task, jax.tree.leaves(draws)[0].shape[:2])

    def one(position):
        return ravel_pytree(hierarchical.task_weights(position, 1))[0]

    return jax.jit(jax.vmap(jax.vmap(one)))({**draws, "offset": fresh})


def relabel(layers: dict, orders: list[Int[np.ndarray, " unit"]], signs: list[Float[np.ndarray, " unit"]]) -> dict:
    """Return another copy of a tanh network: unit ``order[i]`` of a hidden layer becomes unit i, times ``sign[i]``.

    Args:
        layers: ``{"Dense_0": {"kernel": [..., in, out]}, ...}``, with biases or without; leading axes are kept.
        orders, signs: one a hidden layer.
    """
    changed = {}
    for i, name in enumerate(sorted(layers)):
        parts = {k: np.asarray(a) for k, a in layers[name].items()}
        if i < len(orders):  # the units that this layer feeds
            parts = {k: a[..., orders[i]] * signs[i].astype(a.dtype) for k, a in parts.items()}
        if i > 0:  # the units that feed it
            parts["kernel"] = parts["kernel"][..., orders[i - 1], :] * signs[i - 1].astype(np.float32)[:, None]
        changed[name] = parts
    return changed


def nearest_copy(layers: dict, reference: dict) -> tuple[list, list]:
    """Find which copy of a tanh network is nearest to a reference: the orders and signs that ``relabel`` takes.

    Near is a small sum of squared differences over all leading axes (the tasks, say), every layer divided by
    its root mean square in the reference. One hidden layer after the other is assigned, the others held,
    until none changes (Ainsworth, Hayase and Srinivasa 2023, algorithm 1; with signs); once from the
    first layer up, once from the last one down, and the nearer result is returned.

    Raises:
        ValueError: shapes that differ from the reference's.
    """
    names = sorted(reference)
    shapes = [{name: np.shape(tree[name]["kernel"]) for name in names} for tree in (layers, reference)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"layers: given kernels {shapes[0]}, expected those of the reference, {shapes[1]}")
    rms = {name: np.sqrt(np.mean(np.square(reference[name]["kernel"]))) for name in names}
    layers, reference = (
        {n: {k: np.asarray(a) / rms[n] for k, a in tree[n].items()} for n in names} for tree in (layers, reference)
    )
    sizes = [shapes[0][name][-1] for name in names[:-1]]
    hidden = list(range(len(sizes)))

    def likeness(current, i):
        """Inner products [unit of the reference, unit of the network]: of what feeds them, of what they feed."""
        here, above = names[i], names[i + 1]
        into = sum(_units(reference[here][k]).T @ _units(current[here][k]) for k in current[here])
        out = [_units(np.swapaxes(tree[above]["kernel"], -1, -2)) for tree in (reference, current)]
        return into, out[0].T @ out[1]

    def assign(orders, signs, i, parts):
        both = likeness(relabel(layers, orders, signs), i)
        gain = sum(both[part] for part in parts)
        order = optimize.linear_sum_assignment(np.abs(gain), maximize=True)[1]
        matched = gain[np.arange(len(order)), order]
        orders[i], signs[i] = orders[i][order], signs[i][order] * np.where(matched < 0, -1.0, 1.0)
        return np.abs(matched).sum() > gain.trace() + 1e-6 * np.abs(gain).sum()

    def distance(orders, signs):
        current = relabel(layers, orders, signs)
        return sum(((current[n][k] - reference[n][k]) ** 2).sum() for n in names for k in current[n])

    found = []
    for first, part in ((hidden, 0), (hidden[::-1], 1)):
        orders, signs = [np.arange(n) for n in sizes], [np.ones(n) for n in sizes]
        for i in first:
            assign(orders, signs, i, (part,))
        while any([assign(orders, signs, i, (0, 1)) for i in hidden]):
            pass
        found.append((orders, signs))
    return min(found, key=lambda copy: distance(*copy))


def _units(array):
    return array.reshape(-1, array.shape[-1])


def align(draws: dict, reference: dict) -> dict:
    """Return hierarchical draws, leading axes [chain, draw], each as its copy that is nearest to one reference draw.

    A draw is judged by the weights of all its tasks, and one relabelling acts on its means and on all
    its offsets together, which changes no prediction.
    """
    num_tasks = jax.tree.leaves(reference["offset"])[0].shape[0]

    def weights(position):
        return hierarchical.task_weights(position, num_tasks)["params"]

    batch = jax.tree.leaves(draws)[0].shape[:2]
    flat = jax.tree.map(lambda a: np.asarray(a).reshape(-1, *a.shape[2:]), draws)
    every = jax.tree.map(np.asarray, jax.jit(jax.vmap(weights))(flat))
    target = jax.tree.map(np.asarray, weights(reference))
    copies = [nearest_copy(jax.tree.map(lambda a, i=i: a[i], every), target) for i in range(batch[0] * batch[1])]

    def relabelled(part):
        parts = [relabel(jax.tree.map(lambda a, i=i: a[i], part), *copy) for i, copy in enumerate(copies)]
        return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves).reshape(*batch, *leaves[0].shape)), *parts)

    return {**draws, "mean": relabelled(flat["mean"]), "offset": relabelled(flat["offset"])}


def layer_of_weight(layers: dict) -> Int[np.ndarray, " weight"]:
    """Number every weight of a network by its layer, 0 for the first, in the order of ``ravel_pytree``."""
    numbered = {
        name: jax.tree.map(lambda a, i=i: np.full(a.shape, i), layers[name]) for i, name in enumerate(sorted(layers))
    }
    return np.asarray(ravel_pytree(numbered)[0])


def fit_scales(w: Float[Array, "draw weight"], layer: Int[np.ndarray, " weight"]) -> tfd.Distribution:
    """Fit independent normals of mean 0, one scale a layer: the root mean square of its weights."""
    w = _check(w, least=1)
    scales = np.sqrt([np.mean(w[:, layer == i] ** 2) for i in range(layer.max() + 1)])[layer]
    return tfd.MultivariateNormalDiag(np.zeros(w.shape[1], np.float32), scales.astype(np.float32))


def fit_layers(w: Float[Array, "draw weight"], layer: Int[np.ndarray, " weight"]) -> tfd.Distribution:
    """Fit one normal a layer, with its means and correlations, and none between layers."""
    w = _check(w)
    return _normal(w.mean(axis=0), np.where(layer[:, None] == layer, np.cov(w.T), 0.0))


def fit_normal(w: Float[Array, "draw weight"]) -> tfd.Distribution:
    """Fit one normal with all correlations."""
    w = _check(w)
    return _normal(w.mean(axis=0), np.cov(w.T))


def fit_student_t(w: Float[Array, "draw weight"]) -> dist.Distribution:
    """Fit one Student-t by expectation maximisation; its degrees of freedom, from 2.1 to 200, by line search.

    Location and scale: Lange, Little and Taylor (1989), section 4.
    """
    w = _check(w)
    (count, size), location, scatter, df = w.shape, w.mean(axis=0), np.cov(w.T), 10.0
    for _ in range(100):
        factor = _cholesky(scatter)
        squared = (solve_triangular(factor, (w - location).T, lower=True) ** 2).sum(axis=0)

        def loss(df, squared=squared):
            constant = special.gammaln((df + size) / 2) - special.gammaln(df / 2) - size / 2 * np.log(df)
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
    return dist.MultivariateStudentT(*(jnp.asarray(a, jnp.float32) for a in (df, location, _cholesky(scatter))))


def fit_mixture(w: Float[Array, "draw weight"], num_components: int, seed: int = 0) -> tfd.Distribution:
    """Fit a mixture of normals, each with all correlations, by scikit-learn's expectation maximisation.

    Raises:
        ValueError: what ``fit_normal`` raises; fewer draws than dimensions a component.
        RuntimeError: expectation maximisation has not converged.
    """
    w = _check(w, least=num_components * w.shape[-1])
    mean, factor = w.mean(axis=0), _cholesky(np.cov(w.T))
    white = solve_triangular(factor, (w - mean).T, lower=True).T  # so that distances between draws mean something
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
    w = _check(w)
    return tfb.Chain([tfb.Shift(np.float32(w.mean(axis=0))), tfb.ScaleMatvecTriL(np.float32(_cholesky(np.cov(w.T))))])


def _normal(mean, covariance):
    return tfd.MultivariateNormalTriL(np.float32(mean), np.float32(_cholesky(covariance)))


def _cholesky(covariance):
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError as error:
        least = np.linalg.eigvalsh(covariance).min()
        raise ValueError(
            f"w: given draws whose covariance has least eigenvalue {least:.3g}, expected a positive definite one"
        ) from error


def _check(w, least=None):
    """In double precision; a covariance needs more draws than it has dimensions."""
    w = np.asarray(w, np.float64)
    if w.ndim != 2 or not np.isfinite(w).all():
        raise ValueError(
            f"w: given shape {w.shape}, all finite: {np.isfinite(w).all()}, expected finite [draw, weight]"
        )
    if len(w) < (least or w.shape[1] + 1):
        raise ValueError(f"w: given {len(w)} draws, expected at least {least or w.shape[1] + 1}")
    return w
