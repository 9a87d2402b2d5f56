"""Two rows that the table of few labels lacks: a straight line, and scales searched without ends.

*A line* is Bayesian logistic regression without an intercept, as odd as the networks are, N(0, s^2)
on both slopes. Its posterior is integrated by a grid of directions and radii, so no chain is run.
Its scale is chosen for each number of labels by the rule of ``scales_by_labels``, with all labels
by five folds, both on the training tasks of the same redraw.

*Searched scales* are those of ``scales_by_labels`` with five labels, but that a search leaves from
the triple chosen there and moves to its best neighbour while that gains, so that no corner of a
grid binds. New tasks and keys are those of ``transfer``.
"""

from helpers import common
from helpers.common import read_result

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import cross_validation, scoring
from experiments.pages.informative_priors import scales_by_labels, transfer
from experiments.problems import new_tasks

LINE, SEARCHED = "Bayesian logistic regression", "scales searched for five labels"
SETTINGS = {
    "seed": 3046,
    "num_redraws": transfer.SETTINGS["num_redraws"],
    "sizes": [2, 5, 10, 25, 50],
    "directions": 240,
    "radii": 160,
    "reach": 6.0,  # of radii, in scales
    "scales": {"start": 1.0, "factor": 2**0.5},
    "triples": {"factors": [4.0, 4.0, 2.0], "size": 5},
    "least_gain": 0.001,  # nats, for which a search moves on
}


def units():
    """A line with each number of labels, and a search, on a redraw each."""
    redrawn = range(SETTINGS["num_redraws"])
    wanted = [(LINE, size) for size in SETTINGS["sizes"]]
    wanted += [(SEARCHED, SETTINGS["triples"]["size"])]
    return {
        f"{name}, {size} labels, {i}": {"name": name, "size": size, "redraw": i, "num_tasks": 18}
        for i in redrawn
        for name, size in reversed(wanted)
    }


SMALL = [
    {"name": LINE, "size": 5, "redraw": 0, "num_tasks": 18},
    {"name": SEARCHED, "size": 5, "redraw": 0, "num_tasks": 3},
]


def polar(scale):
    """Return slopes [grid, 2] and the log of the prior mass of their cells, radii denser near 0."""
    u = (np.arange(SETTINGS["radii"]) + 0.5) / SETTINGS["radii"]
    radius = scale * SETTINGS["reach"] * u**2
    turn = 2 * np.pi * np.arange(SETTINGS["directions"]) / SETTINGS["directions"]
    unit_vectors = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    log_mass = np.log(radius * u) - 0.5 * (radius / scale) ** 2
    slopes = radius[:, None, None] * unit_vectors
    return np.float32(slopes.reshape(-1, 2)), np.float32(np.repeat(log_mass, len(turn)))


@jax.jit
def predicted(slopes, log_mass, x, y, weight, x_test):
    """Return p [task, point] of tasks alone, from labels of weight 1, by the grid."""

    def one(task):
        x, y, weight, x_test = task
        z = slopes @ x.T
        likelihood = (weight * (y * z - jax.nn.softplus(z))).sum(axis=1)
        share = jax.nn.softmax(log_mass + likelihood)
        return share @ jax.nn.sigmoid(slopes @ x_test.T)

    return jax.lax.map(one, (x, y, weight, x_test))


def of_line(scale, x, y, weight, x_test):
    """Return ``predicted`` under N(0, scale^2) on both slopes."""
    return np.asarray(predicted(*polar(scale), x, jnp.float32(y), jnp.float32(weight), x_test))


def line_left_out(seen, size, scale):
    """Mean NLL of training tasks' other labels: of blocks of so many, with all of five folds."""
    num_tasks, num_points = seen.y_train.shape
    order = np.arange(num_points)
    if size == num_points:
        weights = cross_validation.seen(num_points)
    else:
        blocks = min(scales_by_labels.SETTINGS["most_blocks"], num_points // size)
        weights = np.stack([np.isin(order, order[i * size :][:size]) for i in range(blocks)])
    found = []
    for weight in weights.astype(float):
        of_all = np.broadcast_to(weight, (num_tasks, num_points))
        p = of_line(scale, seen.x_train, seen.y_train, of_all, seen.x_train)
        others = weight == 0
        found.append(scoring.score_of(p[:, others], np.asarray(seen.y_train)[:, others])["nll"])
    return float(np.mean(found))


def searched(start, moves, loss):
    """Walk from a setting by factors to its best neighbour while that gains; return all losses."""
    best, better, found = None, tuple(start), {tuple(start): loss(start)}
    while best is None or found[best] - found[better] >= SETTINGS["least_gain"]:
        best = better
        for move in moves:
            place = tuple(float(f"{at:.4g}") for at in np.multiply(best, move))
            if place not in found:
                found[place] = loss(place)
        better = min(found, key=found.get)
    return best, found


def triple_left_out(key, seen, size, triple):
    """Mean NLL of training tasks' other labels, by short fits, all triples by the same key."""
    of_chains = scales_by_labels.left_out(key, seen, size, list(triple), "short")
    return float(of_chains[0].mean())


def unit(name, size, redraw, num_tasks):
    """Choose scales; return p of new tasks, or draws of ``transfer``, and what the search saw."""
    seen = jax.tree.map(lambda a: a[:num_tasks], new_tasks.training(redraw))
    if name == LINE:
        factor, new = SETTINGS["scales"]["factor"], new_tasks.new("moons", redraw)
        start, moves = [SETTINGS["scales"]["start"]], [(factor,), (1 / factor,)]
        (scale,), losses = searched(start, moves, lambda at: line_left_out(seen, size, at[0]))
        observed = new_tasks.first_labels(new, [size])
        p = of_line(scale, new.x_train, new.y_train, observed.weight[0], new.x_test)
        return {"p": p, "scales": np.array([scale]), **as_arrays(losses)}
    stored = {
        row["labels"]: row for row in read_result("informative_priors/scales_by_labels")["rows"]
    }
    powers = itertools.product((-1, 0, 1), repeat=3)
    moves = [np.power(SETTINGS["triples"]["factors"], power) for power in powers]
    key = common.key(SETTINGS["seed"], redraw)
    loss = partial(triple_left_out, key, seen, size)
    scales, losses = searched(stored[size]["scales"][redraw], moves, loss)
    return {
        "run": transfer.unit(**of_transfer(scales, size, redraw)),
        "scales": np.array(scales),
        **as_arrays(losses),
    }


def of_transfer(scales, size, redraw):
    """Return the setting of ``transfer`` of a network under such scales."""
    return transfer.setting("moons", transfer.BY_LABELS, [size], redraw, scales=list(scales))


def as_arrays(losses):
    """Return what a search saw."""
    return {"tried": np.array(list(losses)), "left_out": np.array(list(losses.values()))}


def score(drawn, name, size, redraw, **_):
    """Scores of new tasks, and what the search saw."""
    found = {"name": name, "size": size, "scales": drawn["scales"].tolist()}
    found |= {"tried": drawn["tried"].tolist(), "left_out": drawn["left_out"].tolist()}
    if name == LINE:
        y = np.asarray(new_tasks.new("moons", redraw).y_test)
        scores = scoring.score_of(drawn["p"], y)
        return found | {"scores": scores | {f"{of}_error": 0.0 for of in scores}}
    scored = transfer.score(drawn["run"], **of_transfer(drawn["scales"], size, redraw))
    scores = {of: values[0] for of, values in scored["scores"].items()}
    return found | {"scores": scores, "checks": scored["checks"]}


def rows(scored):
    """A row for each arm and number of labels, with entries over redraws."""
    found = {}
    for one in scored.values():
        found.setdefault((one["name"], one["size"]), []).append(one)
    parts = ("scales", "tried", "left_out", "checks")
    return [
        {"name": name, "size": size, "scores": scoring.joined([one["scores"] for one in of])}
        | {part: [one[part] for one in of] for part in parts if part in of[0]}
        for (name, size), of in found.items()
    ]
