"""A line that says how far a long call is: its phase, its steps, the seconds that are left.

Compiled programs report their steps on the way, or whoever runs them does between two of them, and
compute the same as without a line, so draws are the same. The line is tqdm's, a widget in a
notebook and text in a terminal; the thread that called draws it, ten times a second.

    with progress.line(True) as shown, ThreadPoolExecutor() as pool:
        futures = [pool.submit(program, key, progress.number(shown)) for key in keys]
        parts = progress.follow(shown, "draws", 4 * 1000, futures)
"""

import itertools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Int
from tqdm.auto import tqdm

PAUSE = 0.1  # seconds between two looks at what was reported
_numbers, _lock = itertools.count(1), Lock()
_reported: Counter[int] = Counter()  # number of a line -> steps that programs have reported to it


class Line(NamedTuple):
    """A line on the screen, and the number under which programs report to it."""

    bar: tqdm  # what is seen
    number: int  # no other line of this process has it


def reader() -> bool:
    """Return whether a person runs a notebook: its first cell puts BOOK_READER=1 into the
    environment.
    """
    return os.environ.get("BOOK_READER") == "1"


@contextmanager
def line(wanted: bool | None) -> Iterator[Line | None]:
    """Yield a line, or None where none is ``wanted``; a ``wanted`` of None means: where a person
    runs a notebook.
    """
    if not (reader() if wanted is None else wanted):
        yield None
        return
    number = next(_numbers)
    with tqdm(desc="compiling", bar_format="{desc}", unit=" steps") as bar:
        try:
            yield Line(bar, number)
        finally:
            _reported.pop(number, None)


def number(shown: Line | None) -> np.ndarray | None:
    """Return what a program takes to report to a line: its number, an array without axes; None for
    no line.
    """
    return None if shown is None else np.array(shown.number)


def report(number: Int[Array, ""] | None, step: Int[Array, ""], every: int, worth: int = 1) -> None:
    """Say, within a program, that it has come to a step, if there is a line to say it to.

    Args:
        number: of the line; None for none, and the program is what it would be without this call.
        step: how many steps have been taken, an integer without axes.
        every: how many steps are taken between two reports, of which each takes a tenth of a
            millisecond.
        worth: how much a step counts on the line.
    """
    if number is not None:
        tell = partial(jax.debug.callback, _add, number, every * worth)
        jax.lax.cond(step % every == 0, tell, lambda: None)


def add(shown: Line | None, steps: int) -> None:
    """Say, outside of a program, that so many more steps have been taken, if there is a line."""
    if shown is not None:
        _add(shown.number, steps)


def _add(number, steps):
    with _lock:
        _reported[int(number)] += int(steps)


def follow(shown: Line | None, phase: str, total: int, futures: Sequence[Future]) -> list[Any]:
    """Return the results of futures, in their order; meanwhile show how many steps they report.

    An error of a future is raised here.

    Args:
        shown: the line; None for none.
        phase: what the line calls these steps.
        total: steps of all futures.
    """
    if shown is not None:
        bar, number = shown
        before, waiting = _reported[number], futures
        bar.bar_format = None
        bar.set_description_str(phase, refresh=False)
        bar.reset(total)
        while waiting:
            _, waiting = wait(waiting, PAUSE, FIRST_EXCEPTION)
            bar.n = min(_reported[number] - before, total) if waiting else total
            bar.refresh()
    return [future.result() for future in futures]
