"""Runs a command while no other run of it goes on in this checkout; a second one waits, and says
so.

python tools/alone.py NAME COMMAND...     NAME says what is being done
"""

import fcntl
import subprocess
import sys
from contextlib import contextmanager

from chapters import ROOT


@contextmanager
def alone(name, folder=ROOT / "_build"):
    """Hold the lock of a name while what follows runs; the system lets go of it if this process
    ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting: another run of `{name}` goes on in this folder", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    with alone(sys.argv[1]):
        sys.exit(subprocess.run(sys.argv[2:], check=False).returncode)
