"""When pooling pays: number of tasks, labels per task, unequal sizes, noise, one alien task.

At every setting 20 redrawn data sets; separate networks under N(0, 1), separate networks under the scales that
cross-validation chose on the sources' tasks (numbers of the stored ``prior_scale``), and the hierarchical network.
"""

from helpers import densities, hierarchical

import jax
import jax.numpy as jnp
import numpy as np

from experiments import headlines, shared
from experiments.what_the_gain_is_made_of import redraws

SETTINGS = {
    "seed": 3002,
    "num_redraws": 20,
    "num_tasks": [2, 5, 50],
    "num_train": [5, 15, 200],
    "noise": [0.2, 0.5],
    "sizes": [5, 15, 50, 100, 150],  # four tasks of each, in one fit and alone
    "tempered": redraws.TEMPERED,
    "num_warmup": 300,
    "num_samples": 400,
    "num_kept": 200,  # draws of each chain that predict
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}
BASE = {"num_tasks": 18, "num_train": 50, "noise": 0.3}  # its data sets are those of attribution
PLACES = [("base", 18), *[(what, value) for what in BASE for value in SETTINGS[what]]]
PLACES += [("unequal sizes", len(SETTINGS["sizes"])), ("alien", 1)]
ARMS = ("N(0, 1)", "chosen scales", "hierarchical")
SIZES = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
SMALL = {"what": "num_tasks", "value": 5, "arm": "hierarchical", "scales": None, "redraw": 0, **SIZES}


def units():
    """An arm at one setting on a data set each."""
    scales = dict(zip(ARMS, ([1.0, 1.0, 1.0], headlines.chosen()["scales"], None), strict=True))
    return {
        name: {"what": what, "value": value, "arm": arm, "scales": scales[arm], "redraw": i, **SIZES}
        for what, value in PLACES
        for arm in ARMS
        for i, name in enumerate(names_of(what, value, arm))
    }


def names_of(what, value, arm):
    """Return the names of an arm's units at one setting."""
    return [f"{what} {value}, {arm}, {i}" for i in range(SETTINGS["num_redraws"])]


def problem(what, value, redraw):
    """Return training points, labels and their weights, test points and labels; all with a leading axis [task]."""
    if what == "unequal sizes":
        return unequal(redraw)
    moved = {what: value} if what in BASE else {}
    tasks = redraws.drawn(*([what, value] if moved else []), redraw, **{**BASE, **moved})
    x, y, x_test, y_test = tasks[:4]
    if what == "alien":  # in the place of the last task, so that the others can be compared
        strange = stripes(shared.key(redraws.SEED, "alien", redraw), BASE["num_train"] + redraws.NUM_TEST)
        (x, x_test), (y, y_test) = (
            (train.at[-1].set(new[: BASE["num_train"]]), test.at[-1].set(new[BASE["num_train"] :]))
            for train, test, new in zip((x, y), (x_test, y_test), strange, strict=True)
        )
    return x, y, jnp.ones(y.shape), x_test, y_test


def unequal(redraw):
    """Four tasks of each size, each scaled by its own training points, padded to the largest."""
    parts = []
    for size in SETTINGS["sizes"]:
        tasks = redraws.drawn("size", size, redraw, num_tasks=4, num_train=size)
        pad = [(0, 0), (0, max(SETTINGS["sizes"]) - size)]
        x, y = jnp.pad(tasks.x_train, [*pad, (0, 0)]), jnp.pad(tasks.y_train, pad)
        parts.append((x, y, jnp.pad(jnp.ones(tasks.y_train.shape), pad), tasks.x_test, tasks.y_test))
    return [jnp.concatenate(leaves) for leaves in zip(*parts, strict=True)]


def stripes(key, num_points):
    """An alien task: stripes across a random direction, one label in ten wrong."""
    key_x, key_angle, key_flip = jax.random.split(key, 3)
    x = jax.random.normal(key_x, (num_points, 2))
    angle = 2 * jnp.pi * jax.random.uniform(key_angle)
    side = jnp.sin(2.5 * (x @ jnp.array([jnp.cos(angle), jnp.sin(angle)]))) > 0
    return x, (side ^ jax.random.bernoulli(key_flip, 0.1, (num_points,))).astype(jnp.int32)


def unit(what, value, arm, scales, redraw, **sizes):
    """Fit one arm, separate networks under ``scales`` or, without, the hierarchical network."""
    x, y, weight, *_ = problem(what, value, redraw)
    key = shared.key(SETTINGS["seed"], what, value, arm, redraw)
    observed = densities.observe(x, y, scales, weight=weight)
    if scales is None:
        shapes = hierarchical.shapes(redraws.NETWORK, len(y), 2)
        posterior = redraws.fit_hierarchical(key, redraws.HIERARCHICAL, shapes, observed, **sizes)
    else:
        posterior = redraws.fit_flat(key, observed, **sizes)
    return redraws.kept(posterior, SETTINGS["num_kept"])


def score(drawn, what, value, scales, redraw, **_):
    """Scores on the test points, and the NLL of every task."""
    *_, x_test, y_test = problem(what, value, redraw)
    if scales is None:
        p = np.asarray(redraws.probabilities(redraws.LOGITS, drawn["draws"], x_test))
        found = redraws.with_sampler(drawn, p, y_test)
    else:
        p = np.asarray(redraws.flat_probabilities(drawn["draws"], x_test))
        found = redraws.scored(p, y_test) | {"check": redraws.checked(drawn, p)}
    of_tasks = [(p[:, :, task], y_test[task]) for task in range(len(y_test))]
    of_tasks = [redraws.scored(*one) for one in of_tasks]
    more = {f"task_{name}": [round(one[name], 6) for one in of_tasks] for name in ("nll", "nll_error")}
    return found | {"more": more}


def rows(scored):
    """A row for each arm at each setting, with entries over data sets."""
    found = []
    for what, value in PLACES:
        for arm in ARMS:
            row = redraws.row(f"{what} {value}, {arm}", [scored[name] for name in names_of(what, value, arm)])
            row["more"] |= {"what": what, "value": value, "arm": arm}
            found.append(row)
    return found
