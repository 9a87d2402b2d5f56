"""Does the input layer turn the tasks? The arm of ``attribution`` in which it alone differs, looked
at from within.

The scales of all layers' means are learnt, under the sources' hyperprior. Of each task's input
layer the posterior mean is described in three ways, each scored on the task left out, given its
true angle: the whole layer turns; a part of it turns, beside one that is the same for all tasks;
every weight is a wave of the angle, once around the circle. And the angles are read off the weights
without being given, where a part turns.
"""

import numpy as np

from experiments.methods import angles
from experiments.pages.what_the_gain_is_made_of import attribution
from experiments.problems import moons_redrawn

ARM = f"input layer alone, means' scale learnt, {attribution.NARROW}"
SETTINGS = {
    "arm": ARM,
    "num_redraws": 8,
    "num_warmup": 300,
    "num_samples": 800,
    "target_acceptance": 0.95,  # at 0.8 up to one trajectory in a hundred diverges
    "exchanges": 200,
    "seed": 3014,
}


def units():
    """A data set each."""
    names = "num_warmup", "num_samples", "target_acceptance"
    sizes = {"num_tasks": 18} | {name: SETTINGS[name] for name in names}
    return {f"data set {i + 1}": {"redraw": i, **sizes} for i in range(SETTINGS["num_redraws"])}


SMALL = {
    "redraw": 0,
    "num_tasks": 6,
    "num_warmup": 200,
    "num_samples": 400,
    "target_acceptance": 0.95,
}


def unit(redraw, **sizes):
    """Fit the arm to one data set."""
    return attribution.unit(redraw=redraw, **attribution.arms()[ARM], **sizes)


def score(drawn, redraw, num_tasks, **_):
    """How well descriptions predict a task left out, the angles' error, the check of the run.

    Errors are over chains: draws of all are brought to common axes together, then each chain is
    averaged alone.
    """
    true = np.asarray(moons_redrawn.drawn(redraw, num_tasks=num_tasks).angles)
    layers = first_layers(drawn["draws"])
    together = angles.to_common_axes(layers.reshape(-1, *layers.shape[2:])).reshape(layers.shape)
    of_chains = [described(one, true) for one in together.mean(axis=1)]
    found = described(together.mean(axis=(0, 1)), true)
    for name in list(found):
        found[f"{name}_error"] = float(
            np.std([one[name] for one in of_chains], ddof=1) / np.sqrt(len(of_chains))
        )
    random = np.random.default_rng(SETTINGS["seed"] + redraw)
    mean, design = together.mean(axis=(0, 1)), fixed_and_turned(true)
    exchanged = [
        angles.explained(random.permutation(design), mean) for _ in range(SETTINGS["exchanges"])
    ]
    score = attribution.score(drawn, redraw=redraw, num_tasks=num_tasks, **attribution.arms()[ARM])
    more = {"exchanged": float(np.quantile(exchanged, 0.95)), "check": score["check"]}
    return found | more | {name: score[name] for name in ("nll", "nll_error")}


def first_layers(draws):
    """Return the input layers [chain, draw, task, 2, unit] of draws."""
    return angles.layer_draws(attribution.plain(draws_of(draws)), attribution.INPUT)


def draws_of(draws):
    """Return draws whose scales of the means multiply arrays of weights: [chain, draw, 1, 1]."""
    scales = {
        name: np.asarray(part)[..., None, None]
        for name, part in draws["log_sd"].items()
        if name in attribution.MEANS
    }
    return draws | {"log_sd": draws["log_sd"] | scales}


def described(layers, true):
    """Describe first layers [task, 2, unit] by true angles, and find angles from them."""
    waves = np.insert(angles.harmonics(true, orders=(1,)), 0, 1.0, axis=1)[:, None]
    return {
        "whole": float(angles.explained(angles.rotations(true), layers)),
        "part": float(angles.explained(fixed_and_turned(true), layers)),
        "waves": float(angles.explained(waves, layers.reshape(len(layers), 1, -1))),
        "angle_error_degrees": angles.error_degrees(
            angles.best_angles(layers, with_fixed_part=True), true
        ),
    }


def fixed_and_turned(true):
    """Return what multiplies the fixed part of a layer and the part that turns, [task, 2, 4]."""
    turned = angles.rotations(true)
    return np.concatenate([np.broadcast_to(np.eye(2), turned.shape), turned], axis=2)
