"""A chapter is executed when, and only when, its inputs have changed; a failure is said in a few
lines.
"""

import json

import execute
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
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tools"))
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
    assert "bad: stopped\n    BrokenProcessPool: " in printed and "Traceback" not in printed
    assert execute.on_record("good")["claims"] == 2
    del book["bad"]
    assert execute.main([]) == 0 and "1 of 2 chapters to execute" in capfd.readouterr().out


def test_an_unknown_chapter_is_named(book):
    with pytest.raises(SystemExit, match=r"chapters: given \['missing'\], expected some of"):
        execute.main(["missing"])


def test_jobs_are_the_callers_choice(monkeypatch):
    monkeypatch.setenv("JOBS", "3")
    assert execute.workers() == 3
    monkeypatch.delenv("JOBS")
    assert execute.workers() >= 1
