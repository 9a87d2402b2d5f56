"""The hierarchical posterior in NumPy: which draws every sampler hands over, and what is read of
them.

Draws are a dictionary of arrays with leading axes [chain, draw]: ``mean_l`` [in, out] and
``offset_l`` [task, in, out] of each layer l, and ``log_sd`` [layer]. Nothing of the book and no
sampler is imported, so that each may be cold.
"""

import numpy as np

SHAPES = ((2, 5), (5, 5), (5, 1))
NUM_TASKS = 18
NAMES = (*(f"mean_{i}" for i in range(3)), *(f"offset_{i}" for i in range(3)), "log_sd")
NUM_UNKNOWNS = 763


def shapes():
    """Return the shape of each part of one position."""
    found = {f"mean_{i}": shape for i, shape in enumerate(SHAPES)}
    found |= {f"offset_{i}": (NUM_TASKS, *shape) for i, shape in enumerate(SHAPES)}
    return {**found, "log_sd": (3,)}


def split(vectors):
    """Return the parts of vectors [..., 763], in the order of ``shapes``; of JAX's arrays, too."""
    found, at = {}, 0
    for name, shape in shapes().items():
        size = int(np.prod(shape))
        found[name] = vectors[..., at : at + size].reshape(*vectors.shape[:-1], *shape)
        at += size
    return found


def random_vectors(count, seed=0):
    """Return positions N(0, 1) as vectors [position, 763]."""
    return np.random.default_rng(seed).normal(size=(count, NUM_UNKNOWNS))


def logits(draws, x):
    """Return the logits of points [task, point, feature] under each draw, [..., task, point]."""
    h = x
    for i in range(3):
        sd = np.exp(draws["log_sd"][..., i])[..., None, None, None]
        product = h @ (draws[f"mean_{i}"][..., None, :, :] + sd * draws[f"offset_{i}"])
        h = product if i == 2 else np.tanh(product)
    return h[..., 0]


def probabilities(draws, x):
    """Return the probability of class 1 at points [task, point, feature], [..., task * point]."""
    found = 0.5 * (1 + np.tanh(0.5 * logits(draws, x)))
    return found.reshape(*found.shape[:-2], -1)


def log_density(draws, x, y):
    """Return the log posterior of each draw in float64, of log sd, its Jacobian and all constants
    included.
    """
    draws = {name: np.asarray(draws[name], np.float64) for name in NAMES}
    f = logits(draws, x.astype(np.float64))
    total = (y * f - np.logaddexp(0, f)).sum(axis=(-1, -2))
    for name in NAMES[:-1]:
        values = draws[name]
        axes = tuple(range(draws["log_sd"].ndim - 1, values.ndim))
        total = total - 0.5 * (values**2 + np.log(2 * np.pi)).sum(axis=axes)
    log_sd = draws["log_sd"]
    return total + (0.5 * np.log(2 / np.pi) - 0.5 * np.exp(2 * log_sd) + log_sd).sum(axis=-1)
