"""On Binder, chapters run in the locked environment."""

import json
import os
import subprocess
import tomllib

from chapters import ROOT
from packaging.specifiers import SpecifierSet


def test_the_kernel_that_chapters_ask_for_is_the_locked_environment(tmp_path):
    script = ROOT / ".binder/postBuild"
    assert os.access(script, os.X_OK), "Binder executes it"
    subprocess.run(
        [script], cwd=ROOT, env=os.environ | {"NB_PYTHON_PREFIX": str(tmp_path)}, check=True
    )
    asked = {
        json.loads(p.read_text())["metadata"]["kernelspec"]["name"]
        for p in ROOT.glob("book/*.ipynb")
    }
    assert len(asked) == 1
    kernel = tmp_path / f"share/jupyter/kernels/{asked.pop()}/kernel.json"
    assert json.loads(kernel.read_text())["argv"][0] == str(ROOT / ".venv/bin/python")


def test_the_python_of_binder_is_one_that_the_project_takes():
    language, version = (ROOT / ".binder/runtime.txt").read_text().strip().split("-")
    takes = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert language == "python" and version in SpecifierSet(takes)
