"""The training tasks and new ones in one hierarchical fit: what a prior learnt beforehand stands
for.
"""

from helpers import densities, hierarchical, mcmc
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.methods import learnt_group
from experiments.problems.new_tasks import NUM_TASKS


def sample(key, draws, old, new, together, **lengths):
    """Fit training tasks and one new task, for each in turn, or all of them ``together``.

    Chains start where those of the group ended, with fresh offsets; new is [size, task].
    """
    if not together:
        new = jax.tree.map(lambda a: a.reshape(-1, 1, *a.shape[2:]), new)
    count, num_new = new.y.shape[:2]
    key_offset, key_chains = jax.random.split(key)
    ends = jax.tree.map(lambda a: jnp.broadcast_to(a[:, -1], (count, len(a), *a.shape[2:])), draws)
    shapes = hierarchical.shapes(learnt_group.NETWORK, num_new, 2)["offset"]
    fresh = mcmc.normal_starts(key_offset, shapes, (count, learnt_group.SETTINGS["num_chains"]))
    joined = partial(jnp.concatenate, axis=2)
    ends["offset"] = jax.tree.map(lambda *pair: joined(pair), ends["offset"], fresh)
    before = densities.observe(old.x_train, old.y_train)[:3]
    both = [
        jnp.concatenate([jnp.broadcast_to(a, (count, *a.shape)), b], axis=1)
        for a, b in zip(before, new[:3], strict=True)
    ]
    observed, density = densities.Observed(*both), learnt_group.LOG_DENSITY
    return mcmc.sample(key_chains, density, ends, tasks=observed, **lengths)


def networks_of(posterior, num_sizes, together):
    """Return the new tasks' networks, [size, task, chain, draw, weight]."""
    w = np.moveaxis(np.asarray(_last(posterior.draws, NUM_TASKS if together else 1)), 3, 1)
    return w.reshape(num_sizes, NUM_TASKS, *w.shape[2:])


@partial(jax.jit, static_argnums=1)
def _last(draws, num_new):
    """Return the weights of the last tasks, [posterior, chain, draw, task, weight]."""

    def one(position):
        weights = hierarchical.task_weights(position, NUM_TASKS + num_new)
        return jax.vmap(lambda weights: ravel_pytree(weights)[0])(take(weights, np.s_[-num_new:]))

    return jax.vmap(jax.vmap(jax.vmap(one)))(draws)
