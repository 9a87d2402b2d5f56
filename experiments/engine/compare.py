"""Compares a result's numbers with the same ones recomputed, by the errors that stand beside
them.
"""

import math
from typing import Any

ERRORS = 6  # within how many errors a check has to find a stored number
CLOCK = "seconds"  # never found again
ROUNDING = 1e-8  # relative: sums in float32, and solutions of systems, on another processor


def compare(stored: Any, found: Any) -> tuple[int, float, list[str]]:
    """Compare scores; return how many numbers, the largest difference in errors, what is wrong.

    Numbers under a key ``K`` that has a ``K_error`` beside it are compared: within `ERRORS` of both
    errors, or equal up to rounding. Where all that is stored is found again up to rounding, seconds
    apart, it needs no errors, and what is found beside it does not count.
    """
    before, now = (
        {path: leaf for path, leaf in _leaves(of).items() if CLOCK not in path}
        for of in (stored, found)
    )
    if before and _holds(now, before):
        return len(before), 0.0, []
    try:
        old, new = _pairs(stored), _pairs(found)
        if not old or old.keys() != new.keys():
            others = f"others: {sorted(old.keys() ^ new.keys())}"
            given = others if old else "none, so that it compares nothing"
            expected = "the same ones, stored and recomputed"
            raise ValueError(f"numbers with errors: given {given}, expected {expected}")
    except ValueError as error:
        return 0, 0.0, [str(error)]
    away = {}
    for at, (value, error) in old.items():
        gap = 0.0 if _same(value, new[at][0]) else abs(value - new[at][0])
        both = math.hypot(error, new[at][1])
        away[at] = gap and (gap / both if both else math.inf)
    off = [
        f"{at}: given {new[at]}, expected {old[at]}: {away[at]:.3g} errors"
        for at in away
        if away[at] > ERRORS
    ]
    return len(away), float(max(away.values())), off


def alike(one: Any, other: Any) -> bool:
    """Whether nested dicts and lists have equal leaves at the same places, numbers up to rounding:
    a power is another one in its last digit on another processor.
    """
    left, right = _leaves(one), _leaves(other)
    return left.keys() == right.keys() and _holds(left, right)


def _holds(leaves: dict[tuple, Any], wanted: dict[tuple, Any]) -> bool:
    """Whether all that is wanted is among the leaves, numbers up to rounding."""
    return wanted.keys() <= leaves.keys() and all(_same(wanted[at], leaves[at]) for at in wanted)


def _same(one: Any, other: Any) -> bool:
    """Whether two leaves are equal, numbers up to rounding."""
    numbers = all(isinstance(a, (int, float)) and not isinstance(a, bool) for a in (one, other))
    return math.isclose(one, other, rel_tol=ROUNDING) if numbers else one == other


def _pairs(scored: Any) -> dict[str, tuple[float, float]]:
    """Return, by place, each number that has its error beside it, with that; else ValueError."""
    leaves = _leaves(scored)
    above = {path[:i] for path in leaves for i in range(1, len(path) + 1)}
    found = {}
    for path, value in leaves.items():
        for i, key in enumerate(path):
            beside = (*path[:i], f"{key}_error", *path[i + 1 :])
            if beside[: i + 1] in above:
                where, both = "/".join(map(str, path)), (value, leaves.get(beside))
                if not all(isinstance(number, (int, float)) for number in both):
                    raise ValueError(f"{where}: given {both}, expected a number and its error")
                found[where] = both
    return found


def _leaves(part: Any, at: tuple = ()) -> dict[tuple, Any]:
    """Return what stands in nested dicts and lists, by the keys that lead there."""
    if not isinstance(part, (dict, list)):
        return {at: part}
    items = part.items() if isinstance(part, dict) else enumerate(part)
    return {path: leaf for key, value in items for path, leaf in _leaves(value, (*at, key)).items()}
