"""The arm of ``transfer`` that takes nothing from other tasks but scales, chosen for as many labels
as there are.

The triples are those of the stored ``scales_by_labels``: the training tasks of the same redraw
chose them, each in the part of a new task. With fifty labels they are those that the sources' tasks
chose by five folds. New tasks, labels, sampler and scores are those of ``transfer``, so that scores
pair.
"""

from helpers import common
from helpers.common import read_result

import numpy as np

from experiments.engine import headlines
from experiments.methods import learnt_group
from experiments.pages.informative_priors import transfer
from experiments.problems import new_tasks

SETTINGS = {"seed": 3022, "name": "scales chosen for as many labels"}


def units():
    """A number of labels on one kind of tasks in one redraw each."""
    chosen = {
        row["labels"]: row["scales"]
        for row in read_result("informative_priors/scales_by_labels")["rows"]
    }
    redrawn = range(transfer.SETTINGS["num_redraws"])
    # before any label an odd network is at one half on average, whatever its scales
    chosen[0] = chosen[min(chosen)]
    chosen[50] = [headlines.chosen_network()["scales"] for _ in redrawn]
    few = transfer.FEW_SIZES
    wanted = [("moons", transfer.NEW_SIZES), *((kind, few) for kind in new_tasks.ELSEWHERE)]
    return {
        f"{kind}: {size} labels, {i}": {
            "kind": kind,
            "redraw": i,
            "size": size,
            "scales": chosen[size][i],
        }
        for kind, sizes in wanted
        for i in redrawn
        for size in sizes
    }


SMALL = {"kind": "clouds", "redraw": 0, "size": 5, "scales": [0.5, 1.0, 3.0]}


def unit(kind, redraw, size, scales):
    """Sample every task under one prior."""
    prior = np.zeros(learnt_group.SIZE, np.float32), np.diag(np.float32(scales)[learnt_group.LAYER])
    return transfer.sampled(
        common.key(SETTINGS["seed"], kind, redraw), prior, new_tasks.new(kind, redraw), [size]
    )


def score(drawn, kind, redraw, size, scales):
    """Scores, and what tells whether they can be trusted, as ``transfer`` has them."""
    return transfer.score(drawn, kind, SETTINGS["name"], redraw, [size], scales)


def rows(scored):
    """A row for each kind of tasks, with entries over redraws, and in them over numbers of
    labels.
    """
    found = {}
    for one in scored.values():
        found.setdefault(one["tasks"], []).append(one)
    return [row(kind, parts) for kind, parts in found.items()]


def row(kind, parts):
    """Join the numbers of labels of each redraw."""
    num_sizes = len(parts) // transfer.SETTINGS["num_redraws"]
    redrawn = [parts[i : i + num_sizes] for i in range(0, len(parts), num_sizes)]
    names = parts[0]["scores"]
    return {
        "tasks": kind,
        "name": SETTINGS["name"],
        "sizes": [one["sizes"][0] for one in redrawn[0]],
        "scales": [[one["scales"] for one in each] for each in redrawn],
        "scores": [
            {name: [one["scores"][name][0] for one in each] for name in names} for each in redrawn
        ],
        "checks": [one["checks"] for one in parts],
    }
