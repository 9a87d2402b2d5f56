"""Sphinx extension: the licences of all that the site ships, and a bill of materials from the lock.

Both lie beside the pages: ``_static/licences``, and ``_static/bill-of-materials.json`` in the form
of CycloneDX 1.6, which scanners of dependencies read.
"""

import json
import re
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from chapters import ROOT
from sources import PROJECT

# Packages whose scripts, styles or fonts are among the site's files; `assets/licences` has the
# texts of what these carry from others without one.
SHIPPED = (
    "Sphinx",
    "sphinx-book-theme",
    "pydata-sphinx-theme",
    "sphinx-copybutton",
    "sphinx-togglebutton",
    "sphinx-design",
    "sphinx-exercise",
    "sphinx-thebe",
    "myst-nb",
    "Pygments",
    "snowballstemmer",
)


def licences():
    """Return the licence texts of what the site ships: by name of a file, where it is."""
    found = {path.name: path for path in sorted((ROOT / "assets/licences").glob("*.txt"))}
    found["CC-BY-4.0.txt"], found["Apache-2.0.txt"] = ROOT / "LICENSE-TEXT", ROOT / "LICENSE"
    for name in SHIPPED:
        texts = [
            file
            for file in distribution(name).files
            if re.search(r"(?i)(licen[cs]e|copying)", file.name) and ".js." not in file.name
        ]
        if not texts:
            raise ValueError(f"{name}: given no licence with the package, expected one")
        found |= {f"{name}-{file.name.removesuffix('.txt')}.txt": file.locate() for file in texts}
    return found


def components(lock):
    """Return what a lock pins, in CycloneDX's form: name, version, hashes, and of what is installed
    here the licence.
    """
    pinned = re.findall(
        r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\\n]*?))?\s*\\\n((?:\s+--hash=sha256:\w+\s*\\?\n)+)",
        lock,
        re.MULTILINE,
    )
    return [component(*found) for found in pinned]


def component(name, version, marker, hashes):
    """Return one entry of the bill."""
    found = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name.lower()}@{version}",
        "hashes": [
            {"alg": "SHA-256", "content": one} for one in re.findall(r"sha256:(\w+)", hashes)
        ],
    }
    if marker:
        found["properties"] = [{"name": "marker", "value": marker.strip()}]
    try:
        about = distribution(name).metadata
    except PackageNotFoundError:  # of another platform or Python
        return found
    if expression := about.get("License-Expression"):
        found["licenses"] = [{"expression": expression}]
    elif words := (about.get("License") or "").strip().splitlines():
        found["licenses"] = [{"license": {"name": words[0][:100]}}]
    return found


def bill(lock):
    """Return the bill of materials of a lock, of one text for the same lock."""
    subject = {"type": "application", "name": PROJECT["name"], "version": PROJECT["version"]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": components(lock),
    }


def carry(app, exception):
    """Write both beside the pages."""
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    (static / "licences").mkdir(parents=True, exist_ok=True)
    for name, path in licences().items():
        shutil.copyfile(path, static / "licences" / name)
    text = json.dumps(bill((ROOT / "requirements.txt").read_text()), indent=1)
    (static / "bill-of-materials.json").write_text(text + "\n")


def setup(app):
    """Register."""
    app.connect("build-finished", carry)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
