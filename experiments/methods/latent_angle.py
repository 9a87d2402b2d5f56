"""One network for all tasks, whose inputs are turned by an angle that each task learns: the truth
about rotated moons.

Its weights are N(0, s^2) with a learnt scale a layer. A task never seen has an angle of its own and
no other parameter, so its posterior is a sum over a grid of angles.
"""

from helpers import common, densities, networks

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.problems import moons_redrawn

# a step is a small part of what fifty labels leave open
GRID = np.linspace(-np.pi, np.pi, 72, endpoint=False)


def shapes(num_tasks):
    """Shapes of a position: weights over scales, log scales, a pair for all angles but one."""
    network = networks.parameter_shapes(moons_redrawn.NETWORK, 2)
    sizes = {"log_sd": dict.fromkeys(network["params"], ()), "direction": (num_tasks - 1, 2)}
    return {"network": network, **common.float_shapes(sizes)}


def angles_of(direction):
    """Return the latent angles, [..., task], of pairs [..., task - 1, 2]: the first task's is 0.

    Weights N(0, s^2) look the same from everywhere, so only differences between angles are
    identified. With one of them fixed the predictions are the same, and chains are spared a turn of
    everything at once.
    """
    found = jnp.arctan2(direction[..., 1], direction[..., 0])
    return jnp.concatenate([jnp.zeros((*found.shape[:-1], 1)), found], axis=-1)


def turned(angle, x):
    """Turn the points [..., point, 2] back by angles [...]."""
    cos, sin = jnp.cos(angle)[..., None], jnp.sin(angle)[..., None]
    x, y = x[..., 0], x[..., 1]
    return jnp.stack([cos * x + sin * y, cos * y - sin * x], axis=-1)


def weights_of(position):
    """Return the network's weights."""
    layers, sd = position["network"]["params"], jax.tree.map(jnp.exp, position["log_sd"])
    return {"params": {k: jax.tree.map(lambda a, k=k: sd[k] * a, layers[k]) for k in layers}}


def log_density(hyperprior):
    """Return the log posterior: normal weights; a task's angle is of a pair on a ring."""
    of_scale = tfd.HalfNormal(hyperprior)

    def density(position, observed):
        leaves = jax.tree.leaves(position["network"])
        terms = [tfd.Normal(0.0, 1.0).log_prob(a).sum() for a in leaves]
        terms += [of_scale.log_prob(jnp.exp(a)) + a for a in position["log_sd"].values()]
        norm = jnp.linalg.norm(position["direction"], axis=-1)
        terms += [tfd.Normal(1.0, 0.2).log_prob(norm).sum()]
        at = observed._replace(x=turned(angles_of(position["direction"]), observed.x))
        return jnp.sum(jnp.stack(terms)) + moons_redrawn.OF_LABELS(weights_of(position), at).sum()

    return density


def logits(position, x):
    """Return logits [task, point] of points [task, point, 2]."""
    x = turned(angles_of(position["direction"]), x)
    return moons_redrawn.NETWORK.apply(weights_of(position), x)


def of_new_tasks(draws, new):
    """Return p [part, task, point] of new tasks: parts are half chains, each weighed by itself.

    A draw and an angle count by the likelihood of the new task's labels under both.
    """

    @jax.jit
    def of_part(draws, task):
        x, y, x_test = task

        def of_draw(position):
            weights = weights_of(position)

            def of_angle(angle):
                f = moons_redrawn.NETWORK.apply(weights, turned(angle, x))
                likelihood = densities.bernoulli_log_likelihood(f, y).sum()
                f = moons_redrawn.NETWORK.apply(weights, turned(angle, x_test))
                return likelihood, jax.nn.sigmoid(f)

            log_weight, p = jax.vmap(of_angle)(jnp.asarray(GRID, jnp.float32))
            return jax.nn.logsumexp(log_weight), jax.nn.softmax(log_weight) @ p

        log_weight, p = jax.lax.map(of_draw, draws)
        return jax.nn.softmax(log_weight) @ p

    count = draws["direction"].shape[1] // 2
    parts = [
        jax.tree.map(lambda a: a[chain, half], draws)
        for chain in range(len(draws["direction"]))
        for half in (slice(count), slice(count, 2 * count))
    ]
    tasks = list(zip(new.x_train, new.y_train, new.x_test, strict=True))
    return np.array([[of_part(part, task) for task in tasks] for part in parts])


def angle_error(direction, angles):
    """Root mean square error of chains' mean angles, degrees; their mean is the network's."""
    turn = np.exp(1j * (np.asarray(angles_of(direction)) - angles))
    own = turn.mean(axis=-1, keepdims=True)
    squares = np.angle((turn * np.abs(own) / own).mean(axis=1)) ** 2
    of_chains = np.degrees(np.sqrt(squares.mean(axis=-1)))
    spread = of_chains.std(ddof=1) / np.sqrt(len(of_chains))
    whole = float(np.degrees(np.sqrt(squares.mean())))
    return {"angle_error_degrees": whole, "angle_error_degrees_error": float(spread)}
