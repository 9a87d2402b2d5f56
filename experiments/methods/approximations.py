"""Methods that fit something by optimisation and then draw from it, of one task: ``f(key, task,
budget, value)``.

``value`` is the one free setting of each. An evaluation of the log density with its gradient counts
as one gradient, one without it too; a minibatch counts by its share of the labels; draws from what
was fitted count nothing.
"""

from helpers import svi, training
from helpers.common import take

from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from blackjax.diagnostics import psis_weights
from blackjax.vi import multipathfinder
from numpyro.infer import Trace_ELBO

from experiments.methods import autoguides
from experiments.methods.budgets import NUM_DRAWS, fitted, normal_starts
from experiments.problems import six_tasks
from experiments.problems.numpyro_models import flat_model

CLIMB = 1000  # gradients of one climb to a mode
# of the curvature at its end: one forward derivative of all logits for each weight
JACOBIAN = six_tasks.SIZE
LAST = 35  # where the weights of the last layer begin
NUM_ELBO, PATH = 20, 30  # draws for the ELBO at each step of a path, and its steps at most
# a line search takes one more gradient; draws are weighed once more
PATH_COST = 2 * PATH + NUM_ELBO * (PATH + 2)
PARTICLES = 10  # draws of a guide for each step of variational inference
# A hidden layer of the flow has at least as many units as there are weights.
FLOW = partial(autoguides.Flow, num_flows=2, hidden_dims=[six_tasks.SIZE])
GUIDES = autoguides.GUIDES | {"flow": FLOW}
BATCH = 10  # labels of a minibatch
SNAPSHOTS, RANK = 100, 20  # of stochastic weight averaging
DROPOUT_RATE = 1e-2  # learning rate


def climbs(key, task, count, num_steps, rate, loss=None):
    """Return where Adam ends from dispersed starts, [climb, 40]."""

    def down(vector):
        return -six_tasks.log_density(vector, task) if loss is None else loss(vector)

    def climb(start):
        return training.train(down, start, training.decaying_adam(rate, num_steps), num_steps)[0]

    return jax.lax.map(climb, normal_starts(key, count))


def most_probable(key, task, budget, value):
    """The highest of several modes."""
    tops = climbs(key, task, budget // CLIMB, CLIMB, value)
    heights = jax.lax.map(lambda vector: six_tasks.log_density(vector, task), tops)
    return fitted(tops[heights.argmax()][None], budget)


def ensemble(key, task, budget, value, prior):
    """Networks trained from different starts, ``value`` steps each (Lakshminarayanan et al. 2017).

    Without the prior the loss is the negative log likelihood alone.
    """
    members = budget // int(value)
    loss = None if prior else lambda vector: -six_tasks.log_likelihood(vector, task)
    return fitted(climbs(key, task, members, int(value), 1e-2, loss), members * int(value))


def masked(vector, key, rate):
    """Return the weights left while units of hidden layers are dropped with that probability."""
    keep = jax.random.bernoulli(key, 1 - rate, (2, 5)) / (1 - rate)
    second = (vector[10:LAST].reshape(5, 5) * keep[0][:, None]).ravel()
    return jnp.concatenate([vector[:10], second, vector[LAST:] * keep[1]])


def dropout(key, task, budget, value):
    """Monte Carlo dropout (Gal and Ghahramani 2016) of probability ``value``, prior as decay."""
    key_start, key_masks, key_draws = jax.random.split(key, 3)
    optimizer = training.decaying_adam(DROPOUT_RATE, budget)

    def loss(vector, key):
        of_prior = six_tasks.log_prior(vector)
        return -of_prior - six_tasks.log_likelihood(masked(vector, key, value), task)

    def step(i, carry):
        vector, state = carry
        slope = jax.grad(loss)(vector, jax.random.fold_in(key_masks, i))
        updates, state = optimizer.update(slope, state, vector)
        return optax.apply_updates(vector, updates), state

    start = normal_starts(key_start, 1)[0]
    vector, _ = jax.lax.fori_loop(0, budget, step, (start, optimizer.init(start)))
    keys = jax.random.split(key_draws, NUM_DRAWS)
    return fitted(jax.vmap(lambda k: masked(vector, k, value))(keys), budget)


def curvature(vector, task):
    """Minus the log posterior's generalised Gauss-Newton matrix."""
    slopes, z = jax.jacfwd(six_tasks.logits)(vector, task.x), six_tasks.logits(vector, task.x)
    p = jax.nn.sigmoid(z)
    return (slopes * (task.weight * p * (1 - p))[:, None]).T @ slopes + jnp.eye(six_tasks.SIZE)


def laplace(key, task, budget, value, part):
    """Laplace's method, linear round the mode of the highest evidence (Immer et al. 2021)."""
    key_climb, key_draw = jax.random.split(key)
    num_steps = CLIMB - JACOBIAN
    tops = climbs(key_climb, task, budget // CLIMB, num_steps, value)

    def factor(vector):
        precision = curvature(vector, task)
        if part == "diagonal":
            precision = jnp.diag(jnp.diag(precision))
        if part == "last layer":
            precision = precision[LAST:, LAST:]
        root = jnp.linalg.cholesky(precision)
        return root, six_tasks.log_density(vector, task) - jnp.log(jnp.diag(root)).sum()

    roots, evidence = jax.lax.map(factor, tops)
    best = evidence.argmax()
    size = roots.shape[-1]
    z = jax.random.normal(key_draw, (size, NUM_DRAWS))
    moves = jax.scipy.linalg.solve_triangular(roots[best].T, z, lower=False).T
    moves = jnp.pad(moves, ((0, 0), (six_tasks.SIZE - size, 0)))
    return fitted(tops[best] + moves, budget, tops[best])


def swag(key, task, budget, value):
    """Stochastic weight averaging, Gaussian (Maddox et al. 2019); ``value`` is the step size."""
    key_climb, key_batches, key_draw = jax.random.split(key, 3)
    half, size = budget // 2, task.y.shape[0]
    top = climbs(key_climb, task, 1, half, 1e-2)[0]
    block = half * (size // BATCH) // SNAPSHOTS

    def loss(vector, rows):
        x, y, weight = take((task.x, task.y, task.weight), rows)
        batch = task._replace(x=x, y=y, weight=weight)
        likelihood = six_tasks.log_likelihood(vector, batch)
        return -six_tasks.log_prior(vector) - size / BATCH * likelihood

    def snapshot(vector, key):
        def step(i, vector):
            rows = jax.random.randint(jax.random.fold_in(key, i), (BATCH,), 0, size)
            return vector - value * jax.grad(loss)(vector, rows)

        vector = jax.lax.fori_loop(0, block, step, vector)
        return vector, vector

    _, kept = jax.lax.scan(snapshot, top, jax.random.split(key_batches, SNAPSHOTS))
    mean, variance, apart = kept.mean(axis=0), kept.var(axis=0), kept[-RANK:] - kept.mean(axis=0)
    key_diagonal, key_rank = jax.random.split(key_draw)
    z = jax.random.normal(key_diagonal, (NUM_DRAWS, six_tasks.SIZE)) * jnp.sqrt(variance / 2)
    low = jax.random.normal(key_rank, (NUM_DRAWS, RANK)) @ apart / np.sqrt(2 * (RANK - 1))
    return fitted(mean + z + low, half + SNAPSHOTS * block * BATCH / size)


def paths(key, task, count, history):
    """Draws of each path's best normal, log densities there of target and normal, [path, draw]."""
    key_start, key_paths = jax.random.split(key)
    density, starts = partial(six_tasks.log_density, task=task), normal_starts(key_start, count)
    sizes = {"num_samples": NUM_ELBO, "maxiter": PATH, "maxcor": int(history)}
    return multipathfinder.multi_approximate(key_paths, density, starts, **sizes)[0]


def pathfinder(key, task, budget, value):
    """One path (Zhang et al. 2022): ``value`` is the length of the optimiser's memory."""
    key_path, key_draw = jax.random.split(key)
    state = take(paths(key_path, task, 1, value).path_states, 0)
    return fitted(blackjax.vi.pathfinder.sample(key_draw, state, NUM_DRAWS)[0], PATH_COST)


def multipathfinder_(key, task, budget, value):
    """Many paths, their draws resampled by Pareto-smoothed importance weights."""
    count = budget // PATH_COST
    batch = max(size for size in range(1, 31) if count % size == 0) if count > 30 else count
    key_paths, key_draw = jax.random.split(key)

    def some(key):
        found = paths(key, task, batch, value)
        return found.samples, found.logp, found.logq

    found = jax.lax.map(some, jax.random.split(key_paths, count // batch))
    samples, logp, logq = (leaf.reshape(-1, *leaf.shape[3:]) for leaf in found)
    ratios = jnp.where(jnp.isfinite(logp - logq), logp - logq, -1e30)
    weights, _ = psis_weights(ratios)
    rows = jax.random.choice(key_draw, len(weights), (NUM_DRAWS,), p=jnp.exp(weights))
    return fitted(samples[rows], count * PATH_COST)


def guide(key, task, budget, value, name):
    """Variational inference with the guide of a name; ``value`` is the first learning rate."""
    num_steps = budget // PARTICLES
    loss = svi.ELBO if name == "mean-field" else Trace_ELBO(num_particles=PARTICLES)
    optimizer = training.clipped_adam(value, num_steps)
    settings = {"num_steps": num_steps, "loss": loss, "optimizer": optimizer}
    model = partial(flat_model, six_tasks.NETWORK)
    draws, _ = autoguides.fit_and_draw(
        jax.random.split(key), model, GUIDES[name], (task,), NUM_DRAWS, **settings
    )
    return fitted(six_tasks.vector_of(svi.network_position(draws)), num_steps * PARTICLES)
