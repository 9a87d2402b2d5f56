"""What the experiments on redrawn data share: data by name, fits of networks, scores with their
errors, rows.

Data set i has the key of the name ("data", i) in all of them, so that arms of different experiments
pair.
"""

from helpers import data, densities, diagnostics, hierarchical, mcmc, metrics, networks
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import shared

SEED = 3001  # of the data
NUM_TEST = 500
NUM_CHAINS = 4
NETWORK = networks.MLP()
FLAT = densities.flat_log_density(NETWORK)
HIERARCHICAL, LOGITS = hierarchical.log_density(NETWORK), hierarchical.logits(NETWORK)
# A chain that starts in a mode of little mass leaves it where the likelihood has this power: page
# `modes`.
TEMPERED = {"power": 0.8, "num_started": NUM_CHAINS, "num_warmup": 300, "num_samples": 300}
NAMES = {
    "nll": "NLL",
    "accuracy": "accuracy %",
    "brier": "Brier",
    "calibration_error": "calibration error",
}
LEAST = 1e-7  # probability: in single precision a certain network has a label at 0


def drawn(*names, num_tasks=18, num_train=50, noise=0.3):
    """Draw a data set of rotated moons by its name."""
    return _rotated_moons(shared.key(SEED, "data", *names), num_tasks, num_train, NUM_TEST, noise)


_rotated_moons = jax.jit(data.rotated_moons, static_argnums=range(1, 5))
optimum = jax.jit(lambda tasks: data.bayes_optimum(tasks, tasks.x_test))


def fit_flat(key, observed, num_chains=NUM_CHAINS, **sizes):
    """Fit each task alone, by chains from N(0, 1)."""
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(
        key_start, networks.parameter_shapes(NETWORK, 2), (len(observed.y), num_chains)
    )
    return mcmc.sample(key_chains, FLAT, starts, tasks=observed, **sizes)


def fit_hierarchical(key, log_density, shapes, observed, centre=None, tempered=TEMPERED, **sizes):
    """Fit all tasks of a data set together: chains from N(0, 1), none left out.

    There are modes between which chains seldom pass, so chains spend a stage at a lower power of
    the likelihood first. Given a centre, they start without it, log standard deviations from
    N(centre, 1/4). What is stored of each chain tells where it is.
    """
    key_start, key_chains = jax.random.split(key)
    if centre is None:
        starts = shared.tempered_starts(key_start, log_density, shapes, observed, **tempered)
    else:
        starts = mcmc.normal_starts(key_start, shapes, (NUM_CHAINS,))
        for name, at in centre.items():
            starts["log_sd"][name] = jax.tree.map(
                lambda a, at=at: at + 0.5 * a, starts["log_sd"][name]
            )
    return mcmc.sample(key_chains, log_density, starts, data=observed, **sizes)


def kept(posterior, most=400):
    """Return what is kept of a run: at most so many draws a chain, all statistics, and what warm-up
    learnt.
    """
    shape = posterior.stats.log_density.shape
    thinned = (*[slice(None)] * (len(shape) - 1), slice(None, None, max(1, shape[-1] // most)))
    draws = {
        name: part for name, part in take(posterior.draws, thinned).items() if jax.tree.leaves(part)
    }
    return {"draws": draws, **shared.kept_of(posterior)}


@jax.jit
def flat_probabilities(draws, x):
    """Return probabilities [chain, draw, task, point] of draws [task, chain, draw] at points [task,
    point, 2].
    """

    def one_task(pair):
        draws, x = pair
        return jax.nn.sigmoid(jax.vmap(jax.vmap(lambda weights: NETWORK.apply(weights, x)))(draws))

    return jnp.moveaxis(jax.lax.map(one_task, (draws, x)), 0, 2)


@partial(jax.jit, static_argnums=0)
def probabilities(logits, draws, x):
    """Return probabilities [chain, draw, task, point] of draws [chain, draw] of ``logits(position,
    x)``.
    """
    return jax.lax.map(
        lambda chain: jax.lax.map(lambda one: jax.nn.sigmoid(logits(one, x)), chain), draws
    )


def score_of(p, y):
    """Return the four scores of one prediction, p and y of any one shape."""
    found = metrics.scores(np.clip(np.asarray(p, np.float64), LEAST, 1 - LEAST), np.asarray(y))
    return {name: found[of] for name, of in NAMES.items()}


def scored_parts(parts, y, score=score_of):
    """Score the mean of independent predictions of the same thing, [part, *point], by the four
    scores of one.

    Errors are the jackknife's: each part is left out in turn; that of the accuracy is no less than
    one point. Of one part alone there is none.
    """
    parts = np.asarray(parts, np.float64)
    total, others = parts.sum(axis=0), len(parts) - 1
    without = [score((total - part) / others, y) for part in parts if others]
    errors = {
        name: np.sqrt(others) * np.std([one[name] for one in without]) if others else 0.0
        for name in NAMES
    }
    errors["accuracy"] = np.hypot(errors["accuracy"], 100 / np.size(y) if others else 0.0)
    errors = {f"{name}_error": float(error) for name, error in errors.items()}
    alone = [score(part, y)["nll"] for part in parts]
    return score(parts.mean(axis=0), y) | errors | {"nll_by_chain": alone}


def scored(p, y):
    """Score the mean of all draws, p [chain, draw, *point].

    The error of the NLL is known from the draws; of the others it is the jackknife's over half
    chains.
    """
    p = np.clip(np.asarray(p, np.float64), LEAST, 1 - LEAST)
    halves = [half.mean(axis=0) for chain in p for half in np.array_split(chain, 2)]
    found = scored_parts(halves, y)
    of_chains = [score_of(chain.mean(axis=0), y)["nll"] for chain in p]
    return found | {"nll_error": diagnostics.nll_error(p, y), "nll_by_chain": of_chains}


def scored_starts(p, y, score=score_of):
    """Score optimised networks, p [start, *point]: means over starts, each scored alone, and their
    standard errors.
    """
    each = [score(one, y) for one in p]
    of = {name: [one[name] for one in each] for name in NAMES}
    means = {name: float(np.mean(values)) for name, values in of.items()}
    errors = {f"{name}_error": float(np.std(v, ddof=1) / np.sqrt(len(v))) for name, v in of.items()}
    return means | errors | {"nll_by_chain": of["nll"]}


def of_layers(log_sd):
    """Return log standard deviations by layer, [chain, draw]: where each weight has its own, their
    mean.

    Weights trade places between copies of a network, so that only what all of a layer have in
    common can mix.
    """
    found = {}
    for name, part in log_sd.items():
        leaves = [np.reshape(leaf, (*np.shape(leaf)[:2], -1)) for leaf in jax.tree.leaves(part)]
        found[name] = np.concatenate(leaves, axis=2).mean(axis=2)
    return found


def checked(drawn, p, **others):
    """Return the check of a run by p [chain, draw, task, point] at five points of each task.

    Of independent tasks it is of [task, chain, draw].
    """
    some = p[..., :: max(1, p.shape[-1] // 5)][..., :5]
    if drawn["stats"]["log_density"].ndim == 3:
        some = np.moveaxis(some, 2, 0)
    return shared.diagnosed(shared.run_of(drawn), some, **others)


def with_sampler(drawn, p, y):
    """Score all draws of a hierarchical fit; the median standard deviations of its layers, and its
    check.
    """
    log_sd = of_layers(drawn["draws"]["log_sd"])
    check = checked(drawn, p, log_sd=log_sd)
    sampler = {
        "sd_by_chain": {
            name: np.exp(np.median(part, axis=1)).tolist() for name, part in log_sd.items()
        },
        "rhat_log_density": check["rhat"]["log density"],
        "divergences": check["divergences"],
    }
    return scored(p, y) | {"sampler": sampler, "check": check}


def row(name, scores):
    """Return the row of an arm from its scores of each data set: lists over data sets, however deep
    they stand.
    """
    checks = {"check": [one["check"] for one in scores]} if "check" in scores[0] else {}
    rest = [{key: value for key, value in one.items() if key != "check"} for one in scores]
    return {"name": name, "sampler": {}, "more": {}} | _joined(rest) | checks


def _joined(parts):
    if not isinstance(parts[0], dict):
        return parts
    return {key: _joined([part[key] for part in parts]) for key in parts[0]}
