"""Priors learnt from eighteen tasks, given to networks on tasks never seen: redrawn data, every
arm, every size.

One redraw: eighteen training tasks, the hierarchical posterior, its draws aligned, priors fitted to
the networks of a task not yet seen, and eighteen new tasks on which every arm sees the same labels.
Every prior whose networks are sampled is a normal, and chains move in the coordinates in which it
is N(0, 1). Where the prior is a mixture or the draws themselves, importance weights replace chains.

The chosen scales are those that the book chose at fifty labels, on the sources' tasks: the stored
``flat_bnn/prior_scale``.
"""

from helpers import common, densities, diagnostics, mcmc
from helpers.common import take

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.engine import headlines
from experiments.methods import (
    joint_fits,
    learnt_group,
    point_estimates,
    runs,
    scoring,
    weighted_networks,
)
from experiments.problems import moons_redrawn, new_tasks

SETTINGS = {
    **learnt_group.SETTINGS,
    "num_redraws": 5,
    "num_tasks": new_tasks.NUM_TASKS,
    "num_test": new_tasks.NUM_TEST,
    "sizes": [0, 2, 5, 10, 25, 50],
    "more_sizes": [100, 200, 400],
    "joint_sizes": [5, 25],
    "copies": 80,  # networks drawn from every draw of the group, for importance weights
    "num_warmup": 300,
    "num_samples": 1000,
    "thin": 4,  # of draws that predict and are kept
    "joint": {"num_warmup": 200, "num_samples": 600},
    "num_starts": 4,  # of point estimates
}
NEW_SIZES, FEW_SIZES = SETTINGS["sizes"], SETTINGS["joint_sizes"]
NORMALS = (
    "N(0, 1)",
    "chosen scales",
    "scales only",
    "a normal a layer",
    "one normal",
    "one normal, not aligned",
)
WEIGHED = ("mixture", "the draws themselves")
JOINT = ("joint fit, one new task", "joint fit, all new tasks")
POINTS = ("fine-tuning", "first-order MAML")
TRIED_ELSEWHERE = ("N(0, 1)", "chosen scales", "one normal")
THINNED = np.s_[:, :, :: SETTINGS["thin"]]
OF_LABELS = densities.label_log_likelihood(learnt_group.NETWORK)


def units():
    """An arm on one kind of tasks in one redraw each; redraw by redraw, since they share the
    group.
    """
    scales = {"N(0, 1)": [1.0, 1.0, 1.0], "chosen scales": headlines.chosen_network()["scales"]}
    wanted = [("moons", "Bayes optimum", [0])]
    wanted += [("moons", name, NEW_SIZES) for name in (*NORMALS, *WEIGHED)]
    wanted += [("moons", name, FEW_SIZES) for name in JOINT] + [
        ("moons", name, NEW_SIZES) for name in POINTS
    ]
    wanted += [("moons, more labels", "N(0, 1)", SETTINGS["more_sizes"]), ("training", "fits", [])]
    wanted += [(kind, name, FEW_SIZES) for kind in new_tasks.ELSEWHERE for name in TRIED_ELSEWHERE]
    places = [(*one, i) for i in range(SETTINGS["num_redraws"]) for one in wanted]
    places += [("moons, sources", name, FEW_SIZES, "sources") for name in ("N(0, 1)", "one normal")]
    return {
        f"{kind}: {name}, {i}": setting(kind, name, sizes, i, scales=scales.get(name))
        for kind, name, sizes, i in places
    }


def setting(kind, name, sizes, redraw, reference="one draw", scales=None):
    """Return a unit's setting: ``reference`` is what draws of the group are aligned to, ``scales``
    replace them.
    """
    drawn = {"reference": reference, "scales": scales, "group_draws": SETTINGS["group_draws"]}
    return {"kind": kind, "name": name, "redraw": redraw, "sizes": sizes, **drawn}


SMALL = setting("moons", JOINT[1], [5], 0) | {"group_draws": 100}


def unit(kind, name, redraw, sizes, reference, scales, group_draws):
    """Fit one arm to one kind of tasks."""
    new, key = new_tasks.new(kind, redraw), common.key(SETTINGS["seed"], kind, name, redraw)
    if name == "Bayes optimum":
        return {"p": moons_redrawn.optimum(new)[None, :, None]}
    if name in NORMALS:
        return sampled(key, normal(name, redraw, reference, scales, group_draws), new, sizes)
    if name == POINTS[1]:
        return point_estimates.maml(
            jax.random.split(key, SETTINGS["num_starts"]), new_tasks.training(redraw), new, sizes
        )
    found = learnt_group.posterior(redraw, group_draws)
    if name == POINTS[0]:
        starts = [
            learnt_group.densest(take(found.draws, i), d)
            for i, d in enumerate(found.stats.log_density)
        ]
        return point_estimates.fine_tuning(
            [{"params": one["mean"]} for one in starts], new_tasks.training(redraw), new, sizes
        )
    if name in JOINT:
        observed = new_tasks.first_labels(new, sizes)
        posterior = joint_fits.sample(
            key,
            found.draws,
            new_tasks.training(redraw),
            observed,
            name == JOINT[1],
            **SETTINGS["joint"],
        )
        thinned = posterior._replace(draws=take(posterior.draws, THINNED))
        return with_run(joint_fits.networks_of(thinned, len(sizes), name == JOINT[1]), posterior)
    if name == "fits":
        return learnt_group.fitted(redraw, group_draws, reference)
    if name == "mixture":
        w = learnt_group.predictive(redraw, group_draws, reference)
        count = SETTINGS["copies"] * group_draws
        networks = learnt_group.best_mixture(w).sample((SETTINGS["num_chains"], count), seed=key)
    else:
        networks = weighted_networks.of_the_group(key, found.draws, SETTINGS["copies"])
    return weighted_networks.weigh(
        networks, densities.observe(new.x_train, new.y_train), new.x_test, sizes
    )


def normal(name, redraw, reference, scales, group_draws):
    """Return mean and triangular factor of a normal prior."""
    if scales is not None:
        return np.zeros(learnt_group.SIZE, np.float32), np.diag(
            np.float32(scales)[learnt_group.LAYER]
        )
    fit, _, raw = name.partition(", ")
    w = learnt_group.predictive(redraw, group_draws, "none" if raw else reference)
    prior = learnt_group.FITS[fit](w.reshape(-1, learnt_group.SIZE))
    return np.asarray(prior.mean()), np.asarray(prior.scale.to_dense())


def log_density(position, observed, prior):
    """Log posterior of weights ``location + factor @ position`` under the prior N(location, factor
    factor').
    """
    location, factor = prior
    of_labels = OF_LABELS(learnt_group.UNRAVEL(location + factor @ position), observed).sum()
    return tfd.Normal(0.0, 1.0).log_prob(position).sum() + of_labels


def sampled(key, prior, new, sizes):
    """Sample every task at every size under one prior: networks [size, task, chain, draw,
    weight].
    """
    key_start, key_chains = jax.random.split(key)
    observed = jax.tree.map(
        lambda a: a.reshape(-1, *a.shape[2:]), new_tasks.first_labels(new, sizes)
    )
    batch = (len(observed.y), SETTINGS["num_chains"])
    starts = mcmc.normal_starts(
        key_start, jax.ShapeDtypeStruct((learnt_group.SIZE,), jnp.float32), batch
    )
    lengths = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
    posterior = mcmc.sample(key_chains, log_density, starts, tasks=observed, data=prior, **lengths)
    location, factor = prior
    w = location + np.asarray(posterior.draws[THINNED]) @ factor.T
    return with_run(w.reshape(len(sizes), -1, *w.shape[1:]), posterior)


def with_run(w, posterior):
    """Return what is kept of a run: its networks [size, task, chain, draw, weight] and its
    statistics.
    """
    return {"w": w, **runs.kept_run(posterior)}


def score(drawn, kind, name, redraw, sizes, scales, **_):
    """Scores by size, and what tells whether they can be trusted."""
    of = {"tasks": kind, "name": name, "sizes": sizes} | ({"scales": scales} if scales else {})
    if name == "fits":
        return of | learnt_group.score(drawn)
    new = new_tasks.new(kind, redraw)
    y = np.asarray(new.y_test)
    if "w" in drawn:
        p = [np.asarray(_probabilities(w, new.x_test)) for w in drawn["w"]]
        found, checks = [scoring.scored(one, y) for one in p], check_of_sampled(drawn, p)
    elif name in POINTS:
        found = [scoring.scored_starts(one, y) for one in drawn["p"]]
        checks = {part: drawn[part].tolist() for part in ("steps", "rate") if part in drawn}
    else:  # the same networks predict all tasks, so it is their parts that are independent
        found, checks = (
            [scoring.scored_parts(np.moveaxis(one, 1, 0), y) for one in drawn["p"]],
            {},
        )
    if "pareto_k" in drawn:
        checks["pareto_k_above_0.7"] = (drawn["pareto_k"] > 0.7).mean(axis=(1, 2)).tolist()
        checks["least_ess"] = drawn["ess"].min(axis=(1, 2)).tolist()
    return of | {
        "scores": {part: [one[part] for one in found] for part in found[0]},
        "checks": checks,
    }


@jax.jit
def _probabilities(w, x):
    """Return probabilities [chain, draw, task, point] of networks [task, chain, draw, weight]."""

    def one_task(pair):
        w, x = pair
        return jax.nn.sigmoid(
            jax.vmap(jax.vmap(lambda v: learnt_group.NETWORK.apply(learnt_group.UNRAVEL(v), x)))(w)
        )

    return jnp.moveaxis(jax.lax.map(one_task, (w, x)), 0, 2)


def check_of_sampled(drawn, p):
    """Check all posteriors of an arm at five points of each task; R-hat of the log density also by
    its quantile.
    """
    # [size, chain, draw, task, point]
    some = np.stack([one[..., :: one.shape[-1] // 5] for one in p])
    log_density = drawn["stats"]["log_density"]
    if len(log_density) > len(p):  # every task is a posterior of its own
        some = np.moveaxis(some, 3, 1)
        some = some.reshape(-1, *some.shape[2:])
    check = runs.diagnosis(runs.run_from(drawn), some)
    rhat = diagnostics.summarize(np.moveaxis(log_density, 0, 2)).rhat
    return check | {"rhat_log_density": float(np.quantile(rhat, 0.95))}


def rows(scored):
    """A row for each arm on each kind of tasks, with entries over redraws."""
    found = {}
    for one in scored.values():
        own = {key: value for key, value in one.items() if key not in ("scores", "checks")}
        row = found.setdefault((one["tasks"], one["name"]), {**own, "scores": [], "checks": []})
        row["scores"].append(one["scores"])
        row["checks"].append(one["checks"])
    return list(found.values())
