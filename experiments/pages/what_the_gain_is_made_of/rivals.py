"""Rivals of the hierarchical network, on the data sets of ``arms`` and on six more tasks of each,
not trained on.

    N features, ...       features of all tasks, a linear head a task, of three kinds (`heads`)
    Gaussian processes    by MCMC, odd or not, scales of a task or of all (`gaussian_processes`)
    latent angle          one network, its inputs turned by an angle a task learns (`latent_angle`)
    fine-tuned in turn    one network on one task after the other; the first shows what it forgets
    Bayes optimum         the generator's own probabilities

New tasks have labels of their own, and what was learnt from the others: features, scales of a
process, the network that an angle turns, weights to start from. Beside them stand flat networks
under the scales that the others chose, and the hierarchical network, which is fitted again with the
new tasks among the others: with all six, so that its prior is learnt from twenty-four, and with one
at a time, which then meets a prior that eighteen others and its own labels tell.
"""

from helpers import common, densities, hierarchical
from helpers.common import read_result, take

from functools import partial

import jax
import numpy as np

from experiments.methods import gaussian_processes, heads, latent_angle, network_fits, scoring
from experiments.pages.what_the_gain_is_made_of import rival_fits
from experiments.pages.what_the_gain_is_made_of.rival_fits import SETTINGS
from experiments.problems import moons_redrawn

ARMS = (
    rival_fits.OPTIMUM,
    rival_fits.TUNED,
    *rival_fits.FEATURES,
    rival_fits.ANGLE,
    *rival_fits.PROCESSES,
    rival_fits.CHOSEN,
    rival_fits.SHARED,
    rival_fits.ONE_AT_A_TIME,
)
SMALL = [
    {"arm": rival_fits.ANGLE, "redraw": 0, "num_tasks": 6},
    {"arm": rival_fits.ONE_AT_A_TIME, "redraw": 0, "num_tasks": 5},
]


def units():
    """An arm on a data set each, data set by data set."""
    sizes = {"num_tasks": SETTINGS["num_tasks"]}
    redrawn = range(SETTINGS["num_redraws"])
    found = {f"{arm}, {i}": {"arm": arm, "redraw": i, **sizes} for i in redrawn for arm in ARMS}
    (row,) = (
        row
        for row in read_result("what_the_gain_is_made_of/arms")["rows"]
        if row["name"] == rival_fits.CHOSEN
    )
    for i in redrawn:
        found[f"{rival_fits.CHOSEN}, {i}"]["scales"] = row["more"]["scales"][i]
    return found


def unit(arm, redraw, num_tasks, scales=None):
    """Fit one rival to one data set, and what it needs to new tasks."""
    tasks, new = rival_fits.drawn_tasks(redraw, num_tasks)
    key = partial(common.key, SETTINGS["seed"], arm, redraw)
    if arm == rival_fits.OPTIMUM:
        return {"p": moons_redrawn.optimum(tasks), "new": moons_redrawn.optimum(new)}
    if arm == rival_fits.TUNED:
        return rival_fits.fine_tuned(
            jax.random.split(key(), SETTINGS["fine_tuning"]["num_starts"]), tasks, new
        )
    if arm in rival_fits.FEATURES:
        return heads.unit(key, tasks, new, rival_fits.FEATURES[arm], SETTINGS["heads"])
    if arm in rival_fits.PROCESSES:
        return rival_fits.fit_process(key, arm, tasks, new)
    if arm == rival_fits.ANGLE:
        shapes, observed = (
            latent_angle.shapes(num_tasks),
            densities.observe(tasks.x_train, tasks.y_train),
        )
        tempered, sizes = SETTINGS["angle_tempered"], SETTINGS["angle"]
        return network_fits.thinned_run(
            network_fits.fit_hierarchical(
                key(), rival_fits.TURNED, shapes, observed, tempered=tempered, **sizes
            )
        )
    if arm == rival_fits.ONE_AT_A_TIME:
        key = partial(common.key, SETTINGS["one_at_a_time"]["seed"], redraw)
        return rival_fits.one_at_a_time(key, tasks, new)
    sizes = {"num_warmup": SETTINGS["num_warmup"], "num_samples": SETTINGS["num_samples"]}
    if arm == rival_fits.CHOSEN:
        observed = densities.observe(new.x_train, new.y_train, scales)
        return network_fits.thinned_run(
            network_fits.fit_flat(key(), observed, max_tree_depth=8, **sizes)
        )
    tasks = rival_fits.joined(tasks, new)
    shapes = hierarchical.shapes(moons_redrawn.NETWORK, len(tasks.y_train), 2)
    observed = densities.observe(tasks.x_train, tasks.y_train)
    return network_fits.thinned_run(
        network_fits.fit_hierarchical(key(), moons_redrawn.HIERARCHICAL, shapes, observed, **sizes)
    )


def score(drawn, arm, redraw, num_tasks, **_):
    """Scores on the test points, by arm, of the tasks and, by the same name and "new tasks", of new
    ones.
    """
    tasks, new = rival_fits.drawn_tasks(redraw, num_tasks)
    y, y_new = np.asarray(tasks.y_test), np.asarray(new.y_test)
    if arm == rival_fits.OPTIMUM:
        return pair(
            arm,
            scoring.scored_parts(drawn["p"][None], y),
            scoring.scored_parts(drawn["new"][None], y_new),
        )
    if arm == rival_fits.TUNED:
        right = 100 * ((drawn["p"] > 0.5) == (y == 1)).mean(axis=-1)  # [start, stage, task]
        seen = {"first_task": right[:, :, 0], "current_task": np.diagonal(right, axis1=1, axis2=2)}
        found = scoring.scored_starts(drawn["p"][:, -1], y) | {"more": over_starts(seen)}
        return pair(arm, found, scoring.scored_starts(drawn["new"], y_new))
    if arm in rival_fits.FEATURES:
        return score_heads(drawn, arm, tasks, new)
    if arm in rival_fits.PROCESSES:
        return score_process(drawn, arm, tasks, new)
    if arm == rival_fits.ANGLE:
        p = np.asarray(
            network_fits.probabilities(latent_angle.logits, drawn["draws"], tasks.x_test)
        )
        log_sd = scoring.layer_log_sd(drawn["draws"]["log_sd"])
        sampler = {
            "sd_by_chain": {
                name: np.exp(np.median(part, axis=1)).tolist() for name, part in log_sd.items()
            }
        }
        more = latent_angle.angle_error(drawn["draws"]["direction"], np.asarray(tasks.angles))
        of_new = latent_angle.of_new_tasks(take(drawn["draws"], np.s_[:, ::4]), new)
        found = scoring.scored(p, y) | {
            "check": scoring.check_of_run(drawn, p),
            "sampler": sampler,
            "more": more,
        }
        return pair(arm, found, scoring.scored_parts(of_new, y_new))
    if arm == rival_fits.CHOSEN:
        p = np.asarray(network_fits.flat_probabilities(drawn["draws"], new.x_test))
        return {
            f"{arm}: new tasks": scoring.scored(p, y_new)
            | {"check": scoring.check_of_run(drawn, p)}
        }
    if arm == rival_fits.ONE_AT_A_TIME:
        p = np.asarray(network_fits.flat_probabilities(drawn["weights"], new.x_test))
        check = scoring.check_of_run(drawn, p, log_sd=drawn["log_sd"])
        return {arm: scoring.scored(p, y_new) | {"check": check}}
    p = np.asarray(
        network_fits.probabilities(
            moons_redrawn.LOGITS, drawn["draws"], rival_fits.joined(tasks, new).x_test
        )
    )
    check = scoring.check_of_run(drawn, p, log_sd=scoring.layer_log_sd(drawn["draws"]["log_sd"]))
    of_new = scoring.scored(p[:, :, num_tasks:], y_new) | {"check": check}
    return {f"{arm}: new tasks": of_new}


def pair(arm, found, of_new):
    """Return both scores of an arm by their names."""
    return {arm: found, f"{arm}: new tasks": of_new}


def score_heads(drawn, arm, tasks, new):
    """Score heads of three kinds: each start of the features alone."""
    size, num_tasks, found = rival_fits.FEATURES[arm], len(tasks.y_train), {}
    y, y_new = np.asarray(tasks.y_test), np.asarray(new.y_test)
    p, by_draw = heads.predictions(drawn, size, tasks, new, SETTINGS["heads"])
    for kind, of_kind in p.items():
        of_tasks = scoring.scored_starts(of_kind[:, :num_tasks], y)
        found |= pair(
            f"{arm}, {kind}", of_tasks, scoring.scored_starts(of_kind[:, num_tasks:], y_new)
        )
    found[f"{arm}, {heads.TRAINED}"]["more"] = {
        "decay": heads.best_training(drawn, SETTINGS["heads"])[0],
        "steps": heads.best_training(drawn, SETTINGS["heads"])[1],
        "left_out": float(drawn["left_out"].min()),
    }
    for kind, scale in heads.best(drawn, SETTINGS["heads"]).items():
        left_out = drawn["of_scales"][kind].tolist()
        found[f"{arm}, {kind}"]["more"] = {"scale": scale, "left_out_by_scale": left_out}
    found[f"{arm}, {heads.MCMC}"]["check"] = scoring.check_of_run(drawn, by_draw)
    return found


def score_process(drawn, arm, tasks, new):
    """Score Gaussian processes."""
    odd, found = rival_fits.PROCESSES[arm], []
    priors = rival_fits.PRIOR, (drawn["prior"]["centre"], drawn["prior"]["spread"])
    for part, of_part, prior in zip(("tasks", "new"), (tasks, new), priors, strict=True):
        run, scales, z = drawn[part], drawn[part]["draws"]["scales"], drawn[part]["draws"]["z"]
        at = gaussian_processes.log_scales(scales, prior)
        if scales.ndim == 3:  # one for all tasks: [chain, draw, 2]
            at, z = at[None], np.moveaxis(z, 2, 0)
        p = gaussian_processes.probabilities(at, z, of_part.x_test, odd)
        more = {"scales": np.exp(np.median(at.reshape(-1, 2), axis=0)).tolist()}
        check = scoring.check_of_run(run, p, scales=scales)
        found.append(scoring.scored(p, np.asarray(of_part.y_test)) | {"check": check, "more": more})
    return pair(arm, *found)


def over_starts(accuracy):
    """Return mean accuracies over starts, by stage, and their standard errors."""
    means = {f"{name}_accuracy": values.mean(axis=0).tolist() for name, values in accuracy.items()}
    count = SETTINGS["fine_tuning"]["num_starts"]
    errors = {
        name: values.std(axis=0, ddof=1) / np.sqrt(count) for name, values in accuracy.items()
    }
    return means | {f"{name}_accuracy_error": values.tolist() for name, values in errors.items()}


def rows(scored):
    """A row for each arm, on the tasks and on new ones, with entries over data sets."""
    found = {}
    for one in scored.values():
        for name, scores in one.items():
            found.setdefault(name, []).append(scores)
    return [scoring.row(name, scores) for name, scores in found.items()]
