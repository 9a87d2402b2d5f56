"""Copies of the notebooks: the newest where nobody changed them, and never over what somebody
did.
"""

import zipfile

import lab
import pytest
import sources
from chapters import ROOT


@pytest.fixture
def folders(tmp_path):
    """Two notebooks as the book gives them, and the folder of copies."""
    derived = tmp_path / "derived"
    derived.mkdir()
    for name in ("01-x.ipynb", "02-y.ipynb"):
        (derived / name).write_text("1")
    return derived, tmp_path / "notebooks"


def copies(target):
    """The copies and their contents."""
    return {path.name: path.read_text() for path in target.glob("*.ipynb")}


def test_untouched_copies_follow_the_book(folders):
    derived, target = folders
    assert lab.copy_notebooks(derived, target) == [] and copies(target) == {
        "01-x.ipynb": "1",
        "02-y.ipynb": "1",
    }
    (derived / "01-x.ipynb").write_text("2")
    (derived / "02-y.ipynb").unlink()
    assert lab.copy_notebooks(derived, target) == [] and copies(target) == {"01-x.ipynb": "2"}


def test_a_changed_copy_is_kept_and_the_newer_one_is_beside_it(folders):
    derived, target = folders
    lab.copy_notebooks(derived, target)
    (target / "01-x.ipynb").write_text("mine")
    assert lab.copy_notebooks(derived, target) == []  # the book has nothing newer
    for newer in ("2", "3"):
        (derived / "01-x.ipynb").write_text(newer)
        (said,) = lab.copy_notebooks(derived, target)
        assert (
            said
            == "01-x.ipynb was changed here and is kept; the book's newer one is 01-x-new.ipynb"
        )
        assert copies(target) == {"01-x.ipynb": "mine", "01-x-new.ipynb": newer, "02-y.ipynb": "1"}
    (target / "01-x-new.ipynb").write_text("mine, too")
    (derived / "01-x.ipynb").write_text("4")
    assert "01-x-new-2.ipynb" in lab.copy_notebooks(derived, target)[0]
    assert (
        copies(target)["01-x-new.ipynb"] == "mine, too"
        and copies(target)["01-x-new-2.ipynb"] == "4"
    )


def test_a_file_that_was_there_before_is_nobodys_to_overwrite(folders):
    derived, target = folders
    target.mkdir()
    (target / "01-x.ipynb").write_text("whose?")
    assert "01-x-new.ipynb" in lab.copy_notebooks(derived, target)[0]
    assert copies(target)["01-x.ipynb"] == "whose?"


def test_a_changed_copy_of_what_the_book_no_longer_has_is_kept_and_said(folders):
    derived, target = folders
    lab.copy_notebooks(derived, target)
    (target / "02-y.ipynb").write_text("mine")
    (derived / "02-y.ipynb").unlink()
    assert lab.copy_notebooks(derived, target) == [
        "02-y.ipynb was changed here and is kept; the book has no such notebook any more"
    ]
    assert copies(target)["02-y.ipynb"] == "mine"


def test_notebooks_are_fetched_from_a_site(tmp_path):
    (tmp_path / sources.FOLDER).mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / sources.FOLDER / sources.ARCHIVE, "w") as archive:
        archive.writestr(f"{sources.STEM}/notebooks/00-index.ipynb", "first")
        archive.writestr(f"{sources.STEM}/README.md", "no notebook")
    assert lab.fetch(f"{tmp_path.as_uri()}/", tmp_path / "notebooks") == []
    assert copies(tmp_path / "notebooks") == {"00-index.ipynb": "first"}


@pytest.mark.parametrize(
    ("repository", "address"),
    [
        ("https://github.com/Someone/something", "https://someone.github.io/something/"),
        ("https://github.com/someone/someone.github.io", "https://someone.github.io/"),
        ("https://example.org/someone/something", ""),
        ("", ""),
    ],
)
def test_where_a_repository_has_its_site(repository, address):
    assert sources.pages_address(repository) == address


def test_the_source_is_what_git_would_keep(tmp_path):
    """The same files are found in a clone and in the archive, where git is not used."""
    here = sources.files()
    assert {"README.md", "helpers/mcmc.py", "book/data.md"} <= {path.as_posix() for path in here}
    assert not [path for path in here if path.parts[0] in (".git", ".venv", "_build", "notebooks")]
    for path in here:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(
            (ROOT / path).read_bytes() if path.name == ".gitignore" else b""
        )
    for ignored in (
        "_build/html/index.html",
        ".venv/bin/python",
        "helpers/__pycache__/mcmc.pyc",
        "notebooks/a.ipynb",
    ):
        (tmp_path / ignored).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ignored).write_text("")
    assert sorted(sources.files(tmp_path)) == sorted(here)
