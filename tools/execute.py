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
import shutil
import sys
import time
from contextlib import contextmanager, suppress

import fit
import jupytext
import nbformat
import page_inputs
from alone import alone
from chapters import ROOT, has_code, pages
from jupyter_cache import get_cache
from kernels import kernel_environment, side_by_side, workers
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

from experiments.engine import store

EXECUTED = ROOT / "_build/executed"
CACHE = ROOT / "_build/.jupyter_cache"
# Where no run is on record: seconds of each chapter on two cores, to begin with the longest.
SECONDS = {
    "real-data": 100,
    "your-table": 90,
    "scaling-out": 90,
    "learnt-priors-measured": 75,
    "are-the-samplers-right": 75,
    "table-networks": 75,
    "priors-judged": 70,
    "what-the-gain-is-made-of": 65,
    "rotation": 60,
    "second-hour": 50,
    "flat-measured": 50,
    "informative-priors": 45,
    "hierarchical-bnn": 45,
    "sgmcmc": 45,
    "choosing-the-prior": 45,
    "from-one-fit": 45,
    "where-the-gain": 45,
    "sharing-measured": 45,
    "flat-bnn": 45,
    "fisher-scoring": 45,
    "regression": 42,
    "how-good": 40,
    "guides-measured": 40,
    "curves-measured": 40,
    "overconfidence": 40,
    "wide-limit": 40,
    "svi": 35,
    "first-hour": 30,
    "data": 28,
    "index": 25,
    "numpyro-study": 20,
    "comparing-inference": 20,
    "minibatch-limits": 20,
    "originals": 20,
    "what-it-is-worth": 15,
    "digits": 15,
    "usual-tables": 8,
    "tables-beyond": 8,
    "red-wine": 6,
    "modes": 8,
    "when-pooling-pays": 7,
    "which-method": 7,
    "new-tasks": 6,
    "status": 1,
}


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
    flags = fit.callers(), helpers.FLAGS
    about = [sys.version_info[:2], *flags, lock, used, json.dumps(cells)]
    return hashlib.sha256(repr(about).encode()).hexdigest()


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
    beside = path.with_suffix(f".{os.getpid()}")
    nbformat.write(notebook, beside)
    os.replace(beside, path)
    record |= {"size": path.stat().st_size}
    with opened() as cache:
        data = {"execution_seconds": record["seconds"]}
        uri = str(ROOT / f"book/{name}.md")
        cache.cache_notebook_file(
            str(path), uri=uri, data=data, check_validity=False, overwrite=True
        )
    store.save(EXECUTED / f"{name}.json", record)


def on_record(name):
    """What the last run that ended well has left of a chapter; None if nothing, or (said) if what
    is there is broken.
    """
    record, notebook = store.read(EXECUTED / f"{name}.json"), EXECUTED / f"{name}.ipynb"
    if record is None:
        return None
    if not notebook.exists() or notebook.stat().st_size != record.get("size"):
        print(f"{notebook}: not whole, counts as missing", flush=True)
        return None
    return record


def cached(notebooks):
    """The names of the chapters whose outputs the website would find; a cache that cannot be read
    is said and made anew.
    """
    found = set()
    try:
        with opened() as cache:
            for name, notebook in notebooks.items():
                with suppress(KeyError):
                    cache.match_cache_notebook(notebook)
                    found.add(name)
    except Exception as error:  # of SQLite or of its files: whatever it is, the remedy is the same
        what = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        print(f"{CACHE}: unreadable, made anew: {what}", flush=True)
        shutil.rmtree(CACHE)
        return set()
    return found


def in_words(left, sign, right):
    """A comparison as it is printed: of numbers six digits, of anything else what was written of
    it.
    """
    return f"{left:.6g} {sign} {right:.6g}" if isinstance(left, float) else f"{left} {sign} {right}"


def explain(name, trace, claims):
    """Say in a few lines what stopped a chapter: the claim and its two sides, or the end of the
    trace.
    """
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
    if cleared := fit.clear_environment():
        print(f"not passed on to chapters: {', '.join(cleared)}", flush=True)
    with alone("chapters", EXECUTED.parent):
        return executed(names, notebooks)


def executed(names, notebooks):
    """Execute chapters, or those that are due; return the exit status."""
    if wrong := fit.foreign():
        return stop([wrong])
    code = page_inputs.read(ROOT)
    wanted = {name: inputs(name, notebook, code) for name, notebook in notebooks.items()}
    last, there = {name: on_record(name) or {} for name in notebooks}, cached(notebooks)
    due = names or [
        name for name in notebooks if last[name].get("inputs") != wanted[name] or name not in there
    ]
    due = sorted(due, key=lambda name: -last[name].get("seconds", SECONDS.get(name, 60)))
    num_workers = min(workers(), max(1, len(due)))
    print(
        f"{len(due)} of {len(notebooks)} chapters to execute, {num_workers} at a time", flush=True
    )
    begun, stopped = time.monotonic(), []
    if due and (wrong := fit.lacking(EXECUTED)):
        return stop([wrong])
    try:
        (EXECUTED / "stopped.txt").unlink(missing_ok=True)
        tasks = prepared(due, notebooks)
        for done, (name, (notebook, trace, cost)) in enumerate(side_by_side(tasks, num_workers), 1):
            claims = read_claims(EXECUTED, name)
            held = sum(claim["holds"] for claim in claims)
            if trace:
                stopped += ["", *explain(name, trace, claims)]
            else:
                keep(name, notebook, {"inputs": wanted[name], "claims": held, **cost})
            word = "STOPPED, see below" if trace else f"{held:3d} claims hold"
            so_far = f"({done} of {len(due)}, {time.monotonic() - begun:.0f} s)"
            print(f"{name:26s}{cost['seconds']:6.0f} s  {word}   {so_far}", flush=True)
    except OSError as error:  # a full disk, say: what was kept is kept, and no more can be
        stopped += ["", f"{EXECUTED}: {error.strerror}: {error.filename or ''}"]
    if stopped:
        return stop(stopped + [ADVICE] * any("a claim does not hold" in line for line in stopped))
    records = [record for record in map(on_record, notebooks) if record]
    total = sum(record["claims"] for record in records)
    print(
        f"{len(records)} chapters are executed, and their {total} claims hold "
        f"({time.monotonic() - begun:.0f} s)"
    )
    return 0


def prepared(due, notebooks):
    """Write the notebooks that are to be executed; return the tasks of ``side_by_side``."""
    EXECUTED.mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "book/results", EXECUTED / "results", dirs_exist_ok=True)
    for name in due:
        (EXECUTED / f"{name}.json").unlink(missing_ok=True)
        nbformat.write(notebooks[name], EXECUTED / f"{name}.ipynb")
    return [(name, EXECUTED / f"{name}.ipynb", kernel_environment(EXECUTED, name)) for name in due]


def stop(lines):
    """Say what stopped, now and once more at the end of ``make test``; return the exit status."""
    print(*lines, sep="\n", flush=True)
    with suppress(OSError):  # it has been said; what cannot be written is why
        EXECUTED.mkdir(parents=True, exist_ok=True)
        (EXECUTED / "stopped.txt").write_text("\n".join(lines) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
