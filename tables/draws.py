"""A function of each draw of a posterior: ``draws.mapped(function, values)``."""

from helpers.common import take

from collections.abc import Callable
from typing import Any

import jax
import numpy as np


def mapped(function: Callable, *arguments: Any) -> Any:
    """Return a function of each draw, leading axes [chain, draw], in NumPy: a chain at a time,
    fifty draws at once, so that it takes little room.
    """
    program = jax.jit(lambda one: jax.lax.map(lambda a: function(*a), one, batch_size=50))
    chains = range(len(jax.tree.leaves(arguments)[0]))
    found = [jax.tree.map(np.asarray, program(take(arguments, i))) for i in chains]
    return jax.tree.map(lambda *parts: np.stack(parts), *found)
