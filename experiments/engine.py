"""Computes, keeps and checks the stored results: ``python -m experiments.engine [--check |
--status] [NAME ...]``.

An experiment is a module ``experiments/CHAPTER/NAME.py`` that makes
``book/results/CHAPTER/NAME.json``. It has

- ``SETTINGS``, JSON;
- ``units()``: by the name of each unit its setting, JSON, which is the keyword arguments of
- ``unit(**setting)``: the long part; returns the draws, a nested dict of arrays;
- ``score(drawn, **setting)``: JSON, a dict, what the result keeps of a unit; without it ``unit``
  returns that itself;
- ``rows(scored)``: rows of the result from the scores by unit; without it ``{"name": name,
  **score}`` of each;
- ``SMALL``: the setting that ``--check`` recomputes, of one of the units or of one more.

Units run on Dask's ``distributed``: on the cores of this machine, or on the cluster that
``DASK_SCHEDULER_ADDRESS`` names. What they draw is kept in ``.units``, or in the folder
``RESULTS_STORE``, under hashes of code and setting.
"""

import argparse
import contextlib
import importlib
import itertools
import json
import logging
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import dask
import numpy as np
from distributed import Client, Future, LocalCluster, as_completed

from experiments import fingerprint, store
from experiments.compare import compare
from experiments.fingerprint import HOUSE, Code, House

CHECK = "(check)"  # the unit of SMALL where that is not one of the others
AHEAD = 16  # kept draws that wait at the cluster for a new score; they may be large
CONFIG = {
    # What a unit needs it may have up to the limit; Dask would spill draws, and then let the worker
    # wait for ever.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.profile.enabled": False,
    # units wait at the scheduler, and whoever is free takes the next
    "distributed.scheduler.worker-saturation": 1.0,
}
say = partial(print, flush=True)
_imported: dict[str, str] = {}  # module -> its source when this process imported it


class Task(NamedTuple):
    """A unit, as a worker gets it."""

    experiment: str  # CHAPTER/NAME
    name: str
    setting: dict
    prints: tuple[str, str]  # fingerprints of `unit` and of `score`, "" where there is none
    packages: tuple[str, ...]


class Done(NamedTuple):
    """What came of a unit."""

    task: Task
    # None: there were kept draws, or there is no `score`, or it failed
    drawn: dict[str, np.ndarray] | None
    seconds: float  # of `unit`
    scored: Any
    failure: str  # traceback, "" where all went well


class Plan(NamedTuple):
    """What makes a result."""

    module: ModuleType
    prints: dict[str, str]  # fingerprints that the result bears
    tasks: dict[str, Task]
    small: Task


def main(arguments: Sequence[str] | None = None, house: House = HOUSE) -> int:
    """Do what the command line asks; return the exit code: 1 if something failed, 2 for an unknown
    name.
    """
    parser = argparse.ArgumentParser(
        prog="python -m experiments.engine", description="Compute the stored results."
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--check", action="store_true", help="recompute a small part of each and compare"
    )
    choice.add_argument("--status", action="store_true", help="say which results are up to date")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="CHAPTER or CHAPTER/NAME; none: all"
    )
    given = parser.parse_args(arguments)
    known = experiments(house)
    wanted = {name: [k for k in known if f"{k}/".startswith(f"{name}/")] for name in given.names}
    if not all(wanted.values()):
        unknown = [name for name in wanted if not wanted[name]]
        parser.error(f"given {', '.join(unknown)}, expected some of {', '.join(known)}")
    names = sorted({k for found in wanted.values() for k in found}) if wanted else known
    if given.status:
        states = status(house).items()
        say(
            "\n".join(f"{state:<10}{name}" for name, state in states if name in names or not wanted)
        )
        return 0
    try:
        failed = check(names, house) if given.check else compute(names, house)
    except KeyboardInterrupt:
        say("interrupted: what was finished is kept")
        return 130
    say(f"failed: {', '.join(failed)}" if failed else f"done: {', '.join(names)}")
    return 1 if failed else 0


def experiments(house: House = HOUSE, code: Code | None = None) -> list[str]:
    """Return the experiments on disk, CHAPTER/NAME: modules that define SETTINGS and ``unit``."""
    paths = sorted((house.root / house.packages[-1]).glob("*/*.py"))
    names = [f"{path.parent.name}/{path.stem}" for path in paths]
    code = code or fingerprint.read(house)
    return [name for name in names if {"SETTINGS", "unit"} <= _bound(name, code)]


def status(house: House = HOUSE) -> dict[str, str]:
    """Return the state of every result, by CHAPTER/NAME.

    "made": by the present code; "checked": by other code, but ``--check`` of the present code found
    its numbers; "old": neither; "missing": there is no result; "no script": there is no experiment.
    """
    checked = store.read(_result("checked", house)) or {}
    paths = _result("checked", house).parent.glob("*/*.json")
    states = {f"{path.parent.name}/{path.stem}": "no script" for path in paths}
    code = fingerprint.read(house)
    for name in experiments(house, code):
        stored, now = store.read(_result(name, house)), _prints(name, code)
        otherwise = "checked" if checked.get(name, {}).get("fingerprint") == now else "old"
        states[name] = (
            "missing"
            if stored is None
            else "made"
            if stored.get("fingerprint") == now
            else otherwise
        )
    return dict(sorted(states.items()))


def compute(names: Sequence[str], house: House = HOUSE, client: Client | None = None) -> list[str]:
    """Compute results, on the cluster of ``client`` or of `connected`; return the names of those
    that failed.

    Only what is not kept is computed. ValueError before any work for what is no experiment.
    """
    code = fingerprint.read(house)
    plans = {name: plan(name, code) for name in names}
    scores: dict[str, dict[str, Any]] = {name: {} for name in names}
    failed, todo = set(), []

    def settle(name: str) -> None:
        if len(scores[name]) == len(plans[name].tasks):
            try:
                _write(name, plans[name], scores[name], house)
            except Exception:  # of the experiment's `rows`: the others go on
                failed.add(name)
                say(f"{name}: FAILED\n{traceback.format_exc()}")

    for name, planned in plans.items():
        kept = {task.name: store.read(_places(task, house)[2]) for task in planned.tasks.values()}
        scores[name] |= {unit: score for unit, score in kept.items() if score is not None}
        missing = [task for task in planned.tasks.values() if task.name not in scores[name]]
        drawn = sum(_places(task, house)[0].exists() for task in missing)
        say(
            f"{name}: {len(planned.tasks)} units, {len(scores[name])} kept, {drawn} drawn but to be scored"
        )
        todo += missing
        settle(name)
    versions = fingerprint.surroundings(house)["versions"]
    for number, (task, drawn, seconds, scored, failure) in enumerate(
        run(todo, house, client) if todo else (), start=1
    ):
        name, (draws, about, score) = task.experiment, _places(task, house)
        if drawn is not None:
            store.save(draws, drawn)
        if drawn is not None or not failure:
            meta = {"name": task.name, "setting": task.setting, "seconds": seconds}
            store.save(about, meta | {"fingerprint": task.prints[0], "versions": versions})
        if failure:
            failed.add(name)
            say(f"{number}/{len(todo)} {name}: {task.name} FAILED\n{failure}")
        else:
            store.save(score, scored)
            scores[name][task.name] = scored
            say(f"{number}/{len(todo)} {name}: {task.name}, {seconds:.1f} s")
            settle(name)
    return sorted(failed)


def check(names: Sequence[str], house: House = HOUSE, client: Client | None = None) -> list[str]:
    """Recompute SMALL of each result, whatever is kept, and compare; return the names of those that
    failed.

    ``book/results/checked.json`` then has an entry of each that passed, and of none that failed.
    """
    code = fingerprint.read(house)
    plans = {name: plan(name, code) for name in names}
    stored = {name: store.read(_result(name, house)) or {} for name in names}
    problems: dict[str, list[str]] = {}
    for name, planned in plans.items():
        has = (stored[name].get("settings"), stored[name].get("check", {}).get("setting"))
        wanted = (planned.module.SETTINGS, planned.module.SMALL)
        if has != wanted:
            problems[name] = [
                f"given a result of settings and check {has}, expected {wanted}: compute it"
            ]
    todo = [planned.small for name, planned in plans.items() if name not in problems]
    entries = {}
    for task, _, _, scored, failure in run(todo, house, client, kept=False) if todo else ():
        name = task.experiment
        if failure:
            problems[name] = [f"{task.name}\n{failure}"]
        else:
            compared, largest, problems[name] = compare(stored[name]["check"]["scored"], scored)
            say(f"{name}: {compared} numbers compared, largest difference {largest:.2g} errors")
            entries[name] = {
                "fingerprint": plans[name].prints,
                "compared": compared,
                "largest": largest,
            }
    failed = [name for name in names if problems[name]]
    for name in failed:
        say(f"{name}: FAILED", *problems[name], sep="\n  ")
    entries = (store.read(_result("checked", house)) or {}) | entries
    store.save(
        _result("checked", house),
        {name: entries[name] for name in sorted(entries) if name not in failed},
    )
    return failed


def plan(name: str, code: Code) -> Plan:
    """Import an experiment and return what makes its result; ValueError if it lacks something."""
    house = code.house
    module = importlib.import_module(_dotted(name, house))
    absent = {"SETTINGS", "SMALL", "units", "unit"} - vars(module).keys()
    if absent:
        raise ValueError(
            f"{name}: given no {', '.join(sorted(absent))}, expected SETTINGS, SMALL, units and unit"
        )
    settings = dict(module.units())
    written = {"SETTINGS": module.SETTINGS, "SMALL": module.SMALL, "units": settings}
    if store.as_json(written, name) != written or not settings or CHECK in settings:
        raise ValueError(
            f"{name}: given {written}, expected JSON, lists for tuples, and units, none of them {CHECK}"
        )
    if module.SMALL not in settings.values():
        settings[CHECK] = module.SMALL
    prints = (_print(name, code, "unit"), _print(name, code, "score"))
    tasks = {
        unit: Task(name, unit, setting, prints, house.packages)
        for unit, setting in settings.items()
    }
    small = next(task for task in tasks.values() if task.setting == module.SMALL)
    return Plan(module, _prints(name, code), tasks, small)


def run(
    tasks: Sequence[Task], house: House = HOUSE, client: Client | None = None, kept: bool = True
) -> Iterator[Done]:
    """Yield what comes of units as the cluster finishes them; ``kept`` draws are only scored."""
    with contextlib.nullcontext(client) if client else connected() as at:
        futures: dict[Future, Task] = {}
        done = as_completed(loop=at.loop)

        def submit(task: Task, found: Any) -> None:
            there = at.scatter([found], hash=False) if found else []
            future = at.submit(work, task, *there, pure=False, priority=len(there))
            futures[future] = task
            done.add(future)

        again = [task for task in tasks if kept and _places(task, house)[0].exists()]
        for task in tasks:
            if task not in again:
                submit(task, None)
        waiting = iter(again)
        for task in itertools.islice(waiting, AHEAD):
            submit(task, _kept(task, house))
        for future in done:
            for task in itertools.islice(waiting, 1):
                submit(task, _kept(task, house))
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


@contextlib.contextmanager
def connected() -> Iterator[Client]:
    """Yield a client of the cluster that Dask's configuration names, else of a worker for each core
    of this machine.
    """
    if dask.config.get("scheduler-address", None):
        with Client() as client:
            say(f"{len(client.nthreads())} workers at {client.scheduler.address}")
            yield client
        return
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        dask.config.set(CONFIG),
        LocalCluster(
            n_workers=dask.system.cpu_count(),
            threads_per_worker=1,
            processes=True,
            # not the port of another run
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            local_directory=scratch,
            silence_logs=logging.CRITICAL,  # tracebacks of units are told here
            preload=__name__,  # for `dask_setup`
            # how many threads XLA starts
            env={} if hasattr(os, "sched_setaffinity") else {"NPROC": "1"},
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def dask_setup(worker: Any) -> None:
    """Bind a worker of this machine's cluster to a core of its own. Dask calls this before it has
    anything to do.
    """
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.name) % len(cores)]})


def work(task: Task, found: tuple[dict[str, np.ndarray], float] | None = None) -> tuple:
    """Run a unit, on a worker, or score what was ``found`` of it: draws and seconds. Return `Done`
    without the task.
    """
    module, start = _trusted(task), time.perf_counter()
    if not task.prints[1]:
        scored = store.as_json(module.unit(**task.setting), task.name)
        return None, time.perf_counter() - start, scored, ""
    drawn = None if found else store.flat(module.unit(**task.setting), task.name)
    flat, seconds = found or (drawn, time.perf_counter() - start)
    try:
        return (
            drawn,
            seconds,
            store.as_json(module.score(store.nested(flat), **task.setting), task.name),
            "",
        )
    except Exception:  # told by whoever asked, who keeps the draws all the same
        return drawn, seconds, None, traceback.format_exc()


def _trusted(task: Task) -> ModuleType:
    """Import a task's experiment on a worker. ValueError if code or versions here are not those of
    whoever asks.
    """
    name = _dotted(task.experiment, House(packages=task.packages))
    module = importlib.import_module(name)
    here, wrong = _found_here(
        task.experiment, task.packages, Path(module.__file__).resolve().parents[2]
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
    """Return the fingerprints of the code that this process has imported, and the versions that are
    not the lock's.
    """
    for name, module in list(sys.modules.items()):  # as they are now: the files may change later
        if name.split(".")[0] in packages and getattr(module, "__file__", None):
            _imported.setdefault(name, Path(module.__file__).read_text(encoding="utf-8"))
    house = House(root, packages, _imported)
    pins = fingerprint.surroundings(house)["versions"]
    wrong = {
        one: (version(one), pins[one])
        for one in pins
        if version(one) not in {p.split()[0] for p in pins[one]}
    }
    code = fingerprint.read(house)
    return (_print(experiment, code, "unit"), _print(experiment, code, "score")), wrong


def _dotted(name: str, house: House) -> str:
    return f"{house.packages[-1]}.{name.replace('/', '.')}"


def _bound(name: str, code: Code) -> set[str]:
    return set(fingerprint.load(_dotted(name, code.house), code).scope)


def _print(name: str, code: Code, *parts: str) -> str:
    """Return the fingerprint of those parts of an experiment that it has, "" if it has none."""
    found = sorted(_bound(name, code).intersection(parts))
    return fingerprint.fingerprint(_dotted(name, code.house), found, code) if found else ""


def _prints(name: str, code: Code) -> dict[str, str]:
    """Return the fingerprints that a result bears: of ``unit``, and of all that makes a result of
    what that returns.
    """
    rest = _print(name, code, "score", "rows", "units", "SETTINGS", "SMALL")
    return {"unit": _print(name, code, "unit"), "score": rest}


def _result(name: str, house: House) -> Path:
    return fingerprint.installed("results", house, otherwise="book/results") / f"{name}.json"


def _places(task: Task, house: House) -> tuple[Path, Path, Path]:
    """Return where the draws of a task, what is known of them, and its score are kept."""
    key = fingerprint.digest(json.dumps([task.prints[0], task.setting], sort_keys=True))[:32]
    score_key = fingerprint.digest(json.dumps([key, task.prints[1]]))[:32]
    folder = Path(os.environ.get("RESULTS_STORE") or house.root / ".units") / task.experiment
    return folder / f"{key}.npz", folder / f"{key}.json", folder / f"{score_key}.json"


def _kept(task: Task, house: House) -> tuple[dict[str, np.ndarray], float] | None:
    """Return the kept draws of a task and the seconds that they took; None where they cannot be
    read.
    """
    draws, about = (store.read(path) for path in _places(task, house)[:2])
    return None if draws is None or about is None else (draws, about["seconds"])


def _write(name: str, planned: Plan, scored: dict[str, Any], house: House) -> None:
    """Write a result, and forget a check of the one before if that was another."""
    module = planned.module
    units = {unit: scored[unit] for unit in planned.tasks if unit != CHECK}
    rows = (
        module.rows(units)
        if hasattr(module, "rows")
        else [{"name": unit, **units[unit]} for unit in units]
    )
    result = {
        "settings": module.SETTINGS,
        "versions": fingerprint.surroundings(house)["versions"],
        "fingerprint": planned.prints,
        "rows": store.as_json(rows, f"{name}: rows"),
        "check": {"setting": module.SMALL, "scored": scored[planned.small.name]},
    }
    checked = store.read(_result("checked", house)) or {}
    if name in checked and store.read(_result(name, house)) != result:
        store.save(
            _result("checked", house),
            {other: entry for other, entry in checked.items() if other != name},
        )
    store.save(_result(name, house), result)
    say(f"{name}: wrote {len(rows)} rows")


if __name__ == "__main__":
    # workers look for functions there; in __main__ they would be sent by value
    from experiments import engine

    sys.exit(engine.main())
