"""Copy the derived notebooks to the folder in which a person runs them; never write over what the
person changed.

    python tools/lab.py             from the site that was built here; then opens JupyterLab there
    python tools/lab.py --fetch     from the published site, if its address is known

``notebooks/.given.json`` has the hash of every copy as it was given. A copy that still has it is
replaced by a newer one; beside a copy that was changed, the newer one is put as NN-NAME-new.ipynb,
and both are named.
"""

import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import urlopen

from chapters import ROOT
from sources import ARCHIVE, FOLDER, STEM, sha256, site_address

TARGET = ROOT / "notebooks"


def names(stem: str) -> Iterator[str]:
    """Yield the names under which a notebook may be put: NN-NAME.ipynb, NN-NAME-new.ipynb,
    NN-NAME-new-2.ipynb, ...
    """
    yield f"{stem}.ipynb"
    yield f"{stem}-new.ipynb"
    yield from (f"{stem}-new-{number}.ipynb" for number in count(2))


def copy_notebooks(derived: Path, target: Path) -> list[str]:
    """Copy notebooks, and remove copies of what is no longer in the book; return messages about
    copies that a person changed.
    """
    target.mkdir(exist_ok=True)
    record, fresh = (
        target / ".given.json",
        {path: sha256(path) for path in sorted(derived.glob("*.ipynb"))},
    )
    given = json.loads(record.read_text()) if record.exists() else {}
    messages, current = [], set()
    for path, content in fresh.items():
        for name in names(path.stem):
            found = sha256(target / name)
            current.add(name)
            if found in ("", given.get(name)):  # not there, or as it was given
                shutil.copy(path, target / name)
                given[name] = content
            if given.get(name) == content:
                break
        if name != path.name and found != content:
            messages.append(
                f"{path.name} was changed here and is kept; the book's newer one is {name}"
            )
    for name in sorted(given.keys() - current):
        if sha256(target / name) not in ("", given.pop(name)):
            messages.append(
                f"{name} was changed here and is kept; the book has no such notebook any more"
            )
        else:
            (target / name).unlink(missing_ok=True)
    record.write_text(json.dumps(given, indent=1) + "\n")
    return messages


def fetch(address: str, target: Path) -> list[str]:
    """Copy the notebooks of a site, which come with its archive; where nothing has been built, as
    on Binder.
    """
    with tempfile.TemporaryDirectory() as folder:
        with urlopen(urljoin(address, f"{FOLDER}/{ARCHIVE}")) as answer:
            archive = Path(folder, ARCHIVE)
            archive.write_bytes(answer.read())
        with zipfile.ZipFile(archive) as files:
            names = [name for name in files.namelist() if name.startswith(f"{STEM}/notebooks/")]
            files.extractall(folder, names)
        return copy_notebooks(Path(folder, STEM, "notebooks"), target)


def main() -> None:
    """Copy, from the site itself if asked to and its address is known; else become JupyterLab."""
    if sys.argv[1:] == ["--fetch"]:
        if address := site_address():
            fetch(address, TARGET)
        return
    for line in copy_notebooks(ROOT / "_build/html" / FOLDER, TARGET):
        print(line)
    first = sorted(TARGET.glob("00-*.ipynb"))[0].name
    lab = [
        sys.executable,
        "-m",
        "jupyter",
        "lab",
        f"--LabApp.default_url=/lab/tree/notebooks/{first}",
        *sys.argv[1:],
    ]
    os.chdir(ROOT)
    os.execv(sys.executable, lab)


if __name__ == "__main__":
    main()
