"""What predictions are worth to who uses them, against the known probabilities: nothing is left to
chance but points.

Tasks, points near the data and farther out, and the measures that ``worth`` and ``cold`` have in
common. Every measure is an expectation over labels under the probability that made them, so that no
label is drawn.
"""

from helpers import common, data

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import stats
from scipy.special import xlogy

SEED = 9101
NUM_TASKS, NUM_TRAIN, NUM_TEST, NOISE = 40, 50, 200, 0.3
STRETCH = 2.0  # of the test inputs, about the mean of the training inputs, which is 0
REPEATS = 5  # labels at each point of a pair (Osband et al. 2022)
LEAST = 1e-7
# what it costs to say 0 of a 1, to say 1 of a 0, and to ask
MISSED, FALSE_ALARM, ASKED = 5.0, 1.0, 0.4
COVERED = 0.5  # the share of points that is decided, where the others are left


class Uses(NamedTuple):
    """Tasks, where they are asked, and p of class 1 there: [task, near or far, point]."""

    tasks: data.Tasks
    x: Float[Array, "task 2 point 2"]
    q: Float[np.ndarray, "task 2 point"]


@cache
def problem() -> Uses:
    """Draw the tasks: none of them is one of the ladder's or of its tuning."""
    tasks = data.rotated_moons(common.key(SEED, "tasks"), NUM_TASKS, NUM_TRAIN, NUM_TEST, NOISE)
    x = jnp.stack([tasks.x_test, STRETCH * tasks.x_test], axis=1)
    q = data.bayes_optimum(tasks, x.reshape(NUM_TASKS, -1, 2), NOISE)
    return Uses(tasks, x, np.asarray(q, np.float64).reshape(x.shape[:3]))


@jax.jit
def of_draws(p: Float[Array, "draw point"]) -> dict[str, Array]:
    """Return mean predictions [point], and joint p of labels at pairs of points [point, 6, 6].

    Pair i are points i and i + 1; [i, a, b] is the probability that given labels, of which the
    first a of five are 1 at the first point and the first b at the second, are all as given: the
    mean over draws of the product.
    """
    ones = jnp.arange(REPEATS + 1.0)[None, None]
    p = jnp.clip(p, LEAST, 1 - LEAST)[..., None]
    # [draw, point, ones]
    likelihood = jnp.exp(ones * jnp.log(p) + (REPEATS - ones) * jnp.log1p(-p))
    other = jnp.roll(likelihood, -1, axis=1)
    joint = jnp.einsum("dpa,dpb->pab", likelihood, other) / len(p)
    return {"mean": p[..., 0].mean(axis=0), "joint": joint}


def measured(
    mean: Float[np.ndarray, "*lead point"],
    joint: Float[np.ndarray, "*lead point 6 6"],
    q: Float[np.ndarray, "*lead point"],
) -> dict[str, np.ndarray]:
    """Return every measure, mean over points, [*lead]: what known probabilities leave to gain.

    ``nll`` and ``joint`` are nats a label, ``brier`` is a squared difference of probabilities,
    ``cost`` is in units of a false alarm, ``risk`` is the share of wrong decisions among the surest
    half, in excess of the best half.
    """
    p = np.clip(np.asarray(mean, np.float64), LEAST, 1 - LEAST)
    nll = xlogy(q, q) + xlogy(1 - q, 1 - q) - q * np.log(p) - (1 - q) * np.log1p(-p)
    found = {"nll": nll.mean(axis=-1), "brier": ((p - q) ** 2).mean(axis=-1)}
    ones = np.arange(REPEATS + 1)
    counts = stats.binom.pmf(ones, REPEATS, q[..., None])
    ways = stats.binom.pmf(ones, REPEATS, 0.5) * 2**REPEATS  # orders of the labels
    both = counts[..., :, None] * np.roll(counts, -1, axis=-2)[..., None, :]
    told = np.log(np.maximum(np.asarray(joint, np.float64), np.finfo(np.float64).tiny))
    best = np.log(np.maximum(both / (ways[:, None] * ways), np.finfo(np.float64).tiny))
    found["joint"] = (both * (best - told)).sum(axis=(-2, -1)).mean(axis=-1) / (2 * REPEATS)
    found["cost"] = cost(p, q) - cost(q, q)
    found["risk"] = risk(p, q) - risk(q, q)
    return found


def cost(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Mean cost, under q, of the action that costs least under p: say 0, say 1, or ask."""
    action = actions(p).argmin(axis=0)
    return np.take_along_axis(actions(q), action[None], axis=0)[0].mean(axis=-1)


def actions(p: np.ndarray) -> np.ndarray:
    """Return the expected cost of each action, [action, *p.shape]."""
    return np.stack([MISSED * p, FALSE_ALARM * (1 - p), np.full_like(p, ASKED)])


def risk(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Share of wrong decisions, under q, among the surest half by p."""
    sure = np.argsort(-np.abs(p - 0.5), axis=-1, kind="stable")[..., : int(COVERED * p.shape[-1])]
    wrong = np.where(p > 0.5, 1 - q, q)
    return np.take_along_axis(wrong, sure, axis=-1).mean(axis=-1)


def rows_of(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each unit, its name before what was measured."""
    return [{"name": name, **one} for name, one in scored.items()]


def as_lists(found: dict) -> dict:
    """Return measures [task, near or far] for JSON, by place; averages near, for a check.

    Their errors are standard errors over tasks: a run elsewhere, which draws other numbers, differs
    by less.
    """
    by_place = {
        place: {name: np.asarray(values)[:, at].round(6).tolist() for name, values in found.items()}
        for at, place in enumerate(("near", "far"))
    }
    average = {}
    for name in ("nll", "joint"):
        values = np.asarray(found[name])[:, 0]
        average |= {
            name: float(values.mean()),
            f"{name}_error": float(values.std(ddof=1) / np.sqrt(len(values))),
        }
    return by_place | {"average": average}
