"""What each recipe of the page ``which-method`` is worth: the code that is printed there, as it
stands, on data of its situation.

Rotated moons of 50 labels as a data frame, in 18 groups, in 5, or of sizes from 5 to 150; groups
that were not there, of 5 labels; and for B a wave that is measured with noise. A recipe without
groups is run on some of them, one by one, and its rivals are scored on the same. Fixed before any
run: gains are paired over redraws, and a fit counts as usable if its own verdict says so.
"""

from helpers import common

import hashlib
import time

import jax
import numpy as np
import pandas as pd

from experiments.methods import scoring
from experiments.pages.which_method import code_to_copy
from experiments.problems import moons_redrawn, waves

SETTINGS = {
    "seed": 3043,  # of B's data
    "num_redraws": 6,
    "num_alone": 3,  # groups on which recipes without groups are run
    "few": 5,  # labels of a group that is new
    "sizes": [5, 15, 50, 100, 150],  # of four groups each
    "units": {  # by situation the recipes that are run on its data, G after D
        "18 groups": ["A", "C", "DG", "D with biases"],
        "5 groups": ["A", "C", "D"],
        "unequal groups": ["A", "D"],
        "numbers": ["B"],
    },
    "recipes": {
        name: hashlib.sha256(code.encode()).hexdigest()[:16]
        for name, code in code_to_copy.RECIPES.items()
    },
}
SMALL = {"situation": "5 groups", "recipe": "A", "redraw": 0}


def units():
    """A recipe on a data set of its situation each."""
    return {
        f"{situation}, {recipe}, {i}": {"situation": situation, "recipe": recipe, "redraw": i}
        for i in range(SETTINGS["num_redraws"])
        for situation, recipes in SETTINGS["units"].items()
        for recipe in recipes
    }


def moons(situation, redraw):
    """Return training and test rows of groups of moons."""
    if situation == "unequal groups":
        parts = [
            moons_redrawn.drawn("size", size, redraw, num_tasks=4, num_train=size)
            for size in SETTINGS["sizes"]
        ]
    elif situation == "5 groups":
        parts = [moons_redrawn.drawn("pooling", "5, 50", redraw, num_tasks=5)]
    else:
        parts = [moons_redrawn.drawn(redraw)]
    frames = [
        [rows_of(x, y, f"part {i}") for x, y in ((p.x_train, p.y_train), (p.x_test, p.y_test))]
        for i, p in enumerate(parts)
    ]
    return tuple(pd.concat(each, ignore_index=True) for each in zip(*frames, strict=True))


def rows_of(x, y, name):
    """Return points [task, point, 2] and labels as a data frame."""
    num_tasks, num_points = y.shape
    x = np.asarray(x, np.float64).reshape(-1, 2)
    group = np.repeat([f"{name}, group {i:02d}" for i in range(num_tasks)], num_points)
    labels = np.asarray(y).ravel() == 1
    return pd.DataFrame({"x1": x[:, 0], "x2": x[:, 1], "y": labels, "group": group})


def unit(situation, recipe, redraw):
    """Run the code; return scores, processor seconds, and whether its fit can be used."""
    if recipe == "B":
        return of_numbers(redraw)
    frame, later = moons(situation, redraw)
    if recipe == "C":
        return of_groups_alone(frame, later, "C")
    space = {"frame": frame, "later": later.drop(columns="y")}
    name = "D" if recipe == "DG" else recipe
    found = {name: ran(name, space) | of_labels(space["p"], later)}
    return found | (of_new_groups(space, redraw) if recipe == "DG" else {})


def ran(name, space):
    """Run a recipe's code in a name space; return processor seconds and its fit's verdict."""
    code = code_to_copy.RECIPES[name[0]]
    if name.endswith("with biases"):
        code = code.replace("hidden=(5, 5)", "hidden=(5, 5), use_bias=True")
    begin = time.process_time()
    exec(code, space)
    return {"seconds": time.process_time() - begin, "usable": bool(space["fit"].check.ok)}


def of_labels(p, rows):
    """Return scores of draws p [chain, draw, row], and the NLL of each group."""
    y = rows["y"].to_numpy().astype(int)
    mean = p.mean(axis=(0, 1))
    nll = -np.log(np.where(y == 1, mean, 1 - mean))
    found = {name: value for name, value in scoring.scored(p, y).items() if "by_chain" not in name}
    return found | {
        "nll_by_group": pd.Series(nll).groupby(rows["group"].to_numpy()).mean().to_list()
    }


def of_groups_alone(frame, later, name):
    """Run a recipe on one group after the other."""
    each = []
    for group in sorted(frame.group.unique())[: SETTINGS["num_alone"]]:
        rows = later[later.group == group]
        space = {"frame": frame[frame.group == group], "later": rows.drop(columns="y")}
        each.append(ran(name, space) | of_labels(space["p"], rows))
    return {name: over(each)}


def of_new_groups(space, redraw):
    """Run G on groups that D has not seen, one by one."""
    tasks = moons_redrawn.drawn("new", redraw, num_tasks=SETTINGS["num_alone"])
    known = rows_of(tasks.x_train[:, : SETTINGS["few"]], tasks.y_train[:, : SETTINGS["few"]], "new")
    later, each = rows_of(tasks.x_test, tasks.y_test, "new"), []
    for group, few in known.groupby("group"):
        rows = later[later.group == group]
        space |= {"few": few, "later": rows.drop(columns="y")}
        each.append(ran("G", space) | of_labels(space["p"], rows))
        each[-1]["usable"] &= space["forecast"].pareto_k < 0.7
    return {"G": over(each)}


def over(each):
    """Return means over groups; of the verdicts the share that can be used."""
    found = {name: float(np.mean([one[name] for one in each])) for name in ("nll", "seconds")}
    found |= {"usable": float(np.mean([one["usable"] for one in each]))}
    errors = [one["nll_error"] for one in each]
    found |= {"nll_error": float(np.sqrt(np.sum(np.square(errors))) / len(each))}
    return found | {"nll_by_group": [one["nll"] for one in each]}


def of_numbers(redraw):
    """Run B on a wave; return the share of outcomes within its band, inside and outside."""
    wave = jax.jit(waves.wave)(common.key(SETTINGS["seed"], "data", redraw))
    x = np.asarray(wave.x_test, np.float64)
    frame = pd.DataFrame({"x": np.asarray(wave.x_train)[:, 0], "y": np.asarray(wave.y_train)})
    space = {"frame": frame.astype(float), "later": pd.DataFrame({"x": x[..., 0].ravel()})}
    found = ran("B", space)
    y = np.asarray(wave.y_test).ravel()
    within = ((space["low"] < y) & (y < space["high"])).reshape(x.shape[:2]).mean(axis=1)
    return {"B": found | dict(zip(("inside", "outside"), within.tolist(), strict=True))}


def rows(scored):
    """A row a situation and recipe, with entries over redraws."""
    found = {}
    for name, of in scored.items():
        situation = name.split(", ")[0]
        for recipe, one in of.items():
            place = "new groups" if recipe == "G" else situation
            found.setdefault((place, recipe), []).append(one)
    return [
        {"situation": place, "recipe": recipe} | scoring.joined(each)
        for (place, recipe), each in found.items()
    ]
