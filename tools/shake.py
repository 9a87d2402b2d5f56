"""Shake every claim of the book: execute the chapters under perturbations, and see how far each
claim is from breaking.

    python tools/shake.py           what has not been run yet of all perturbations, then the table
    python tools/shake.py NAME...   these chapters only; the table keeps its rows of the others

No page is changed. A perturbation is other seeds for all that is live (what is compared with a
stored result keeps its keys), another instruction set or level of XLA's compiler, none of our
flags, one core or many threads, or another Python. What has run is kept in ``_build/shake`` until
its inputs change, so that a run that was stopped goes on where it was. The table is
``book/results/claims.json``, which the page ``status`` shows in short.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import nbformat
import numpy as np
import page_inputs
from chapters import ROOT
from execute import in_words, inputs, read_claims, refuse_unknown, sources
from kernels import kernel_environment, side_by_side, workers
from scipy import stats

FOLDER = ROOT / "_build/shake"
TABLE = ROOT / "book/results/claims.json"
PERTURBATIONS = {  # additions to the environment; XLA_FLAGS come after those of helpers, and win
    "as it is": {},
    **{f"seeds + {1000 * i}": {"BOOK_SEED": str(1000 * i)} for i in range(1, 4)},
    "widest instructions": {
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX512 --xla_cpu_prefer_vector_width=512"
    },
    "SSE4_2": {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2", "OPENBLAS_CORETYPE": "Nehalem"},
    "optimisation level 1": {"XLA_FLAGS": "--xla_backend_optimization_level=1"},
    "none of our flags": {"BOOK_NO_FLAGS": "1"},
    # A cached program was compiled for all cores, and the cache does not tell.
    "one core": {"BOOK_CORES": "1", "JAX_ENABLE_COMPILATION_CACHE": "false"},
    # More threads than cores; the programs are still those of the cores that there are.
    "many threads": {"BOOK_CORES": "16", "NPROC": "16", "OPENBLAS_NUM_THREADS": "16"},
    "Python 3.12": {"BOOK_PYTHON": "python3.12"},
    "Python 3.13": {"BOOK_PYTHON": "python3.13"},
}
KINDS = {  # by the words of the comparison and its sign; the first that fits
    "R-hat": r"rhat.* <",
    "Monte Carlo error": r"\d \* (\w+_)?error.* <|right.max.* <|allowed|sound",
    "effective draws": r"\bess\b|ess_alone",
    "verdict on a run": r"\.ok ",
}


def folder_of(name):
    """Where a perturbation keeps its runs."""
    return FOLDER / name.replace(" ", "_").replace("+", "plus")


def python_of(name, settings):
    """The interpreter of a perturbation: ours, or another version's with the packages of the
    lock.
    """
    if "BOOK_PYTHON" not in settings:
        return sys.executable
    found = shutil.which(settings["BOOK_PYTHON"])
    if not found:
        sys.exit(
            f"{name}: no {settings['BOOK_PYTHON']} on the path; "
            "install it, or say what it is called"
        )
    environment = folder_of(name) / "venv"
    python = environment / "bin/python"
    if not (environment / "ready").exists():
        subprocess.run([found, "-m", "venv", "--clear", environment], check=True)
        pip = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-compile",
        ]
        subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements.txt"], check=True)
        (environment / "ready").touch()
    return str(python)


def run(name, chapters):
    """Run chapters under one perturbation, in this process's environment, which has it."""
    folder, notebooks = folder_of(name), sources()
    wanted = json.loads((folder / "wanted.json").read_text())
    shutil.copytree(ROOT / "book/results", folder / "results", dirs_exist_ok=True)
    tasks = []
    for chapter in chapters:
        path = folder / f"{chapter}.ipynb"
        nbformat.write(notebooks[chapter], path)
        tasks.append((chapter, path, kernel_environment(folder, chapter, BOOK_SHAKE="1")))
    for chapter, (_, trace, cost) in side_by_side(tasks, min(workers(), len(tasks))):
        claims = read_claims(folder, chapter)
        broken = [claim["text"] for claim in claims if not claim["holds"]]
        word = (
            f"stopped: {trace.splitlines()[-1][:150]}"
            if trace
            else f"{len(claims)} claims, {len(broken)} broken"
        )
        print(
            f"{name:22s}{chapter:26s}{cost['seconds']:5.0f} s  {word}",
            *broken,
            sep="\n      ",
            flush=True,
        )
        (folder / f"{chapter}.json").write_text(
            json.dumps({"inputs": wanted[chapter], "trace": trace})
        )


def not_run(name, wanted):
    """The chapters that a perturbation has not run with these inputs."""

    def done(chapter):
        path = folder_of(name) / f"{chapter}.json"
        return path.exists() and json.loads(path.read_text())["inputs"] == wanted[chapter]

    return [chapter for chapter in wanted if not done(chapter)]


def kind_of(text, sign):
    """What makes a claim's bound."""
    if sign[0] not in "<>":
        return "exact"
    return next(
        (kind for kind, words in KINDS.items() if re.search(words, f"{text} {sign}")),
        "measured margin",
    )


def table(chapters, names):
    """One row a claim: its sides as it is, and how far it is from breaking, in spreads over the
    perturbations.
    """
    found = {}
    for name in names:
        for chapter in chapters:
            seen = {}
            for claim in read_claims(folder_of(name), chapter):
                for place, (sign, left, right) in enumerate(claim["sides"]):
                    key = chapter, claim["cell"], claim["line"], claim["text"], place
                    seen[key] = seen.get(key, 0) + 1
                    found.setdefault((*key, seen[key]), {})[name] = (
                        sign,
                        left,
                        right,
                        claim["holds"],
                    )
    return [row(*key, runs) for key, runs in found.items()]


def row(chapter, cell, line, text, place, occurrence, runs):
    """One row of the table."""
    sign, left, right, _ = runs.get("as it is", next(iter(runs.values())))
    kind = kind_of(text, sign)
    kept = {
        "chapter": chapter,
        "cell": cell,
        "line": line,
        "text": text,
        "occurrence": occurrence,
        "kind": kind,
    }
    kept |= {
        "sides": [left, sign, right],
        "runs": len(runs),
        "held": sum(run[3] for run in runs.values()),
    }
    if kind == "exact":
        return kept
    direction = 1 if sign[0] == "<" else -1
    gaps = direction * np.array([right - left for _, left, right, _ in runs.values()])
    spread = gaps.std(ddof=1) if len(gaps) > 1 else np.nan
    # None: the same in all runs
    margin = float(gaps.mean() / spread) if spread > 1e-7 * abs(gaps.mean()) else None
    size = len(gaps)
    chance = 1e-5 if kind in ("R-hat", "Monte Carlo error") else None
    if chance is None and margin is not None:
        chance = float(stats.t.sf(margin * np.sqrt(size / (size + 1)), size - 1))
    return kept | {
        "gap": float(gaps.mean()),
        "spread": float(spread),
        "margin": margin,
        "chance": chance,
    }


def row_text(one):
    """One line of the printed table: where, kind, sides, in how many runs it held, p of its bound,
    spread, margin.
    """
    place = f"{one['chapter']}, cell {one['cell']}, line {one['line']} ({one['occurrence']})"
    far = "".join(
        f", {name} {one[name]:.2g}"
        for name in ("chance", "spread", "margin")
        if one.get(name) is not None
    )
    found = f"{one['kind']}: {in_words(*one['sides'])}, held {one['held']} of {one['runs']}{far}"
    return f"{place}: {one['text'][:100]}\n    {found}"


def main(names):
    """Run what is due, write the table, and say what to look at; return the exit status."""
    notebooks = sources()
    del notebooks["status"]  # asserts nothing, and reads the table
    refuse_unknown(names, notebooks)
    code = page_inputs.read()
    wanted = {name: inputs(name, notebook, code) for name, notebook in notebooks.items()}
    for name, settings in PERTURBATIONS.items():
        if chosen := [
            chapter for chapter in not_run(name, wanted) if not names or chapter in names
        ]:
            python = python_of(name, settings)
            for chapter in chosen:
                (folder_of(name) / f"{chapter}.json").unlink(missing_ok=True)
            folder_of(name).mkdir(parents=True, exist_ok=True)
            # Not computed there: another Python's would differ.
            (folder_of(name) / "wanted.json").write_text(json.dumps(wanted))
            environment = {**os.environ, **settings, "PYTHONPATH": str(ROOT)}
            subprocess.run([python, __file__, "--run", name, *chosen], env=environment, check=True)
    shaken = {chapter: wanted[chapter] for chapter in names or wanted}
    complete = [name for name in PERTURBATIONS if not not_run(name, shaken)]
    others = (
        [one for one in json.loads(TABLE.read_text())["rows"] if one["chapter"] not in shaken]
        if names
        else []
    )
    rows = sorted(
        others + table(shaken, complete), key=lambda one: list(notebooks).index(one["chapter"])
    )
    waiting = [
        one for one in json.loads(TABLE.read_text())["waiting"] if names and one[0] not in shaken
    ]
    written = {"perturbations": complete, "rows": rows, "waiting": waiting}
    TABLE.write_text(json.dumps(written, indent=1) + "\n")
    stopped = [
        f"{name}: {chapter} stopped, see {folder_of(name) / chapter}.json"
        for name in complete
        for chapter in shaken
        if json.loads((folder_of(name) / f"{chapter}.json").read_text())["trace"]
    ]
    broken = [one for one in rows if one["held"] < one["runs"]]
    near = [
        one
        for one in rows
        if one not in broken and one.get("margin") is not None and one["margin"] < 4
    ]
    print(*map(row_text, sorted(rows, key=lambda one: one["kind"] == "exact")), sep="\n")
    print(
        f"{len(rows)} claims under {len(complete)} perturbations; "
        f"broken: {len(broken)}; near: {len(near)}"
    )
    print(*map(row_text, [*broken, *near]), sep="\n")
    print(*stopped, sep="\n")
    return 1 if broken or stopped else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main(sys.argv[1:]))
