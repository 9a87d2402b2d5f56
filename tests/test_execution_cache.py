"""The execution cache is dropped when, and only when, what the chapters import or read has changed."""

from pathlib import Path

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


def test_dropped_when_xla_compiles_otherwise(project, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_prefer_vector_width=128")
    assert not kept(project)


def test_timing_leaves_the_key_of_the_cache():
    stamps = {"iopub.execute_input": "2026-01-01T00:00:01Z", "shell.execute_reply": "2026-01-01T00:00:03.5Z"}
    cell = nbformat.v4.new_code_cell("x", metadata={"execution": stamps, "tags": ["hide-input"]})
    assert execution_cache.take_timing(nbformat.v4.new_notebook(cells=[cell])) == 2.5
    assert cell.metadata == {"tags": ["hide-input"]}


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A book of one chapter, and the notebook that nbmake is to have executed."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book/data.md").write_text("# Title\n\n```{code-cell}\nx = 1\n```\n")
    monkeypatch.setattr(execution_cache, "ROOT", tmp_path)
    monkeypatch.setattr(execution_cache, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(execution_cache, "pages", lambda: [Path("book/data.md")])
    monkeypatch.setattr(execution_cache, "has_code", lambda page: True)
    return tmp_path / "data.ipynb"


def test_store_refuses_a_chapter_without_notebook(chapter):
    with pytest.raises(SystemExit, match="nbmake ran no"):
        execution_cache.store(chapter.parent)


def test_store_refuses_what_was_not_executed(chapter):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")]), chapter)
    with pytest.raises(SystemExit, match="not every cell was executed"):
        execution_cache.store(chapter.parent)


def test_store_keeps_outputs_and_seconds(chapter):
    output = nbformat.v4.new_output("stream", text="1")
    stamps = {"iopub.execute_input": "2026-01-01T00:00:01Z", "shell.execute_reply": "2026-01-01T00:00:03Z"}
    cell = nbformat.v4.new_code_cell("x = 1", execution_count=1, outputs=[output], metadata={"execution": stamps})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), chapter)
    execution_cache.store(chapter.parent)
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")])
    with execution_cache.opened() as cache:
        record = cache.match_cache_notebook(written)
    assert record.data == {"execution_seconds": 2.0}
    assert record.uri == str(chapter.parent / "book/data.md")
