"""Compiled programs that are released again: those last used stay, and no others.

``jax.jit`` keeps what it compiled for as long as its function lives. A function of a module lives
as long as the process, and with it a program for every log density it was ever given: some 25 MB
and 200 of the system's memory maps a call of ``mcmc.sample`` with a new closure, until a limit is
met, of memory or of maps (``vm.max_map_count``).
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, partial, update_wrapper
from typing import Any

import jax
import numpy as np

KEPT = 30  # programs; a call of ``mcmc.sample`` with a new closure or new shapes makes five


class Bounded:
    """A function as ``jax.jit`` makes one, whose first arguments are static: so many of them."""

    def __init__(self, function: Callable, num_static: int):
        self.function, self.num_static = function, num_static
        update_wrapper(self, function)

    def _program(self, arguments):
        """Return what has been compiled for such arguments, and those that are not static."""
        fixed, given = arguments[: self.num_static], arguments[self.num_static :]
        leaves, structure = jax.tree.flatten(given)
        shapes = tuple((np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves)
        return _jitted(self.function, fixed, structure, shapes), given

    def __call__(self, *arguments: Any) -> Any:
        """Return what the function returns of these arguments."""
        program, given = self._program(arguments)
        return program(*given)

    def lower(self, *arguments: Any) -> jax.stages.Lowered:
        """Return the function lowered for such arguments, as ``jax.jit(function).lower``."""
        program, given = self._program(arguments)
        return program.lower(*given)


@lru_cache(KEPT)
def _jitted(function, fixed: tuple[Hashable, ...], structure, shapes):
    # One for each kind of arguments, so that the least used is dropped and not the least used
    # density with all its shapes. It does not hold the shapes: they are its key.
    del structure, shapes
    return jax.jit(partial(function, *fixed))


def bounded(num_static: int) -> Callable[[Callable], Bounded]:
    """Return a decorator, ``jax.jit`` with so many static arguments, whose programs are released.

    Any number of functions share room for `KEPT` programs.
    """
    return partial(Bounded, num_static=num_static)
