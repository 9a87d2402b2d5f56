"""Networks trained for what they predict, not for a posterior: one network stopped early, deep
ensembles, Monte Carlo dropout, stochastic weight averaging; of one task.

Each is ``f(key, task, scales, **setting) -> networks [draw, 40]``. Weights are in units of their
layer's prior standard deviation: starts are drawn from that prior, and steps are taken in those
units, so that whoever knows the scales of the prior has them in every part.
"""

from helpers import training

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.methods import approximations
from experiments.problems import six_tasks

MEMBERS = 40  # of an ensemble
NUM_DRAWS = 1000  # of the masks of dropout, or of SWAG's normal
LAYERS = np.repeat(np.arange(3), (10, 25, 5))  # of each weight


def loss_of(task, units, prior=True):
    """Return the loss of weights in units: minus the log posterior, or log likelihood alone."""

    def loss(v):
        decay = 0.5 * (v**2).sum() if prior else 0.0
        return decay - six_tasks.log_likelihood(units * v, task)

    return loss


def ensemble(key, task, scales, rate, steps, prior, members=MEMBERS):
    """Networks that are trained from starts of their own (Lakshminarayanan et al. 2017)."""
    units = jnp.asarray(scales)[LAYERS]
    starts = jax.random.normal(key, (members, six_tasks.SIZE))
    train = partial(
        training.train,
        loss_of(task, units, prior),
        optimizer=training.decaying_adam(rate, steps),
        num_steps=steps,
    )
    return units * jax.vmap(train)(starts)[0]


def dropout(key, task, scales, rate, steps, share):
    """Monte Carlo dropout of hidden units (Gal and Ghahramani 2016), the prior as decay."""
    key_start, key_masks, key_draws = jax.random.split(key, 3)
    units = jnp.asarray(scales)[LAYERS]
    optimizer = training.decaying_adam(rate, steps)

    def loss(v, key):
        masked = approximations.masked(units * v, key, share)
        return 0.5 * (v**2).sum() - six_tasks.log_likelihood(masked, task)

    def step(carry, key):
        v, state = carry
        updates, state = optimizer.update(jax.grad(loss)(v, key), state, v)
        return (optax.apply_updates(v, updates), state), None

    start = jax.random.normal(key_start, (six_tasks.SIZE,))
    keys = jax.random.split(key_masks, steps)
    (v, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), keys)
    masks = jax.random.split(key_draws, NUM_DRAWS)
    return jax.vmap(lambda k: approximations.masked(units * v, k, share))(masks)


def swag(key, task, scales, rate, steps):
    """Stochastic weight averaging, Gaussian (Maddox et al. 2019), after a climb of as many steps.

    ``rate`` is the size of its plain steps, which see ten labels each.
    """
    key_start, key_path, key_diagonal, key_rank = jax.random.split(key, 4)
    units, size = jnp.asarray(scales)[LAYERS], task.y.shape[0]
    start = jax.random.normal(key_start, (six_tasks.SIZE,))
    climb = training.decaying_adam(1e-2, steps)
    top = training.train(loss_of(task, units), start, climb, steps)[0]
    batch, snapshots = approximations.BATCH, approximations.SNAPSHOTS
    block = -(-steps * size // batch // snapshots)

    def snapshot(v, key):
        def step(v, key):
            rows = jax.random.choice(key, size, (batch,))
            weight = jnp.zeros(size).at[rows].add(size / batch) * task.weight
            return v - rate * jax.grad(loss_of(task._replace(weight=weight), units))(v), None

        v, _ = jax.lax.scan(step, v, jax.random.split(key, block))
        return v, v

    _, kept = jax.lax.scan(snapshot, top, jax.random.split(key_path, snapshots))
    mean, apart = kept.mean(axis=0), kept[-approximations.RANK :] - kept.mean(axis=0)
    z = jax.random.normal(key_diagonal, (NUM_DRAWS, six_tasks.SIZE)) * jnp.sqrt(kept.var(axis=0))
    low = jax.random.normal(key_rank, (NUM_DRAWS, len(apart))) @ apart / np.sqrt(len(apart) - 1)
    return units * (mean + (z + low) / np.sqrt(2))
