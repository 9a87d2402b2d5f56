"""Keep the book's execution cache true to what the chapters import and read.

jupyter-cache knows a chapter by its code cells alone. What else its outputs depend on is hashed here,
by content, and a cache of other inputs is dropped.

    python tools/execution_cache.py check          before a build: drop the cache if inputs changed
    python tools/execution_cache.py store FOLDER   after nbmake: put FOLDER's executed notebooks into it
"""

import hashlib
import os
import shutil
import sys
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import nbformat
from chapters import ROOT, has_code, pages
from jupyter_cache import get_cache

BUILD = ROOT / "_build"
CACHE = BUILD / ".jupyter_cache"
INPUTS = ["helpers", "book/results", "requirements.txt"]


def inputs_hash(root=ROOT):
    """Hash of Python's version, XLA's flags, and the names and contents of every file in ``INPUTS``."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {os.environ.get('XLA_FLAGS')}".encode())
    for name in INPUTS:
        for path in sorted([root / name, *(root / name).rglob("*")]):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def check(cache=CACHE, root=ROOT):
    """Drop ``cache`` unless it was made from the present inputs. Returns whether it was kept."""
    stamp, current = cache / "inputs.sha256", inputs_hash(root)
    if stamp.is_file() and stamp.read_text() == current:
        return True
    if cache.exists():
        print("Helpers, stored results, the lock or XLA's flags changed: every chapter will be executed.")
        shutil.rmtree(cache)
    cache.mkdir(parents=True)
    stamp.write_text(current)
    return False


def take_timing(notebook):
    """Remove nbclient's time stamps, part of the cache's key, and return the seconds they span."""
    times = []
    for cell in notebook.cells:
        times += cell.metadata.pop("execution", {}).values()
    times = sorted(datetime.fromisoformat(time) for time in times)
    return (times[-1] - times[0]).total_seconds()


@contextmanager
def opened():
    """The book's cache, whose database is closed at the end: jupyter-cache leaves it open."""
    cache = get_cache(CACHE)
    try:
        yield cache
    finally:
        cache.db.dispose()


def store(folder):
    """Cache the chapters that nbmake executed in ``folder``; fail if it left one unexecuted."""
    check()
    with opened() as cache:
        store_all(folder, cache)


def store_all(folder, cache):
    """Do so with the cache open."""
    for page in filter(has_code, pages()):
        executed = Path(folder, page.with_suffix(".ipynb").name)
        if not executed.is_file():
            sys.exit(f"{page} has code, and nbmake ran no {executed}")
        notebook = nbformat.read(executed, as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        if not all(cell.execution_count for cell in code if cell.source.strip()):
            sys.exit(f"{executed}: not every cell was executed")
        seconds = take_timing(notebook)
        nbformat.write(notebook, executed)
        cache.cache_notebook_file(
            str(executed),
            uri=str(ROOT / page),
            data={"execution_seconds": seconds},
            check_validity=False,
            overwrite=True,
        )
        print(f"{page}: executed in {seconds:.1f} s, handed to the book's cache")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check"]:
            check()
        case ["store", folder]:
            store(folder)
        case _:
            sys.exit(__doc__)
