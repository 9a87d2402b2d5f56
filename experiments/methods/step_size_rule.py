"""A step size chosen without the posterior.

The rule sees a sampler's own runs alone. Of a grid of step sizes, each half the next, it takes the
largest whose mean predictions, of four chains, match those of half that step: their distance beyond
Monte Carlo error is at most ``MARGIN``, and so is that error itself, since chains that hardly move,
or stray far, would match anything. Of several frictions, or what else a sampler has to be given, it
takes the one with the most effective draws at the step chosen for it.
"""

from helpers import data

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from experiments.methods import minibatch_samplers, minibatch_scores, total_variation


def tune_and_draw(
    key: Callable,
    name: str,
    settings: list[float],
    step_sizes: list[float],
    starts: Any,
    points: data.Points,
    x: Float[Array, "point feature"],
    tuning: dict[str, int],
    final: dict[str, int],
    margin: float = total_variation.MARGIN,
) -> dict:
    """Run a sampler on its grid, choose, and run it afresh and for longer as chosen.

    Args:
        key: ``key(*names)``, of a run by its names.
        settings: dampings, frictions or alphas; [0.0] where there is none.
        step_sizes: each half the next one.
        x: where predictions are compared.
        tuning, final: ``num_steps`` a chain, ``num_draws`` and ``batch_size`` of the two kinds of
            runs.
        margin: total variation up to which a step and half of it agree.

    Returns of each setting and step size that stayed finite predictions, by chain [chain, point],
    and of draws at ten points; the processor's seconds of a run, their median, since the first one
    compiles; the place in both lists of what was chosen, or -1; and weights, if something was.
    """
    begun = minibatch_samplers.initial(name, starts, points)
    found, picked, seconds = {}, [], []
    for i, given in enumerate(settings):
        algorithm, runs = minibatch_samplers.kernel(name, given, points), {}
        for step_size in step_sizes:
            at, began = f"{step_size:g}", time.process_time()
            weights = minibatch_samplers.draw(
                key("tuning", f"{given:g}", at), name, algorithm, begun, points, step_size, **tuning
            )
            seconds.append(time.process_time() - began)
            if weights is not None:
                p = minibatch_samplers.probabilities(weights, x)
                runs[at] = {"p_of_chains": p.mean(axis=1), "p": p[..., :: p.shape[-1] // 10]}
        found[f"{given:g}"] = runs
        names = [f"{size:g}" for size in step_sizes]
        of_steps = [runs[at]["p_of_chains"] if at in runs else None for at in names]
        place = chosen(of_steps, margin)
        if place >= 0:
            p = runs[names[place]]["p"]
            picked.append((minibatch_scores.effective(p), i, place))
    kept = {"tuning": found, "seconds": np.median(seconds), "chosen": np.array([-1, -1])}
    if not picked:
        return kept
    _, i, place = max(picked)
    given, step_size = settings[i], step_sizes[place]
    weights = minibatch_samplers.draw(
        key("final"),
        name,
        minibatch_samplers.kernel(name, given, points),
        begun,
        points,
        step_size,
        **final,
    )
    kept["chosen"] = np.array([i, place])
    return kept if weights is None else kept | {"weights": weights}


def chosen(
    of_steps: list[Float[np.ndarray, "chain point"] | None], margin: float = total_variation.MARGIN
) -> int:
    """Return the place of the largest step that matches half of it, the one before, or -1."""

    def match(half, whole):
        apart, chance = total_variation.distance(half, whole)
        return total_variation.beyond(apart, chance) <= margin and chance <= margin

    pairs = [(i, of_steps[i - 1], of_steps[i]) for i in range(1, len(of_steps))]
    whole = [(i, pair) for i, *pair in pairs if all(part is not None for part in pair)]
    return max((i for i, pair in whole if match(*pair)), default=-1)
