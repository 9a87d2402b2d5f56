"""Make a website of the first hour alone, with the glossary: in two minutes from a clone.

Its source is a folder of links, so that what builds the book builds it. References to pages that
are not there stay words, and what Sphinx says of them is told only if it fails.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from chapters import ROOT

FOLDER = ROOT / "_build/first-hour"
SITE = FOLDER / "_build/html/index.html"
PAGES = ("first-hour", "glossary", "references")
LINKED = ("book", "assets", "tools", "_config.yml")


def main():
    """Link what is needed, let Jupyter Book build, say where the page is."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "_build").mkdir(parents=True)
    for name in LINKED:
        (FOLDER / name).symlink_to(ROOT / name)
    # what `tools/execute.py` has executed
    (FOLDER / "_build/.jupyter_cache").symlink_to(ROOT / "_build/.jupyter_cache")
    root, *others = (f"book/{page}.md" for page in PAGES)
    chapters = "".join(f"  - file: {page}\n" for page in others)
    (FOLDER / "_toc.yml").write_text(f"format: jb-book\nroot: {root}\nchapters:\n{chapters}")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", FOLDER]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        sys.exit(built.stdout + built.stderr)
    print(f"open {SITE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
