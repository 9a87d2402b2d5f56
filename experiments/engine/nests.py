"""Nested dicts of arrays as flat ones, which files can hold, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict


def flat(drawn: Any, at: str) -> dict[str, np.ndarray]:
    """Return a nested dict of arrays as one, its keys joined by "/"; ValueError names what is
    none.
    """
    paths = flatten_dict(drawn, keep_empty_nodes=True) if isinstance(drawn, dict) else {}
    if not paths or not all(isinstance(k, str) and k and "/" not in k for p in paths for k in p):
        raise ValueError(
            f"{at}: given {type(drawn).__name__}, expected a dict that is not empty, keys without"
            " a slash"
        )
    found = {"/".join(path): np.asarray(value) for path, value in paths.items()}
    for path, array in found.items():
        if array.dtype.kind not in "biufcSU":
            raise ValueError(
                f"{at}/{path}: given an array of {array.dtype}, expected numbers or text"
            )
    return found


def nested(arrays: Mapping[str, np.ndarray]) -> dict:
    """Return what `flat` was given."""
    return unflatten_dict(dict(arrays), sep="/")
