"""A prior scale for each layer of the flat network, chosen by five folds of the training data.

For every triple of scales, on the 18 tasks of the sources: the NLL of training points that a fit to
the other four folds gives, which the choice is made by (the rule is that of
``cross_validation``). Then, only to see afterwards whether the choice was good, four
chains a task on all training points, their scores on 1000 fresh test points a task, and what
leave-one-out by importance sampling would have said.
"""

from helpers import common, data, densities, diagnostics, mcmc, metrics, networks

import itertools

import jax
import numpy as np

from experiments.methods import cross_validation, runs

SETTINGS = {
    "seed": 2026,
    "num_chains": 4,
    "num_warmup": 300,
    "num_samples": 400,
}
OF_FOLDS = {"num_chains": 2, "num_warmup": 200, "num_samples": 240, "max_tree_depth": 8}
# of each layer
SCALES = [0.125, 0.25, 0.5, 1.0, 2.0], [0.5, 1.0, 2.0, 4.0], [1.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0]
NETWORK = networks.MLP()
LOG_DENSITY, OF_LABELS = (
    densities.flat_log_density(NETWORK),
    densities.label_log_likelihood(NETWORK),
)


def units():
    """A triple of scales each."""
    return {
        " ".join(map(str, scales)): {"scales": list(scales)}
        for scales in itertools.product(*SCALES)
    }


SMALL = {"scales": [0.25, 0.5, 1.0]}


def unit(scales):
    """Sample all tasks under one prior, without each fold and with all, from the same starts."""
    tasks = data.source_moons()
    key_folds = common.key(SETTINGS["seed"], "folds", *scales)
    held_out = cross_validation.ranked(key_folds, tasks, [scales], **OF_FOLDS)[0]
    shapes = networks.parameter_shapes(NETWORK, 2)
    starts = mcmc.normal_starts(
        common.key(SETTINGS["seed"], "starts"), shapes, (18, SETTINGS["num_chains"])
    )
    observed = densities.observe(tasks.x_train, tasks.y_train, scales)
    sizes = {"num_warmup": SETTINGS["num_warmup"], "num_samples": SETTINGS["num_samples"]}
    posterior = mcmc.sample(
        common.key(SETTINGS["seed"], "chains", *scales),
        LOG_DENSITY,
        starts,
        tasks=observed,
        **sizes,
    )
    return {"held_out": held_out, "draws": posterior.draws, **runs.kept_run(posterior)}


@jax.jit
def predicted(draws, x_test, observed):
    """Return p at test points, log likelihoods at training points, [task, chain, draw, point]."""

    def of_draw(w, x_test, observed):
        return jax.nn.sigmoid(NETWORK.apply(w, x_test)), OF_LABELS(w, observed)

    of_task = jax.vmap(jax.vmap(of_draw, (0, None, None)), (0, None, None))
    return jax.lax.map(lambda task: of_task(*task), (draws, x_test, observed))


def over_tasks(errors):
    """Return the error of the mean over tasks, independent posteriors, from each one's."""
    return float(np.sqrt(np.mean(np.square(errors)) / len(errors)))


def over_chains(by_chain):
    """Return the error of the mean over tasks of what each chain alone gives, [task, chain]."""
    return over_tasks(np.std(by_chain, axis=1, ddof=1) / np.sqrt(len(by_chain[0])))


def score(drawn, scales):
    """Leave-one-out on training points, and scores on fresh ones."""
    tasks = data.fresh_moons()
    observed = densities.observe(tasks.x_train, tasks.y_train, scales)
    p, log_likelihood = predicted(drawn["draws"], tasks.x_test, observed)
    p, y = np.asarray(p), np.asarray(tasks.y_test)
    left_out = [diagnostics.leave_one_out(of_task) for of_task in log_likelihood]
    by_task = [-float(part.log_density.mean()) for part in left_out]
    # Of each chain alone: the spread over chains is the error, of Pareto smoothing too.
    loo_by_chain = [
        [float(diagnostics.leave_one_out(chain[None]).log_density.mean()) for chain in of_task]
        for of_task in log_likelihood
    ]
    right_by_chain = ((p.mean(axis=2) > 0.5) == (y[:, None] == 1)).mean(axis=-1)
    errors = [diagnostics.nll_error(*of_task) for of_task in zip(p, y, strict=True)]
    mean = p.mean(axis=(1, 2))
    posterior = runs.run_from(drawn)
    check = runs.diagnosis(posterior, p[..., :50:10])
    return {
        "scales": scales,
        "held_out_nll": float(drawn["held_out"].mean()),
        "held_out_nll_by_task": drawn["held_out"].tolist(),
        "leave_one_out": float(np.mean(by_task)),
        "leave_one_out_error": over_chains(loo_by_chain),
        "leave_one_out_by_task": by_task,
        "bad_pareto_k": int(sum((part.pareto_k > 0.7).sum() for part in left_out)),
        "test_accuracy": metrics.accuracy(mean, y),
        "test_accuracy_error": over_chains(right_by_chain),
        "test_nll": metrics.negative_log_likelihood(mean, y),
        "test_nll_error": over_tasks(errors),
        "test_nll_by_task": [
            metrics.negative_log_likelihood(*of_task) for of_task in zip(mean, y, strict=True)
        ],
        "test_nll_by_task_error": errors,
        "check": check,
        "mixed": check["mixed"],
    }
