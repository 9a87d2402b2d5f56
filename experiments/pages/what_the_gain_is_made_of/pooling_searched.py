"""Five tasks on more data sets, and fifty with all their labels: scales by a search without ends.

``pooling`` shows its folds a thousand of the 2500 labels of fifty tasks, and keeps the hidden scale
at 1. Here folds see all labels, and all three scales are searched: from a start that is the same
everywhere a walk goes by factors of two, one scale at a time or two that trade a factor, to the
best neighbour while that gains, so that no end binds; the best places are ranked again by longer
fits, as in ``arms``. Data sets are those of ``pooling``, and of five tasks half as many more; arms
of five tasks are fitted anew, by longer chains.
"""

from helpers import common, densities

import itertools
from functools import partial

import jax
import numpy as np

from experiments.methods import network_fits, search
from experiments.pages.what_the_gain_is_made_of import arms, pooling

SEED = 3047
SETTINGS = {"start": [0.25, 1.0, 12.0], "factor": 2.0, "least_gain": 0.001, "finalists": 4}
NUM_REDRAWS = {"5, 50": 12, "50, 50": 3}
RUN = {"num_warmup": 500, "num_samples": 2400}
LONG_RUN = {"num_warmup": 500, "num_samples": 4800}  # under a wide hyperprior draws are worth less
CHOSEN, LEARNT = "scales chosen", pooling.LEARNT
ARMS = (CHOSEN, *pooling.SHARED, LEARNT)
# The factor's exponents: one scale moves, or two against each other.
MOVES = [
    move
    for move in itertools.product((-1, 0, 1), repeat=3)
    if np.abs(move).sum() == 1 or (np.abs(move).sum() == 2 and sum(move) == 0)
]
SMALL = {"setting": "2, 5", "arm": CHOSEN, "redraw": 0}


def places():
    """Return settings and the arms at each: of fifty tasks the others are stored."""
    return [("5, 50", arm) for arm in ARMS] + [("50, 50", CHOSEN)]


def units():
    """An arm at one setting on a data set each, the longest first."""
    return {
        f"{setting}, {arm}, {i}": {"setting": setting, "arm": arm, "redraw": i}
        for setting, arm in reversed(places())
        for i in range(NUM_REDRAWS[setting])
    }


def searched(key, tasks):
    """Return the triple of the least NLL left out, all places that were tried, and their NLLs."""
    key_short, key_long = jax.random.split(key)

    def scales_at(place):
        return np.multiply(SETTINGS["start"], SETTINGS["factor"] ** np.array(place, float))

    def loss(key, length, place):
        # one key for all, so that chance is alike at neighbouring places
        return float(pooling.left_out(key, tasks, [scales_at(place)], **arms.SETTINGS[length])[0])

    found = search.walked(partial(loss, key_short, "short"), MOVES, SETTINGS["least_gain"])
    finalists = sorted(found, key=found.get)[: SETTINGS["finalists"]]
    best = min(finalists, key=partial(loss, key_long, "long"))
    return {
        "scales": scales_at(best),
        "tried": np.array([*found]),
        "held_out": np.array([*found.values()]),
    }


def unit(setting, arm, redraw):
    """Fit one arm, with what it chose."""
    (tasks,) = pooling.problem(setting, redraw)
    key_search, key = jax.random.split(common.key(SEED, setting, arm, redraw))
    if arm == CHOSEN:
        found = searched(key_search, tasks)
        scales = np.tile(found["scales"], (len(tasks.x_train), 1))
        observed = densities.observe(tasks.x_train, tasks.y_train, scales)
        return found | network_fits.thinned_run(
            network_fits.fit_flat(key, observed, **pooling.LONG_RUN)
        )
    observed = densities.observe(tasks.x_train, tasks.y_train)
    density, means = (arms.WIDE, ()) if arm == LEARNT else (pooling.SHARED[arm], None)
    sizes = RUN if arm == ARMS[1] else LONG_RUN
    return network_fits.thinned_run(arms.fit_shared(key, density, observed, means, **sizes))


def score(drawn, setting, arm, redraw):
    """Scores on the test points, as in ``pooling``, and what the search chose."""
    found = pooling.score(drawn, setting, arm, redraw)
    if arm == CHOSEN:
        found["more"] |= {"tried": len(drawn["tried"])}
    return found


def rows(scored):
    """Rows as of ``pooling``."""
    return pooling.rows_of(scored, places(), NUM_REDRAWS)
