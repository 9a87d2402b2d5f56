"""What the two programs have in common: what they are asked, and the clock of processor seconds."""

import json
import resource
import sys
import time
from pathlib import Path

import jax
import numpy as np

EVENTS = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")
_compiled = []  # begin and end of what JAX traced, lowered and compiled


def listen():
    """Hear of all that JAX compiles from here on."""

    def heard(event, seconds, **_):
        if event.rsplit("/", 1)[-1] in EVENTS:
            end = time.perf_counter()
            _compiled.append((end - seconds, end))

    jax.monitoring.register_event_duration_secs_listener(heard)


def compiling() -> float:
    """Return the seconds in which something was compiled, overlaps once."""
    total, reached = 0.0, 0.0
    for begin, end in sorted(_compiled):
        total, reached = total + max(0.0, end - max(begin, reached)), max(end, reached)
    return total


def asked() -> dict:
    """Return what the judge asks for: ``table``, ``seed``, ``priors``, ``folder``."""
    return json.loads(sys.argv[1])


def begin() -> tuple[float, float]:
    """Start the clock: what ``now`` returns, from when on JAX is listened to."""
    listen()
    return now()


def now() -> tuple[float, float]:
    """Return processor seconds, user and system, of this process and of those it has started and
    awaited; and seconds of a clock on the wall.
    """
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used), time.perf_counter()


def tell(begun: tuple[float, float], draws: dict, diverging: np.ndarray, folder: str):
    """Leave draws, by name [chain, draw], and how long they took, where the judge finds them."""
    cpu, wall = (end - start for start, end in zip(begun, now(), strict=True))
    np.savez(Path(folder) / "draws.npz", **draws)
    told = {"cpu": cpu, "wall": wall, "compiling": compiling(), "diverging": int(np.sum(diverging))}
    (Path(folder) / "told.json").write_text(json.dumps(told))
