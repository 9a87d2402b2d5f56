"""Runs a command while no other run of it goes on in this checkout; a second one waits, and says
so.

    python tools/alone.py NAME COMMAND...     NAME says what is being done
"""

import fcntl
import os
import sys
from contextlib import contextmanager

from chapters import ROOT


@contextmanager
def alone(name, folder=ROOT / "_build"):
    """Hold the lock of a name, a file, while what follows runs; the system lets go of it when no
    process has the file open.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting: another run of `{name}` goes on in this folder", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file


if __name__ == "__main__":
    with alone(sys.argv[1]) as held:
        os.set_inheritable(held.fileno(), True)
        os.execvp(sys.argv[2], sys.argv[2:])  # the command has the lock, and gets Ctrl-C itself
