"""What the experiments on redrawn data share: data, fits and the rows they store."""

from helpers import data, densities, diagnostics, hierarchical, mcmc, metrics, networks

import jax
import jax.numpy as jnp
import numpy as np

NETWORK = networks.MLP()
FLAT = densities.flat_log_density(NETWORK)
CHAINS = 2
OUTPUT_SPECIAL = {"Dense_0": -3.0, "Dense_1": -3.0, "Dense_2": 1.0}  # log sd where the output layer specialises


def redraws(key, num_redraws, **settings):
    """Draw data sets of rotated moons, leading axis [redraw]."""
    return jax.vmap(lambda k: data.rotated_moons(k, num_test=500, **settings))(jax.random.split(key, num_redraws))


def fit_flat(key, x, y, scales, num_samples=200, chains=CHAINS):
    """Fit each task alone; x [..., point, 2]. Return draws [unit, chain, draw] and log densities."""
    key_start, key_chains = jax.random.split(key)
    x, y = x.reshape(-1, *x.shape[-2:]), y.reshape(-1, y.shape[-1])
    weights = jax.eval_shape(NETWORK.init, key, x[0])
    starts = mcmc.normal_starts(key_start, weights, (len(x), chains))
    observed = densities.observe(x, y, scales)
    posterior = mcmc.sample(
        key_chains, FLAT, starts, num_warmup=150, num_samples=num_samples, max_tree_depth=6, data=observed
    )
    return posterior


@jax.jit
def flat_means(draws, x):
    """Mean probability of every chain, [unit, chain, point]."""

    def one_chain(pair):
        draws, x = pair
        return jax.nn.sigmoid(jax.vmap(lambda w: NETWORK.apply(w, x))(draws)).mean(axis=0)

    return jax.lax.map(lambda pair: jax.lax.map(lambda d: one_chain((d, pair[1])), pair[0]), (draws, x))


def fit_hierarchical(key, log_density, shapes, labelled, centre=OUTPUT_SPECIAL, num_samples=300, chains=CHAINS):
    """Fit all tasks of every redraw, two chains each.

    Starts are N(0, 1), log standard deviations N(centre, 1/2): there are modes between which no
    chain passes, and what is stored of each chain tells which one it reached.
    """
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(key_start, shapes, (labelled.y.shape[0], chains))
    if "log_sd" in starts:
        starts["log_sd"] = {
            name: jax.tree.map(lambda a, c=centre[name]: c + 0.5 * a, part) for name, part in starts["log_sd"].items()
        }
    return mcmc.sample(
        key_chains, log_density, starts, num_warmup=200, num_samples=num_samples, max_tree_depth=6, data=labelled
    )


def hierarchical_means(posterior, x, logits, thin=3):
    """Mean probability of every chain, [redraw, chain, task, point], from every third draw."""

    @jax.jit
    def means(draws, x):
        def one_chain(draws, x):
            total = jax.lax.scan(
                lambda total, position: (total + jax.nn.sigmoid(logits(position, x)), None),
                jnp.zeros(x.shape[:-1]),
                draws,
            )[0]
            return total / jax.tree.leaves(draws)[0].shape[0]

        return jax.lax.map(lambda pair: jax.lax.map(lambda d: one_chain(d, pair[1]), pair[0]), (draws, x))

    return means(jax.tree.map(lambda a: a[:, :, ::thin], posterior.draws), x)


def task_nll(p, y):
    """Return the NLL of every task, [redraw, task]."""
    return -np.log(np.where(np.asarray(y) == 1, p, 1 - np.asarray(p))).mean(axis=-1)


def row(name, p_chains, y, posterior=None, **more):
    """Return what is stored of one arm: scores of every redraw, and the sampler's error.

    ``p_chains`` is [redraw, chain, task, point]; the sampler's error is the standard error of the
    mean of the chains' own NLLs, by redraw.
    """
    p_chains = np.asarray(p_chains, dtype=np.float64)
    p = p_chains.mean(axis=1)
    y = np.asarray(y)
    by_chain = np.stack([task_nll(p_chains[:, c], y).mean(axis=1) for c in range(p_chains.shape[1])], axis=1)
    kept = {
        "name": name,
        "nll": task_nll(p, y).mean(axis=1).tolist(),
        "accuracy": (100 * ((p > 0.5) == (y == 1)).mean(axis=(1, 2))).tolist(),
        "brier": ((p - y) ** 2).mean(axis=(1, 2)).tolist(),
        "calibration_error": [
            float(metrics.calibration_error(jnp.asarray(a, jnp.float32), jnp.asarray(b)).error)
            for a, b in zip(p, y, strict=True)
        ],
        "nll_by_chain": by_chain.tolist(),
        "sampler": {} if posterior is None else sampler(posterior),
        "more": more,
    }
    sds = {k: np.round(np.mean(v), 2).tolist() for k, v in kept["sampler"].get("sd_by_chain", {}).items()}
    print(f"{name}: NLL {np.mean(kept['nll']):.4f}, accuracy {np.mean(kept['accuracy']):.2f}", sds, flush=True)
    return kept


def sampler(posterior):
    """Diagnostics of every redraw of a hierarchical fit, and its layers' group standard deviations.

    Where each weight has its own, the geometric mean over the layer's.
    """
    medians = {}
    for name, part in posterior.draws["log_sd"].items():
        log_sd = jnp.concatenate([leaf.reshape(*leaf.shape[:3], -1) for leaf in jax.tree.leaves(part)], axis=3)
        medians[name] = np.exp(np.median(log_sd.mean(axis=3), axis=2))
    rhat = [float(diagnostics.summarize(density).rhat[0]) for density in posterior.stats.log_density]
    return {
        "sd_by_chain": {name: a.tolist() for name, a in medians.items()},
        "rhat_log_density": rhat,
        "divergences": np.asarray(posterior.stats.diverging.sum(axis=(1, 2))).tolist(),
    }


def stack_labelled(x, y, weight=1.0):
    """Check every redraw's tasks and stack them, leading axis [redraw]."""
    weight = jnp.broadcast_to(jnp.asarray(weight, jnp.float32), y.shape)
    parts = [hierarchical.labelled(*one) for one in zip(x, y, weight, strict=True)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)
