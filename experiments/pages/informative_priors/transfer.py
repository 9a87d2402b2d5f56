"""Priors learnt from eighteen tasks, given to networks on tasks never seen: redrawn data, every
arm, every size.

One redraw: eighteen training tasks, the hierarchical posterior, its draws aligned, priors fitted to
the networks of a task not yet seen, and eighteen new tasks on which every arm sees the same labels.
Draws are aligned to one of them and to their own mean; where that makes another prior, rows tell
their ``reference``. Every prior whose networks are sampled is a normal, and chains move in the
coordinates in which it is N(0, 1). Where the prior is a mixture or the draws themselves, importance
weights replace chains.

Three arms learn no features. The chosen scales are those that the book chose at fifty labels, on
the sources' tasks: the stored ``flat_bnn/prior_scale``. Scales chosen for as many labels as there
are come from the training tasks of the same redraw, each in the part of a new task: the stored
``scales_by_labels``. The odd Gaussian process (``odd_processes``) has two scales.
"""

from helpers import common, densities
from helpers.common import read_result, take

import jax
import numpy as np

from experiments.engine import headlines
from experiments.methods import (
    joint_fits,
    learnt_group,
    normal_priors,
    odd_processes,
    point_estimates,
    scoring,
    weighted_networks,
)
from experiments.problems import moons_redrawn, new_tasks

BY_LABELS, PROCESS = "scales chosen for as many labels", "odd Gaussian process"
REFERENCES = ("one draw", "their mean")  # of the alignment
SETTINGS = {
    "seed": new_tasks.SEED,
    "seed_by_labels": 3022,  # of the arm whose scales are chosen for as many labels
    "group": learnt_group.SETTINGS,
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
    "process": odd_processes.SETTINGS,
}
NORMALS = (
    "N(0, 1)",
    "chosen scales",
    BY_LABELS,
    "scales only",
    "a normal a layer",
    "one normal",
    "one normal, not aligned",
)
WEIGHED = ("mixture", "the draws themselves")
JOINT = ("joint fit, one new task", "joint fit, all new tasks")
POINTS = ("fine-tuning", "first-order MAML")
# Scales alone are those of the draws however these are aligned.
ALIGNED = ("a normal a layer", "one normal", "mixture", "fits")
TRIED_ELSEWHERE = (
    ("N(0, 1)", "one draw"),
    ("chosen scales", "one draw"),
    ("a normal a layer", "their mean"),
    ("one normal", "one draw"),
    ("one normal", "their mean"),
)


def units():
    """Return an arm on one kind of tasks in one redraw each; redraw by redraw, since they share
    the group.
    """
    new, few = SETTINGS["sizes"], SETTINGS["joint_sizes"]
    scales = {"N(0, 1)": [1.0, 1.0, 1.0], "chosen scales": headlines.chosen_network()["scales"]}
    arms = [("Bayes optimum", [0])]
    arms += [(name, new) for name in (*NORMALS, *WEIGHED) if name != BY_LABELS]
    arms += [(name, few) for name in JOINT] + [(name, new) for name in POINTS]
    wanted = [("moons", name, sizes, to) for name, sizes in arms for to in references(name)]
    wanted += [("moons, more labels", "N(0, 1)", SETTINGS["more_sizes"], "one draw")]
    wanted += [("training", "fits", [], to) for to in references("fits")]
    wanted += [
        (kind, name, few, to) for kind in new_tasks.ELSEWHERE for name, to in TRIED_ELSEWHERE
    ]
    places = [(*one, i) for i in range(SETTINGS["num_redraws"]) for one in wanted]
    places += [
        ("moons, sources", name, few, to, "sources")
        for name in ("N(0, 1)", "one normal")
        for to in references(name)
    ]
    found = {}
    for kind, name, sizes, to, i in places:
        aligned = f", aligned to {to}" if name in ALIGNED else ""
        of = setting(kind, name, sizes, i, to, scales.get(name))
        found[f"{kind}: {name}{aligned}, {i}"] = of
    redrawn = range(SETTINGS["num_redraws"])
    process = {f"moons: {PROCESS}, {i}": setting("moons", PROCESS, new, i) for i in redrawn}
    return found | units_by_labels() | process


def references(name):
    """Return what draws of the group are aligned to for an arm: where it matters, to both."""
    return REFERENCES if name in ALIGNED else REFERENCES[:1]


def units_by_labels():
    """Return a number of labels on one kind of tasks in one redraw each, with the scales chosen
    for it.
    """
    redrawn = range(SETTINGS["num_redraws"])
    stored = read_result("informative_priors/scales_by_labels")["rows"]
    chosen = {row["labels"]: row["scales"] for row in stored}
    # before any label an odd network is at one half on average, whatever its scales
    chosen[0] = chosen[min(chosen)]
    # all labels: the sources' tasks chose these, by five folds
    chosen[50] = [headlines.chosen_network()["scales"] for _ in redrawn]
    wanted = [("moons", SETTINGS["sizes"])]
    wanted += [(kind, SETTINGS["joint_sizes"]) for kind in new_tasks.ELSEWHERE]
    return {
        f"{kind}: {BY_LABELS}, {size} labels, {i}": setting(
            kind, BY_LABELS, [size], i, scales=chosen[size][i]
        )
        for kind, sizes in wanted
        for i in redrawn
        for size in sizes
    }


def setting(kind, name, sizes, redraw, reference="one draw", scales=None):
    """Return a unit's setting: ``reference`` is what draws of the group are aligned to, ``scales``
    replace them.
    """
    drawn = {
        "reference": reference,
        "scales": scales,
        "group_draws": SETTINGS["group"]["group_draws"],
    }
    of = {"kind": kind, "name": name, "redraw": redraw, "sizes": sizes}
    return of | drawn | {"num_tasks": SETTINGS["num_tasks"]}


SMALL = [
    setting("moons", JOINT[1], [5], 0) | {"group_draws": 100},
    setting("training", "fits", [], 0, "their mean") | {"group_draws": 250},
    setting("clouds", BY_LABELS, [5], 0, scales=[0.5, 1.0, 3.0]),
    setting("moons", PROCESS, [0, 5], 0) | {"num_tasks": 4},
]


def unit(kind, name, redraw, sizes, reference, scales, group_draws, num_tasks):
    """Fit one arm to one kind of tasks; ``num_tasks`` is of the Gaussian process."""
    if name == PROCESS:
        return odd_processes.fitted(redraw, sizes, num_tasks)
    new, key = new_tasks.new(kind, redraw), common.key(SETTINGS["seed"], kind, name, redraw)
    if name == "Bayes optimum":
        return {"p": moons_redrawn.optimum(new)[None, :, None]}
    if name in NORMALS:
        if name == BY_LABELS:
            key = common.key(SETTINGS["seed_by_labels"], kind, redraw)
        prior = normal(name, redraw, reference, scales, group_draws)
        return normal_priors.sampled(
            key,
            prior,
            new,
            sizes,
            num_chains=learnt_group.SETTINGS["num_chains"],
            thin=SETTINGS["thin"],
            num_warmup=SETTINGS["num_warmup"],
            num_samples=SETTINGS["num_samples"],
        )
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
        return fitted_together(
            key, found.draws, new_tasks.training(redraw), observed, name == JOINT[1]
        )
    if name == "fits":
        return learnt_group.fitted(redraw, group_draws, reference)
    if name == "mixture":
        w = learnt_group.predictive(redraw, group_draws, reference)
        count = SETTINGS["copies"] * group_draws
        networks = learnt_group.best_mixture(w).sample(
            (learnt_group.SETTINGS["num_chains"], count), seed=key
        )
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


def fitted_together(key, draws, old, new, together):
    """Fit training tasks and new ones, and return what is kept."""
    posterior = joint_fits.sample(key, draws, old, new, together, **SETTINGS["joint"])
    thinned = posterior._replace(draws=take(posterior.draws, np.s_[:, :, :: SETTINGS["thin"]]))
    return normal_priors.kept(joint_fits.networks_of(thinned, len(new.y), together), posterior)


def score(drawn, kind, name, redraw, sizes, reference, scales, num_tasks, **_):
    """Scores by size, and what tells whether they can be trusted."""
    of = {"tasks": kind, "name": name, "sizes": sizes}
    of |= {"reference": reference} if name in ALIGNED else {}
    of |= {"scales": scales} if scales else {}
    if name == PROCESS:
        return of | odd_processes.score(drawn, redraw, sizes, num_tasks)
    if name == "fits":
        return of | learnt_group.score(drawn)
    new = new_tasks.new(kind, redraw)
    y = np.asarray(new.y_test)
    if "w" in drawn:
        p = [np.asarray(normal_priors.probabilities(w, new.x_test)) for w in drawn["w"]]
        found, checks = [scoring.scored(one, y) for one in p], normal_priors.check(drawn, p)
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
    return of | {"scores": scoring.joined(found), "checks": checks}


def rows(scored):
    """Return a row for each arm on each kind of tasks, with entries over redraws."""
    found = {}
    for one in scored.values():
        found.setdefault((one["tasks"], one["name"], one.get("reference")), []).append(one)
    row_of = {BY_LABELS: row_by_labels, PROCESS: odd_processes.row}
    return [row_of.get(name, row)(scores) for (_, name, _), scores in found.items()]


def row(scores):
    """Return the row of an arm from its scores of each redraw."""
    own = {key: value for key, value in scores[0].items() if key not in ("scores", "checks")}
    return own | {part: [one[part] for one in scores] for part in ("scores", "checks")}


def row_by_labels(scores):
    """Return the row of scores of each number of labels in each redraw: with entries over redraws,
    and in them over numbers of labels.
    """
    num_sizes = len(scores) // SETTINGS["num_redraws"]
    redrawn = [scores[i : i + num_sizes] for i in range(0, len(scores), num_sizes)]
    names = scores[0]["scores"]
    return {
        "tasks": scores[0]["tasks"],
        "name": BY_LABELS,
        "sizes": [one["sizes"][0] for one in redrawn[0]],
        "scales": [[one["scales"] for one in each] for each in redrawn],
        "scores": [
            {name: [one["scores"][name][0] for one in each] for name in names} for each in redrawn
        ],
        "checks": [one["checks"] for one in scores],
    }
