"""Looks before the first chapter whether this machine can run them, and says what it lacks.

What would be found after minutes, in a chapter's traceback, is found in seconds.
"""

import helpers

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from chapters import ROOT
from kernels import MEMORY, free_memory

SPACE = 1e9  # bytes that a build from nothing writes; the environment has taken 1.7e9 before
# Variables that change draws or what is imported. Those kept are part of what a chapter's record
# is compared with (`callers`), or say where things are.
CHANGING = re.compile(r"(JAX|XLA|PYTHON|MPL|TF|NUMPYRO|BLACKJAX|FLAX)(_|[A-Z]|$)")
KEPT = ("JAX_PLATFORMS", "XLA_FLAGS", "MPLCONFIGDIR", "PYTHONDONTWRITEBYTECODE")
QUIET = ("TF_CPP_MIN_LOG_LEVEL", "PYTHONUNBUFFERED")  # of no draw; the first is set by JAX itself
PLACES = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_")
ADVICE = "Unset what names it (PYTHONPATH, say), or make the environment here: make environment"


def clear_environment(environment=os.environ):
    """Take the caller's variables that change draws out of the environment; return their names."""
    found = sorted(
        name
        for name in environment
        if CHANGING.match(name) and name not in KEPT + QUIET and not name.startswith(PLACES)
    )
    for name in found:
        del environment[name]
    return found


def callers():
    """What the caller adds to how XLA compiles, and where it runs."""
    flags = os.environ.get("XLA_FLAGS", "").replace(helpers.FLAGS, "").split()
    return [flags, os.environ.get("JAX_PLATFORMS", "")]


def foreign(module=helpers, root=ROOT):
    """What is wrong with where a package of the book is imported from, or None."""
    where = Path(module.__file__).resolve().parent
    if where.is_relative_to(root.resolve()):
        return None
    return f"{module.__name__}: given that of {where}, expected that of {root.resolve()}. {ADVICE}"


def lacking(folder):
    """What is wrong with this machine, or None: the folder, space, its address, the backend."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 16))
            file.flush()
    except OSError as error:
        return f"{folder}: cannot be written: {error.strerror}"
    free = shutil.disk_usage(folder).free
    if free < SPACE:
        return (
            f"{folder}: {free / 1e9:.1f} GB are free on this disk, "
            f"and a build takes {SPACE / 1e9:.1f} GB"
        )
    if (free := free_memory()) < MEMORY:
        print(
            f"{free / 1e9:.1f} GB of memory are free, and a chapter takes up to "
            f"{MEMORY / 1e9:.1f} GB: the largest may be ended by the system",
            flush=True,
        )
    return loopback() or backend()


def loopback(address="127.0.0.1"):
    """What is wrong with this machine's own address, over which kernels are spoken to, or None."""
    try:
        with socket.create_server((address, 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        return f"{address}: cannot be reached, and kernels are spoken to over it: {error.strerror}"
    return None


def backend():
    """What is wrong with the backend that JAX starts, or None."""
    tried = started(os.environ)
    if not tried.returncode:
        return None
    said = [line for line in tried.stderr.splitlines() if line.strip()]
    last = next((line for line in said if "Unknown flag" in line), said[-1] if said else "nothing")
    asked = {name: os.environ[name] for name in KEPT[:2] if os.environ.get(name)}
    asked["XLA_FLAGS"] = " ".join(callers()[0]) or "those of helpers"
    others = {name: value for name, value in os.environ.items() if name != "JAX_PLATFORMS"}
    found = started(others).stdout.strip() if "JAX_PLATFORMS" in asked else ""
    remedy = f"; without JAX_PLATFORMS it starts, on {found}" if found else ""
    return f"JAX does not start with {asked}: {last.strip()[:400]}{remedy}"


def started(environment):
    """Start JAX in a process; it prints on what."""
    return subprocess.run(
        [sys.executable, "-c", "import helpers, jax; print(jax.devices()[0].platform)"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
