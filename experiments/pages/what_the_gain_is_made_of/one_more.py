"""The hierarchical network on the new tasks of ``rivals``: each of them alone joins the eighteen
that came before it.

In ``rivals`` all six new tasks are fitted with the eighteen, so that the prior is learnt from
twenty-four; the others there have learnt from eighteen. Here a new task meets a prior that eighteen
others and its own labels tell.
"""

from helpers import common, densities, hierarchical, mcmc
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import network_fits, runs, scoring
from experiments.pages.what_the_gain_is_made_of import rival_fits
from experiments.problems import moons_redrawn

SETTINGS = {
    "seed": 3014,
    "num_redraws": 8,  # those of ``rivals``
    # of the eighteen alone, whose chains' ends are the starts
    "before": {"num_warmup": 300, "num_samples": 100},
    "num_warmup": 200,
    "num_samples": 500,
    "num_kept": 250,  # draws of each chain that predict
}
NAME = "shared, N+(0, 1): new tasks, one at a time"
SMALL = {"redraw": 0, "num_tasks": 5}


def units():
    """A data set each."""
    return {f"redraw {i}": {"redraw": i, "num_tasks": 18} for i in range(SETTINGS["num_redraws"])}


def unit(redraw, num_tasks):
    """Fit the tasks, then the tasks and one new task, for each in turn."""
    tasks, new = rival_fits.drawn_tasks(redraw, num_tasks)
    key = partial(common.key, SETTINGS["seed"], redraw)
    before, after = (densities.observe(one.x_train, one.y_train) for one in (tasks, new))
    shapes = hierarchical.shapes(moons_redrawn.NETWORK, num_tasks, 2)
    fit = network_fits.fit_hierarchical(
        key("before"), moons_redrawn.HIERARCHICAL, shapes, before, **SETTINGS["before"]
    )
    starts = with_one_more(key("offsets"), take(fit.draws, np.s_[:, -1]), len(new.y_train))
    both = [joined(*parts) for parts in zip(before[:3], after[:3], strict=True)]
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
    observed = densities.Observed(*both)
    fit = mcmc.sample(key("chains"), moons_redrawn.HIERARCHICAL, starts, tasks=observed, **sizes)
    draws = take(fit.draws, np.s_[:, :, :: SETTINGS["num_samples"] // SETTINGS["num_kept"]])
    return {"weights": last_weights(draws), "log_sd": draws["log_sd"], **runs.kept_run(fit)}


def joined(before, after):
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


def score(drawn, redraw, num_tasks):
    """Scores on the new tasks' test points."""
    _, new = rival_fits.drawn_tasks(redraw, num_tasks)
    p = np.asarray(network_fits.flat_probabilities(drawn["weights"], new.x_test))
    check = scoring.check_of_run(drawn, p, log_sd=drawn["log_sd"])
    return scoring.scored(p, np.asarray(new.y_test)) | {"check": check}


def rows(scored):
    """The one row, with entries over data sets."""
    return [scoring.row(NAME, list(scored.values()))]
