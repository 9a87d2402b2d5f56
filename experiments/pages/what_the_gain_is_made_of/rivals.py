"""Rivals of the hierarchical network, on the data sets of ``arms`` and on six more tasks of each,
not trained on.

    N features, ...       features trained on all tasks, and a linear head a task, of three kinds: see ``heads``
    Gaussian processes    by MCMC, odd or not, scales of a task's own or of all tasks: see ``processes``
    latent angle          one network whose inputs are turned by an angle that each task learns: see ``latent``
    fine-tuned in turn    one network trained on the tasks one after the other; forgetting is seen on the first
    Bayes optimum         the generator's own probabilities

New tasks have labels of their own, and what was learnt from the others: features, scales of a
process, the network that an angle turns, weights to start from. Beside them stand flat networks
under the scales that the others chose, and the hierarchical network, which is fitted again with the
new tasks among the others.
"""

from helpers import densities, hierarchical, mcmc
from helpers.common import read_result, take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments import shared
from experiments.methods import gaussian_processes, heads, latent_angle
from experiments.problems import moons_redrawn

SETTINGS = {
    "seed": 3013,
    "num_redraws": 8,
    "num_tasks": 18,
    "num_new": 6,
    "num_warmup": 300,
    "num_samples": 800,
    "heads": {
        "num_starts": 4,
        "decays": [0.03, 0.1, 0.3, 1.0, 3.0],  # per unit of learning rate and step
        "training": {"learning_rate": 0.01, "num_steps": 1500, "every": 100},
        "scales": [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0],
        "of_folds": {"num_chains": 2, "num_warmup": 100, "num_samples": 100},
        "chains": {"num_chains": 4, "num_warmup": 200, "num_samples": 800},
    },
    # Priors of a Gaussian process's amplitude and length scale: log-normal, by median and sd of the
    # logarithm.
    "process": {"median": [3.0, 1.5], "sd": [1.0, 0.5]},
    "process_chains": {
        "num_warmup": 300,
        "num_samples": 1000,
        "max_tree_depth": 8,
        "target_acceptance": 0.9,
    },
    "hyperprior": 5.0,  # of the scales of the network that angles turn, N+(0, 5)
    "angle": {"num_warmup": 200, "num_samples": 600},
    "angle_tempered": {
        "power": 0.8,
        "num_started": 4,
        "num_warmup": 200,
        "num_samples": 20,
        "max_tree_depth": 8,
    },
    "fine_tuning": {"learning_rate": 0.02, "steps_per_task": 600, "num_starts": 4},
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}
OPTIMUM, TUNED, ANGLE = "Bayes optimum", "fine-tuned in turn", "latent angle"
CHOSEN, SHARED = "chosen over tasks", "shared, N+(0, 1)"
FEATURES = {"5 features": 5, "32 features": 32}
ODD_ALONE, ODD, ANY = (
    "odd Gaussian process a task",
    "odd Gaussian process, one scale",
    "Gaussian process, one scale",
)
PROCESSES = {ODD_ALONE: True, ODD: True, ANY: False}  # whether it is odd
ARMS = (OPTIMUM, TUNED, *FEATURES, ANGLE, *PROCESSES, CHOSEN, SHARED)
TURNED = latent_angle.log_density(SETTINGS["hyperprior"])
# of log a and log l
PRIOR = np.log(SETTINGS["process"]["median"]), np.diag(SETTINGS["process"]["sd"])
SMALL = {"arm": ANGLE, "redraw": 0, "num_tasks": 6}


def units():
    """An arm on a data set each, data set by data set."""
    sizes = {"num_tasks": SETTINGS["num_tasks"]}
    redrawn = range(SETTINGS["num_redraws"])
    found = {f"{arm}, {i}": {"arm": arm, "redraw": i, **sizes} for i in redrawn for arm in ARMS}
    (row,) = (
        row for row in read_result("what_the_gain_is_made_of/arms")["rows"] if row["name"] == CHOSEN
    )
    for i in redrawn:
        found[f"{CHOSEN}, {i}"]["scales"] = row["more"]["scales"][i]
    return found


def drawn_tasks(redraw, num_tasks):
    """Return the tasks of a data set and the new ones."""
    return moons_redrawn.drawn(redraw, num_tasks=num_tasks), moons_redrawn.drawn(
        "new", redraw, num_tasks=SETTINGS["num_new"]
    )


def unit(arm, redraw, num_tasks, scales=None):
    """Fit one rival to one data set, and what it needs to new tasks."""
    tasks, new = drawn_tasks(redraw, num_tasks)
    key = partial(shared.key, SETTINGS["seed"], arm, redraw)
    if arm == OPTIMUM:
        return {"p": moons_redrawn.optimum(tasks), "new": moons_redrawn.optimum(new)}
    if arm == TUNED:
        return fine_tuned(
            jax.random.split(key(), SETTINGS["fine_tuning"]["num_starts"]), tasks, new
        )
    if arm in FEATURES:
        return heads.unit(key, tasks, new, FEATURES[arm], SETTINGS["heads"])
    if arm in PROCESSES:
        return fit_process(key, arm, tasks, new)
    if arm == ANGLE:
        shapes, observed = (
            latent_angle.shapes(num_tasks),
            densities.observe(tasks.x_train, tasks.y_train),
        )
        tempered, sizes = SETTINGS["angle_tempered"], SETTINGS["angle"]
        return moons_redrawn.kept(
            moons_redrawn.fit_hierarchical(
                key(), TURNED, shapes, observed, tempered=tempered, **sizes
            )
        )
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
    if arm == CHOSEN:
        observed = densities.observe(new.x_train, new.y_train, scales)
        return moons_redrawn.kept(
            moons_redrawn.fit_flat(key(), observed, max_tree_depth=8, **sizes)
        )
    tasks = joined(tasks, new)
    shapes = hierarchical.shapes(moons_redrawn.NETWORK, len(tasks.y_train), 2)
    observed = densities.observe(tasks.x_train, tasks.y_train)
    return moons_redrawn.kept(
        moons_redrawn.fit_hierarchical(key(), moons_redrawn.HIERARCHICAL, shapes, observed, **sizes)
    )


def joined(tasks, new):
    """Return all tasks as one data set, the new ones last."""
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), tasks, new)


def sample_process(key, tasks, odd, prior, alone):
    """Sample processes: each task ``alone``, by scales of its own, or all together by the same."""
    num_tasks = len(tasks.y_train)
    phi, prior = (
        gaussian_processes.functions(tasks.x_train, odd),
        [np.float32(part) for part in prior],
    )
    shape = phi.shape[2:] if alone else (num_tasks, *phi.shape[2:])
    shapes = {
        name: jax.ShapeDtypeStruct(of, jnp.float32) for name, of in (("scales", (2,)), ("z", shape))
    }
    batch = (num_tasks, moons_redrawn.NUM_CHAINS) if alone else (moons_redrawn.NUM_CHAINS,)
    starts = mcmc.normal_starts(key("starts"), shapes, batch)
    if alone:
        prior = [np.broadcast_to(part, (num_tasks, *part.shape)) for part in prior]
    labelled = gaussian_processes.Labelled(phi, tasks.y_train, *prior)
    seen = {"tasks" if alone else "data": labelled}
    return mcmc.sample(
        key("chains"),
        gaussian_processes.DENSITIES[odd],
        starts,
        **seen,
        **SETTINGS["process_chains"],
    )


def fit_process(key, arm, tasks, new):
    """Fit the processes of the tasks and of new ones.

    Scales of a task's own have one prior everywhere. Of scales in common, what the tasks tell is a
    new task's prior: the normal distribution of the draws' mean and covariance.
    """
    odd, alone = PROCESSES[arm], arm == ODD_ALONE
    fit = sample_process(partial(key, "tasks"), tasks, odd, PRIOR, alone)
    if not alone:
        found = log_scales(fit.draws["scales"], PRIOR).reshape(-1, 2)
        prior = found.mean(axis=0), np.linalg.cholesky(np.cov(found.T))
    else:
        prior = PRIOR
    of_new = sample_process(partial(key, "new"), new, odd, prior, alone=True)
    kept = {name: moons_redrawn.kept(run, 250) for name, run in (("tasks", fit), ("new", of_new))}
    return kept | {"prior": {"centre": prior[0], "spread": prior[1]}}


def log_scales(position, prior):
    """Return log a and log l of what was sampled, [..., 2]."""
    return prior[0] + np.asarray(position, np.float64) @ prior[1].T


def fine_tuned(keys, tasks, new):
    """Move the most probable network of task 1 on to task 2, and so on: p [start, stage, task,
    point].

    From the last it moves on to each of the new tasks: [start, task, point].
    """
    settings = SETTINGS["fine_tuning"]
    optimizer, scales = optax.adam(settings["learning_rate"]), jnp.ones(3)

    def stage(weights, task):
        def loss(weights):
            return (
                -moons_redrawn.FLAT(
                    weights, densities.Observed(*task, jnp.ones(task[1].shape), scales)
                )
                / task[1].size
            )

        weights, _ = shared.train(loss, weights, optimizer, settings["steps_per_task"])
        return weights, jax.nn.sigmoid(moons_redrawn.NETWORK.apply(weights, tasks.x_test))

    def on_new(weights, task):
        moved, _ = stage(weights, task[:2])
        return jax.nn.sigmoid(moons_redrawn.NETWORK.apply(moved, task[2]))

    def one(key):
        weights, p = jax.lax.scan(
            stage, moons_redrawn.NETWORK.init(key, tasks.x_train[0]), tasks[:2]
        )
        return {"p": p, "new": jax.lax.map(lambda task: on_new(weights, task), new[:3])}

    return jax.jit(lambda keys: jax.lax.map(one, keys))(keys)


def score(drawn, arm, redraw, num_tasks, **_):
    """Scores on the test points, by arm, of the tasks and, by the same name and "new tasks", of new
    ones.
    """
    tasks, new = drawn_tasks(redraw, num_tasks)
    y, y_new = np.asarray(tasks.y_test), np.asarray(new.y_test)
    if arm == OPTIMUM:
        return pair(
            arm,
            moons_redrawn.scored_parts(drawn["p"][None], y),
            moons_redrawn.scored_parts(drawn["new"][None], y_new),
        )
    if arm == TUNED:
        right = 100 * ((drawn["p"] > 0.5) == (y == 1)).mean(axis=-1)  # [start, stage, task]
        seen = {"first_task": right[:, :, 0], "current_task": np.diagonal(right, axis1=1, axis2=2)}
        found = moons_redrawn.scored_starts(drawn["p"][:, -1], y) | {"more": over_starts(seen)}
        return pair(arm, found, moons_redrawn.scored_starts(drawn["new"], y_new))
    if arm in FEATURES:
        return score_heads(drawn, arm, tasks, new)
    if arm in PROCESSES:
        return score_process(drawn, arm, tasks, new)
    if arm == ANGLE:
        p = np.asarray(
            moons_redrawn.probabilities(latent_angle.logits, drawn["draws"], tasks.x_test)
        )
        log_sd = moons_redrawn.of_layers(drawn["draws"]["log_sd"])
        sampler = {
            "sd_by_chain": {
                name: np.exp(np.median(part, axis=1)).tolist() for name, part in log_sd.items()
            }
        }
        more = latent_angle.angle_error(drawn["draws"]["direction"], np.asarray(tasks.angles))
        of_new = latent_angle.of_new_tasks(take(drawn["draws"], np.s_[:, ::4]), new)
        found = moons_redrawn.scored(p, y) | {
            "check": moons_redrawn.checked(drawn, p),
            "sampler": sampler,
            "more": more,
        }
        return pair(arm, found, moons_redrawn.scored_parts(of_new, y_new))
    if arm == CHOSEN:
        p = np.asarray(moons_redrawn.flat_probabilities(drawn["draws"], new.x_test))
        return {
            f"{arm}: new tasks": moons_redrawn.scored(p, y_new)
            | {"check": moons_redrawn.checked(drawn, p)}
        }
    p = np.asarray(
        moons_redrawn.probabilities(moons_redrawn.LOGITS, drawn["draws"], joined(tasks, new).x_test)
    )
    check = moons_redrawn.checked(
        drawn, p, log_sd=moons_redrawn.of_layers(drawn["draws"]["log_sd"])
    )
    of_new = moons_redrawn.scored(p[:, :, num_tasks:], y_new) | {"check": check}
    return {f"{arm}: new tasks": of_new}


def pair(arm, found, of_new):
    """Return both scores of an arm by their names."""
    return {arm: found, f"{arm}: new tasks": of_new}


def score_heads(drawn, arm, tasks, new):
    """Score heads of three kinds: each start of the features alone."""
    size, num_tasks, found = FEATURES[arm], len(tasks.y_train), {}
    y, y_new = np.asarray(tasks.y_test), np.asarray(new.y_test)
    p, by_draw = heads.predictions(drawn, size, tasks, new, SETTINGS["heads"])
    for kind, of_kind in p.items():
        of_tasks = moons_redrawn.scored_starts(of_kind[:, :num_tasks], y)
        found |= pair(
            f"{arm}, {kind}", of_tasks, moons_redrawn.scored_starts(of_kind[:, num_tasks:], y_new)
        )
    found[f"{arm}, {heads.TRAINED}"]["more"] = {
        "decay": heads.best_training(drawn, SETTINGS["heads"])[0],
        "steps": heads.best_training(drawn, SETTINGS["heads"])[1],
        "left_out": float(drawn["left_out"].min()),
    }
    for kind, scale in heads.best(drawn, SETTINGS["heads"]).items():
        left_out = drawn["of_scales"][kind].tolist()
        found[f"{arm}, {kind}"]["more"] = {"scale": scale, "left_out_by_scale": left_out}
    found[f"{arm}, {heads.MCMC}"]["check"] = moons_redrawn.checked(drawn, by_draw)
    return found


def score_process(drawn, arm, tasks, new):
    """Score Gaussian processes."""
    odd, found = PROCESSES[arm], []
    priors = PRIOR, (drawn["prior"]["centre"], drawn["prior"]["spread"])
    for part, of_part, prior in zip(("tasks", "new"), (tasks, new), priors, strict=True):
        run, scales, z = drawn[part], drawn[part]["draws"]["scales"], drawn[part]["draws"]["z"]
        at = log_scales(scales, prior)
        if scales.ndim == 3:  # one for all tasks: [chain, draw, 2]
            at, z = at[None], np.moveaxis(z, 2, 0)
        p = gaussian_processes.probabilities(at, z, of_part.x_test, odd)
        more = {"scales": np.exp(np.median(at.reshape(-1, 2), axis=0)).tolist()}
        check = moons_redrawn.checked(run, p, scales=scales)
        found.append(
            moons_redrawn.scored(p, np.asarray(of_part.y_test)) | {"check": check, "more": more}
        )
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
    return [moons_redrawn.row(name, scores) for name, scores in found.items()]
