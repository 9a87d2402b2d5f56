"""The clock of a sampler that runs in a process of its own, and its talk with the process that
judges its draws.

The clock stands while draws are judged. What JAX compiles is heard from JAX itself: programs of a
first batch count, programs of later batches, which differ in nothing but their length, do not.
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

# draws of each chain at which a run is judged
COUNTS = [round(250 * 2 ** (k / 2)) for k in range(17)]
SHORT = [20, 40]  # the same where a run is only tried
CHAINS = 4
EVENTS = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")


def asked_for(kind):
    """Whether this program was started for a kind of run: known before JAX is imported, whose flags
    may have to be set.
    """
    return f'"kind": "{kind}"' in sys.argv[-1]


class Session:
    """One run: what was asked for, the data, the clock."""

    def __init__(self):
        """Read what the judge asks for; what libraries print goes to standard error from here
        on.
        """
        self._to_judge = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        asked = json.loads(sys.argv[1])
        self.kind, self.seed, self.counts, self.folder = (
            asked.get(k) for k in ("kind", "seed", "counts", "folder")
        )
        self._short = asked.get("short", False)
        with np.load(Path(self.folder) / "data.npz") as data:
            self.x, self.y = data["x_train"], data["y_train"]
        self._imported, self._begun, self._standing = time.perf_counter(), None, 0.0
        self._warm, self._last_that_counts, self._compiled, self._others = None, None, [], 0.0

    def steps(self, number):
        """Return how many steps of warm-up to take: so many, or a few where the run is only
        tried.
        """
        return 40 if self._short else number

    def listen_to_jax(self):
        """Hear of every tracing, lowering and compilation."""
        import jax

        def heard(event, seconds, **_):
            if event.rsplit("/", 1)[-1] in EVENTS:
                end = time.perf_counter()
                self._compiled.append((end - seconds, end))

        jax.monitoring.register_event_duration_secs_listener(heard)

    def begin(self):
        """Start the clock."""
        self._begun = time.perf_counter()

    @contextlib.contextmanager
    def compiling(self):
        """Count what is done within as compilation, where a library is not heard of."""
        begun = time.perf_counter()
        yield
        self.compiled_for(time.perf_counter() - begun)

    def compiled_for(self, seconds):
        """Count so many of the seconds that have passed as compilation."""
        self._others += seconds

    @property
    def is_warm(self):
        """Whether warm-up has ended."""
        return self._warm is not None

    def now(self):
        """Seconds since the start, compilation of later batches included."""
        return time.perf_counter() - self._begun - self._standing

    def warm(self):
        """Say that warm-up has ended, of the last chain."""
        self._warm = self._running()

    def first_batch(self):
        """Say that what is compiled from here on differs in its length alone from what was compiled
        before.
        """
        self._last_that_counts = time.perf_counter()

    def say(self, line):
        """Say a line to the judge."""
        print(line, file=self._to_judge, flush=True)

    def _seconds(self, counts):
        """Seconds in which something compiled that counts, or does not: intervals may overlap."""
        last = self._last_that_counts or np.inf
        total, reached = 0.0, -np.inf
        for begin, end in sorted(part for part in self._compiled if (part[0] < last) == counts):
            total, reached = total + max(0.0, end - max(begin, reached)), max(end, reached)
        return total

    def _running(self):
        return self.now() - self._seconds(True) - self._seconds(False) - self._others

    def judged(self, draws, diverging, at=None):
        """Hand new draws [chain, draw] to the judge at a checkpoint; return whether to go on.

        ``at``: seconds by ``now`` at which the last of them was there, if not at this moment.
        """
        late = 0.0 if at is None else self.now() - at
        begun = time.perf_counter() - late
        compiling = self._seconds(True) + self._others
        seconds = self.now() - late - self._seconds(False)
        path = Path(self.folder) / "draws.npz"
        np.savez(path, **{name: np.asarray(values, np.float32) for name, values in draws.items()})
        told = {
            "seconds": seconds,
            "compiling": compiling,
            "warm_up": self._warm,
            "diverging": np.asarray(diverging).sum(axis=1).tolist(),
            "count": int(draws["log_sd"].shape[1]),
        }
        self.say(json.dumps(told))
        answer = sys.stdin.readline().strip()
        self._standing += time.perf_counter() - begun
        return answer == "on"
