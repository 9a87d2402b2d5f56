"""What makes a result: its units, the fingerprints that it bears, and where all is kept."""

import importlib
import json
import os
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from experiments.engine import fingerprint, store
from experiments.engine.fingerprint import Code, Project

say = partial(print, flush=True)
CHECK = "(check"  # how the names of units of SMALL begin that are not among the others


class Task(NamedTuple):
    """A unit, as a worker gets it."""

    experiment: str  # PAGE/NAME
    name: str
    setting: dict
    prints: tuple[str, str]  # fingerprints of `unit` and of `score`, "" where there is none
    packages: tuple[str, ...]


class Plan(NamedTuple):
    """What makes a result."""

    module: ModuleType
    prints: dict[str, str]  # fingerprints that the result bears
    tasks: dict[str, Task]
    small: list[Task]  # of SMALL


def make(name: str, code: Code) -> Plan:
    """Import an experiment and return what makes its result; ValueError if it lacks something."""
    project = code.project
    module = importlib.import_module(dotted(name, project))
    absent = {"SETTINGS", "SMALL", "units", "unit"} - vars(module).keys()
    if absent:
        raise ValueError(
            f"{name}: given no {', '.join(sorted(absent))}, "
            "expected SETTINGS, SMALL, units and unit"
        )
    settings = dict(module.units())
    written = {"SETTINGS": module.SETTINGS, "SMALL": module.SMALL, "units": settings}
    if store.as_json(written, name) != written or not settings or any(map(is_check, settings)):
        raise ValueError(
            f"{name}: given {written}, expected JSON, lists for tuples, and units, none {CHECK}...)"
        )
    small = module.SMALL if isinstance(module.SMALL, list) else [module.SMALL]
    for i, setting in enumerate(small, 1):
        if setting not in settings.values():
            settings[f"{CHECK} {i})"] = setting
    prints = (print_of(name, code, "unit"), print_of(name, code, "score"))
    tasks = {
        unit: Task(name, unit, setting, prints, project.packages)
        for unit, setting in settings.items()
    }
    of_small = [next(t for t in tasks.values() if t.setting == setting) for setting in small]
    return Plan(module, prints_of(name, code), tasks, of_small)


def is_check(unit: str) -> bool:
    """Whether a unit is none of the result's rows, but one more that a check recomputes."""
    return unit.startswith(CHECK)


def checked_part(planned: Plan, scored: dict[str, Any]) -> Any:
    """Return the scores of SMALL: of one setting, or of several in their order."""
    found = [scored[task.name] for task in planned.small]
    return found if isinstance(planned.module.SMALL, list) else found[0]


def dotted(name: str, project: Project) -> str:
    """Return the module of an experiment."""
    return f"{project.packages[-1]}.pages.{name.replace('/', '.')}"


def names_of(name: str, code: Code) -> set[str]:
    """Return the names that an experiment defines or imports."""
    return set(fingerprint.load(dotted(name, code.project), code).scope)


def print_of(name: str, code: Code, *parts: str) -> str:
    """Return the fingerprint of those parts of an experiment that it has, "" if it has none."""
    found = sorted(names_of(name, code).intersection(parts))
    return fingerprint.fingerprint(dotted(name, code.project), found, code) if found else ""


def prints_of(name: str, code: Code) -> dict[str, str]:
    """Return a result's fingerprints: of ``unit``, and of all that turns its draws into rows."""
    rest = print_of(name, code, "score", "rows", "units", "SETTINGS", "SMALL")
    return {"unit": print_of(name, code, "unit"), "score": rest}


def result_path(name: str, project: Project) -> Path:
    """Return where a result is."""
    return fingerprint.installed("results", project, otherwise="book/results") / f"{name}.json"


def places(task: Task, project: Project) -> tuple[Path, Path, Path]:
    """Return where the draws of a task, what is known of them, and its score are kept."""
    key = fingerprint.digest(json.dumps([task.prints[0], task.setting], sort_keys=True))[:32]
    score_key = fingerprint.digest(json.dumps([key, task.prints[1]]))[:32]
    folder = Path(os.environ.get("RESULTS_STORE") or project.root / ".units") / task.experiment
    return folder / f"{key}.npz", folder / f"{key}.json", folder / f"{score_key}.json"


def kept_draws(task: Task, project: Project) -> tuple[dict[str, np.ndarray], float] | None:
    """Return the kept draws of a task and the seconds that they took; None where they cannot be
    read.
    """
    draws, about = (store.read(path) for path in places(task, project)[:2])
    return None if draws is None or about is None else (draws, about["seconds"])


def write(name: str, planned: Plan, scored: dict[str, Any], project: Project) -> None:
    """Write a result, and forget a check of the one before if that was another."""
    module = planned.module
    units = {unit: scored[unit] for unit in planned.tasks if not is_check(unit)}
    rows = (
        module.rows(units)
        if hasattr(module, "rows")
        else [{"name": unit, **units[unit]} for unit in units]
    )
    result = {
        "settings": module.SETTINGS,
        "versions": fingerprint.surroundings(project)["versions"],
        "fingerprint": planned.prints,
        "rows": store.as_json(rows, f"{name}: rows"),
        "check": {"setting": module.SMALL, "scored": checked_part(planned, scored)},
    }
    checked = store.read(result_path("checked", project)) or {}
    if name in checked and store.read(result_path(name, project)) != result:
        store.save(
            result_path("checked", project),
            {other: entry for other, entry in checked.items() if other != name},
        )
    store.save(result_path(name, project), result)
    say(f"{name}: wrote {len(rows)} rows")
