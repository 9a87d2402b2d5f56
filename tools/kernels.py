"""Runs notebooks, each in a process of its own, and says of one that did not end what stopped it.

A process that is killed takes nothing with it: the others go on. Their output goes to a file beside
the notebook, since what ends a kernel is said there and nowhere else. If whoever asked is killed,
so are they.
"""

import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from chapters import ROOT
from nbmake.nb_run import NotebookRun
from processes import die_with, how_it_ended

MEMORY = 2.5e9  # bytes a chapter is given room for; the largest takes 2.1e9
TIMEOUT = 600  # seconds a cell
# Lines of a kernel's output in which the cause of its end stands, from the plainest on.
CAUSES = (
    r"^helpers: .*",
    r"Unknown flags? in XLA_FLAGS.*",
    r".*(No space left on device|Disk quota exceeded).*",
    r".*(out of memory|Cannot allocate memory|MemoryError|bad_alloc|Unable to allocate).*",
    r"^\w*(Error|Exception)\b.*",
    r"^[FE]\d{4} .*",
    r".*\b(error|fatal|abort|killed)\b.*",
)


def kernel_environment(folder, name, **others):
    """Set what a chapter's kernel is to find, and take down what it claims; nothing of the reader's
    IPython, and this checkout's code before any other's.
    """
    profile = folder / "ipython/profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    settings = 'c.InteractiveShellApp.extensions = ["claims"]\nc.IPKernelApp.log_level = "ERROR"\n'
    (profile / "ipython_kernel_config.py").write_text(settings)
    claims = folder / f"{name}.jsonl"
    claims.unlink(missing_ok=True)
    own = {
        "BOOK_CLAIMS": str(claims),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tools"))),
    }
    return own | others


def run(path, environment):
    """Execute a notebook in this process's kernel. Returns it, the error or None, and what it
    cost.
    """
    import resource  # not on Windows, where the tests of this module need not run

    os.environ.update(environment)
    begun = time.monotonic()
    try:
        result = NotebookRun(path, TIMEOUT).execute()
        notebook, trace = result.nb, result.error and result.error.trace
    except Exception as error:  # such as a kernel that died: nbmake passes nbclient's word on
        notebook, trace = None, f"{type(error).__name__}: {error}"
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cost = {"seconds": time.monotonic() - begun, "cpu": used.ru_utime + used.ru_stime, "peak": peak}
    return notebook, trace, cost


def output_of(path):
    """Where the output of a notebook's kernel is."""
    return path.with_suffix(".log")


def _answer(path, environment, pipe, life):
    """Run in a process: all that it and its kernel print goes to the file."""
    die_with(life)
    with output_of(path).open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    pipe.send(run(path, environment))


def workers():
    """How many chapters fit beside each other: the cores that this process may use, and the memory
    that is free.
    """
    if os.environ.get("JOBS"):
        return max(1, int(os.environ["JOBS"]))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores, int(free_memory() / MEMORY)))


def free_memory():
    """Bytes that are free, here or under the limits of a container or control group."""
    free = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError):
        free.append(
            1024 * int(re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[1])
        )
    for path in limits():
        with suppress(OSError, ValueError):  # "max" where there is none
            free.append(int(path.read_text()))
    return min(free)


def limits(groups=Path("/proc/self/cgroup"), root=Path("/sys/fs/cgroup")):
    """The files with the limits of this process's control groups and of those around them, of both
    versions of Linux's.
    """
    with suppress(OSError):
        for line in groups.read_text().splitlines():
            _, kind, path = line.split(":", 2)
            if kind not in ("", "memory"):
                continue
            base, name = root / kind, "memory.limit_in_bytes" if kind else "memory.max"
            inner = base / path.lstrip("/")
            yield from (at / name for at in (inner, *inner.parents) if at.is_relative_to(base))


def side_by_side(tasks, num_workers):
    """Yield ``run``'s answer for each of ``tasks``, (name, path, environment), as (name, answer),
    as they end.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["kernels"])
    started = []

    def one(path, environment):
        begun = time.monotonic()
        (ours, theirs), (life, held) = context.Pipe(duplex=False), context.Pipe(duplex=False)
        process = context.Process(target=_answer, args=(path, environment, theirs, life))
        process.start()
        started.append(process)
        theirs.close()
        life.close()
        try:
            answer = ours.recv()
            process.join()
        except EOFError:  # it ended without a word
            process.join()
            cost = {"seconds": time.monotonic() - begun, "cpu": 0.0, "peak": 0}
            answer = None, f"the process that ran it {how_it_ended(process.exitcode)}", cost
        finally:
            ours.close()
            held.close()
        notebook, trace, cost = answer
        return notebook, trace and with_cause(trace, path), cost

    pool = ThreadPoolExecutor(num_workers)
    try:
        ends = {pool.submit(one, path, environment): name for name, path, environment in tasks}
        for end in as_completed(ends):
            yield ends[end], end.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in started:
            process.kill()
        pool.shutdown()


def with_cause(trace, path):
    """The error, and where that does not say why, the line in which the kernel did."""
    trace = re.sub(r"\x1b\[[\d;]*m", "", trace)  # a terminal's colours
    last = trace.strip().splitlines()[-1] if trace.strip() else ""
    said_nothing = last.rstrip(": ") in ("", "AssertionError") or last.endswith("AssertionError:")
    if not (said_nothing or re.search(r"[Kk]ernel ?[Dd]ied|the process that ran it", trace)):
        return trace
    printed = output_of(path).read_text(errors="replace") if output_of(path).exists() else ""
    for cause in CAUSES:
        if found := re.search(cause, printed, re.MULTILINE | re.IGNORECASE):
            return f"{trace.strip()}; its output says: {found[0].strip()[:300]}"
    return trace
