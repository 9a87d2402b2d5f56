"""How processes of a run end."""

import ctypes
import os
import signal
import sys
import threading


def die_with(other_end):
    """End this process when the other end of a connection is closed, as it is when the process that
    holds it ends, however that was.
    """

    def wait():
        try:
            other_end.recv()
        except EOFError:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def die_with_parent():
    """Let the system end this process when the one that started it ends, however that was: on
    Linux.
    """
    if sys.platform == "linux":
        death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)


def how_it_ended(code):
    """An exit code in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    memory = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return f"was ended by {name}{memory}"
