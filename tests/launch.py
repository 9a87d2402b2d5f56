"""Starts processes as a shell in the project's folder would, for tests of several of them."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from chapters import ROOT

LIMIT = 600  # seconds that a run may take on a busy machine


@contextlib.contextmanager
def starting(folder: Path):
    """Yield a function that starts Python and returns the process and its log; all are ended in the
    end.
    """
    started = []

    def start(*arguments, command=(sys.executable, "-u"), **environment):
        log = folder / f"{len(started)}.txt"
        surroundings = os.environ | {"PYTHONPATH": str(ROOT), **environment}
        with log.open("w") as file:
            whole = [*command, *map(str, arguments)]
            started.append(
                subprocess.Popen(
                    whole, cwd=ROOT, env=surroundings, stdout=file, stderr=subprocess.STDOUT
                )
            )
        return started[-1], log

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait(LIMIT)
