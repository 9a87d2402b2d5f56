"""Features that all tasks share, trained on all of them, and a linear head a task: trained, by
MCMC, or by Laplace.

The features are a network 2-F-F, tanh, without biases; the logits of a task are its head times the
features. Features and heads are trained together by AdamW. Its weight decay and the number of steps
are those whose trained heads give the points left out of five folds the least NLL. Given features,
a head is a logistic regression under N(0, s^2), and s is chosen by the same folds, for MCMC and for
Laplace each by its own predictions.
"""

from helpers import common, densities, mcmc, networks, training
from helpers.common import take

from functools import lru_cache, partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import special
from sklearn.linear_model import LogisticRegression

from experiments.methods import cross_validation, network_fits

TRAINED, MCMC, LAPLACE = "trained heads", "heads by MCMC", "heads by Laplace"
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(16)


@lru_cache
def network(size):
    """Return the network whose outputs, through tanh, are the features."""
    return networks.MLP(hidden=(size,), num_outputs=size)


def features(size, weights, x):
    """Return features [*point, feature] of points [*point, 2]."""
    return nn.tanh(network(size).apply(weights, x))


@partial(jax.jit, static_argnums=0)
def features_of(size, weights, x):
    """Features [fit, task, point, feature] of networks [fit], or of networks [fit, stretch]."""
    if weights["params"]["Dense_0"]["kernel"].ndim == 3:
        return jax.lax.map(lambda one: features(size, one, x), weights)
    return jax.lax.map(lambda one: features_of(size, one, x), weights)


def loss(heads, phi, y, seen):
    """Return the mean NLL of the labels that are seen, ``seen`` 0 or 1, [point]."""
    of_labels = densities.bernoulli_log_likelihood(jnp.einsum("tf,tpf->tp", heads, phi), y)
    return -(of_labels * seen[None]).sum() / (len(y) * seen.sum())


@partial(jax.jit, static_argnames=("size", "learning_rate", "num_steps", "every"))
def train(keys, tasks, seen, decay, size, learning_rate, num_steps, every):
    """Train on the points seen, [fit, point], each time from a start of its own.

    Returns networks and heads [task, feature] after every so many steps, leading axes [fit,
    stretch].
    """
    optimizer = optax.adamw(learning_rate, weight_decay=decay)

    def one(fit):
        key, seen = fit
        key_network, key_heads = jax.random.split(key)
        heads = jax.random.normal(key_heads, (len(tasks.y_train), size)) / np.sqrt(size)
        start = {"network": network(size).init(key_network, tasks.x_train[0]), "heads": heads}

        def of_weights(weights):
            phi = features(size, weights["network"], tasks.x_train)
            return loss(weights["heads"], phi, tasks.y_train, seen)

        return training.train(
            of_weights, start, optimizer, num_steps, keep=lambda weights: weights, every=every
        )[1]

    return jax.lax.map(one, (keys, seen))


@partial(jax.jit, static_argnames=("learning_rate", "num_steps", "every"))
def train_heads(phi, y, decay, learning_rate, num_steps, every):
    """Train heads alone, from 0, on features [fit, task, point, feature]; add axis [stretch]."""
    optimizer, seen = optax.adamw(learning_rate, weight_decay=decay), jnp.ones(y.shape[1])

    def one(phi):
        start = jnp.zeros((len(y), phi.shape[2]))
        return training.train(
            lambda heads: loss(heads, phi, y, seen), start, optimizer, num_steps, lambda a: a, every
        )[1]

    return jax.lax.map(one, phi)


def log_density(position, task):
    """Log posterior, up to a constant, of one head; ``task`` is (features, y, weight, s)."""
    phi, y, weight, scale = task
    of_labels = weight * densities.bernoulli_log_likelihood(phi @ position["head"], y)
    return of_labels.sum() - 0.5 * ((position["head"] / scale) ** 2).sum()


def sample(key, phi, y, weight, scale, num_chains, **sizes):
    """Sample heads of tasks: phi [task, point, feature], y, weight [task, point], scale [task]."""
    key_start, key_chains = jax.random.split(key)
    shapes = common.float_shapes({"head": phi.shape[2:]})
    starts = mcmc.normal_starts(key_start, shapes, (len(phi), num_chains))
    tasks = tuple(np.asarray(a, np.float32) for a in (phi, y, weight, scale))
    return mcmc.sample(key_chains, log_density, starts, tasks=tasks, **sizes)


def probabilities(heads, phi):
    """Return p [chain, draw, task, point] of heads [task, chain, draw, feature] at phi."""
    heads, phi = np.asarray(heads), np.asarray(phi)
    return special.expit(np.einsum("tcdf,tpf->cdtp", heads, phi, optimize=True))


def laplace(phi, y, scale, phi_new):
    """Return p [task, point] by Laplace: top, Hessian, and quadrature over the normal logit."""
    solver = LogisticRegression(C=scale**2, fit_intercept=False, solver="newton-cholesky", tol=1e-8)

    def one_task(phi, y, phi_new):
        head = solver.fit(phi, y).coef_[0]
        p = special.expit(phi @ head)
        hessian = (phi.T * (p * (1 - p))) @ phi + np.eye(len(head)) / scale**2
        sd = np.sqrt((phi_new * np.linalg.solve(hessian, phi_new.T).T).sum(axis=1))
        f = (phi_new @ head)[:, None] + sd[:, None] * NODES
        return special.expit(f) @ WEIGHTS / WEIGHTS.sum()

    of_tasks = (np.asarray(a, np.float64) for a in (phi, y, phi_new))
    return np.stack([one_task(*task) for task in zip(*of_tasks, strict=True)])


def nll_left_out(p, tasks):
    """Return the NLL, mean over tasks, of p [fold, task, point] at the points of each fold."""
    folds = cross_validation.in_folds(np.arange(tasks.y_train.shape[1]))
    of_folds = [one[:, fold] for one, fold in zip(p, folds, strict=True)]
    return float(cross_validation.nll_by_task(np.stack(of_folds), tasks).mean())


def chosen_training(key, tasks, size, settings):
    """Train without each fold: the NLL left out [decay, stretch], best pair, networks [fold]."""
    seen = jnp.asarray(cross_validation.seen(tasks.y_train.shape[1]), jnp.float32)
    keys, found, fits = jax.random.split(key, len(seen)), [], []
    for decay in settings["decays"]:
        fit = train(keys, tasks, seen, decay, size, **settings["training"])
        phi = features_of(size, fit["network"], tasks.x_train)
        p = np.asarray(jax.nn.sigmoid(jnp.einsum("kstf,kstpf->kstp", fit["heads"], phi)))
        found.append([nll_left_out(p[:, stretch], tasks) for stretch in range(p.shape[1])])
        fits.append(fit["network"])
    decay, stretch = least(found)
    return np.array(found), (decay, stretch), take(fits[decay], np.s_[:, stretch])


def least(left_out):
    """Return where the NLL left out is least, (decay, stretch)."""
    return np.unravel_index(np.argmin(left_out), np.shape(left_out))


def chosen_scales(key, tasks, weights, size, settings):
    """NLL left out by each scale of the heads, MCMC and Laplace, given the folds' networks."""
    seen, scales = cross_validation.seen(tasks.y_train.shape[1]), settings["scales"]
    phi = np.asarray(features_of(size, weights, tasks.x_train))  # [fold, task, point, feature]
    (num_folds, num_tasks, *of_task), num_scales = phi.shape, len(scales)
    each = np.broadcast_to(phi, (num_scales, *phi.shape)).reshape(-1, *of_task)
    y = np.tile(tasks.y_train, (num_scales * num_folds, 1))
    weight = np.tile(np.repeat(seen, num_tasks, axis=0), (num_scales, 1))
    scale = np.repeat(scales, num_folds * num_tasks)
    heads = sample(key, each, y, weight, scale, **settings["of_folds"]).draws["head"]
    p = probabilities(heads, each).mean(axis=(0, 1))
    p = p.reshape(num_scales, num_folds, num_tasks, -1)
    found = {MCMC: [nll_left_out(one, tasks) for one in p], LAPLACE: []}
    for scale in scales:
        pairs = zip(phi, seen == 1, strict=True)
        p = [laplace(one[:, at], tasks.y_train[:, at], scale, one) for one, at in pairs]
        found[LAPLACE].append(nll_left_out(p, tasks))
    return found


def unit(key, tasks, new, size, settings):
    """Choose, train, and fit all tasks' heads, those of new ones on the same features."""
    left_out, (decay, stretch), of_folds = chosen_training(key("folds"), tasks, size, settings)
    of_scales = chosen_scales(key("scales"), tasks, of_folds, size, settings)
    keys, decay = jax.random.split(key("starts"), settings["num_starts"]), settings["decays"][decay]
    seen = jnp.ones((len(keys), tasks.y_train.shape[1]))
    weights = take(train(keys, tasks, seen, decay, size, **settings["training"]), np.s_[:, stretch])
    phi = features_of(size, weights["network"], new.x_train)
    of_new = train_heads(phi, new.y_train, decay, **settings["training"])[:, stretch]
    drawn = {
        "left_out": left_out,
        "of_scales": {name: np.array(nll) for name, nll in of_scales.items()},
        "network": weights["network"],
        # [start, task and new task, feature]
        "heads": np.concatenate([weights["heads"], of_new], axis=1),
    }
    phi, y = at_all(drawn, size, tasks, new)
    scale = np.full(len(y), best(drawn, settings)[MCMC])
    return drawn | network_fits.thinned_run(
        sample(key("heads"), phi, y, np.ones(y.shape), scale, **settings["chains"])
    )


def at_all(drawn, size, tasks, new, points="train"):
    """Features [start and task, point, feature] of all tasks, new ones last, and labels."""
    both = tasks, new
    x, y = (np.concatenate([getattr(one, f"{name}_{points}") for one in both]) for name in "xy")
    phi = np.asarray(features_of(size, drawn["network"], x))
    return phi.reshape(-1, *phi.shape[2:]), np.tile(y, (len(phi), 1))


def best_training(drawn, settings):
    """Return the weight decay and the number of steps that the folds choose."""
    decay, stretch = least(drawn["left_out"])
    return settings["decays"][decay], int(stretch + 1) * settings["training"]["every"]


def best(drawn, settings):
    """Return the scale of the heads that the folds choose for MCMC and for Laplace."""
    scales = settings["scales"]
    return {name: scales[int(np.argmin(nll))] for name, nll in drawn["of_scales"].items()}


def predictions(drawn, size, tasks, new, settings):
    """Return p [start, task, point] at all test points by kind of head, and of MCMC by draw.

    The latter is [chain, draw, start and task, point].
    """
    at = partial(at_all, drawn, size, tasks, new)
    (phi, y), (phi_test, _) = at("train"), at("test")
    by_draw = probabilities(drawn["draws"]["head"], phi_test)
    trained = drawn["heads"].reshape(-1, 1, 1, size)
    found = {
        TRAINED: probabilities(trained, phi_test)[0, 0],
        MCMC: by_draw.mean(axis=(0, 1)),
        LAPLACE: laplace(phi, y, best(drawn, settings)[LAPLACE], phi_test),
    }
    num_starts = len(drawn["heads"])
    return {name: p.reshape(num_starts, -1, p.shape[-1]) for name, p in found.items()}, by_draw
