"""What the outputs of a page depend on, found by following its code as prints of results follow it.

A page counts as a module. Words of errors and warnings count here, since a page may show them.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from chapters import ROOT

from experiments.engine import fingerprint, run, syntax
from experiments.engine.fingerprint import Code, Key, Project


def read(root: Path = ROOT) -> Code:
    """Return the project's code, to be asked about any number of pages."""
    return fingerprint.read(Project(root), words=True)


def dependencies(page: str, source: str, code: Code) -> dict[str, str]:
    """Return what a page's source uses in the project: the hash of each, by what it is.

    Definitions that it names, whose prints have all that these use; what acts when they are
    imported; files of results and of data that are named on the way; and if it asks for the states
    of results, these.
    """
    module = code.modules[page] = syntax.parsed(source, page, "", code.project.packages)
    own = [Key(page, name) for name in ("", *module.bound)]
    named = {part for key in own for part in fingerprint.said(key, code) if isinstance(part, Key)}
    reached, words = set(), [part for key in own for part in fingerprint.said(key, code)]
    while new := (named | set(modules_named(words, code))) - reached:
        named |= new
        met = fingerprint.reached(new, code) - reached
        reached |= met
        words += [part for key in met for part in fingerprint.said(key, code)]
    direct = [key for key in reached if key in named or not key.name]
    found = {".".join(filter(None, key)): fingerprint.print_of(key, code) for key in direct}
    for path in files_named([word for word in words if isinstance(word, str)], code):
        found[str(path)] = hashlib.sha256((code.project.root / path).read_bytes()).hexdigest()
    if Key(run.__name__, "status") in reached:
        found |= run.status(code.project)
    return dict(sorted(found.items()))


def modules_named(words: Sequence[str | Key], code: Code) -> Iterator[Key]:
    """Yield modules of the project that strings name, such as those of ``python -m``."""
    for word in words:
        for path in re.findall(r"str '(\w+(?:\.\w+)+)'", word) if isinstance(word, str) else []:
            if path.split(".")[0] in code.project.packages and fingerprint.load(path, code):
                yield Key(path, "*")


def files_named(words: Sequence[str], code: Code) -> list[Path]:
    """Return the stored results that strings name, PAGE/NAME or PAGE/{name}, and files of data."""
    text, root = "\n".join(words), code.project.root
    whole = {*re.findall(r"\b\w+/\w+\b", text), *re.findall(r"str '(\w+)'", text)}
    folders = set(re.findall(r"\b(\w+)/\1".replace(r"\1", "\1"), text))
    found = []
    for path in sorted((root / "book/results").rglob("*.json")):
        name = path.relative_to(root / "book/results").with_suffix("").as_posix()
        if name in whole or (name.split("/")[0] in folders and "/" in name):
            found.append(path.relative_to(root))
    for package in code.project.packages:
        for path in (path.relative_to(root) for path in sorted((root / package).rglob("*.*"))):
            dotted = ".".join(path.with_suffix("").parts)  # as matplotlib asks for a style
            if path.suffix not in (".py", ".pyc") and (path.name in text or dotted in text):
                found.append(path)
    return found
