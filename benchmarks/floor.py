"""The floor: plain C on one core of this machine (floor.c), which says how fast the machine is.

    with floor.compiled() as plain_c:
        times = floor.in_turns({"plain C": plain_c, "another": another}, rounds=5)

Needs a C compiler.
"""

import contextlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("floor.c")
FLAGS = ["-O3", "-march=native", "-ffast-math"]
REPETITIONS = 20_000


@contextlib.contextmanager
def compiled() -> Iterator[Callable[[], float]]:
    """Compile it, and yield a function that times a value and gradient, in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "floor"
        subprocess.run(["cc", *FLAGS, SOURCE, "-o", program, "-lm"], check=True)

        def microseconds():
            command = [program, str(REPETITIONS)]
            printed = subprocess.run(command, check=True, capture_output=True).stdout
            return float(printed.split()[0])

        yield microseconds


def in_turns(runs: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return what each run gives, [round]: one after the other, so that a busy machine slows all
    alike.
    """
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(run())
    return times
