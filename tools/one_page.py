"""Make a website of one page alone, with the glossary: to see what a change of it looks like, or
the first hour in two minutes from a clone.

    python tools/one_page.py NAME

Its source is a folder of links, so that what builds the book builds it. References to pages that
are not there stay words, and what Sphinx says of them is told only if it fails.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from chapters import ROOT, pages

BESIDE = ("glossary", "references")
LINKED = ("book", "assets", "tools", "_config.yml")


def site(name):
    """Return the first page of the website of a page."""
    return ROOT / f"_build/one/{name}/_build/html/index.html"


def main(name):
    """Link what is needed, let Jupyter Book build, say where the page is."""
    if name not in (known := sorted(page.stem for page in pages())):
        sys.exit(f"page: given {name!r}, expected one of {', '.join(known)}")
    folder = site(name).parents[2]
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "_build").mkdir(parents=True)
    for linked in LINKED:
        (folder / linked).symlink_to(ROOT / linked)
    # what `tools/execute.py` has executed
    (folder / "_build/.jupyter_cache").symlink_to(ROOT / "_build/.jupyter_cache")
    files = "".join(f"  - file: book/{page}.md\n" for page in BESIDE if page != name)
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: book/{name}.md\nchapters:\n{files}")
    command = [Path(sys.executable).with_name("jupyter-book"), "build", folder]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        sys.exit(built.stdout + built.stderr)
    print(f"open {site(name).relative_to(ROOT)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
