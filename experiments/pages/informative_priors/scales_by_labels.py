"""Which scales a network with few labels should have: chosen on training tasks, for each number of
labels.

The one rule of choice, where the claim is about new tasks: every training task plays the new one.
It is fitted to so few of its labels, and what counts is the NLL of the others; two or three times,
to labels that no other fit of it has seen. The four best triples are fitted again, longer. With all
labels the rule is five folds, as everywhere in the book (``flat_bnn/prior_scale``).
"""

from helpers import common, densities

import itertools

import jax
import numpy as np

from experiments.methods import network_fits, scoring
from experiments.problems import new_tasks

SETTINGS = {
    "seed": 3021,
    "num_redraws": 5,
    "sizes": [2, 5, 10, 25],
    "most_blocks": 3,
    # A factor moves between layers where tanh is a line, so that two of them may be coarse.
    "input_scales": [0.0625, 0.25, 1.0],
    "hidden_scales": [0.125, 0.5, 2.0],
    "output_scales": [1.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0],
    "short": {"num_chains": 2, "num_warmup": 100, "num_samples": 60, "max_tree_depth": 6},
    "long": {"num_chains": 2, "num_warmup": 150, "num_samples": 200, "max_tree_depth": 8},
    "finalists": 4,
}
GRID = SETTINGS["input_scales"], SETTINGS["hidden_scales"], SETTINGS["output_scales"]
TRIPLES = [list(triple) for triple in itertools.product(*GRID)]
LENGTHS = {"short": SETTINGS["short"], "long": SETTINGS["long"]}


def units():
    """A number of labels on the training tasks of a redraw each."""
    redrawn = range(SETTINGS["num_redraws"])
    return {
        f"{n} labels, {i}": {"redraw": i, "size": n, "num_tasks": 18}
        for i in redrawn
        for n in SETTINGS["sizes"]
    }


SMALL = {"redraw": 0, "size": 5, "num_tasks": 4}


def unit(redraw, size, num_tasks):
    """Return the NLL left out, [triple, chains, task], by short fits, then longer of the best."""
    seen = jax.tree.map(lambda a: a[:num_tasks], new_tasks.training(redraw))

    def ranked(which, name):
        keys = (common.key(SETTINGS["seed"], redraw, size, name, int(i)) for i in which)
        return np.stack(
            [left_out(k, seen, size, TRIPLES[i], name) for i, k in zip(which, keys, strict=True)]
        )

    short = ranked(range(len(TRIPLES)), "short")
    best = np.argsort(short[:, 0].mean(axis=1))[: SETTINGS["finalists"]]
    return {"short": short, "best": best, "long": ranked(best, "long")}


def left_out(key, seen, size, scales, name):
    """NLL left out of fits under one prior, [chains, task]: of all chains, then of each."""
    (num_tasks, num_points), sizes = seen.y_train.shape, LENGTHS[name]
    order = np.arange(num_points)
    blocks = [
        order[i * size : (i + 1) * size]
        for i in range(min(SETTINGS["most_blocks"], num_points // size))
    ]
    x, y = (np.concatenate([a[:, block] for block in blocks]) for a in (seen.x_train, seen.y_train))
    fit = network_fits.fit_flat(key, densities.observe(x, y, scales), **sizes)
    p = network_fits.flat_probabilities(fit.draws, np.concatenate(len(blocks) * [seen.x_train]))
    p = with_each(np.asarray(p).reshape(*p.shape[:2], len(blocks), num_tasks, num_points))
    others = np.stack([np.setdiff1d(order, block) for block in blocks])  # [block, point]
    p = np.take_along_axis(p, others[None, :, None], axis=-1)
    y = np.stack([np.asarray(seen.y_train)[:, other] for other in others])
    return np.array(
        [[scoring.score_of(q[:, t], y[:, t])["nll"] for t in range(num_tasks)] for q in p]
    )


def with_each(p):
    """Mean over draws [chain, draw, ...] of all chains, then of each alone, [chains, ...]."""
    return np.concatenate([p.mean(axis=(0, 1))[None], p.mean(axis=1)])


def score(drawn, **_):
    """Mean NLL of every triple, its error by how the chains differ, and the triple chosen."""

    def of(values, name):
        apart = values[:, 1:].std(axis=1, ddof=1) / np.sqrt(values.shape[1] - 1)  # [triple, task]
        error = np.sqrt((apart**2).mean(axis=1) / values.shape[-1])
        return {name: values[:, 0].mean(axis=1).tolist(), f"{name}_error": error.tolist()}

    best = int(drawn["best"][drawn["long"][:, 0].mean(axis=1).argmin()])
    finalists = {"finalists": [TRIPLES[i] for i in drawn["best"]], "scales": TRIPLES[best]}
    return of(drawn["short"], "held_out_nll") | of(drawn["long"], "finalists_nll") | finalists


def rows(scored):
    """A row for each number of labels, lists over redraws."""
    found = []
    for n in SETTINGS["sizes"]:
        each = [scored[f"{n} labels, {i}"] for i in range(SETTINGS["num_redraws"])]
        found.append(
            {"labels": n, "triples": TRIPLES} | {key: [one[key] for one in each] for key in each[0]}
        )
    return found
