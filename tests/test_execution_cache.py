"""The execution cache is dropped when, and only when, what the chapters import or read has changed."""

import execution_cache
import nbformat
import pytest


@pytest.fixture
def project(tmp_path):
    for name in ("helpers/data.py", "book/results/table.json", "book/data.md", "requirements.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    assert not execution_cache.check(tmp_path / "cache", tmp_path)
    (tmp_path / "cache/executed").write_text("outputs")
    return tmp_path


def kept(project):
    same = execution_cache.check(project / "cache", project)
    assert (project / "cache/executed").exists() == same
    return same


def test_kept_when_nothing_or_only_prose_changed(project):
    (project / "book/data.md").write_text("two")
    (project / "helpers/__pycache__").mkdir()
    (project / "helpers/__pycache__/data.pyc").write_text("compiled")
    (project / "helpers/data.py").touch()
    assert kept(project)


@pytest.mark.parametrize("name", ["helpers/data.py", "helpers/new.py", "book/results/table.json", "requirements.txt"])
def test_dropped_when_an_input_changed(project, name):
    (project / name).write_text("two")
    assert not kept(project)


def test_dropped_when_a_file_moved(project):
    (project / "helpers/data.py").rename(project / "helpers/other.py")
    assert not kept(project)


def test_timing_leaves_the_key_of_the_cache():
    stamps = {"iopub.execute_input": "2026-01-01T00:00:01Z", "shell.execute_reply": "2026-01-01T00:00:03.5Z"}
    cell = nbformat.v4.new_code_cell("x", metadata={"execution": stamps, "tags": ["hide-input"]})
    assert execution_cache.take_timing(nbformat.v4.new_notebook(cells=[cell])) == 2.5
    assert cell.metadata == {"tags": ["hide-input"]}
