"""A chapter is executed when, and only when, its inputs have changed; a failure is said in a few
lines.
"""

import helpers

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


@pytest.fixture
def project(tmp_path):
    for name in (
        "helpers/data.py",
        "book/results/table.json",
        "book/results/other.json",
        "requirements.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    return tmp_path


READS = notebook("x = 1", 'result("table")')


def test_prose_file_times_and_results_of_others_change_nothing(project):
    before = execute.inputs(READS, project)
    (project / "book/results/other.json").write_text("two")
    (project / "helpers/__pycache__").mkdir()
    (project / "helpers/__pycache__/data.pyc").write_text("compiled")
    (project / "helpers/data.py").touch()
    with_prose = nbformat.from_dict(
        {**READS, "cells": [nbformat.v4.new_markdown_cell("New."), *READS.cells]}
    )
    assert execute.inputs(with_prose, project) == before


@pytest.mark.parametrize(
    "name", ["helpers/data.py", "helpers/new.py", "book/results/table.json", "requirements.txt"]
)
def test_an_input_that_changed_counts(project, name):
    before = execute.inputs(READS, project)
    (project / name).write_text("two")
    assert execute.inputs(READS, project) != before


def test_a_result_that_a_script_reads_counts(project):
    (project / "experiments").mkdir(exist_ok=True)
    (project / "experiments/headlines.py").write_text('rows = read_result("other")\n')
    uses = notebook("from experiments import headlines")
    found = set()
    for content in ("one", "two"):
        (project / "book/results/other.json").write_text(content)
        found.add((execute.inputs(uses, project), execute.inputs(READS, project)))
    of_uses, of_others = zip(*found, strict=True)
    assert len(set(of_uses)) == 2
    assert len(set(of_others)) == 1


def test_a_function_of_a_results_name_does_not_read_it(project):
    calls, before = notebook("checked(table)"), []
    for content in ("one", "two"):
        (project / "book/results/table.json").write_text(content)
        before.append(execute.inputs(calls, project))
    assert len(set(before)) == 1


def test_code_tags_flags_and_moved_files_count(project, monkeypatch):
    found = {
        execute.inputs(READS, project),
        execute.inputs(notebook("x = 2", 'result("table")'), project),
    }
    tagged = notebook("x = 1", 'result("table")')
    tagged.cells[0].metadata["tags"] = ["remove-cell"]
    found.add(execute.inputs(tagged, project))
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_prefer_vector_width=128")
    found.add(execute.inputs(READS, project))
    # helpers was imported
    monkeypatch.setenv("XLA_FLAGS", f"{helpers.FLAGS} --xla_cpu_prefer_vector_width=128")
    found.add(execute.inputs(READS, project))
    (project / "helpers/data.py").rename(project / "helpers/other.py")
    found.add(execute.inputs(READS, project))
    assert len(found) == 5


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
        "bad, code cell 2, line 1: a claim does not hold\n    abs(3.0) <= 5 * error\n    3 is not <= 2.5\n"
        in printed
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
