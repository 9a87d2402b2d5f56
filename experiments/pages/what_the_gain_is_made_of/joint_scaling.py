"""What does it change that the sources scale training and test points together?

Their recipe, as ``centres`` draws it, with the same training and test points, but centred and
scaled by the 50 training points alone: flat networks under the chosen scales, to be paired with
those of ``centres`` that are scaled by all 100 points. Fixed before any run: a difference in NLL
below 0.005 is called none.
"""

from helpers import common, data, densities

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import network_fits, scoring
from experiments.pages.what_the_gain_is_made_of import centres

SETTINGS = {"seed": 3044, "num_redraws": 24, "threshold_nll": 0.005}
SETTINGS |= {"scales": centres.SETTINGS["scales"]["as now"], "sizes": centres.SETTINGS["alone"]}


def units():
    """A fit of a data set each."""
    return {
        str(i): {"redraw": i, "num_tasks": 18, **SETTINGS["sizes"]}
        for i in range(SETTINGS["num_redraws"])
    }


SMALL = {"redraw": 0, **centres.SHORT}


def drawn(redraw, num_tasks):
    """Return tasks of the sources' recipe, about the centre and in the scale of training points."""
    tasks = jax.tree.map(lambda leaf: leaf[:num_tasks], centres.of_sources(redraw))
    raw_train, raw_test = (data.to_raw(tasks, x) for x in (tasks.x_train, tasks.x_test))
    location, scale = raw_train.mean(axis=1), raw_train.std(axis=1)
    x_train, x_test = (
        jax.vmap(data.to_task)(raw, tasks.angles, location, scale) for raw in (raw_train, raw_test)
    )
    return tasks._replace(x_train=x_train, x_test=x_test, location=location, scale=scale)


def unit(redraw, num_tasks, **sizes):
    """Fit each task of a data set alone."""
    tasks = drawn(redraw, num_tasks)
    scales = jnp.array(SETTINGS["scales"])
    observed = densities.observe(tasks.x_train, tasks.y_train, scales)
    key = common.key(SETTINGS["seed"], redraw)
    return network_fits.thinned_run(network_fits.fit_flat(key, observed, **sizes))


def score(drawn_, redraw, num_tasks, **_):
    """Scores on the test points, with the check of the run."""
    tasks = drawn(redraw, num_tasks)
    y = np.asarray(tasks.y_test)
    p = np.asarray(network_fits.flat_probabilities(drawn_["draws"], tasks.x_test))
    optimum = np.asarray(data.bayes_optimum(tasks, tasks.x_test))
    found = scoring.scored(p, y) | {"check": scoring.check_of_run(drawn_, p)}
    return found | {"optimum": scoring.score_of(optimum, y)["nll"]}


def rows(scored):
    """One row, with entries over data sets."""
    return [scoring.row("scaled by training points", list(scored.values()))]
