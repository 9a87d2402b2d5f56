"""The spiral's rivals with what they lacked: folds of all training points, and wider starts.

``svi/spiral`` takes a temperature from sixty points, and its networks train to the end. Here five
folds, each with five networks of its own, choose by NLL: when to stop, or at which temperature to
go to the end, for one network and for an ensemble. Laplace's method climbs from ten draws of the
prior, beside the ten narrow starts of ``svi/spiral_references``, and of all twenty tops that of the
highest evidence counts. Training sets and fresh points are those of ``svi/spiral``.
"""

from helpers import common, densities, mcmc, networks, svi, training
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from scipy.special import log_softmax, logsumexp

from experiments.methods.cross_validation import FOLDS
from experiments.pages.svi import spiral
from experiments.problems import spirals

SETTINGS = {
    "seed": 5013,
    "num_redraws": 5,
    "num_steps": 10_000,
    "every": 100,  # steps from one place to stop at to the next
    "of_fold": 5,  # networks without each fold
    "members": 10,  # networks with all points
    "temperatures": [0.05, 100.0, 301],  # least and largest, evenly spaced logarithms
    "prior_scales": [10.0, 1.0],
    "num_starts": 10,  # of Laplace's method, narrow and wide each
    "num_draws": 200,
    "learning_rate": 1e-2,  # of its climbs, falling to 0 along a cosine
}
NETWORK = spirals.NETWORK
LOG_DENSITY = densities.flat_log_density(NETWORK)
SMALL = {"redraw": 0, "prior_scale": 1.0, "num_steps": 1000}


def units():
    """Each redraw's networks (no prior), and Laplace's method by prior."""
    return {
        f"redraw {redraw}, {f'Laplace, prior sd {scale:g}' if scale else 'networks'}": {
            "redraw": redraw,
            "prior_scale": scale,
            "num_steps": SETTINGS["num_steps"],
        }
        for redraw in range(SETTINGS["num_redraws"])
        for scale in (None, *SETTINGS["prior_scales"])
    }


def unit(redraw, prior_scale, num_steps):
    """Return logits of networks as they learn, or draws of Laplace's method."""
    train, test, _ = spirals.problem(redraw)
    x = jnp.concatenate([test.x, spirals.far_points(100)])
    key = partial(common.key, SETTINGS["seed"], redraw)
    if prior_scale is not None:
        observed = densities.observe(train.x, train.y, 2 * [prior_scale], num_classes=3)
        return laplace(key("Laplace", prior_scale), observed, x, num_steps)
    fold = np.asarray(jax.random.permutation(key("folds"), train.y.size)) % FOLDS
    weight = np.repeat([fold != k for k in range(FOLDS)], SETTINGS["of_fold"], axis=0)
    keys = jax.random.split(key("networks"), len(weight) + SETTINGS["members"])
    of_folds = learnt(keys[: len(weight)], train, weight.astype(np.float32), train.x, num_steps)
    whole = np.ones((SETTINGS["members"], train.y.size), np.float32)
    of_all = learnt(keys[len(weight) :], train, whole, x, num_steps)
    of_folds = np.asarray(of_folds).reshape(FOLDS, SETTINGS["of_fold"], *of_folds.shape[1:])
    left_out = [of_folds[k][:, :, fold == k] for k in range(FOLDS)]
    labels = [np.asarray(train.y)[fold == k] for k in range(FOLDS)]
    return {
        "left_out": np.concatenate(left_out, axis=2),
        "labels": np.concatenate(labels),
        "logits": np.asarray(of_all),
    }


@partial(jax.jit, static_argnums=4)
def learnt(keys, train, weight, x, num_steps):
    """Train networks as the lecture does; return logits at x, [network, place, point, class]."""

    def one(pair):
        key, weight = pair

        def loss(params):
            log_p = densities.categorical_log_likelihood(NETWORK.apply(params, train.x), train.y)
            return -(weight * log_p).sum() / weight.sum()

        start, every = NETWORK.init(key, train.x), SETTINGS["every"]
        logits = partial(NETWORK.apply, x=x)
        return training.train(loss, start, svi.CLIPPED_ADAM, num_steps, logits, every)[1]

    return jax.lax.map(one, (keys, weight))


def laplace(key, observed, x, num_steps):
    """Return linearised logits [draw, point, class] at the top of the highest evidence, and all
    tops' evidence.
    """
    key_narrow, key_wide, key_draw = jax.random.split(key, 3)
    count, scale = SETTINGS["num_starts"], float(observed.prior_scales[0])
    narrow = jax.vmap(lambda k: NETWORK.init(k, observed.x))(jax.random.split(key_narrow, count))
    shapes = networks.parameter_shapes(NETWORK, 2)
    wide = mcmc.normal_starts(key_wide, shapes, (count,), scale)
    starts = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), narrow, wide)
    tops, height, curvature = climb(starts, observed, num_steps)
    sizes = np.array([np.linalg.slogdet(np.float64(a))[1] for a in curvature])
    top, unravel = ravel_pytree(take(tops, 0))
    evidence = np.float64(height) + 0.5 * (top.size * np.log(2 * np.pi) - sizes)
    best = int(evidence.argmax())
    values, vectors = np.linalg.eigh(np.float64(curvature[best]))
    z = np.asarray(jax.random.normal(key_draw, (SETTINGS["num_draws"], top.size)))
    moves = jnp.asarray((z / np.sqrt(values)) @ vectors.T, top.dtype)
    logits = linearised(take(tops, best), jax.vmap(unravel)(moves), x)
    return {"logits": np.asarray(logits), "log_evidence": evidence}


@partial(jax.jit, static_argnums=2)
def climb(starts, observed, num_steps):
    """Return where Adam ends from each start, the log density there and its curvature (GGN)."""
    optimizer = optax.adam(optax.cosine_decay_schedule(SETTINGS["learning_rate"], num_steps))
    optimizer = optax.chain(optax.clip_by_global_norm(10.0), optimizer)

    def one(start):
        top, _ = training.train(lambda w: -LOG_DENSITY(w, observed), start, optimizer, num_steps)
        vector, unravel = ravel_pytree(top)
        p = jax.nn.softmax(NETWORK.apply(top, observed.x))
        fisher = p[:, :, None] * jnp.eye(3) - p[:, :, None] * p[:, None, :]
        slopes = jax.jacobian(lambda v: NETWORK.apply(unravel(v), observed.x))(vector)
        likelihood = jnp.einsum("pci,pcd,pdj->ij", slopes, fisher, slopes)
        precision = jnp.eye(vector.size) / observed.prior_scales[0] ** 2
        return top, LOG_DENSITY(top, observed), likelihood + precision

    return jax.lax.map(one, starts)


@jax.jit
def linearised(mode, moves, x):
    """Logits [draw, point, class] to first order round the mode (Immer et al. 2021)."""

    def one(move):
        value, slope = jax.jvp(lambda w: NETWORK.apply(w, x), (mode,), (move,))
        return value + slope

    return jax.lax.map(one, moves)


def score(drawn, redraw, prior_scale, num_steps):
    """Return scores on fresh points and entropies there and far away, by method."""
    y = np.asarray(spirals.problem(redraw)[1].y)
    if prior_scale is not None:
        log_p = log_softmax(np.float64(drawn["logits"]), axis=-1)
        found = {"log_evidence": drawn["log_evidence"].tolist()}
        return {f"Laplace, wide starts too, prior sd {prior_scale:g}": of(log_p, y) | found}
    left_out, logits = np.float64(drawn["left_out"]), np.float64(drawn["logits"])
    low, high, count = SETTINGS["temperatures"]
    grid, found = np.geomspace(low, high, count), {}
    for name, members, choose in (("one network", 1, alone), ("ensemble of 10", None, together)):
        found[f"{name}, to the end"] = of(log_softmax(logits[:members, -1], axis=-1), y)
        steps = [choose(left_out[:, at], drawn["labels"]) for at in range(left_out.shape[1])]
        best = int(np.argmin(steps))
        warm = [choose(left_out[:, -1] / t, drawn["labels"]) for t in grid]
        temperature = float(grid[np.argmin(warm)])
        kept = {"steps": SETTINGS["every"] * (best + 1), "left_out": float(min(steps))}
        stopped = log_softmax(logits[:members, best], axis=-1)
        found[f"{name}, stopped by folds"] = of(stopped, y) | kept
        kept = {"temperature": temperature, "left_out": float(min(warm))}
        tempered = log_softmax(logits[:members, -1] / temperature, axis=-1)
        found[f"{name}, temperature by folds"] = of(tempered, y) | kept
    return found


def of(log_p, y):
    """Return the scores of ``svi/spiral``, without what only its guides have."""
    found = spiral.scores(log_p, y)
    return {name: found[name] for name in found if name not in ("losses", "params", "temperature")}


def alone(logits, labels):
    """Mean NLL of networks [network, point, class] each by itself."""
    return -log_softmax(logits, axis=-1)[:, np.arange(len(labels)), labels].mean()


def together(logits, labels):
    """NLL of the mean of their probabilities."""
    log_p = log_softmax(logits, axis=-1)[:, np.arange(len(labels)), labels]
    return -(logsumexp(log_p, axis=0) - np.log(len(log_p))).mean()


def rows(scored):
    """A row for each redraw and method."""
    settings = units()
    return [
        {"redraw": settings[unit_name]["redraw"], "name": name, **found}
        for unit_name, methods in scored.items()
        for name, found in methods.items()
    ]
