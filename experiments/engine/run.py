"""Computes, keeps and checks the stored results, and says which of them are up to date."""

import argparse
import contextlib
import importlib
import itertools
import sys
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

from experiments.engine import dask_cluster, fingerprint, plan, store
from experiments.engine.compare import compare
from experiments.engine.fingerprint import HOUSE, House

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
    parser.add_argument("names", nargs="*", metavar="NAME", help="PAGE or PAGE/NAME; none: all")
    given = parser.parse_args(arguments)
    known = experiments(house)
    wanted = {name: [k for k in known if f"{k}/".startswith(f"{name}/")] for name in given.names}
    if not all(wanted.values()):
        unknown = [name for name in wanted if not wanted[name]]
        parser.error(f"given {', '.join(unknown)}, expected some of {', '.join(known)}")
    names = sorted({k for found in wanted.values() for k in found}) if wanted else known
    if given.status:
        states = status(house).items()
        plan.say(
            "\n".join(f"{state:<10}{name}" for name, state in states if name in names or not wanted)
        )
        return 0
    try:
        failed = check(names, house) if given.check else compute(names, house)
    except KeyboardInterrupt:
        plan.say("interrupted: what was finished is kept")
        return 130
    plan.say(f"failed: {', '.join(failed)}" if failed else f"done: {', '.join(names)}")
    return 1 if failed else 0


def experiments(house: House = HOUSE) -> list[str]:
    """Return the experiments on disk, PAGE/NAME: modules that define SETTINGS and ``unit``."""
    paths = sorted((house.root / house.packages[-1]).glob("pages/*/*.py"))
    names = [f"{path.parent.name}/{path.stem}" for path in paths]
    return [name for name in names if {"SETTINGS", "unit"} <= plan.names_of(name, house)]


def status(house: House = HOUSE) -> dict[str, str]:
    """Return the state of every result, by PAGE/NAME.

    "made": by the present code; "checked": by other code, but ``--check`` of the present code found
    its numbers; "old": neither; "missing": there is no result; "no script": there is no experiment.
    """
    checked = store.read(plan.result_path("checked", house)) or {}
    paths = plan.result_path("checked", house).parent.glob("*/*.json")
    states = {f"{path.parent.name}/{path.stem}": "no script" for path in paths}
    for name in experiments(house):
        stored, now = store.read(plan.result_path(name, house)), plan.prints_of(name, house)
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
    plans = {name: plan.make(name, house) for name in names}
    scores: dict[str, dict[str, Any]] = {name: {} for name in names}
    failed, todo = set(), []

    def settle(name: str) -> None:
        if len(scores[name]) == len(plans[name].tasks):
            try:
                plan.write(name, plans[name], scores[name], house)
            except Exception:  # of the experiment's `rows`: the others go on
                failed.add(name)
                plan.say(f"{name}: FAILED\n{traceback.format_exc()}")

    for name, planned in plans.items():
        kept = {
            task.name: store.read(plan.places(task, house)[2]) for task in planned.tasks.values()
        }
        scores[name] |= {unit: score for unit, score in kept.items() if score is not None}
        missing = [task for task in planned.tasks.values() if task.name not in scores[name]]
        drawn = sum(plan.places(task, house)[0].exists() for task in missing)
        plan.say(
            f"{name}: {len(planned.tasks)} units, "
            f"{len(scores[name])} kept, {drawn} drawn but to be scored"
        )
        todo += missing
        settle(name)
    versions = fingerprint.surroundings(house)["versions"]
    for number, (task, drawn, seconds, scored, failure) in enumerate(
        run(todo, house, client) if todo else (), start=1
    ):
        name, (draws, about, score) = task.experiment, plan.places(task, house)
        if drawn is not None:
            store.save(draws, drawn)
        if drawn is not None or not failure:
            meta = {"name": task.name, "setting": task.setting, "seconds": seconds}
            store.save(about, meta | {"fingerprint": task.prints[0], "versions": versions})
        if failure:
            failed.add(name)
            plan.say(f"{number}/{len(todo)} {name}: {task.name} FAILED\n{failure}")
        else:
            store.save(score, scored)
            scores[name][task.name] = scored
            plan.say(f"{number}/{len(todo)} {name}: {task.name}, {seconds:.1f} s")
            settle(name)
    return sorted(failed)


def check(names: Sequence[str], house: House = HOUSE, client: Client | None = None) -> list[str]:
    """Recompute SMALL of each result, whatever is kept, and compare; return the names of those that
    failed.

    ``book/results/checked.json`` then has an entry of each that passed, and of none that failed.
    """
    plans = {name: plan.make(name, house) for name in names}
    stored = {name: store.read(plan.result_path(name, house)) or {} for name in names}
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
            plan.say(
                f"{name}: {compared} numbers compared, largest difference {largest:.2g} errors"
            )
            entries[name] = {
                "fingerprint": plans[name].prints,
                "compared": compared,
                "largest": largest,
            }
    failed = [name for name in names if problems[name]]
    for name in failed:
        plan.say(f"{name}: FAILED", *problems[name], sep="\n  ")
    entries = (store.read(plan.result_path("checked", house)) or {}) | entries
    store.save(
        plan.result_path("checked", house),
        {name: entries[name] for name in sorted(entries) if name not in failed},
    )
    return failed


def run(
    tasks: Sequence[plan.Task],
    house: House = HOUSE,
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

        again = [task for task in tasks if kept and plan.places(task, house)[0].exists()]
        for task in tasks:
            if task not in again:
                submit(task, None)
        waiting = iter(again)
        for task in itertools.islice(waiting, AHEAD):
            submit(task, plan.kept_draws(task, house))
        for future in done:
            for task in itertools.islice(waiting, 1):
                submit(task, plan.kept_draws(task, house))
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


def work(task: plan.Task, found: tuple[dict[str, np.ndarray], float] | None = None) -> tuple:
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


def _trusted(task: plan.Task) -> ModuleType:
    """Import a task's experiment on a worker. ValueError if code or versions here are not those of
    whoever asks.
    """
    name = plan.dotted(task.experiment, House(packages=task.packages))
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
    return (
        plan.print_of(experiment, house, "unit"),
        plan.print_of(experiment, house, "score"),
    ), wrong
