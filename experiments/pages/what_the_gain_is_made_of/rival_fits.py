"""The fits of ``rivals``: Gaussian processes, one network trained on task after task, and the
hierarchical network that meets new tasks one at a time.
"""

from helpers import densities, hierarchical, mcmc, training
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.methods import gaussian_processes, latent_angle, network_fits, runs
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
    "one_at_a_time": {
        "seed": 3014,
        # of the other tasks alone, whose chains' ends are the starts
        "before": {"num_warmup": 300, "num_samples": 100},
        "after": {"num_warmup": 200, "num_samples": 500},
        "num_kept": 250,  # draws of each chain that predict
    },
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}
OPTIMUM, TUNED, ANGLE = "Bayes optimum", "fine-tuned in turn", "latent angle"
CHOSEN, SHARED = "chosen over tasks", "shared, N+(0, 1)"
ONE_AT_A_TIME = f"{SHARED}: new tasks, one at a time"
FEATURES = {"5 features": 5, "32 features": 32}
ODD_ALONE, ODD, ANY = (
    "odd Gaussian process a task",
    "odd Gaussian process, one scale",
    "Gaussian process, one scale",
)
PROCESSES = {ODD_ALONE: True, ODD: True, ANY: False}  # whether it is odd
TURNED = latent_angle.log_density(SETTINGS["hyperprior"])
# of log a and log l
PRIOR = np.log(SETTINGS["process"]["median"]), np.diag(SETTINGS["process"]["sd"])


def drawn_tasks(redraw, num_tasks):
    """Return the tasks of a data set and the new ones."""
    return moons_redrawn.drawn(redraw, num_tasks=num_tasks), moons_redrawn.drawn(
        "new", redraw, num_tasks=SETTINGS["num_new"]
    )


def joined(tasks, new):
    """Return all tasks as one data set, the new ones last."""
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), tasks, new)


def sample_process(key, tasks, odd, prior, alone):
    """Sample processes: each task ``alone``, by scales of its own, or all together by the same."""
    keys, together = (key("starts"), key("chains")), not alone
    lengths = {"num_chains": network_fits.NUM_CHAINS, **SETTINGS["process_chains"]}
    x, y = tasks.x_train, tasks.y_train
    return gaussian_processes.sample(keys, x, y, odd, prior, together, **lengths)


def fit_process(key, arm, tasks, new):
    """Fit the processes of the tasks and of new ones.

    Scales of a task's own have one prior everywhere. Of scales in common, what the tasks tell is a
    new task's prior: the normal distribution of the draws' mean and covariance.
    """
    odd, alone = PROCESSES[arm], arm == ODD_ALONE
    fit = sample_process(partial(key, "tasks"), tasks, odd, PRIOR, alone)
    at = gaussian_processes.log_scales(fit.draws["scales"], PRIOR)
    prior = PRIOR if alone else gaussian_processes.prior_of(at)
    of_new = sample_process(partial(key, "new"), new, odd, prior, alone=True)
    fits = {"tasks": fit, "new": of_new}
    kept = {name: network_fits.thinned_run(run, 250) for name, run in fits.items()}
    return kept | {"prior": {"centre": prior[0], "spread": prior[1]}}


def fine_tuned(keys, tasks, new):
    """Move the top network of task 1 on to task 2, and so on: p [start, stage, task, point].

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

        weights, _ = training.train(loss, weights, optimizer, settings["steps_per_task"])
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


def one_at_a_time(key, tasks, new):
    """Fit the tasks, then the tasks and one new task, for each in turn."""
    settings, num_tasks = SETTINGS["one_at_a_time"], len(tasks.y_train)
    before, after = (densities.observe(one.x_train, one.y_train) for one in (tasks, new))
    shapes = hierarchical.shapes(moons_redrawn.NETWORK, num_tasks, 2)
    fit = network_fits.fit_hierarchical(
        key("before"), moons_redrawn.HIERARCHICAL, shapes, before, **settings["before"]
    )
    starts = with_one_more(key("offsets"), take(fit.draws, np.s_[:, -1]), len(new.y_train))
    both = [each_joined(*parts) for parts in zip(before[:3], after[:3], strict=True)]
    observed, sizes = densities.Observed(*both), settings["after"]
    fit = mcmc.sample(key("chains"), moons_redrawn.HIERARCHICAL, starts, tasks=observed, **sizes)
    draws = take(fit.draws, np.s_[:, :, :: sizes["num_samples"] // settings["num_kept"]])
    return {"weights": last_weights(draws), "log_sd": draws["log_sd"], **runs.kept_run(fit)}


def each_joined(before, after):
    """Return the tasks and, last, one new task: [new task, task, ...]."""
    return jnp.concatenate(
        [jnp.broadcast_to(before, (len(after), *before.shape)), after[:, None]], axis=1
    )


def with_one_more(key, ends, num_new):
    """Return the positions in which chains ended, for each new task with an offset of its own: [new
    task, chain].
    """
    starts = jax.tree.map(lambda a: jnp.broadcast_to(a, (num_new, *a.shape)), ends)
    shapes = hierarchical.shapes(moons_redrawn.NETWORK, 1, 2)["offset"]
    fresh = mcmc.normal_starts(key, shapes, (num_new, network_fits.NUM_CHAINS))
    return starts | {
        "offset": jax.tree.map(
            lambda a, b: jnp.concatenate([a, b], axis=2), starts["offset"], fresh
        )
    }


@jax.jit
def last_weights(draws):
    """Return the weights of the new task, [new task, chain, draw]."""

    def of_position(position):
        num_tasks = jax.tree.leaves(position["offset"])[0].shape[0]
        return take(hierarchical.task_weights(position, num_tasks), -1)

    return jax.vmap(jax.vmap(jax.vmap(of_position)))(draws)
