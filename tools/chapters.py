"""Which pages the book has, and which of them run code."""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def pages(root=ROOT):
    """Paths of the pages in the order of the table of contents, relative to the root."""
    toc = yaml.safe_load((root / "_toc.yml").read_text())
    files = [entry["file"] for part in toc.get("parts", [toc]) for entry in part["chapters"]]
    return [Path(file) for file in [toc["root"], *files]]


def has_code(page):
    """Whether a page of the book has cells to execute."""
    return "\n```{code-cell}" in (ROOT / page).read_text()


if __name__ == "__main__":  # for the Makefile: the sources of the notebooks
    print(*(page for page in pages() if has_code(page)))
