"""Many networks of a task not yet seen, weighted by how well they predict its first labels: no
chain, no fit.

The largest weights are smoothed (Vehtari et al. 2024). Networks come in independent parts, each
weighted by itself, so that their spread tells the Monte Carlo error.
"""

from helpers import densities
from helpers.common import mixed_types, take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.diagnostics import psis_weights

from experiments.methods import fitted_priors
from experiments.methods.learnt_group import NETWORK, SIZE, UNRAVEL

BLOCK, NUM_CHOSEN = 500, 1000  # networks weighted at once; networks of a part that predict


def of_the_group(key, draws, copies):
    """Return networks of a new task [part, network, weight]: a chain a part, copies a draw."""
    return np.concatenate(
        [fitted_priors.group_predictive(k, draws) for k in jax.random.split(key, copies)], axis=1
    )


def weigh(w, observed, x_test, sizes):
    """Weight networks [part, network, weight] by the first labels of each task, and predict.

    Returns p [size, task, part, point], and [size, task, part] of Pareto k and of the effective
    number of networks.
    """
    tasks = [(take(observed, t), x_test[t]) for t in range(len(x_test))]
    found = [[_weigh(part, *task, tuple(sizes)) for part in w] for task in tasks]
    p, pareto_k, ess = (
        np.moveaxis(np.array([[part[i] for part in task] for task in found]), 2, 0)
        for i in range(3)
    )
    return {"p": p, "pareto_k": pareto_k, "ess": ess}


@partial(jax.jit, static_argnums=3)
def _weigh(w, task, x_test, sizes):
    """Predictions, Pareto k, effective number, each [size], of networks weighted for one task."""

    def of_block(block):
        logits = jax.vmap(lambda v: NETWORK.apply(UNRAVEL(v), task.x))(block)
        each = densities.bernoulli_log_likelihood(logits, jnp.broadcast_to(task.y, logits.shape))
        return jnp.cumsum(each, axis=1)

    log_likelihood = jax.lax.map(of_block, w.reshape(-1, BLOCK, SIZE)).reshape(len(w), -1)
    log_likelihood = jnp.concatenate([jnp.zeros((len(w), 1)), log_likelihood], axis=1)

    def of_size(size):
        with mixed_types():
            log_weights, pareto_k = psis_weights(log_likelihood[:, size])
        weights = jnp.exp(log_weights - log_weights.max())
        weights = weights / weights.sum()
        at = (jnp.arange(NUM_CHOSEN) + 0.5) / NUM_CHOSEN  # systematic resampling
        chosen = w[jnp.clip(jnp.searchsorted(jnp.cumsum(weights), at), 0, len(w) - 1)]
        f = jax.vmap(lambda v: NETWORK.apply(UNRAVEL(v), x_test))(chosen)
        p = jax.nn.sigmoid(f).mean(axis=0)
        return p, pareto_k, 1 / (weights**2).sum()

    return [jnp.stack(values) for values in zip(*[of_size(size) for size in sizes], strict=True)]
