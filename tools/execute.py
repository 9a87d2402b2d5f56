"""Execute the chapters, each once, side by side, longest first; keep what they gave for the website
and the tests.

    python tools/execute.py             the chapters that are due: see `page_inputs`
    python tools/execute.py NAME...     these, changed or not

nbmake runs a chapter. The executed notebook is kept in ``_build/executed``, with what it asserted
beside it (``claims.py``), and handed to the cache from which Jupyter Book takes its outputs. JOBS=1
runs one at a time.
"""

import helpers

import hashlib
import json
import os
import re
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path

import jupytext
import nbformat
import page_inputs
from chapters import ROOT, has_code, pages
from jupyter_cache import get_cache
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbmake.nb_run import NotebookRun

EXECUTED = ROOT / "_build/executed"
CACHE = ROOT / "_build/.jupyter_cache"
# Where no run is on record: seconds of each chapter on two cores, to begin with the longest.
SECONDS = {
    "informative-priors": 85,
    "real-data": 80,
    "your-table": 45,
    "hierarchical-bnn": 75,
    "what-the-gain-is-made-of": 65,
    "are-the-samplers-right": 57,
    "flat-bnn": 55,
    "choosing-the-prior": 55,
    "scaling-out": 55,
    "sgmcmc": 50,
    "first-hour": 50,
    "svi": 42,
    "regression": 42,
    "overconfidence": 40,
    "wide-limit": 40,
    "data": 28,
    "rotation": 28,
    "index": 25,
    "comparing-inference": 20,
    "what-it-is-worth": 15,
    "minibatch-limits": 20,
    "originals": 18,
    "modes": 8,
    "when-pooling-pays": 7,
    "digits": 7,
    "which-method": 7,
    "new-tasks": 6,
    "status": 1,
}
MEMORY = 2.5e9  # bytes a chapter is given room for; the largest takes 2.1e9
TIMEOUT = 600  # seconds a cell


def sources():
    """The chapters, by name: their notebooks as Jupytext reads them."""
    return {page.stem: jupytext.read(ROOT / page) for page in pages() if has_code(page)}


def refuse_unknown(names, notebooks):
    """End with a word if a name is no chapter's."""
    if unknown := set(names) - set(notebooks):
        sys.exit(f"chapters: given {sorted(unknown)}, expected some of {sorted(notebooks)}")


def inputs(name, notebook, code):
    """Hash what a chapter's outputs depend on: its cells, what they use, the lock, Python,
    flags.
    """
    cells = [(cell.source, cell.metadata) for cell in notebook.cells if cell.cell_type == "code"]
    used = page_inputs.dependencies(name, "\n".join(source for source, _ in cells), code)
    lock = hashlib.sha256((code.project.root / "requirements.txt").read_bytes()).hexdigest()
    callers = os.environ.get("XLA_FLAGS", "").replace(helpers.FLAGS, "").split()
    about = [sys.version_info[:2], callers, helpers.FLAGS, lock, used, json.dumps(cells)]
    return hashlib.sha256(repr(about).encode()).hexdigest()


def kernel_environment(folder, name, **others):
    """Set what a chapter's kernel is to find, and take down what it claims; nothing of the reader's
    IPython.
    """
    profile = folder / "ipython/profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    settings = 'c.InteractiveShellApp.extensions = ["claims"]\nc.IPKernelApp.log_level = "ERROR"\n'
    (profile / "ipython_kernel_config.py").write_text(settings)
    paths = [str(ROOT / "tools"), *filter(None, [os.environ.get("PYTHONPATH")])]
    claims = folder / f"{name}.jsonl"
    claims.unlink(missing_ok=True)
    own = {
        "BOOK_CLAIMS": str(claims),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    return own | others


def run(path, environment):
    """Execute a notebook in this process's kernel. Returns it, the error or None, and what it
    cost.
    """
    import resource  # not on Windows, where the tests of this module need not run

    os.environ.update(environment)
    begun = time.monotonic()
    try:
        result = NotebookRun(path, TIMEOUT).execute()
        notebook, trace = result.nb, result.error and result.error.trace
    except Exception as error:  # such as a kernel that died: nbmake passes nbclient's word on
        notebook, trace = None, f"{type(error).__name__}: {error}"
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cost = {"seconds": time.monotonic() - begun, "cpu": used.ru_utime + used.ru_stime, "peak": peak}
    return notebook, trace, cost


def workers():
    """How many chapters fit beside each other: the cores that this process may use, and the memory
    that is free.
    """
    if os.environ.get("JOBS"):
        return max(1, int(os.environ["JOBS"]))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    free = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError):
        free.append(
            1024 * int(re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[1])
        )
    with suppress(OSError, ValueError):  # a container's limit; "max" where it has none
        free.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return max(1, min(cores, int(min(free) / MEMORY)))


def side_by_side(tasks, num_workers):
    """Yield ``run``'s answer for each of ``tasks``, (name, path, environment), as (name, answer),
    as they end.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["__main__"])
    with ProcessPoolExecutor(num_workers, context, max_tasks_per_child=1) as pool:
        ends = {pool.submit(run, path, environment): name for name, path, environment in tasks}
        for end in as_completed(ends):
            try:
                yield ends[end], end.result()
            # killed from outside, as for want of memory; the pool ends with it
            except BrokenProcessPool as error:
                yield (
                    ends[end],
                    (
                        None,
                        f"{type(error).__name__}: {error}",
                        {"seconds": 0.0, "cpu": 0.0, "peak": 0},
                    ),
                )


def read_claims(folder, name):
    """The comparisons that a run of a chapter has written."""
    path = folder / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@contextmanager
def opened():
    """The book's cache, whose database is closed at the end: jupyter-cache leaves it open."""
    cache = get_cache(CACHE)
    try:
        yield cache
    finally:
        cache.db.dispose()


def keep(name, notebook, record):
    """Store what a chapter gave: the notebook, its record, and the entry of Jupyter Book's
    cache.
    """
    # nbclient's time stamps are metadata, and so would be part of the cache's key
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    # how print was cut depends on the hour
    notebook, _ = CoalesceStreamsPreprocessor().preprocess(notebook, {})
    path = EXECUTED / f"{name}.ipynb"
    nbformat.write(notebook, path)
    with opened() as cache:
        data = {"execution_seconds": record["seconds"]}
        uri = str(ROOT / f"book/{name}.md")
        cache.cache_notebook_file(
            str(path), uri=uri, data=data, check_validity=False, overwrite=True
        )
    (EXECUTED / f"{name}.json").write_text(json.dumps(record) + "\n")


def on_record(name):
    """What the last run that ended well has left of a chapter, or None."""
    path = EXECUTED / f"{name}.json"
    return (
        json.loads(path.read_text())
        if path.exists() and (EXECUTED / f"{name}.ipynb").exists()
        else None
    )


def in_words(left, sign, right):
    """A comparison as it is printed: of numbers six digits, of anything else what was written of
    it.
    """
    return f"{left:.6g} {sign} {right:.6g}" if isinstance(left, float) else f"{left} {sign} {right}"


def explain(name, trace, claims):
    """Say in a few lines what stopped a chapter: the claim and its two sides, or the end of the
    trace.
    """
    trace = re.sub(r"\x1b\[[\d;]*m", "", trace)  # a terminal's colours
    (EXECUTED / f"{name}.txt").write_text(trace)
    if claims and not claims[-1]["holds"] and "AssertionError" in trace:
        last = claims[-1]
        sign, left, right = last["sides"][-1]
        where = f"{name}, code cell {last['cell']}, line {last['line']}: a claim does not hold"
        return [where, f"    {last['text']}", f"    {in_words(left, f'is not {sign}', right)}"]
    return [f"{name}: stopped", f"    {trace.strip().splitlines()[-1][:200]}"]


ADVICE = """
A claim with a Monte Carlo error fails by chance in one run of 100 000; the same seed on the same
machine fails again. Give the chapter another seed, the number in its `jax.random.key(...)` or
`default_rng(...)` in book/NAME.md, run `make pair` and the command again: what has been executed is
kept. If it fails with a second seed, or has no error, the book is wrong, or is computed wrongly
here: please report the lines above, the file _build/executed/NAME.txt and the versions on the page
`status`.
"""


def main(names):
    """Execute what is to be executed; return the exit status."""
    notebooks = sources()
    refuse_unknown(names, notebooks)
    EXECUTED.mkdir(parents=True, exist_ok=True)
    (EXECUTED / "stopped.txt").unlink(missing_ok=True)
    shutil.copytree(ROOT / "book/results", EXECUTED / "results", dirs_exist_ok=True)
    code = page_inputs.read(ROOT)
    wanted = {name: inputs(name, notebook, code) for name, notebook in notebooks.items()}
    last = {name: on_record(name) or {} for name in notebooks}
    due = names or [name for name in notebooks if last[name].get("inputs") != wanted[name]]
    due = sorted(due, key=lambda name: -last[name].get("seconds", SECONDS.get(name, 60)))
    num_workers = min(workers(), max(1, len(due)))
    print(
        f"{len(due)} of {len(notebooks)} chapters to execute, {num_workers} at a time", flush=True
    )
    tasks = []
    for name in due:
        (EXECUTED / f"{name}.json").unlink(missing_ok=True)
        nbformat.write(notebooks[name], EXECUTED / f"{name}.ipynb")
        tasks.append((name, EXECUTED / f"{name}.ipynb", kernel_environment(EXECUTED, name)))
    begun, stopped = time.monotonic(), []
    for done, (name, (notebook, trace, cost)) in enumerate(side_by_side(tasks, num_workers), 1):
        claims = read_claims(EXECUTED, name)
        held = sum(claim["holds"] for claim in claims)
        if trace:
            stopped += ["", *explain(name, trace, claims)]
        else:
            keep(name, notebook, {"inputs": wanted[name], "claims": held, **cost})
        word = "STOPPED, see below" if trace else f"{held:3d} claims hold"
        spent = time.monotonic() - begun
        print(
            f"{name:26s}{cost['seconds']:6.0f} s  {word}   ({done} of {len(due)}, {spent:.0f} s)",
            flush=True,
        )
    if stopped:
        stopped += [ADVICE] * any("a claim does not hold" in line for line in stopped)
        (EXECUTED / "stopped.txt").write_text("\n".join(stopped) + "\n")
        print(*stopped, sep="\n", flush=True)
        return 1
    total = sum(record["claims"] for record in map(on_record, notebooks) if record)
    print(
        f"{len(notebooks)} chapters are executed, and their {total} claims hold "
        f"({time.monotonic() - begun:.0f} s)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
