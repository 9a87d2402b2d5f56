"""Runs units on the cluster: what they return, or kept draws that are to be scored anew."""

import contextlib
import importlib
import itertools
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future, as_completed

from experiments.engine import dask_cluster, fingerprint, nests, plan, store
from experiments.engine.fingerprint import PROJECT, Project

TELL = 600.0  # seconds after which units that are still running are named
AHEAD = 16  # kept draws that wait at the cluster for a new score; they may be large
_imported: dict[str, str] = {}  # module -> its source when this process imported it


class Done(NamedTuple):
    """What came of a unit."""

    task: plan.Task
    # None: there were kept draws, or there is no `score`, or it failed
    drawn: dict[str, np.ndarray] | None
    seconds: float  # of `unit`
    scored: Any
    failure: str  # traceback, "" where all went well


def run(
    tasks: Sequence[plan.Task],
    project: Project = PROJECT,
    client: Client | None = None,
    kept: bool = True,
) -> Iterator[Done]:
    """Yield what comes of units as the cluster finishes them; ``kept`` draws are only scored."""
    with contextlib.nullcontext(client) if client else dask_cluster.connected() as at:
        futures: dict[Future, plan.Task] = {}
        done = as_completed(loop=at.loop)

        def submit(task: plan.Task, found: Any) -> None:
            there = at.scatter([found], hash=False) if found else []
            future = at.submit(work, task, *there, pure=False, priority=len(there))
            futures[future] = task
            done.add(future)

        again = [task for task in tasks if kept and plan.places(task, project)[0].exists()]
        for task in tasks:
            if task not in again:
                submit(task, None)
        waiting = iter(again)
        for task in itertools.islice(waiting, AHEAD):
            submit(task, plan.kept_draws(task, project))
        for future in _told(done, at, futures):
            for task in itertools.islice(waiting, 1):
                submit(task, plan.kept_draws(task, project))
            try:
                came = future.result()
            except Exception as error:
                frames = future.traceback() if future.status == "error" else None
                came = (
                    None,
                    0.0,
                    None,
                    "".join(traceback.format_exception(type(error), error, frames)),
                )
            yield Done(futures.pop(future), *came)


def _told(done: Iterator[Future], at: Client, futures: dict[Future, plan.Task]) -> Iterator[Future]:
    """Yield futures as they end; name the units that run while none has ended for a long time."""
    over, last = threading.Event(), [time.monotonic()]

    def tell() -> None:
        while not over.wait(TELL):
            if time.monotonic() - last[0] < TELL:
                continue
            running = {key for keys in at.processing().values() for key in keys}
            names = sorted(
                f"{t.experiment}: {t.name}" for f, t in futures.items() if f.key in running
            )
            minutes = (time.monotonic() - last[0]) / 60
            plan.say(f"no unit has ended for {minutes:.0f} minutes; running: {'; '.join(names)}")

    threading.Thread(target=tell, daemon=True).start()
    try:
        for future in done:
            last[0] = time.monotonic()
            yield future
    finally:
        over.set()


def work(task: plan.Task, found: tuple[dict[str, np.ndarray], float] | None = None) -> tuple:
    """Run a unit, or score the draws and seconds ``found``; return `Done` without its task."""
    module, start = _trusted(task), time.perf_counter()
    if not task.prints[1]:
        scored = store.as_json(module.unit(**task.setting), task.name)
        return None, time.perf_counter() - start, scored, ""
    drawn = None if found else nests.flat(module.unit(**task.setting), task.name)
    flat, seconds = found or (drawn, time.perf_counter() - start)
    try:
        return (
            drawn,
            seconds,
            store.as_json(module.score(nests.nested(flat), **task.setting), task.name),
            "",
        )
    except Exception:  # told by whoever asked, who keeps the draws all the same
        return drawn, seconds, None, traceback.format_exc()


def _trusted(task: plan.Task) -> ModuleType:
    """Import a task's experiment on a worker. ValueError if code or versions here are not those of
    whoever asks.
    """
    name = plan.dotted(task.experiment, Project(packages=task.packages))
    module = importlib.import_module(name)
    here, wrong = _found_here(
        task.experiment, task.packages, Path(module.__file__).resolve().parents[3]
    )
    if here != task.prints:
        raise ValueError(f"{name}: this worker is given other code, {here}, expected {task.prints}")
    if wrong:
        raise ValueError(
            f"{name}: this worker is given (installed, expected as in the lock) {wrong}"
        )
    return module


@lru_cache
def _found_here(
    experiment: str, packages: tuple[str, ...], root: Path
) -> tuple[tuple[str, str], dict]:
    """Return fingerprints of the code imported here, and versions that are not the lock's."""
    for name, module in list(sys.modules.items()):  # as they are now: the files may change later
        if name.split(".")[0] in packages and getattr(module, "__file__", None):
            _imported.setdefault(name, Path(module.__file__).read_text(encoding="utf-8"))
    project = Project(root, packages, _imported)
    code = fingerprint.read(project)
    pins = fingerprint.surroundings(project)["versions"]
    wrong = {
        one: (version(one), pins[one])
        for one in pins
        if version(one) not in {p.split()[0] for p in pins[one]}
    }
    return (
        plan.print_of(experiment, code, "unit"),
        plan.print_of(experiment, code, "score"),
    ), wrong
