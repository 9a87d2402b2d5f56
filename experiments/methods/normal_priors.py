"""Networks sampled under one normal prior, task by task, in the coordinates in which it is
N(0, 1).
"""

from helpers import densities, diagnostics, mcmc

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import learnt_group, runs
from experiments.problems import new_tasks

OF_LABELS = densities.label_log_likelihood(learnt_group.NETWORK)


def log_density(position, observed, prior):
    """Log posterior of weights ``location + factor @ position`` under the prior N(location, factor
    factor').
    """
    location, factor = prior
    of_labels = OF_LABELS(learnt_group.UNRAVEL(location + factor @ position), observed).sum()
    return tfd.Normal(0.0, 1.0).log_prob(position).sum() + of_labels


def sampled(key, prior, new, sizes, num_chains, thin, **lengths):
    """Sample every task at every size under one prior, mean and triangular factor, and return what
    is kept: of every chain's networks one in ``thin``.
    """
    key_start, key_chains = jax.random.split(key)
    first = new_tasks.first_labels(new, sizes)
    observed = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), first)
    batch = (len(observed.y), num_chains)
    position = jax.ShapeDtypeStruct((learnt_group.SIZE,), jnp.float32)
    starts = mcmc.normal_starts(key_start, position, batch)
    posterior = mcmc.sample(key_chains, log_density, starts, tasks=observed, data=prior, **lengths)
    location, factor = prior
    w = location + np.asarray(posterior.draws[:, :, ::thin]) @ factor.T
    return kept(w.reshape(len(sizes), -1, *w.shape[1:]), posterior)


def kept(w, posterior):
    """Return what is kept of a run: its networks [size, task, chain, draw, weight] and its
    statistics.
    """
    return {"w": w, **runs.kept_run(posterior)}


@jax.jit
def probabilities(w, x):
    """Return probabilities [chain, draw, task, point] of networks [task, chain, draw, weight]."""

    def one_task(pair):
        w, x = pair
        return jax.nn.sigmoid(
            jax.vmap(jax.vmap(lambda v: learnt_group.NETWORK.apply(learnt_group.UNRAVEL(v), x)))(w)
        )

    return jnp.moveaxis(jax.lax.map(one_task, (w, x)), 0, 2)


def check(drawn, p):
    """Check all posteriors of an arm at five points of each task; R-hat of the log density also by
    its quantile.
    """
    # [size, chain, draw, task, point]
    some = np.stack([one[..., :: one.shape[-1] // 5] for one in p])
    log_density = drawn["stats"]["log_density"]
    if len(log_density) > len(p):  # every task is a posterior of its own
        some = np.moveaxis(some, 3, 1)
        some = some.reshape(-1, *some.shape[2:])
    found = runs.diagnosis(runs.run_from(drawn), some)
    rhat = diagnostics.summarize(np.moveaxis(log_density, 0, 2)).rhat
    return found | {"rhat_log_density": float(np.quantile(rhat, 0.95))}
