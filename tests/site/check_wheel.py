"""What the site hands out is enough: a notebook and the wheel, in an empty folder and an
environment of their own.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import execute
import kernels
import nbformat
import pytest
from chapters import ROOT, has_code, pages
from sources import ARCHIVE, FOLDER, STEM, WHEEL, notebooks

from experiments.engine import syntax

DERIVED = ROOT / "_build/html" / FOLDER
# The notebook of each chapter; and those of a few seconds: of the others, which the build has
# executed, the imports are tried here.
CODE = {page.stem: notebooks()[str(page.with_suffix(""))] for page in pages() if has_code(page)}
SHORT = [file for name, file in CODE.items() if execute.SECONDS[name] <= 8]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Make a folder with the wheel, and an environment that has what the lock has, but none of this
    project.
    """
    folder = tmp_path_factory.mktemp("elsewhere")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env/bin/python"
    show = "import sysconfig; print(sysconfig.get_path('purelib'))"
    ours, theirs = (
        subprocess.check_output([one, "-c", show], text=True).strip()
        for one in (sys.executable, python)
    )
    # Entries of a path file are not searched for path files: the editable install of this project
    # stays unseen.
    with open(f"{theirs}/locked.pth", "w") as file:
        file.write(f"{ours}\n")
    kernel = folder / "share/kernels/python3/kernel.json"
    kernel.parent.mkdir(parents=True)
    start = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(
        json.dumps({"argv": start, "display_name": "elsewhere", "language": "python"})
    )
    shutil.copy(DERIVED / WHEEL, folder)
    return folder


def run(folder, name):
    """Run a notebook by nbmake, with nothing but the wheel beside it; return what nbmake says."""
    own = {
        "JUPYTER_PATH": str(folder / "share"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PIP_NO_INDEX": "1",
    }
    inherited = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "XLA_FLAGS")
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbmake",
        "--nbmake-timeout=600",
        "--overwrite",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, name], cwd=folder, env=inherited | own, capture_output=True, text=True
    )
    return done.returncode, done.stdout[-3000:]


def test_the_first_cell_installs_the_package(elsewhere):
    """It is the wheel's that is imported, and it has every module, the style, the lock and the
    stored results.
    """
    first = nbformat.read(DERIVED / SHORT[0], as_version=4).cells[0].source
    look = (
        "import helpers, tables, experiments.engine.run\n"
        "print(helpers.__file__, tables.__file__, experiments.__file__)"
    )
    cells = [nbformat.v4.new_code_cell(first), nbformat.v4.new_code_cell(look)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), elsewhere / "look.ipynb")
    code, said = run(elsewhere, "look.ipynb")
    assert code == 0, said
    (output,) = nbformat.read(elsewhere / "look.ipynb", as_version=4).cells[1].outputs
    assert output.text.count(str(elsewhere / "env")) == 3, output.text
    with zipfile.ZipFile(DERIVED / WHEEL) as wheel:
        names = set(wheel.namelist())
    modules = {
        path.relative_to(ROOT).as_posix()
        for part in ("helpers", "tables", "experiments")
        for path in (ROOT / part).rglob("*.py")
    }
    stored = {
        f"helpers/results/{path.relative_to(ROOT / 'book/results')}"
        for path in (ROOT / "book/results").rglob("*.json")
    }
    assert modules | stored | {"helpers/book.mplstyle", "helpers/requirements.txt"} <= names
    about = next(name for name in names if name.endswith("METADATA"))
    with zipfile.ZipFile(DERIVED / WHEEL) as wheel:
        said = wheel.read(about).decode()
    assert "Requires-Python: <3.14,>=3.11" in said and "Requires-Dist: jax==0.10.2" in said


def imports(name):
    """The imports of a derived notebook, as source."""
    cells = nbformat.read(DERIVED / name, as_version=4).cells[1:]
    lines = [
        ast.unparse(node)
        for cell in cells
        if cell.cell_type == "code"
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, syntax.IMPORTS)
    ]
    return "\n".join(lines)


def test_every_chapter_finds_what_it_imports(elsewhere):
    """In the wheel and the lock, one chapter after the other."""
    asked = [imports(file) for file in CODE.values()]
    assert all(asked) and sum("from experiments" in text for text in asked) > 20
    cells = [nbformat.v4.new_code_cell(text) for text in asked]
    first = nbformat.read(DERIVED / SHORT[0], as_version=4).cells[0]
    nbformat.write(nbformat.v4.new_notebook(cells=[first, *cells]), elsewhere / "imports.ipynb")
    code, said = run(elsewhere, "imports.ipynb")
    assert code == 0, said


def test_short_chapters_run_whole(elsewhere):
    """Claims included: two at a time, on as many cores."""
    assert len(SHORT) > 6
    for name in SHORT:
        shutil.copy(DERIVED / name, elsewhere)
    with ThreadPoolExecutor(kernels.workers()) as pool:
        ends = dict(zip(SHORT, pool.map(lambda name: run(elsewhere, name), SHORT), strict=True))
    assert {name: said for name, (code, said) in ends.items() if code} == {}


def test_the_archive_is_the_source_with_the_notebooks(tmp_path):
    """It has what git tracks, runs the environment's make, and its notebooks' links to files lead
    somewhere.
    """
    with zipfile.ZipFile(DERIVED / ARCHIVE) as archive:
        archive.extractall(tmp_path)
    root = tmp_path / STEM
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    assert [name for name in tracked if not (root / name).is_file()] == []
    assert subprocess.run(["make", "help"], cwd=root, capture_output=True, check=True).stdout
    links = [
        link
        for path in (root / "notebooks").glob("*.ipynb")
        for cell in nbformat.read(path, as_version=4).cells
        for link in cell.source.split("](")[1:]
        if link.startswith("../")
    ]
    assert len(links) > 50
    assert [link for link in links if not (root / "notebooks" / link.split(")")[0]).is_file()] == []
