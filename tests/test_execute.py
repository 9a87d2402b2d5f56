"""A chapter is executed when, and only when, its inputs have changed; a failure is said in a few
lines.
"""

import helpers

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import execute
import fit
import kernels
import nbformat
import pytest
from chapters import ROOT, has_code, pages


def notebook(*sources):
    """A notebook of these code cells, for this environment's kernel."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    )


def test_estimates_are_of_the_chapters():
    assert set(execute.SECONDS) == {page.stem for page in pages() if has_code(page)}


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book of three chapters, of which one makes a claim that does not hold; kept apart from the
    real one.
    """
    chapters = {
        "good": notebook("import os\nprint(os.getcwd())", "assert 1 < 2 and (3, 4) == (3, 4)"),
        "bad": notebook("error = 0.5", "\nassert abs(3.0) <= 5 * error"),
        "worse": notebook("1 / 0"),
    }
    (tmp_path / "book/results").mkdir(parents=True)
    (tmp_path / "helpers").mkdir()
    (tmp_path / "requirements.txt").touch()
    monkeypatch.setattr(execute, "EXECUTED", tmp_path / "executed")
    monkeypatch.setattr(execute, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(execute, "ROOT", tmp_path)
    monkeypatch.setattr(execute, "sources", lambda: chapters)
    monkeypatch.setattr(fit, "backend", lambda: None)
    return chapters


def test_what_holds_is_kept_and_what_does_not_is_explained(book, capfd):
    assert execute.main([]) == 1
    printed = capfd.readouterr().out
    assert "3 of 3 chapters to execute" in printed
    assert (
        "bad, code cell 2, line 1: a claim does not hold\n"
        "    abs(3.0) <= 5 * error\n    3 is not <= 2.5\n" in printed
    )
    assert (
        "worse: stopped\n    ZeroDivisionError: division by zero" in printed
        and "Traceback" not in printed
    )
    record = json.loads((execute.EXECUTED / "good.json").read_text())
    assert record["claims"] == 2 and record["seconds"] > 0 and record["peak"] > 1e7
    kept = nbformat.read(execute.EXECUTED / "good.ipynb", as_version=4)
    assert kept.cells[0].outputs[0].text.strip() == str(execute.EXECUTED)
    with execute.opened() as cache:
        assert (
            cache.match_cache_notebook(book["good"]).data["execution_seconds"] == record["seconds"]
        )
        assert len(cache.list_cache_records()) == 1
    assert "AssertionError" in (execute.EXECUTED / "bad.txt").read_text()
    assert (execute.EXECUTED / "stopped.txt").read_text() in printed

    del book["worse"]
    book["bad"] = notebook("assert 2 <= 3")
    assert execute.main([]) == 0
    printed = capfd.readouterr().out
    assert "1 of 2 chapters to execute" in printed
    assert "2 chapters are executed, and their 3 claims hold" in printed
    assert not (execute.EXECUTED / "stopped.txt").exists()
    assert execute.main([]) == 0
    assert "0 of 2 chapters to execute" in capfd.readouterr().out


def test_a_process_that_is_killed_ends_its_chapter_and_not_the_others(book, capfd, monkeypatch):
    monkeypatch.setenv("JOBS", "1")
    book |= {
        "bad": notebook("import os", "os.kill(os.getppid(), 9)"),
        "worse": notebook("assert 1 < 2"),
    }
    assert execute.main([]) == 1
    printed = capfd.readouterr().out
    assert "bad: stopped\n    the process that ran it was ended by SIGKILL" in printed
    assert "Traceback" not in printed
    assert execute.on_record("good")["claims"] == 2 and execute.on_record("worse")["claims"] == 1
    del book["bad"]
    assert execute.main([]) == 0 and "0 of 2 chapters to execute" in capfd.readouterr().out


@pytest.mark.parametrize(
    "code, words",
    [
        (
            "import os\nos.write(2, b'F0000 xla.cc] Unknown flag in XLA_FLAGS: --no')\nos.abort()",
            "its output says: Unknown flag in XLA_FLAGS: --no",
        ),
        (
            "import os\nos.write(2, b'std::bad_alloc: out of memory\\n')\nos.kill(os.getpid(), 9)",
            "its output says: std::bad_alloc: out of memory",
        ),
        (
            "import os\nos.write(2, b'RuntimeError: no cuda here\\n')\nassert False, ''",
            "its output says: RuntimeError: no cuda here",
        ),
    ],
    ids=["flag", "memory", "empty assertion"],
)
def test_what_a_kernel_said_before_it_died_reaches_the_reader(book, capfd, code, words):
    book["bad"] = notebook(code)
    del book["worse"]
    assert execute.main([]) == 1
    assert words in capfd.readouterr().out
    assert execute.on_record("good")["claims"] == 2


def test_what_is_broken_is_named_and_made_again(book, capfd):
    del book["bad"], book["worse"]
    assert execute.main([]) == 0
    record, kept = execute.EXECUTED / "good.json", execute.EXECUTED / "good.ipynb"
    database = execute.CACHE / "global.db"
    for path, content in (
        (record, record.read_text()[:20]),
        (kept, kept.read_text()[:-20]),
        (database, "no database"),
    ):
        path.write_text(content)
        capfd.readouterr()
        assert execute.main([]) == 0
        printed = capfd.readouterr().out
        named = path if path != database else execute.CACHE
        assert f"{named}: " in printed and "1 of 1 chapters to execute" in printed
    shutil.rmtree(execute.CACHE)
    assert execute.main([]) == 0 and "1 of 1 chapters to execute" in capfd.readouterr().out
    assert execute.main([]) == 0 and "0 of 1 chapters to execute" in capfd.readouterr().out


def test_a_disk_without_room_is_said_before_the_first_chapter(book, capfd, monkeypatch):
    monkeypatch.setattr(fit, "SPACE", 1e18)
    assert execute.main([]) == 1
    printed = capfd.readouterr().out
    assert "GB are free on this disk, and a build takes 1000000000.0 GB" in printed
    assert "bad" not in printed


def test_a_disk_that_fills_up_is_said_in_a_line(book, capfd, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "good.ipynb")

    monkeypatch.setattr(execute, "keep", full)
    assert execute.main(["good"]) == 1
    printed = capfd.readouterr().out
    assert f"{execute.EXECUTED}: No space left on device: good.ipynb" in printed
    assert "Traceback" not in printed


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").touch()
    assert fit.lacking(tmp_path / "file/executed") == (
        f"{tmp_path}/file/executed: cannot be written: Not a directory"
    )


def test_a_backend_that_does_not_start_is_said_with_what_asked_for_it(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "nonsense")
    found = fit.backend()
    assert found.startswith("JAX does not start with {'JAX_PLATFORMS': 'nonsense'")
    assert "nonsense" in found.split("}: ")[1] and "without JAX_PLATFORMS it starts, on " in found
    monkeypatch.delenv("JAX_PLATFORMS")
    monkeypatch.setenv("XLA_FLAGS", f"{helpers.FLAGS} --xla_no_such_flag=1")
    found = fit.backend()
    assert "--xla_no_such_flag=1" in found and "Unknown flag" in found
    monkeypatch.setenv("XLA_FLAGS", helpers.FLAGS)
    assert fit.backend() is None


def test_an_address_that_cannot_be_reached_is_said():
    assert fit.loopback() is None
    assert fit.loopback("192.0.2.1").startswith("192.0.2.1: cannot be reached, and kernels are")


def test_another_checkouts_code_is_refused(tmp_path):
    (tmp_path / "helpers").mkdir()
    other = SimpleNamespace(__name__="helpers", __file__=str(tmp_path / "helpers/__init__.py"))
    found = fit.foreign(other)
    assert found.startswith(f"helpers: given that of {tmp_path}/helpers, expected that of {ROOT}")
    assert fit.foreign(other, tmp_path) is None and fit.foreign() is None


def test_a_kernel_that_would_import_another_checkouts_code_ends(book, capfd, monkeypatch, tmp_path):
    (tmp_path / "other/helpers").mkdir(parents=True)
    (tmp_path / "other/helpers/__init__.py").touch()
    paths = f"{tmp_path}/other{os.pathsep}{ROOT}/tools"
    given = execute.kernel_environment

    def misled(folder, name):
        return given(folder, name, PYTHONPATH=paths)

    monkeypatch.setattr(execute, "kernel_environment", misled)
    assert execute.main(["good"]) == 1
    assert f"helpers: given {tmp_path}/other/helpers" in capfd.readouterr().out


def test_what_changes_draws_is_not_passed_on():
    kept = ("JAX_PLATFORMS", "JAX_COMPILATION_CACHE_DIR", "XLA_FLAGS", "MPLCONFIGDIR", "HOME")
    changing = ("JAX_ENABLE_X64", "MPLBACKEND", "PYTHON", "PYTHONHASHSEED", "PYTHONPATH", "TFDS")
    given = dict.fromkeys((*kept, *changing), "1")
    assert fit.clear_environment(given) == list(changing)
    assert set(given) == set(kept)


def sleep_in(folder):
    """Execute a chapter that sleeps, in a process that has nothing to do with this one."""
    told = "open('pids', 'a').write(f'{os.getpid()} {os.getppid()}')"
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of shells ignore it
    execute.EXECUTED, execute.CACHE, execute.ROOT = folder / "executed", folder / "cache", folder
    execute.sources = lambda: {"good": notebook("import os, time", told, "time.sleep(600)")}
    fit.backend = lambda: None
    sys.exit(execute.main([]))


@pytest.fixture
def waiting(book):
    """A run of a chapter that sleeps; and what of it is alive."""
    started = get_context("spawn").Process(target=sleep_in, args=(execute.ROOT,))
    started.start()
    pids, until = execute.EXECUTED / "pids", time.monotonic() + 120
    while not (pids.exists() and len(pids.read_text().split()) == 2):
        assert time.monotonic() < until
        time.sleep(0.1)
    pids = list(map(int, pids.read_text().split()))
    yield started, lambda: [pid for pid in pids if alive(pid)]
    for pid in [started.pid, *pids]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    started.join()


def alive(pid):
    """Whether a process runs; one that has ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="a signal at a parent's death is Linux's")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda how: how.name)
def test_a_run_that_is_killed_leaves_no_process(waiting, how):
    started, left = waiting
    os.kill(started.pid, how)
    until = time.monotonic() + 120  # a busy machine takes its time to end a kernel
    while left() and time.monotonic() < until:
        time.sleep(0.1)
    assert left() == []


def test_a_second_run_waits_for_the_first(tmp_path):
    code = (
        "import sys; sys.path.insert(0, 'tools')\n"
        "from alone import alone; from pathlib import Path\n"
        f"with alone('chapters', Path({str(tmp_path)!r})): print('in', flush=True); {{}}"
    )
    pipes = {"stdout": subprocess.PIPE, "stdin": subprocess.PIPE}
    start = partial(subprocess.Popen, cwd=ROOT, text=True, **pipes)
    with start([sys.executable, "-c", code.format("sys.stdin.read()")]) as first:
        assert first.stdout.readline() == "in\n"
        with start([sys.executable, "-c", code.format("pass")]) as second:
            words = "waiting: another run of `chapters` goes on in this folder\n"
            assert second.stdout.readline() == words
            first.stdin.close()
            assert second.stdout.readline() == "in\n"


def test_a_command_that_is_run_alone_is_the_process_itself(tmp_path):
    """So Ctrl-C reaches it, and its exit status is the caller's."""
    code = "import os, sys; print(os.getpid()); sys.exit(7)"
    command = [sys.executable, "tools/alone.py", "test", sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert int(run.stdout.read()) == run.pid
    assert run.returncode == 7


def test_an_unknown_chapter_is_named(book):
    with pytest.raises(SystemExit, match=r"chapters: given \['missing'\], expected some of"):
        execute.main(["missing"])


def test_limits_of_control_groups_count(tmp_path, monkeypatch):
    groups, root = tmp_path / "cgroup", tmp_path / "sys"
    groups.write_text("4:memory:/a/b\n3:cpuset:/\n0::/c\n")
    old, new = root / "memory/a/memory.limit_in_bytes", root / "c/memory.max"
    for path, text in ((old, "3000000000\n"), (new, "max\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = list(kernels.limits(groups, root))
    assert {old, new, root / "memory/a/b/memory.limit_in_bytes", root / "memory.max"} <= set(found)
    assert list(kernels.limits(tmp_path / "none", root)) == []
    monkeypatch.setattr(kernels, "limits", lambda: found)
    monkeypatch.delenv("JOBS", raising=False)
    assert kernels.free_memory() <= 3e9 and kernels.workers() == 1


def test_jobs_are_the_callers_choice(monkeypatch):
    monkeypatch.setenv("JOBS", "3")
    assert kernels.workers() == 3
    monkeypatch.delenv("JOBS")
    assert kernels.workers() >= 1
