"""One rule for every choice of a prior, and priors that need no choice, on redrawn data.

The rule: five folds of each task's training points; whatever is to be chosen, scales or hyperpriors, is what gives the
points left out the least NLL. No test point and no other data set is looked at. What an arm takes from other tasks is
part of its name: chosen or learnt per task, it takes nothing; over tasks, it takes three numbers; only the
hierarchical arm shares weights.

Two arms tie if the 95 % interval of their paired difference over redraws lies within the threshold on both sides.
"""

from helpers import densities, hierarchical, mcmc
from helpers.common import take

import itertools
from functools import partial

import jax
import numpy as np
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments import shared
from experiments.what_the_gain_is_made_of import redraws

FITS = {
    "seed": 3010,
    "folds": 5,
    # The part of the grid of ``flat_bnn/prior_scale`` in which good triples lie, with a margin on each side.
    "input_scales": [0.125, 0.25, 0.5, 1.0],
    "hidden_scales": [0.5, 1.0, 2.0, 4.0],
    "output_scales": [6.0, 12.0, 24.0, 48.0, 96.0],
    "mean_scales": [0.5, 1.0, 2.0],
    # Thousands of fits rank priors, shorter than those that are compared; the best triples are ranked again by longer.
    "fold_sizes": {"num_warmup": 100, "num_samples": 60, "max_tree_depth": 8},
    "finer_sizes": {"num_warmup": 200, "num_samples": 240, "max_tree_depth": 8},
    "finalists": 10,
    "fold_chains": 2,
    "power": 0.8,  # of the likelihood where chains of models with modes begin
    "tempered_sizes": {"num_warmup": 300, "num_samples": 1},
    "num_warmup": 300,
    "num_samples": 800,
}
SETTINGS = FITS | {"num_redraws": 20, "threshold_nll": 0.005}
HYPERPRIORS = {
    "HalfNormal(1)": tfd.HalfNormal(1.0),
    "HalfNormal(5)": tfd.HalfNormal(5.0),
    "HalfCauchy(1)": tfd.HalfCauchy(0.0, 1.0),
}
BROAD = {"LogNormal(0, 2)": tfd.LogNormal(0.0, 2.0)}  # nothing is chosen: a mixture over scales from 0.02 to 50
SCALES = ("chosen over tasks", "chosen per task")
LEARNT = {  # what is chosen from: a hyperprior, and the scale of the means, 0 where there are none
    "learnt per task": list(itertools.product(HYPERPRIORS, [0.0])),
    "learnt over tasks": list(itertools.product(HYPERPRIORS, [0.0])),
    "broad per task": list(itertools.product(BROAD, [0.0])),
    "broad over tasks": list(itertools.product(BROAD, [0.0])),
    "hierarchical": list(itertools.product(HYPERPRIORS, FITS["mean_scales"])),
}
PER_TASK = ("learnt per task", "broad per task")
OF_LABELS = densities.label_log_likelihood(redraws.NETWORK)
OF_TASKS = hierarchical.sum_over_tasks(lambda weights, task: OF_LABELS(weights, task).sum())
TEMPERED = FITS["tempered_sizes"]
FLAT, CHOSEN = "N(0, 1)", "chosen"
TRIPLES = [list(one) for one in itertools.product(*(FITS[f"{part}_scales"] for part in ("input", "hidden", "output")))]
SMALL = {"arm": "learnt per task", "redraw": 0, "num_tasks": 4}


def units():
    """An arm on a redraw each; the two that choose from the grid are one unit, since they search it together."""
    arms = (FLAT, CHOSEN, *LEARNT)
    return {
        f"{arm}, {i}": {"arm": arm, "redraw": i, "num_tasks": 18}
        for i in range(SETTINGS["num_redraws"])
        for arm in arms
    }


def unit(arm, redraw, num_tasks):
    """Choose what is to be chosen, and fit an arm to a redraw."""
    tasks, key = redraws.drawn(redraw, num_tasks=num_tasks), shared.key(FITS["seed"], arm, redraw)
    key_folds, key_finer, *keys = jax.random.split(key, 5)
    if arm == FLAT:
        return fit_scales(keys[0], tasks, np.ones(3))
    if arm == CHOSEN:
        held_out = ranked(key_folds, tasks, scales_of_folds, TRIPLES)
        finalists = held_out.mean(axis=1).argsort()[: FITS["finalists"]]
        finer = partial(scales_of_folds, sizes="finer_sizes")
        of_finalists = ranked(key_finer, tasks, finer, [TRIPLES[i] for i in finalists])
        best = finalists[of_finalists.mean(axis=1).argmin()], held_out.argmin(axis=0)
        of_tasks = [np.array(TRIPLES)[np.broadcast_to(i, num_tasks)] for i in best]
        found = {name: fit_scales(*one) for name, *one in zip(SCALES, keys, 2 * [tasks], of_tasks, strict=False)}
        chosen = {"chosen": best[0], "of_tasks": best[1], "finalists": finalists, "of_finalists": of_finalists}
        return {"held_out": held_out} | chosen | found
    held_out = ranked(key_folds, tasks, partial(learnt_of_folds, arm), LEARNT[arm]) if len(LEARNT[arm]) > 1 else None
    if arm not in PER_TASK:
        best = np.array(0 if held_out is None else held_out.mean(axis=1).argmin())
        found = fit_learnt(keys[0], tasks, arm, *LEARNT[arm][best])
    else:  # every task has a prior of its own
        each = [fit_learnt(key, tasks, arm, *one) for key, one in zip(keys, LEARNT[arm], strict=False)]
        best = np.zeros(num_tasks, int) if held_out is None else held_out.argmin(axis=0)
        found = jax.tree.map(lambda *leaves: np.stack([leaves[k][task] for task, k in enumerate(best)]), *each)
    return found | {"best": best} | ({} if held_out is None else {"held_out": held_out})


def ranked(key, tasks, of_folds, candidates):
    """Return the NLL of points left out, [candidate, task]; ``of_folds`` gives p [chain, draw, fold, task, point]."""
    points, found = np.arange(tasks.y_train.shape[1]), []
    seen = np.stack([1.0 - np.isin(points, fold) for fold in in_folds(points)])  # [fold, point]
    y = np.moveaxis(in_folds(tasks.y_train), 0, 1)  # [task, fold, point of the fold]
    for i, candidate in enumerate(candidates):
        p = of_folds(jax.random.fold_in(key, i), tasks, seen, candidate).mean(axis=(0, 1))
        left_out = np.stack([p[k][:, fold] for k, fold in enumerate(in_folds(points))], axis=1)
        found.append([redraws.score_of(*one)["nll"] for one in zip(left_out, y, strict=True)])
    return np.array(found)


def in_folds(values):
    """Return [fold, ..., point of the fold] of [..., point]; the points' order is random, so any folds will do."""
    return np.stack([np.asarray(values)[..., k :: FITS["folds"]] for k in range(FITS["folds"])])


def scales_of_folds(key, tasks, seen, scales, sizes="fold_sizes"):
    """Fit every task without each of its folds under fixed scales: [chain, draw, fold, task, point]."""
    folds, (num_tasks, size) = len(seen), tasks.y_train.shape
    x, y = (np.concatenate(folds * [a]) for a in (tasks.x_train, tasks.y_train))
    observed = densities.observe(x, y, scales, weight=np.repeat(seen, num_tasks, axis=0))
    fit = redraws.fit_flat(key, observed, num_chains=FITS["fold_chains"], **FITS[sizes])
    p = np.asarray(redraws.flat_probabilities(fit.draws, x))
    return p.reshape(*p.shape[:2], folds, num_tasks, size)


def fit_scales(key, tasks, scales):
    """Fit every task alone under fixed scales, [layer] or [task, layer]."""
    sizes = {name: FITS[name] for name in ("num_warmup", "num_samples")}
    observed = densities.observe(tasks.x_train, tasks.y_train, scales)
    return redraws.kept(redraws.fit_flat(key, observed, **sizes))


def learnt_of_folds(arm, key, tasks, seen, candidate):
    """Fit the tasks without each of their folds under a learnt prior: [chain, draw, fold, task, point]."""
    x, y = (np.stack(len(seen) * [a]) for a in (tasks.x_train, tasks.y_train))
    weight = np.broadcast_to(seen[:, None], y.shape)
    sizes = FITS["fold_sizes"] | {"num_chains": FITS["fold_chains"]}
    fit = sample(key, as_posteriors(arm, (x, y, weight)), *candidate, **sizes)
    p = np.asarray(predicted(fit.draws, as_posteriors(arm, x), candidate[1]))  # [posterior, chain, draw, task, point]
    return np.moveaxis(p, 0, 2).reshape(*p.shape[1:3], *y.shape)


def fit_learnt(key, tasks, arm, hyperprior, mean_scale):
    """Fit a learnt prior to all training points, leading axes [task, chain, draw] or, over tasks, [chain, draw]."""
    observed = as_posteriors(arm, (tasks.x_train[None], tasks.y_train[None], np.ones((1, *tasks.y_train.shape))))
    sizes = {name: FITS[name] for name in ("num_warmup", "num_samples")}
    fit = sample(key, observed, hyperprior, mean_scale, num_chains=redraws.NUM_CHAINS, **sizes)
    found = redraws.kept(fit)
    return found if arm in PER_TASK else take(found, 0)


def as_posteriors(arm, tree):
    """Return arrays [fold, task, ...] as [posterior, task, ...]: per task, each is a posterior of one task."""
    if arm not in PER_TASK:
        return tree
    return jax.tree.map(lambda a: np.reshape(a, (-1, 1, *np.shape(a)[2:])), tree)


def sample(key, points, hyperprior, mean_scale, num_chains, **sizes):
    """Sample posteriors [posterior, chain, draw] from where chains end with the likelihood at a power below 1."""
    key_start, key_tempered, key_chains = jax.random.split(key, 3)
    x, y, weight = points
    means = {} if mean_scale else {"means": ()}
    shapes = hierarchical.shapes(redraws.NETWORK, x.shape[1], 2, **means)
    starts = mcmc.normal_starts(key_start, shapes, (len(x), num_chains))
    data = {"scale": np.float32(mean_scale)}
    for one, power, lengths in ((key_tempered, FITS["power"], TEMPERED), (key_chains, 1.0, sizes)):
        observed = densities.Observed(*map(np.asarray, (x, y, np.float32(power * weight))))
        fit = mcmc.sample(one, LOG_DENSITY[hyperprior], starts, tasks=observed, data=data, **lengths)
        starts = take(fit.draws, np.s_[:, :, -1])
    return fit


def of_prior(hyperprior):
    """Return the log posterior of tasks together, means N(0, scale^2) where there are any."""

    def log_density(position, observed, data):
        weights = hierarchical.task_weights(scaled(position, data["scale"]), observed.y.shape[0])
        return hierarchical.log_prior(position, hyperprior) + OF_TASKS(weights, observed)

    return log_density


def scaled(position, scale):
    """Return a position whose means are multiplied by a scale."""
    return position | {"mean": jax.tree.map(lambda mean: scale * mean, position["mean"])}


LOG_DENSITY = {name: of_prior(prior) for name, prior in (HYPERPRIORS | BROAD).items()}


@jax.jit
def predicted(draws, x, scale):
    """Return p [posterior, chain, draw, task, point] of draws at points [posterior, task, point, 2]."""

    def of_posterior(pair):
        draws, x = pair
        one = lambda position: jax.nn.sigmoid(redraws.LOGITS(scaled(position, scale), x))  # noqa: E731
        return jax.lax.map(lambda chain: jax.lax.map(one, chain), draws)

    return jax.lax.map(of_posterior, (draws, x))


def score(drawn, arm, redraw, num_tasks):
    """Scores on the test points by arm; what was chosen, and the NLL of points left out under each candidate."""
    tasks = redraws.drawn(redraw, num_tasks=num_tasks)
    more = {"held_out_nll": drawn["held_out"].mean(axis=1).tolist()} if "held_out" in drawn else {}
    if arm == FLAT:
        return {arm: scored_scales(drawn, tasks) | {"more": more}}
    if arm == CHOSEN:
        chosen = {SCALES[0]: TRIPLES[int(drawn["chosen"])], SCALES[1]: [TRIPLES[i] for i in drawn["of_tasks"]]}
        nll = drawn["of_finalists"].mean(axis=1).tolist()
        more |= {"finalists": drawn["finalists"].tolist(), "finalists_nll": nll}
        return {name: scored_scales(drawn[name], tasks) | {"more": more | {"scales": chosen[name]}} for name in SCALES}
    best = np.atleast_1d(drawn["best"])
    draws = {"mean": {}, **drawn["draws"]}
    points = as_posteriors(arm, tasks.x_test[None])
    draws = draws if arm in PER_TASK else take(draws, None)
    p = np.asarray(predicted(draws, points, LEARNT[arm][best[0]][1]))
    p = np.moveaxis(p, 0, 2).reshape(*p.shape[1:3], *tasks.y_test.shape)
    log_sd = drawn["draws"]["log_sd"]
    more |= {
        "chosen": [list(LEARNT[arm][i]) for i in best],
        "sd": {name: np.exp(np.median(part, axis=(-2, -1))).tolist() for name, part in log_sd.items()},
    }
    scores = redraws.scored(p, np.asarray(tasks.y_test))
    return {arm: scores | {"check": redraws.checked(drawn, p, log_sd=log_sd), "more": more}}


def scored_scales(drawn, tasks):
    """Score a fit under fixed scales."""
    p = np.asarray(redraws.flat_probabilities(drawn["draws"], tasks.x_test))
    return redraws.scored(p, np.asarray(tasks.y_test)) | {"check": redraws.checked(drawn, p)}


def rows(scored):
    """A row an arm, with entries over redraws; in those of the grid, its triples."""
    by_arm = {}
    for one in scored.values():
        for arm, scores in one.items():
            by_arm.setdefault(arm, []).append(scores)
    found = [redraws.row(arm, scores) for arm, scores in by_arm.items()]
    return [one | ({"triples": TRIPLES} if one["name"] in SCALES else {}) for one in found]
