"""Stored results whose numbers are moved by their errors, as another run might have found them."""

from helpers import common

import sys
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np


def with_errors(part: Any, errors: Any = None) -> Iterator[tuple[Any, Any, float]]:
    """Yield where each number stands that has its error beside it, and that error.

    A number ``K`` has it as ``K_error``, lists and dictionaries of numbers as the like of errors,
    which is how `experiments.engine.compare` finds them.

    Returns: container, key or place in it, error.
    """
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        error = part.get(f"{key}_error") if isinstance(part, dict) else None
        if error is None and isinstance(errors, dict):
            error = errors.get(key)
        elif error is None and errors is not None:
            error = errors[key] if key < len(errors) else None  # of a list's first numbers alone
        if isinstance(value, (dict, list)):
            yield from with_errors(value, error)
        elif isinstance(value, (int, float)) and isinstance(error, (int, float)):
            yield part, key, error


class Moved:
    """Reads stored results as ``common.read_result`` does, but moved; ``move`` moves them anew.

    The moves of a result do not depend on which others are read, or when.
    """

    def __init__(self, seed: int):
        self.seed, self.count, self.stored = seed, 0, common.read_result
        self.results, self.places = {}, {}

    def read(self, name: str) -> dict:
        """Return a stored result with its numbers where the last move has put them."""
        if name not in self.results:
            self.results[name] = self.stored(name)
            found = [*with_errors(self.results[name]["rows"])]
            values = np.array([part[key] for part, key, _ in found], float)
            errors = np.array([error for *_, error in found], float)
            self.places[name] = [(part, key) for part, key, _ in found], values, errors
            self._put(name)
        return self.results[name]

    def move(self) -> None:
        """Put every number that has an error at a normal draw around its stored value."""
        self.count += 1
        for name in self.results:
            self._put(name)

    def _put(self, name):
        places, values, errors = self.places[name]
        random = np.random.default_rng([self.seed, self.count, zlib.crc32(name.encode())])
        for (part, key), value in zip(places, random.normal(values, errors).tolist(), strict=True):
            part[key] = value


def readers() -> list:
    """Return the modules that read stored results by ``read_result``."""
    found = [*sys.modules.values()]
    return [m for m in found if getattr(m, "read_result", None) is common.read_result]
