"""A walk over settings on a grid without ends: no choice lies at one for want of a wider grid."""

from collections.abc import Callable, Sequence

import numpy as np

Place = tuple[int, ...]


def walked(
    loss: Callable[[Place], float], moves: Sequence[Place], least_gain: float
) -> dict[Place, float]:
    """Go from the origin to the best place one move away, while that gains; return all losses.

    Args:
        loss: of a place, which counts steps of each setting; infinite where there is no such
            setting. Called once a place.
        moves: steps to a place's neighbours.
        least_gain: what a move must gain, in units of the loss.
    """
    best, better = None, (0,) * len(moves[0])
    found = {better: loss(better)}
    while best is None or found[best] - found[better] >= least_gain:
        best = better
        for move in moves:
            place = tuple(np.add(best, move).tolist())
            if place not in found:
                found[place] = loss(place)
        better = min(found, key=found.get)
    return found
