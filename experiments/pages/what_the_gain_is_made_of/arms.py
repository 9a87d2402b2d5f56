"""What sharing weights adds to well-chosen scales, on redrawn data sets: arms that differ in what
tells the scales.

Every arm sees the same data sets and the same 500 test points a task. Scales are chosen by one
rule, the NLL of points left out of five folds of the training points, all three layers' searched;
the prior of the shared network too.

    N(0, 1)               nothing is chosen or learnt
    chosen per task       from the task's own 50 points
    chosen over tasks     one triple for all tasks
    mixture per task      no choice: scales log-uniform over the grid's range, each task alone
    mixture over tasks    the same with one triple for all tasks
    learnt per task       scales N+(0, 5), each task alone
    learnt over tasks     scales N+(0, 5), the same for all tasks, means 0
    shared, N+(0, 1)      means and scales learnt of all tasks: the hierarchical network
    shared, N+(0, 5)      the same under a wider hyperprior
    shared, chosen        hyperprior and scale of the means, of four pairs, by the folds

The difference of chosen over tasks and shared, N+(0, 1) decides what sharing adds. These arms have
more data sets, drawn after the first were seen, by which the rule was fixed: the interval of the
paired difference where both fits have mixed, beside that on all.
"""

from helpers import common, densities, hierarchical, mcmc

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import cross_validation, network_fits, scoring
from experiments.problems import moons_redrawn

SETTINGS = {
    "seed": 3011,
    "num_redraws": 12,
    # More of the arms whose difference decides, fewer of the one that twenty joint fits choose.
    "num_redraws_of": {"chosen": 60, "shared, N+(0, 1)": 60, "shared, chosen": 3},
    "num_warmup": 300,
    "num_samples": 800,
    "max_tree_depth": 8,  # of flat fits
    # The part of the grid of ``flat_bnn/prior_scale`` in which good triples lie: a ridge of nearly
    # constant product.
    "input_scales": [0.125, 0.25, 0.5, 1.0],
    "hidden_scales": [0.5, 1.0, 2.0],
    "output_scales": [12.0, 24.0, 48.0],
    # Thousands of fits rank triples, shorter than those that are compared; the best are ranked
    # again by longer ones.
    "short": {"num_chains": 2, "num_warmup": 100, "num_samples": 60, "max_tree_depth": 6},
    "long": {"num_chains": 2, "num_warmup": 150, "num_samples": 200, "max_tree_depth": 8},
    "finalists": 4,
    "hyperpriors": [1.0, 5.0],  # scales of half normals
    "mean_scales": [1.0, 3.0],
    "of_folds": {"num_warmup": 150, "num_samples": 150},  # of the shared network
    "chains_of_folds": 2,
    "tempered": network_fits.TEMPERED,
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}
WIDE = hierarchical.log_density(moons_redrawn.NETWORK, tfd.HalfNormal(5.0))
SHARED = {"shared, N+(0, 1)": moons_redrawn.HIERARCHICAL, "shared, N+(0, 5)": WIDE}
FITTED = ("N(0, 1)", *SHARED)
CHOSEN = ("chosen per task", "chosen over tasks")
SAMPLED = ("mixture per task", "mixture over tasks", "learnt per task", "learnt over tasks")
BY_FOLDS = "shared, chosen"
GRID = SETTINGS["input_scales"], SETTINGS["hidden_scales"], SETTINGS["output_scales"]
TRIPLES = [list(t) for t in itertools.product(*GRID)]
PAIRS = list(itertools.product(SETTINGS["hyperpriors"], SETTINGS["mean_scales"]))
ENDS = {  # of the logarithms of the grid, by layer
    f"Dense_{i}": np.log([min(scales), max(scales)]) for i, scales in enumerate(GRID)
}
TOTAL = hierarchical.total_log_likelihood(moons_redrawn.NETWORK)


def redraws(arm):
    """Return the data sets to which an arm is fitted."""
    return range(SETTINGS["num_redraws_of"].get(arm, SETTINGS["num_redraws"]))


def units():
    """A fitted arm on a data set each; the two chosen ones share their folds."""
    sizes = {"num_warmup": SETTINGS["num_warmup"], "num_samples": SETTINGS["num_samples"]}
    return {
        f"{arm}, {i}": {"arm": arm, "redraw": i, "num_tasks": 18, **sizes}
        for arm in ("chosen", *FITTED, *SAMPLED, BY_FOLDS)
        for i in redraws(arm)
    }


SHORT = {"num_tasks": 6, "num_warmup": 200, "num_samples": 300}
SMALL = [
    {"arm": "shared, N+(0, 5)", "redraw": 0, **SHORT},
    {"arm": "shared, N+(0, 1)", "redraw": 12, **SHORT},
    {"arm": BY_FOLDS, "redraw": 1, "num_tasks": 2, "num_warmup": 100, "num_samples": 150},
]


def unit(arm, redraw, num_tasks, **sizes):
    """Fit one arm to one data set."""
    tasks = moons_redrawn.drawn(redraw, num_tasks=num_tasks)
    key = partial(common.key, SETTINGS["seed"], arm, redraw)
    if arm == "chosen":
        held_out, scales = search(key, tasks)
        fits = [fit_flat(key(name), tasks, scales[name], **sizes) for name in CHOSEN]
        return {
            "held_out": held_out,
            "scales": scales,
            "fits": dict(zip(CHOSEN, fits, strict=True)),
        }
    if arm == "N(0, 1)":
        return fit_flat(key(), tasks, np.ones(3), **sizes)
    observed = densities.observe(tasks.x_train, tasks.y_train)
    if arm == BY_FOLDS:
        held_out = np.stack([shared_of_folds(key("folds", *pair), tasks, *pair) for pair in PAIRS])
        best = held_out.mean(axis=1).argmin()
        fit = fit_shared(key(), of_pair(*PAIRS[best]), observed, **sizes)
        return {"held_out": held_out, "best": best, "fit": network_fits.thinned_run(fit)}
    if arm in SHARED:
        return network_fits.thinned_run(fit_shared(key(), SHARED[arm], observed, **sizes))
    log_density = mixture if arm.startswith("mixture") else WIDE
    if arm.endswith("over tasks"):
        return network_fits.thinned_run(fit_shared(key(), log_density, observed, means=(), **sizes))
    shapes = hierarchical.shapes(moons_redrawn.NETWORK, 1, 2, means=())
    starts = mcmc.normal_starts(key("starts"), shapes, (num_tasks, network_fits.NUM_CHAINS))
    alone = jax.tree.map(lambda a: a[:, None], observed)
    return network_fits.thinned_run(
        mcmc.sample(key("chains"), log_density, starts, tasks=alone, **sizes)
    )


def fit_flat(key, tasks, scales, **sizes):
    """Fit each task alone, under scales [layer] or [task, layer]."""
    observed = densities.observe(tasks.x_train, tasks.y_train, scales)
    return network_fits.thinned_run(
        network_fits.fit_flat(key, observed, max_tree_depth=SETTINGS["max_tree_depth"], **sizes)
    )


def fit_shared(key, log_density, observed, means=None, **sizes):
    """Fit all tasks together."""
    shapes = hierarchical.shapes(moons_redrawn.NETWORK, len(observed.y), 2, means=means)
    return network_fits.fit_hierarchical(key, log_density, shapes, observed, **sizes)


def of_pair(hyperprior, mean_scale):
    """Return the log density of the shared network under N+(0, hyperprior) and means N(0,
    mean_scale).
    """

    def density(position, observed):
        weights = hierarchical.task_weights(widened(position, mean_scale), observed.y.shape[0])
        return hierarchical.log_prior(position, tfd.HalfNormal(hyperprior)) + TOTAL(
            weights, observed
        )

    return density


def widened(position, mean_scale):
    """Return the position whose means are those of this one, N(0, 1), times their scale."""
    return position | {"mean": jax.tree.map(lambda a: mean_scale * a, position["mean"])}


def bounded(position):
    """Return the position whose log standard deviations lie in the grid's range: of logistic ones,
    uniform there.
    """
    log_sd = {
        name: low + (high - low) * jax.nn.sigmoid(position["log_sd"][name])
        for name, (low, high) in ENDS.items()
    }
    return position | {"log_sd": log_sd}


def mixture(position, observed):
    """Log density of the means-0 network under scales uniform, on a logarithmic axis, over the
    grid's range.
    """
    of_offsets = [
        tfd.Normal(0.0, 1.0).log_prob(a).sum() for a in jax.tree.leaves(position["offset"])
    ]
    of_scales = [tfd.Logistic(0.0, 1.0).log_prob(a) for a in position["log_sd"].values()]
    weights = hierarchical.task_weights(bounded(position), observed.y.shape[0])
    return jnp.sum(jnp.stack(of_offsets + of_scales)) + TOTAL(weights, observed)


def search(key, tasks):
    """Return the NLL of points left out, [triple, task], infinite where no longer fit was made; and
    what is chosen.
    """
    short = cross_validation.ranked(key("short"), tasks, TRIPLES, **SETTINGS["short"])
    best = np.argsort(short.mean(axis=1))[: SETTINGS["finalists"]]
    long = np.full_like(short, np.inf)
    long[best] = cross_validation.ranked(
        key("long"), tasks, [TRIPLES[i] for i in best], **SETTINGS["long"]
    )
    scales = {
        "chosen per task": np.array(TRIPLES)[short.argmin(axis=0)],
        "chosen over tasks": np.array(TRIPLES)[long.mean(axis=1).argmin()],
    }
    return {"short": short, "long": long}, scales


def shared_of_folds(key, tasks, hyperprior, mean_scale):
    """Return the NLL of points left out of fits of all tasks together, [task]."""
    (num_tasks, num_points), p = tasks.y_train.shape, []
    log_density = of_pair(hyperprior, mean_scale)
    tempered = (
        SETTINGS["tempered"] | SETTINGS["of_folds"] | {"num_started": SETTINGS["chains_of_folds"]}
    )
    for k, (fold, seen) in enumerate(
        zip(
            cross_validation.in_folds(np.arange(num_points)),
            cross_validation.seen(num_points),
            strict=True,
        )
    ):
        observed = densities.observe(
            tasks.x_train, tasks.y_train, weight=np.tile(seen, (num_tasks, 1))
        )
        key_fold = jax.random.fold_in(key, k)
        fit = fit_shared(key_fold, log_density, observed, tempered=tempered, **SETTINGS["of_folds"])
        draws = widened(fit.draws, mean_scale)
        p.append(
            network_fits.probabilities(moons_redrawn.LOGITS, draws, tasks.x_train[:, fold]).mean(
                axis=(0, 1)
            )
        )
    return cross_validation.nll_by_task(np.stack(p), tasks)


def score(drawn, arm, redraw, num_tasks, **_):
    """Scores on the test points by arm, with the check of its run; of folds the NLL of points left
    out.
    """
    tasks = moons_redrawn.drawn(redraw, num_tasks=num_tasks)
    if arm == "chosen":
        more = {
            "chosen per task": {"scales": drawn["scales"]["chosen per task"].tolist()},
            "chosen over tasks": {
                "scales": drawn["scales"]["chosen over tasks"].tolist(),
                "held_out_nll": drawn["held_out"]["short"].mean(axis=1).tolist(),
            },
        }
        return {
            name: scored_flat(drawn["fits"][name], tasks) | {"more": more[name]} for name in CHOSEN
        }
    if arm == "N(0, 1)":
        return {arm: scored_flat(drawn, tasks)}
    y, run, more = np.asarray(tasks.y_test), drawn, {}
    if arm == BY_FOLDS:
        pair = PAIRS[int(drawn["best"])]
        run = drawn["fit"] | {"draws": widened(drawn["fit"]["draws"], pair[1])}
        more = {"more": {"pair": list(pair), "held_out_nll_by_task": drawn["held_out"].tolist()}}
    elif arm in SAMPLED:
        draws = {"mean": {}, **drawn["draws"]}
        run = drawn | {"draws": bounded(draws) if arm.startswith("mixture") else draws}
    if arm.endswith("per task"):
        p = np.asarray(probabilities_alone(run["draws"], tasks.x_test))
        return {arm: scoring.scored(p, y) | {"check": scoring.check_of_run(run, p)}}
    p = np.asarray(network_fits.probabilities(moons_redrawn.LOGITS, run["draws"], tasks.x_test))
    return {arm: scoring.with_sampler(run, p, y) | more}


def scored_flat(drawn, tasks):
    """Score flat fits."""
    p = np.asarray(network_fits.flat_probabilities(drawn["draws"], tasks.x_test))
    return scoring.scored(p, np.asarray(tasks.y_test)) | {"check": scoring.check_of_run(drawn, p)}


@jax.jit
def probabilities_alone(draws, x):
    """Return probabilities [chain, draw, task, point] of draws [task, chain, draw], each of a data
    set of one task.
    """
    p = jax.lax.map(
        lambda pair: network_fits.probabilities(moons_redrawn.LOGITS, pair[0], pair[1][None])[
            ..., 0, :
        ],
        (draws, x),
    )
    return jnp.moveaxis(p, 0, 2)


def rows(scored):
    """A row for each arm, with entries over data sets."""
    found = {}
    for name in (*CHOSEN, *FITTED, *SAMPLED, BY_FOLDS):
        arm = "chosen" if name in CHOSEN else name
        found[name] = scoring.row(name, [scored[f"{arm}, {i}"][name] for i in redraws(arm)])
    found["chosen over tasks"]["more"]["triples"] = TRIPLES
    found[BY_FOLDS]["more"]["pairs"] = PAIRS
    return list(found.values())
