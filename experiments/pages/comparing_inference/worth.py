"""What the methods of the ladder are worth to who uses their predictions, on forty other tasks.

Each method has 10^5 gradients a task, as the ladder counts them, and the setting that ``tuning``
chose. The reference is a longer run of the book's sampler. Measures are those of ``uses``, by task,
near the data and farther out.
"""

from helpers import common, densities
from helpers.common import mixed_types, read_result, take

import jax
import numpy as np

from experiments.methods import catalogue, network_fits, runs, scoring
from experiments.pages.comparing_inference import uses
from experiments.problems import six_tasks

REFERENCE = "reference"
# What has a program for one task; a single path of Pathfinder ends long before.
NAMES = [
    name
    for name, method in catalogue.METHODS.items()
    if method.run is not None and name != "Pathfinder"
]
SETTINGS = {"budget": 100_000, "num_tasks": uses.NUM_TASKS}
RUN = {"num_warmup": 300, "num_samples": 2000}  # of the reference
MOST = 4000  # draws of a task that are asked
SMALL = {"name": "MAP", "value": 3e-2}


def units() -> dict[str, dict]:
    """The reference, and each method with its setting."""
    value = catalogue.chosen(read_result("comparing_inference/tuning")["rows"])
    return {name: {"name": name, "value": value.get(name)} for name in (REFERENCE, *NAMES)}


def unit(name: str, value: float | None) -> dict:
    """Return mean predictions and joint probabilities of labels, and what the reference says of its
    chains.
    """
    found, tasks = uses.problem(), uses.problem().tasks
    observed = densities.observe(tasks.x_train, tasks.y_train, six_tasks.PRIOR_SCALES)
    key = common.key(uses.SEED, name)
    x = found.x.reshape(len(found.x), -1, 2)
    if name == REFERENCE:
        posterior = network_fits.fit_flat(key, observed, **RUN)
        vectors = np.asarray(six_tasks.vector_of(posterior.draws))
        asked = {
            task: (vectors[task].reshape(-1, six_tasks.SIZE), np.full(six_tasks.SIZE, np.nan))
            for task in range(len(x))
        }
        more = {
            "some": network_fits.flat_probabilities(posterior.draws, x[:, ::80]),
            **runs.kept_run(posterior),
        }
    else:
        with mixed_types():
            keys = jax.random.split(key, len(observed.y))
            drawn = catalogue.in_turn(name, SETTINGS["budget"], value)(keys, observed)
        drawn, asked, more = jax.tree.map(np.asarray, drawn), {}, {}
        for task in range(len(x)):
            one = take(drawn, task)
            chains = [chain[:count] for chain, count in zip(one.vectors, one.count, strict=True)]
            asked[task] = np.concatenate(chains), one.centre
    linear = name.startswith("Laplace")
    each = []
    for task, (vectors, centre) in asked.items():
        some = vectors[:: max(1, len(vectors) // MOST)]
        p = catalogue.predicted(some, centre, x[task], linear)
        each.append([uses.of_draws(part) for part in np.split(np.asarray(p), 2, axis=1)])
    each = jax.tree.map(
        lambda *leaves: np.stack(leaves), *[jax.tree.map(lambda *a: np.stack(a), *e) for e in each]
    )
    return each | more


def score(drawn: dict, name: str, value: float | None) -> dict:
    """Return measures by task, and the check of the reference's chains."""
    found = uses.as_lists(uses.measured(drawn["mean"], drawn["joint"], uses.problem().q))
    return found | (
        {"check": scoring.check_of_run(drawn, np.asarray(drawn["some"]))}
        if name == REFERENCE
        else {}
    )


rows = uses.rows_of
