"""What the site ships comes with its licence, what the lock pins stands in a bill, and what a build
runs is pinned by what it is.
"""

import json
import re
import shutil
import subprocess
import sys

import supply
from chapters import ROOT


def test_every_package_whose_files_the_site_ships_has_its_licence_there():
    found = supply.licences()
    for name in supply.SHIPPED:
        assert any(file.startswith(f"{name}-") for file in found), name
    for path in found.values():
        assert len(path.read_text(encoding="utf-8")) > 400, path
    fonts = found["font-awesome.txt"].read_text()
    assert "SIL OPEN FONT LICENSE" in fonts and "CC-BY-4.0.txt" in fonts and "MIT" in fonts
    faces = found["source-fonts.txt"].read_text()
    assert "SIL OPEN FONT LICENSE" in faces and "Reserved Font Name" in faces
    for path in (ROOT / "assets/fonts").iterdir():
        assert path.name.startswith(("source-serif-4-", "source-code-pro-")), path


def test_the_bill_has_what_the_lock_pins_and_no_more():
    lock = (ROOT / "requirements.txt").read_text()
    found = supply.bill(lock)
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", lock, re.MULTILINE)
    parts = found["components"]
    assert [(part["name"], part["version"]) for part in parts] == pinned and len(parts) > 150
    assert all(part["hashes"] for part in parts)
    assert sum(len(part["hashes"]) for part in parts) == lock.count("--hash=sha256:")
    assert sum("licenses" in part for part in parts) > 0.8 * len(parts)
    assert json.loads(json.dumps(found)) == found


def test_actions_and_tools_are_pinned_by_what_they_are():
    workflow = (ROOT / ".github/workflows/book.yml").read_text()
    uses = re.findall(r"uses: (\S+)(.*)", workflow)
    assert uses
    for action, comment in uses:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r"  # v\d+\.\d+\.\d+", comment), action
    makefile = (ROOT / "Makefile").read_text()
    installs = re.findall(r"pip install .*", makefile)
    assert len(installs) == 6
    for line in installs:
        assert "--require-hashes" in line or "--no-deps --no-build-isolation -e ." in line, line
    assert re.match(r"#.*\nuv==[\d.]+ \\\n +--hash=sha256:", (ROOT / "tools/uv.txt").read_text())


def test_the_environment_of_another_checkout_is_not_emptied(tmp_path):
    for file in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / file, tmp_path)
    kept = tmp_path / "other/kept"
    kept.parent.mkdir()
    kept.touch()
    (tmp_path / ".venv").symlink_to(kept.parent)
    command = ["make", "environment", f"PYTHON={sys.executable}"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode and "is a link" in ran.stderr
    assert kept.exists()
