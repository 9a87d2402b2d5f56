"""Computes, keeps and checks the stored results, and says which of them are up to date."""

import argparse
import traceback
from collections.abc import Sequence
from typing import Any

from distributed import Client

from experiments.engine import fingerprint, plan, store, units
from experiments.engine.compare import alike, compare
from experiments.engine.fingerprint import PROJECT, Code, Project


def main(arguments: Sequence[str] | None = None, project: Project = PROJECT) -> int:
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
    known = experiments(project)
    wanted = {name: [k for k in known if f"{k}/".startswith(f"{name}/")] for name in given.names}
    if not all(wanted.values()):
        unknown = [name for name in wanted if not wanted[name]]
        parser.error(f"given {', '.join(unknown)}, expected some of {', '.join(known)}")
    names = sorted({k for found in wanted.values() for k in found}) if wanted else known
    if given.status:
        states = status(project).items()
        plan.say(
            "\n".join(f"{state:<10}{name}" for name, state in states if name in names or not wanted)
        )
        return 0
    try:
        failed = check(names, project) if given.check else compute(names, project)
    except KeyboardInterrupt:
        plan.say("interrupted: what was finished is kept")
        return 130
    plan.say(f"failed: {', '.join(failed)}" if failed else f"done: {', '.join(names)}")
    return 1 if failed else 0


def experiments(project: Project = PROJECT, code: Code | None = None) -> list[str]:
    """Return the experiments on disk, PAGE/NAME: modules that define SETTINGS and ``unit``."""
    paths = sorted((project.root / project.packages[-1]).glob("pages/*/*.py"))
    names = [f"{path.parent.name}/{path.stem}" for path in paths]
    code = code or fingerprint.read(project)
    return [name for name in names if {"SETTINGS", "unit"} <= plan.names_of(name, code)]


def status(project: Project = PROJECT) -> dict[str, str]:
    """Return the state of every result, by PAGE/NAME.

    "made": by the present code; "checked": by other code, but ``--check`` of the present code found
    its numbers; "old": neither; "missing": there is no result; "no script": there is no experiment.
    """
    checked = store.read(plan.result_path("checked", project)) or {}
    paths = plan.result_path("checked", project).parent.glob("*/*.json")
    states = {f"{path.parent.name}/{path.stem}": "no script" for path in paths}
    code = fingerprint.read(project)
    for name in experiments(project, code):
        stored, now = store.read(plan.result_path(name, project)), plan.prints_of(name, code)
        if stored is None:
            states[name] = "missing"
        elif stored.get("fingerprint") == now:
            states[name] = "made"
        else:
            found = checked.get(name, {}).get("fingerprint")
            states[name] = "checked" if found == now else "old"
    return dict(sorted(states.items()))


def compute(
    names: Sequence[str], project: Project = PROJECT, client: Client | None = None
) -> list[str]:
    """Compute results, on the cluster of ``client`` or of `connected`; return the names of those
    that failed.

    Only what is not kept is computed. ValueError before any work for what is no experiment.
    """
    code = fingerprint.read(project)
    plans = {name: plan.make(name, code) for name in names}
    scores: dict[str, dict[str, Any]] = {name: {} for name in names}
    failed, todo = set(), []

    def settle(name: str) -> None:
        if len(scores[name]) == len(plans[name].tasks):
            try:
                plan.write(name, plans[name], scores[name], project)
            except Exception:  # of the experiment's `rows`: the others go on
                failed.add(name)
                plan.say(f"{name}: FAILED\n{traceback.format_exc()}")

    for name, planned in plans.items():
        kept = {
            task.name: store.read(plan.places(task, project)[2]) for task in planned.tasks.values()
        }
        scores[name] |= {unit: score for unit, score in kept.items() if score is not None}
        missing = [task for task in planned.tasks.values() if task.name not in scores[name]]
        drawn = sum(plan.places(task, project)[0].exists() for task in missing)
        plan.say(
            f"{name}: {len(planned.tasks)} units, "
            f"{len(scores[name])} kept, {drawn} drawn but to be scored"
        )
        todo += missing
        settle(name)
    versions = fingerprint.surroundings(project)["versions"]
    for number, (task, drawn, seconds, scored, failure) in enumerate(
        units.run(todo, project, client) if todo else (), start=1
    ):
        name, (draws, about, score) = task.experiment, plan.places(task, project)
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


def check(
    names: Sequence[str], project: Project = PROJECT, client: Client | None = None
) -> list[str]:
    """Recompute SMALL of each result, whatever is kept, and compare; return the names of those that
    failed.

    ``book/results/checked.json`` then has an entry of each that passed, and of none that failed.
    """
    code = fingerprint.read(project)
    plans = {name: plan.make(name, code) for name in names}
    stored = {name: store.read(plan.result_path(name, project)) or {} for name in names}
    problems: dict[str, list[str]] = {}
    for name, planned in plans.items():
        has = [stored[name].get("settings"), stored[name].get("check", {}).get("setting")]
        wanted = [planned.module.SETTINGS, planned.module.SMALL]
        if not alike(has, wanted):
            problems[name] = [
                f"given a result of settings and check {has}, expected {wanted}: compute it"
            ]
    todo = [one for name in names if name not in problems for one in plans[name].small]
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    entries = {}
    for task, _, _, scored, failure in units.run(todo, project, client, kept=False) if todo else ():
        name, planned = task.experiment, plans[task.experiment]
        if failure:
            problems.setdefault(name, []).append(f"{task.name}\n{failure}")
            continue
        found[name][task.name] = scored
        if len(found[name]) == len(planned.small):
            again = plan.checked_part(planned, found[name])
            compared, largest, problems[name] = compare(stored[name]["check"]["scored"], again)
            plan.say(
                f"{name}: {compared} numbers compared, largest difference {largest:.2g} errors"
            )
            entries[name] = {
                "fingerprint": planned.prints,
                "compared": compared,
                "largest": largest,
            }
    failed = [name for name in names if problems[name]]
    for name in failed:
        plan.say(f"{name}: FAILED", *problems[name], sep="\n  ")
    entries = (store.read(plan.result_path("checked", project)) or {}) | entries
    store.save(
        plan.result_path("checked", project),
        {name: entries[name] for name in sorted(entries) if name not in failed},
    )
    return failed
