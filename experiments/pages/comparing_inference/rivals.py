"""What is trained for its predictions, each at its own best: settings chosen for the NLL that is
scored, by five folds of training labels, with the knowledge that the posterior has.

Settings are chosen on the eighteen tasks of ``flat-bnn``, whose folds chose the scales of the prior
as well, and nothing else is known of the tasks that are scored. A search begins at a place on a
grid of powers and moves to its best neighbour while that gains, so that no end of a grid binds.
Then every method is fitted to two sets of tasks: those of ``worth``, and as many new ones, on which
nothing was decided, not even what is to be compared. Of both priors: N(0, 1), and that of ``cold``
with a scale a layer.
"""

from helpers import common, data, densities
from helpers.common import take

import itertools
from functools import cache, partial

import jax
import numpy as np

from experiments.methods import cross_validation, network_fits, runs, trained_predictors
from experiments.pages.comparing_inference import cold, uses
from experiments.problems import six_tasks

SEED = 9111
PRIORS = {name: cold.PRIORS[name] for name in ("1", "chosen")}
# By setting: where the search begins, and the factor of one step.
RATE, STEPS, SHARE = ("rate", 1e-2, 10**0.5), ("steps", 300, 2.0), ("share", 0.1, 2.0)
ONE, STARTS = "one network", 8  # folds judge one network by the mean NLL of so many
METHODS = {
    ONE: (partial(trained_predictors.ensemble, prior=False, members=STARTS), (RATE, STEPS)),
    "ensemble": (partial(trained_predictors.ensemble, prior=False), (RATE, STEPS)),
    "ensemble with prior": (partial(trained_predictors.ensemble, prior=True), (RATE, STEPS)),
    "MC dropout": (trained_predictors.dropout, (RATE, STEPS, SHARE)),
    "SWAG": (trained_predictors.swag, (("rate", 1e-3, 10**0.5), STEPS)),
}
POSTERIOR, TEMPERED = "posterior", "tempered"
TEMPERATURE = ("temperature", 1.0, 0.5)
SETTINGS = {
    "least_gain": 0.001,  # nats, for which a search moves on
    "most": {"steps": 20_000, "share": 0.8},
    "members": [1, 5, trained_predictors.MEMBERS],  # of an ensemble's, which are scored
}
RUN = cold.RUN
OF_FOLDS = {"num_chains": 2, "num_warmup": 200, "num_samples": 240, "max_tree_depth": 8}
SMALL = [
    {"name": ONE, "prior": "1", "num_tasks": 4},
    {"name": POSTERIOR, "prior": "1", "num_tasks": 4},
]


def units() -> dict[str, dict]:
    """Each method under each prior, and the posterior of the new tasks, tempered or not."""
    return {
        f"{name}, sd {prior}": {"name": name, "prior": prior, "num_tasks": uses.NUM_TASKS}
        for name in (*METHODS, TEMPERED, POSTERIOR)
        for prior in PRIORS
    }


@cache
def new_problem() -> uses.Uses:
    """As many tasks again as ``uses.problem`` has, and of the same kind."""
    count, noise = uses.NUM_TASKS, uses.NOISE
    key = common.key(SEED, "tasks")
    tasks = data.rotated_moons(key, count, uses.NUM_TRAIN, uses.NUM_TEST, noise)
    x = np.stack([tasks.x_test, uses.STRETCH * tasks.x_test], axis=1)
    q = data.bayes_optimum(tasks, x.reshape(count, -1, 2), noise)
    return uses.Uses(tasks, x, np.asarray(q, np.float64).reshape(x.shape[:3]))


def setting_at(grid, place):
    """Return the setting at a place of a grid: powers of each factor."""
    found = {
        name: start * factor**power
        for (name, start, factor), power in zip(grid, place, strict=True)
    }
    return found | ({"steps": round(found["steps"])} if "steps" in found else {})


def searched(grid, loss):
    """Return the best place, and the losses [task] at all that were tried."""
    most, found = SETTINGS["most"], {}
    best, better = None, (0,) * len(grid)
    while best is None or found[best].mean() - found[better].mean() >= SETTINGS["least_gain"]:
        best = better
        for move in itertools.product((-1, 0, 1), repeat=len(grid)):
            place = tuple(np.add(best, move).tolist())
            setting = setting_at(grid, place)
            if place not in found and all(setting.get(n, 0) <= most[n] for n in most):
                found[place] = loss(setting)
        better = min(found, key=lambda place: found[place].mean())
    return best, found


def fit(method, keys, observed, scales, setting):
    """Fit a method to one task after the other; return networks [task, draw, 40]."""

    def one(pair):
        return method(*pair, scales, **setting)

    return np.asarray(jax.jit(partial(jax.lax.map, one))((keys, observed)))


def left_out(p, tasks):
    """Return the NLL [task] of points left out, of p [fold and task, point] of such fits."""
    num_tasks, num_points = tasks.y_train.shape
    p = p.reshape(cross_validation.FOLDS, num_tasks, num_points)
    folds = cross_validation.in_folds(np.arange(num_points))
    p = np.stack([of[:, fold] for of, fold in zip(p, folds, strict=True)])
    least = uses.LEAST
    return cross_validation.nll_by_task(np.clip(p, least, 1 - least), tasks)


def without_folds(tasks, scales):
    """Return what is observed of each task without each of its folds, [fold and task]."""
    repeated = [np.concatenate(cross_validation.FOLDS * [a]) for a in tasks[:2]]
    weight = np.repeat(cross_validation.seen(tasks.y_train.shape[1]), len(tasks.y_train), axis=0)
    return densities.observe(*repeated, scales, weight=weight)


def tuned(name, prior, tasks):
    """Return the setting that folds of tasks prefer, and what they said of it and of others."""
    scales, key = PRIORS[prior], common.key(SEED, "folds", name, prior)
    observed = without_folds(tasks, scales)
    keys = jax.random.split(key, len(observed.y))
    method, grid = METHODS.get(name, (None, (TEMPERATURE,)))

    def loss(setting):
        if method is None:
            posterior = cold.run(key, observed, setting["temperature"], **OF_FOLDS)
            p = network_fits.flat_probabilities(posterior.draws, observed.x).mean(axis=(0, 1))
        else:
            vectors = fit(method, keys, observed, scales, setting)
            p = jax.lax.map(lambda pair: six_tasks.probabilities(*pair), (vectors, observed.x))
            if name == ONE:
                return np.mean([left_out(one, tasks) for one in np.moveaxis(p, 1, 0)], axis=0)
            p = p.mean(axis=1)
        return left_out(np.asarray(p), tasks)

    best, found = searched(grid, loss)
    tried = [
        setting_at(grid, place)
        | {"nll": float(of.mean()), "behind": float((of - found[best]).mean())}
        for place, of in found.items()
    ]
    return setting_at(grid, best), tried


def measures(vectors, problem):
    """Return the measures of ``uses`` of networks [task, draw, 40], and p [task, draw, point]."""
    each, p = [], []
    for of_task, x in zip(vectors, problem.x, strict=True):
        p.append(np.asarray(six_tasks.probabilities(of_task, x.reshape(-1, 2))))
        each.append([uses.of_draws(part) for part in np.split(p[-1], 2, axis=1)])
    mean, joint = (np.array([[of[n] for of in task] for task in each]) for n in ("mean", "joint"))
    return uses.as_lists(uses.measured(mean, joint, problem.q)), np.stack(p)


def of_method(name, prior, setting, key, problem):
    """Fit a method to tasks; return measures by members, or of all draws."""
    tasks, scales = problem.tasks, PRIORS[prior]
    observed = densities.observe(tasks.x_train, tasks.y_train, scales)
    keys = jax.random.split(key, len(observed.y))
    vectors = fit(METHODS[name][0], keys, observed, scales, setting)
    sizes = SETTINGS["members"] if "ensemble" in name else [1 if name == ONE else len(vectors[0])]
    return {f"{size}": measures(vectors[:, :size], problem)[0] for size in sizes}


def of_posterior(prior, temperature, key, problem):
    """Run the book's sampler on tasks; return measures, and whether chains have mixed."""
    tasks = problem.tasks
    observed = densities.observe(tasks.x_train, tasks.y_train, PRIORS[prior])
    posterior = cold.run(key, observed, temperature, **RUN)
    vectors = np.asarray(six_tasks.vector_of(posterior.draws))
    found, p = measures(vectors.reshape(len(vectors), -1, six_tasks.SIZE), problem)
    some = p[:, :, ::80].reshape(*vectors.shape[:3], -1)
    return {"all": found, "check": runs.diagnosis(posterior, some)}


def unit(name: str, prior: str, num_tasks: int) -> dict:
    """Choose settings; return measures of both sets of tasks, of the posterior of the new ones."""
    chosen, tried = {"temperature": 1.0}, []
    if name != POSTERIOR:
        tasks = jax.tree.map(lambda a: a[:num_tasks], data.source_moons())
        chosen, tried = tuned(name, prior, tasks)
    found = {}
    for of_set, problem in {"worth": uses.problem(), "new": new_problem()}.items():
        key, some = common.key(SEED, "fit", name, prior, of_set), take(problem, np.s_[:num_tasks])
        if name in METHODS:
            found[of_set] = of_method(name, prior, chosen, key, some)
        elif name == TEMPERED or of_set == "new":
            found[of_set] = of_posterior(prior, chosen["temperature"], key, some)
    return found | {"setting": chosen, "tried": tried}


rows = uses.rows_of
