"""Features that training tasks share, and what a logistic head on them makes of a new task with few
labels.

Features are trained on all training tasks together, a head each, with N(0, 1 / penalty) on every
weight; ``heads`` has the network. A new task gets the features as
they are, and a head of prior N(0, s^2). Penalty and s are chosen by training tasks that the
features have not seen: of three folds of the tasks each is left out in turn and plays the new ones,
as in ``scales_by_labels``.
"""

from helpers import training
from helpers.densities import bernoulli_log_likelihood

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.stats import multivariate_normal

from experiments.methods import heads, scoring

SETTINGS = {
    "penalties": [0.03, 0.1, 0.3, 1.0, 3.0],
    "scales": [0.5, 1.0, 2.0, 4.0, 8.0, 16.0],  # s
    "folds": 3,
    "most_blocks": 3,
    "num_steps": 2000,
    "learning_rate": 0.01,
    "num_starts": 4,  # of the features that new tasks get
    "fold_starts": 3,  # of those that rank settings
    "newton_steps": 15,
    "halvings": 5,  # of a step of Newton's, at most
    "weighted": 500,  # heads that stand for the posterior where settings are ranked
}
KINDS = (heads.MCMC, heads.LAPLACE, heads.TRAINED)
SCALES = np.float32(SETTINGS["scales"])


@partial(jax.jit, static_argnums=4)
def train(keys, penalties, x, y, width):
    """Train on x [task, point, 2] for each penalty and key: the features' parameters of each."""

    def one(penalty, key):
        key_network, key_heads = jax.random.split(key)

        def loss(params):
            phi = heads.features(width, params["network"], x)
            logits = jnp.einsum("tf,tpf->tp", params["heads"], phi)
            squares = sum((leaf**2).sum() for leaf in jax.tree.leaves(params))
            return (0.5 * penalty * squares - bernoulli_log_likelihood(logits, y).sum()) / y.size

        of_tasks = jax.random.normal(key_heads, (len(x), width)) / np.sqrt(width)
        start = {"network": heads.network(width).init(key_network, x[0]), "heads": of_tasks}
        return training.train(
            loss, start, optax.adam(SETTINGS["learning_rate"]), SETTINGS["num_steps"]
        )[0]["network"]

    return jax.lax.map(lambda penalty: jax.lax.map(lambda key: one(penalty, key), keys), penalties)


def laplace(f, y, weight):
    """Return z's mode and covariance, z ~ N(0, 1), labels of logits f z, f [point, feature].

    The log posterior is concave. Of each step the part that raises it most is taken: all, a half, a
    quarter, and so on.
    """

    def log_density(z):
        return (weight * bernoulli_log_likelihood(f @ z, y)).sum() - 0.5 * (z**2).sum()

    def precision(z):
        p = jax.nn.sigmoid(f @ z)
        return jnp.eye(f.shape[1]) + (f.T * (weight * p * (1 - p))[None]) @ f

    def step(z, _):
        move = jnp.linalg.solve(precision(z), jax.grad(log_density)(z))
        tried = z[None] + 0.5 ** jnp.arange(1.0 + SETTINGS["halvings"])[:, None] * move[None]
        return tried[jax.vmap(log_density)(tried).argmax()], None

    mode = jax.lax.scan(step, jnp.zeros(f.shape[1]), length=SETTINGS["newton_steps"])[0]
    return mode, jnp.linalg.inv(precision(mode))


def weighted(f, y, weight, f_test, mode, covariance, normals):
    """Return p at f_test of weighted heads, half of them prior draws, half Laplace's."""
    of_prior, others = jnp.split(normals, 2)
    z = jnp.concatenate([of_prior, mode[None] + others @ jnp.linalg.cholesky(covariance).T])
    origin = jnp.zeros_like(mode)
    log_prior, log_laplace = (
        multivariate_normal.logpdf(z, *normal)
        for normal in ((origin, jnp.eye(len(mode))), (mode, covariance))
    )
    logits = z @ f.T
    of_labels = bernoulli_log_likelihood(logits, jnp.broadcast_to(y, logits.shape))
    log_likelihood = of_labels @ weight
    of_heads = jax.nn.softmax(log_prior + log_likelihood - jnp.logaddexp(log_prior, log_laplace))
    return of_heads @ jax.nn.sigmoid(z @ f_test.T)


@jax.jit
def predict(f, y, weight, f_test, normals):
    """Predict at f_test [task, point, feature] from labels of weight 1: [kind, task, point]."""

    def one_task(task):
        f, y, weight, f_test = task
        mode, covariance = laplace(f, y, weight)
        mean, variance = f_test @ mode, ((f_test @ covariance) * f_test).sum(axis=-1)
        sd, nodes = jnp.sqrt(jnp.maximum(variance, 0.0)), jnp.float32(heads.NODES)
        logits = mean[:, None] + sd[:, None] * nodes[None]
        of_laplace = jax.nn.sigmoid(logits) @ jnp.float32(heads.WEIGHTS / heads.WEIGHTS.sum())
        return jnp.stack(
            [
                weighted(f, y, weight, f_test, mode, covariance, normals),
                of_laplace,
                jax.nn.sigmoid(mean),
            ]
        )

    with jax.numpy_rank_promotion("allow"):
        return jnp.moveaxis(jax.lax.map(one_task, (f, y, weight, f_test), batch_size=18), 1, 0)


def left_out(f, y, size, normals):
    """NLL of labels left out of heads fitted to few, [kind, scale], on f [task, point, feature]."""
    num_tasks, num_points = y.shape
    count = min(SETTINGS["most_blocks"], num_points // size)
    seen = np.stack([np.arange(num_points) // size == block for block in range(count)])
    seen = np.repeat(seen, num_tasks, axis=0)
    x, labels = (np.concatenate(count * [a]) for a in (f, y))
    found = []
    for scale in SCALES:
        p = np.asarray(predict(scale * x, labels, np.float32(seen), scale * x, normals))
        found.append([scoring.score_of(one[~seen], labels[~seen])["nll"] for one in p])
    return np.array(found).T


def ranked(key, old, sizes, width):
    """NLL of labels left out of heads on others' features, [kind, size, penalty, scale]."""
    key_normals, key_features = jax.random.split(key)
    normals = jax.random.normal(key_normals, (SETTINGS["weighted"], width))
    penalties, folds = jnp.array(SETTINGS["penalties"]), SETTINGS["folds"]
    fold, found = np.arange(len(old.y_train)) % folds, []
    for k, key_fold in enumerate(jax.random.split(key_features, folds)):
        (x, y), (x_new, y_new) = (
            (np.asarray(old.x_train)[of], np.asarray(old.y_train)[of])
            for of in (fold != k, fold == k)
        )
        params = train(jax.random.split(key_fold, SETTINGS["fold_starts"]), penalties, x, y, width)
        # [start, penalty, task, point, feature]
        f = np.moveaxis(heads.features_of(width, params, x_new), 1, 0)
        for of in f:
            found.append([[left_out(a, y_new, size, normals) for a in of] for size in sizes])
    return np.moveaxis(np.mean(found, axis=0), 2, 0)
