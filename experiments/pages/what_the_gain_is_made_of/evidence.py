"""Do the evidence, its part from the later labels, and cross-validation rank one grid of scales
alike?

Flat networks, each task alone, one triple of scales for all tasks. Tempered SMC, as in
``hierarchical_bnn/masses``, brings particles of the prior to the posterior of the first 25 labels
of a task and on to that of all 50. So each run gives the evidence of the first labels, the
predictive density of the later ones given these, and predictions at the test points, which choose
nothing. Labels come in random order, so any 25 may be the first. Cross-validation of the same
triples on the same data sets is stored in ``what_the_gain_is_made_of/arms``.

On one data set three triples are done by another way, too: chains at fixed powers, and bridge
sampling.
"""

from helpers import common, densities, mcmc, networks, smc
from helpers.common import take

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.smc import resampling

from experiments.methods import evidence_estimates, network_fits, region_masses, scoring
from experiments.pages.what_the_gain_is_made_of import arms
from experiments.problems import moons_redrawn

SETTINGS = {
    "seed": 3015,
    "num_redraws": 6,
    "num_tasks": 18,
    "num_runs": 2,
    "particles": 100,
    "num_first": 25,  # labels of a task
    # Those of ``arms``, and four with smaller output scales, as it was seen on another data set
    # that evidence might like them; of these there is no cross-validation.
    "triples": [*arms.TRIPLES, [0.25, 2.0, 6.0], [0.5, 1.0, 6.0], [0.5, 2.0, 6.0], [0.5, 2.0, 3.0]],
    "bridged": [[0.25, 1.0, 12.0], [0.5, 1.0, 24.0], [0.5, 1.0, 48.0]],
    # first labels, later ones
    "powers": [[0.0, 0.01, 0.03, 0.08, 0.2, 0.4, 0.7, 1.0], [0.0, 0.15, 0.4, 0.7, 1.0]],
    "chains": {"num_chains": 2, "num_warmup": 150, "num_samples": 240, "max_tree_depth": 7},
}
SHAPES = networks.parameter_shapes(moons_redrawn.NETWORK, 2)
PARTS = np.s_[: SETTINGS["num_first"]], np.s_[SETTINGS["num_first"] :]


def units():
    """A data set each, and one more of chains at fixed powers."""
    sizes = {
        "num_tasks": SETTINGS["num_tasks"],
        "num_runs": SETTINGS["num_runs"],
        "triples": SETTINGS["triples"],
    }
    of_chains = {
        "redraw": 0,
        "num_tasks": SETTINGS["num_tasks"],
        "num_runs": 0,
        "triples": SETTINGS["bridged"],
    }
    each = {f"redraw {i}": {"redraw": i, **sizes} for i in range(SETTINGS["num_redraws"])}
    return each | {"redraw 0, bridged": of_chains}


SMALL = {
    "redraw": 0,
    "num_tasks": 18,
    "num_runs": 2,
    "triples": [[0.25, 1.0, 12.0], [0.5, 1.0, 48.0]],
}


def unit(redraw, num_tasks, num_runs, triples):
    """Return what was found of triples, [triple]; without runs, by chains and bridges."""
    tasks = moons_redrawn.drawn(redraw, num_tasks=num_tasks)
    each = []
    for scales in triples:
        key = common.key(SETTINGS["seed"], redraw, *scales, "runs" if num_runs else "chains")
        each.append(
            of_runs(key, tasks, scales, num_runs) if num_runs else of_chains(key, tasks, scales)
        )
    return jax.tree.map(lambda *leaves: np.stack(leaves), *each)


def of_runs(key, tasks, scales, num_runs):
    """Return two parts of the log evidence, powers, p at test points, each [run, task]."""
    observed = densities.observe(tasks.x_train, tasks.y_train, scales)
    keys = jax.random.split(key, (num_runs, len(observed.y)))
    return jax.tree.map(np.asarray, followed(keys, observed, tasks.x_test))


@jax.jit
def followed(keys, observed, x):
    """Follow particles of runs and tasks in turn: the adaptive loops differ in length."""

    def one_run(keys):
        return jax.lax.map(lambda given: of_task(*given), (keys, observed, x))

    return jax.lax.map(one_run, keys)


def of_task(key, task, x):
    """Follow particles from the prior to the first labels' posterior, then to that of all."""
    first, later = (part_of(task, part) for part in PARTS)
    keys = jax.random.split(key, 4)
    particles = mcmc.normal_starts(keys[0], SHAPES, (SETTINGS["particles"],))
    state, of_first = smc.anneal(keys[1], particles, log_prior, first)
    kept = take(
        state.particles, resampling.systematic(keys[2], state.weights, SETTINGS["particles"])
    )
    state, of_later = smc.anneal(
        keys[3], kept, lambda position: log_prior(position) + first(position), later
    )
    p = jax.nn.sigmoid(
        jax.vmap(lambda one: moons_redrawn.NETWORK.apply(scaled(one, task.prior_scales), x))(
            state.particles
        )
    )
    return {
        "log_evidence": jnp.stack([last(of_first), last(of_later)]),
        "number": jnp.stack([of_first["number"], of_later["number"]]),
        "power": last(of_first, "powers") * last(of_later, "powers"),
        "p": state.weights @ p,
    }


def log_prior(position):
    """Log density, up to a constant, of N(0, 1) weights: scales are in the likelihood."""
    return -0.5 * jnp.stack([jnp.square(a).sum() for a in jax.tree.leaves(position)]).sum()


def scaled(position, scales):
    """Return the network's parameters: standard normal weights times the scale of their layer."""
    layers = position["params"]
    return {
        "params": {
            f"Dense_{i}": jax.tree.map(lambda a, i=i: scales[i] * a, layers[f"Dense_{i}"])
            for i in range(len(layers))
        }
    }


def part_of(task, part):
    """Return the log likelihood of a part of a task's labels, of N(0, 1) weights."""
    seen = task._replace(x=task.x[part], y=task.y[part], weight=task.weight[part])
    return lambda position: moons_redrawn.OF_LABELS(scaled(position, task.prior_scales), seen).sum()


def last(found, name="log_evidence"):
    """Return the last entry of a run's path."""
    return found[name][found["number"] - 1]


def of_chains(key, tasks, scales):
    """Return log likelihoods of both parts, [part, power, task, chain, draw], by chains."""
    on_first, on_later = SETTINGS["powers"]
    weights = np.zeros((len(on_first) + len(on_later) - 1, tasks.y_train.shape[1]))
    weights[:, PARTS[0]] = np.append(on_first, np.ones(len(on_later) - 1))[:, None]
    weights[len(on_first) :, PARTS[1]] = np.array(on_later[1:])[:, None]
    num_powers, num_tasks = len(weights), len(tasks.y_train)
    x, y = (np.tile(a, (num_powers, *[1] * (a.ndim - 1))) for a in (tasks.x_train, tasks.y_train))
    observed = densities.observe(x, y, scales, weight=np.repeat(weights, num_tasks, axis=0))
    fit = network_fits.fit_flat(key, observed, **SETTINGS["chains"])
    values = np.asarray(
        of_labels(fit.draws, observed._replace(weight=jnp.ones_like(observed.weight)))
    )
    values = values.reshape(num_powers, num_tasks, *values.shape[1:])
    first, later = (values[..., part].sum(axis=-1) for part in PARTS)
    return {"first": first[: len(on_first)], "later": later[len(on_first) - 1 :]}


@jax.jit
def of_labels(draws, observed):
    """Return log likelihoods of labels, [task, chain, draw, label]."""
    each = jax.vmap(jax.vmap(moons_redrawn.OF_LABELS, (0, None)), (0, None))
    return jax.lax.map(lambda given: each(*given), (draws, observed))


def score(drawn, redraw, num_tasks, num_runs, triples):
    """Log evidence of first labels, of later ones given these, sums over tasks; errors.

    ValueError: a run that does not reach power 1, or is not finite.
    """
    about = {"redraw": redraw, "triples": triples}
    if not num_runs:
        return about | bridged(drawn)
    each = drawn["log_evidence"].astype(np.float64)  # [triple, run, task, part]
    if not (drawn["power"] == 1).all() or not np.isfinite(each).all():
        lost = np.count_nonzero((drawn["power"] != 1) | ~np.isfinite(each).all(axis=-1))
        raise ValueError(
            f"runs: given {lost} that do not end at power 1 or are not finite, expected none"
        )
    found = about | parts_of_runs(each[..., 0], each.sum(axis=-1))
    y, p = np.asarray(moons_redrawn.drawn(redraw, num_tasks=num_tasks).y_test), drawn["p"]
    by_run = np.array(
        [
            [[nll(*pair) for pair in zip(run, y, strict=True)] for run in of_triple]
            for of_triple in p
        ]
    )
    return found | {
        "nll": [nll(of_triple.mean(axis=0), y) for of_triple in p],
        "nll_error": (spread(by_run) / num_tasks).tolist(),
        "number_of_powers": drawn["number"].mean(axis=(1, 2)).tolist(),
    }


def parts_of_runs(first, both):
    """Return the parts of the evidence, summed over tasks, of log evidence [triple, run, task]."""
    of_first, of_both = (
        region_masses.log_mean(first.swapaxes(0, 1)),
        region_masses.log_mean(both.swapaxes(0, 1)),
    )
    return {
        "first": of_first.sum(axis=-1).tolist(),
        "first_error": spread(first).tolist(),
        "later": (of_both - of_first).sum(axis=-1).tolist(),
        "later_error": spread(both - first).tolist(),
        "all": of_both.sum(axis=-1).tolist(),
        "all_error": spread(both).tolist(),
    }


def spread(values):
    """Standard error of a sum over tasks of means over runs, [triple, run, task]."""
    return np.sqrt((values.var(axis=1, ddof=1) / values.shape[1]).sum(axis=-1))


def nll(p, y):
    """Return the mean NLL of labels."""
    return scoring.score_of(p, y)["nll"]


def bridged(drawn):
    """Return parts of the evidence by bridge sampling, summed over tasks, with errors."""
    found = {}
    for part, powers in zip(("first", "later"), SETTINGS["powers"], strict=True):
        of_part = drawn[part].transpose(0, 2, 1, 3, 4)  # [triple, task, power, chain, draw]
        found[part] = [sum(bridge(one, powers) for one in of_triple) for of_triple in of_part]
        errors = [
            [evidence_estimates.log_evidence_error(one, powers) for one in of_triple]
            for of_triple in of_part
        ]
        found[f"{part}_error"] = np.linalg.norm(errors, axis=1).tolist()
    return found


def bridge(values, powers):
    """Return the log evidence of one task by all draws, [power, chain, draw]."""
    return evidence_estimates.log_evidence(values.reshape(len(values), -1), powers)


def rows(scored):
    """A row a data set, and one of the three triples by bridges."""
    return [{"name": name, **one} for name, one in scored.items()]
