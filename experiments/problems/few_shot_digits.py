"""Few-shot tasks on digits.

A split divides the ten classes at random: four to learn from, three to choose settings by, three to
be tried on. Tasks on the last two kinds are alike, and neither has a class that any network was
trained on.
"""

from helpers import common, densities, networks

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

SETTINGS = {
    "seed": 3021,
    "hidden": 20,
    "classes": [4, 3, 3],  # to learn from, to choose by, to be tried on
    "images": 174,  # of each base class; the rarest digit has so many
    "shots": [1, 2, 5, 10],  # labelled images a class
    "repeats": [2, 1],  # tasks of each number of images, to choose by and to be tried on
    "inverse_penalties": [10.0**k for k in range(-3, 7)],
    "steps": [10, 20, 50, 100, 200, 500, 1000],  # of fine-tuning
    "pretraining_steps": 1000,
    # Stochastic gradient descent at a constant rate, whose path tells a mean and a covariance; a
    # snapshot an epoch.
    "path": {
        "learning_rate": 0.05,
        "momentum": 0.9,
        "weight_decay": 3e-4,
        "batch": 58,
        "burn_in": 20,
        "snapshots": 30,
    },
    "many": {"tasks": 30, "shots": 10, "steps": 100},  # networks of few-shot tasks on base classes
}
CLASSES = SETTINGS["classes"][2]
NETWORK = networks.MLP(hidden=(SETTINGS["hidden"],), use_bias=True, num_outputs=CLASSES)
BASE_CLASSES = SETTINGS["classes"][0]
SOURCE = networks.MLP(hidden=(SETTINGS["hidden"],), use_bias=True, num_outputs=BASE_CLASSES)
# the output layer alone, on features
HEAD = networks.MLP(hidden=(), use_bias=True, num_outputs=CLASSES)
MOST = CLASSES * max(SETTINGS["shots"])


@lru_cache(maxsize=1)
def digits():
    """Images as 64 numbers from -1/2 to 1/2, and what they show."""
    images = load_digits()
    return (images.data / 16.0 - 0.5).astype(np.float32), images.target


@lru_cache(maxsize=1)
def problem(redraw):
    """Return images [base class, image, pixel], tasks to choose by, and tasks to be tried on."""
    rng = generator("tasks", redraw)
    classes = np.split(rng.permutation(10), np.cumsum(SETTINGS["classes"])[:-1])
    x, digit = digits()
    where = [rng.permutation(np.flatnonzero(digit == c)) for c in classes[0]]
    base = x[np.stack([at[: SETTINGS["images"]] for at in where])]
    tuning, tasks = (
        [few_shot(rng, of_kind, n) for n in SETTINGS["shots"] for _ in range(repeats)]
        for of_kind, repeats in zip(classes[1:], SETTINGS["repeats"], strict=True)
    )
    return base, tuning, tasks


def generator(*names):
    """Return NumPy's generator of a name."""
    return common.generator(common.key(SETTINGS["seed"], *names))


def few_shot(rng, classes, shots):
    """Draw a task: padded labelled images with their marks, and all other images of the classes."""
    x, digit = digits()
    where = [rng.permutation(np.flatnonzero(digit == c)) for c in classes]
    support, rest = ([w[part] for w in where] for part in (np.s_[:shots], np.s_[shots:]))
    y = np.repeat(np.arange(len(classes)), [len(w) for w in rest])
    return {"observed": observed(x[np.stack(support)]), "x": x[np.concatenate(rest)], "y": y}


def observed(images):
    """Pad labelled images [class, image, pixel] to as many as the largest task has."""
    count = images.shape[0] * images.shape[1]
    where = np.where(np.arange(MOST) < count, np.arange(MOST), 0)
    x, y = images.reshape(count, -1)[where], np.repeat(np.arange(len(images)), images.shape[1])
    return densities.observe(
        x, y[where], weight=np.float32(np.arange(MOST) < count), num_classes=CLASSES
    )


def stacked(tasks):
    """Put tasks together for the sampler."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[task["observed"] for task in tasks])
