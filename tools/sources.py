"""What runs the notebooks elsewhere: the package as a wheel, and the whole source with them as an
archive.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlparse

import yaml
from chapters import ROOT, pages

FOLDER = "_sources/notebooks"  # of the site
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STEM = f"{PROJECT['name']}-{PROJECT['version']}"
WHEEL = f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}-py3-none-any.whl"
ARCHIVE = f"{STEM}.zip"
EARLIEST = (1980, 1, 1, 0, 0, 0)  # what a zip can say: files of equal content make equal archives


def sha256(path: Path) -> str:
    """Return the hash of a file, "" where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


@lru_cache
def notebooks(root: Path = ROOT) -> dict[str, str]:
    """Return the notebooks of all pages, such as 06-flat-bnn.ipynb of book/flat-bnn, in the order
    of the contents.
    """
    return {
        str(page.with_suffix("")): f"{i:02d}-{page.stem}.ipynb"
        for i, page in enumerate(pages(root))
    }


def pages_address(repository: str) -> str:
    """Return where GitHub Pages has the site of a repository, "" for one that is elsewhere."""
    if urlparse(repository).hostname != "github.com":
        return ""
    owner, name = urlparse(repository).path.strip("/").split("/")[:2]
    host = f"{owner.lower()}.github.io"
    return f"https://{host}/" + (f"{name}/" if name.lower() != host else "")


def site_address(root: Path = ROOT) -> str:
    """Return the site's own address, "" as long as ``repository.url`` in _config.yml is not set."""
    config = yaml.safe_load((root / "_config.yml").read_text())
    return config["html"].get("baseurl") or pages_address(config["repository"]["url"])


def files(root: Path = ROOT) -> list[Path]:
    """Return what belongs to the source, relative to its root: all but what git ignores, also where
    git is not used.
    """
    if (root / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(
            command, cwd=root, check=True, capture_output=True, text=True
        ).stdout
        return [
            Path(name) for name in sorted(listed.split("\0")) if name and (root / name).is_file()
        ]
    ignored = [
        line.strip().strip("/")
        for line in (root / ".gitignore").read_text().splitlines()
        if line.strip()
    ]
    found = (path.relative_to(root) for path in sorted(root.rglob("*")) if path.is_file())
    return [
        path
        for path in found
        if not any(fnmatch(part, name) for part in path.parts for name in ignored)
    ]


def build_wheel(folder: Path, root: Path = ROOT) -> Path:
    """Build the package from a copy of the source; return the wheel, which lies in ``folder``."""
    with tempfile.TemporaryDirectory() as copy:
        for path in files(root):
            if (
                path.parts[0] in {"helpers", "tables", "experiments", "tools", "book"}
                or len(path.parts) == 1
            ):
                (target := Path(copy, path)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / path, target)
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]
        command += ["--no-build-isolation", "--wheel-dir", str(folder.resolve()), copy]
        subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "315532800"})
    return folder / WHEEL


def write_archive(path: Path, notebooks: Path, root: Path = ROOT) -> None:
    """Write the source, and the notebooks in the folder in which `make lab` would put them."""
    parts = {name.as_posix(): root / name for name in files(root)}
    parts |= {f"notebooks/{file.name}": file for file in sorted(notebooks.glob("*.ipynb"))}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in parts.items():
            about = zipfile.ZipInfo(f"{STEM}/{name}", EARLIEST)
            about.external_attr = (0o755 if os.access(file, os.X_OK) else 0o644) << 16
            archive.writestr(about, file.read_bytes(), zipfile.ZIP_DEFLATED)
