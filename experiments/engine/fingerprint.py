"""Prints of code: hashes of what definitions, and all that they use in the project, say.

A definition's print is the hash of its syntax tree, in which every name of the project is replaced
by the print of what it leads to (a Merkle tree). So a definition may be moved, renamed, or imported
under another name. Comments, docstrings, layout, annotations, names of local variables, texts of
errors and warnings, and the version of Python that asks do not count either. Parameters, fields,
keys and constants do.

    fingerprint("experiments.pages.svi.moons", ["unit"], read(PROJECT))
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

from experiments.engine import syntax

COMPUTING = ["jax", "jaxlib", "numpy", "scipy", "blackjax", "numpyro", "flax", "optax"]
COMPUTING += ["tfp-nightly", "arviz", "scikit-learn"]


class Project(NamedTuple):
    """Where code is: folders ``packages`` in ``root``.

    The first holds FLAGS, the last the experiments.
    """

    root: Path = Path(__file__).resolve().parents[2]
    packages: tuple[str, ...] = ("helpers", "tables", "experiments")
    # module -> source that takes precedence over the file
    sources: Mapping[str, str] = MappingProxyType({})


PROJECT = Project()


class Key(NamedTuple):
    """What has a print: a definition, or an entry of one; what a module does on import; a
    module.
    """

    module: str
    name: str  # "" for what acts on import, "*" for all of a module
    entry: str | None = None  # of a dict that is written out: SETTINGS["seed"]


class Code(NamedTuple):
    """The code of a project as it is first read, and what is known of it."""

    project: Project
    modules: dict[str, syntax.Module | None]
    said: dict[Key, list[str | Key]]
    prints: dict[Key, str]
    beside: dict  # what numbers depend on beside the code: `surroundings`
    words: bool = False  # whether texts of errors and warnings count, too, and names of classes


def read(project: Project = PROJECT, words: bool = False) -> Code:
    """Return the code of a project, to be asked for any number of prints."""
    return Code(project, {}, {}, {}, {}, words)


def fingerprint(module: str, names: Iterable[str], code: Code) -> str:
    """Return the SHA-256 (hex) of definitions of a module, what acts on import, and `surroundings`.

    ValueError for a path into the project that leads to nothing, and for ``import *``. What strings
    name (``importlib``, ``getattr``) is not seen. A module used as an object counts whole.
    """
    keys = {name: [key for key, _ in resolve(f"{module}.{name}", code)] for name in names}
    own = {name: [print_of(key, code) for key in found] for name, found in keys.items()}
    every = reached([key for found in keys.values() for key in found], code)
    acts = {print_of(key, code) for key in every if not key.name}
    if not code.beside:  # the lock is long, and one for all
        code.beside.update(surroundings(code.project))
    return digest(json.dumps([own, sorted(acts), code.beside], sort_keys=True))


def surroundings(project: Project = PROJECT) -> dict:
    """Return what numbers depend on beside the code: ``versions`` and ``flags``.

    ``versions`` has every pin (with its marker) that ``requirements.txt`` has of each package in
    `COMPUTING`, ``flags`` are those of x86-64, wherever it is asked.
    """
    path = installed("requirements.txt", project, otherwise="requirements.txt")
    lock = path.read_text(encoding="utf-8")
    pins = {
        name: re.findall(rf"^{re.escape(name)}==([^\\\n]*[^\\\s])", lock, re.MULTILINE)
        for name in COMPUTING
    }
    return {"versions": {name: one for name, one in pins.items() if one}, "flags": flags(project)}


def flags(project: Project = PROJECT) -> str:
    """Return the value of ``FLAGS`` on x86-64; ValueError where there is none."""
    first = load(project.packages[0], read(project))
    if first is None or "FLAGS" not in first.bound:
        raise ValueError(
            f"{project.packages[0]}/__init__.py: given no FLAGS, expected those of XLA"
        )
    found = {"platform": SimpleNamespace(machine=lambda: "x86_64")}
    exec(compile(ast.Module(first.bound["FLAGS"], []), "FLAGS", "exec"), found)
    return found["FLAGS"]


def installed(name: str, project: Project, otherwise: str) -> Path:
    """Return where a part of the project is: in the first package where that is installed, else in
    the checkout.
    """
    inside = project.root / project.packages[0] / name
    return inside if inside.exists() else project.root / otherwise


def digest(text: str) -> str:
    """Return the SHA-256 of a text, hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def load(module: str, code: Code) -> syntax.Module | None:
    """Return the top level of a module or package, None where there is none."""
    if module not in code.modules:
        project = code.project
        path = project.root.joinpath(*module.split("."))
        file, initial = path.with_suffix(".py"), path / "__init__.py"
        is_package = path.is_dir() and not file.exists()
        files = [one for one in (file, initial) if one.exists()]
        text = project.sources.get(module) or (files[0].read_text("utf-8") if files else "")
        package = module if is_package else module.rpartition(".")[0]
        there = bool(text or files or is_package)
        code.modules[module] = (
            syntax.parsed(text, module, package, project.packages) if there else None
        )
    return code.modules[module]


def resolve(path: str, code: Code) -> list[tuple[Key | str, str]]:
    """Return what a dotted path may lead to, each with the attributes that are left.

    That is a key, or where it leads out of the project, a path.
    """
    at, *rest = path.split(".")
    if at not in code.project.packages:
        return [(path, "")]
    while rest:
        found, (name, *rest) = load(at, code), rest
        if found and name in found.scope:
            here, more = f"{at}.{name}", "".join(f".{one}" for one in rest)
            own = [(Key(at, name), more)] if name in found.bound else []
            leads = [f"{lead}{more}" for lead in found.scope[name] if lead != here]
            return own + [target for lead in leads for target in resolve(lead, code)]
        at = f"{at}.{name}"
        if not load(at, code):
            packages = code.project.packages
            raise ValueError(f"given {path}, expected a definition or a module of {packages}")
    return [(Key(at, "*"), "")]


def said(key: Key, code: Code) -> list[str | Key]:
    """Return what the code of a key says: text, and the keys of what it uses, in their order."""
    if key in code.said:
        return code.said[key]
    found, first = load(key.module, code), code.project.packages[0]
    if key == (first, "FLAGS", None):
        parts = [flags(code.project)]
    elif key.name == "*":
        parts = [part for name in found.bound for part in (name, Key(key.module, name))]
    elif key.entry is not None:
        parts = _parts([entry(key, code)], key, code)
    elif not key.name:
        acting = [s for s in found.acting if "FLAGS" not in syntax.binds(s) or key.module != first]
        parts = _parts(acting, key, code)
    else:
        parts = []
        for statement in found.bound[key.name]:
            names = [] if isinstance(statement, syntax.DEFINED) else list(syntax.binds(statement))
            names = list(dict.fromkeys(names))
            parts += [f"@{names.index(key.name)}"] if names else []
            parts += _parts([statement], key, code, names)
    code.said[key] = parts
    return parts


def _parts(
    statements: Sequence[ast.AST], key: Key, code: Code, own: Sequence[str] = ()
) -> list[str | Key]:
    """Return what statements of a key's module say; ``own`` are the names that they bind."""

    def look(path: str, name: str | None = None) -> str | None:
        targets = resolve(path, code)
        if name is not None:
            targets = [
                (one._replace(entry=name), "")
                for one, more in targets
                if isinstance(one, Key) and not more
            ]
            if len(targets) != 1 or entry(targets[0][0], code) is None:
                return None
        texts = [
            (f"\0{json.dumps(one)}\0" if isinstance(one, Key) else one) + m for one, m in targets
        ]
        return "|".join(texts)

    module = load(key.module, code)
    text = syntax.spelt(statements, module, look, own, code.words)
    parts = text.split("\0")  # nothing else has that sign, since the text is ASCII beside names
    return [Key(*json.loads(part)) if i % 2 else part for i, part in enumerate(parts)]


def entry(key: Key, code: Code) -> ast.AST | None:
    """Return the value of an entry of a dict that is written out once, None for any other."""
    statements = load(key.module, code).bound.get(key.name, [])
    value = getattr(statements[0], "value", None) if len(statements) == 1 else None
    if not isinstance(value, ast.Dict) or not isinstance(statements[0], syntax.ASSIGNED):
        return None
    keys = [getattr(one, "value", None) for one in value.keys]
    return dict(zip(keys, value.values, strict=True)).get(key.entry) if None not in keys else None


def reached(keys: Iterable[Key], code: Code) -> set[Key]:
    """Return all that definitions use, however far away, and what acts when that is imported."""
    todo, found, touched = list(keys), set(), set()

    def touch(path: str) -> None:
        """Add what acts when a path is imported: in every module on the way."""
        parts = path.split(".")
        for way in [".".join(parts[: i + 1]) for i in range(len(parts))]:
            if parts[0] in code.project.packages and way not in touched and (at := load(way, code)):
                touched.add(way)
                todo.extend([Key(way, "")] if at.acting else [])
                for one in at.imports:
                    touch(one)

    while todo:
        key = todo.pop()
        if key not in found:
            found.add(key)
            touch(key.module)
            todo += [part for part in said(key, code) if isinstance(part, Key)]
    return found


def print_of(key: Key, code: Code) -> str:
    """Return the print of what a key says.

    Definitions that use each other in a circle are printed together (Tarjan 1972), each as seen
    from where it stands.
    """
    order, low, stack = {}, {}, []

    def visit(key: Key) -> None:
        order[key] = low[key] = len(order)
        stack.append(key)
        for part in said(key, code):
            if isinstance(part, Key) and part not in code.prints:
                if part not in order:
                    visit(part)
                low[key] = min(low[key], low[part])
        if low[key] == order[key]:
            circle = [stack.pop()]
            while circle[-1] != key:
                circle.append(stack.pop())
            code.prints.update({one: _in_circle(one, circle, code) for one in circle})

    if key not in code.prints:
        visit(key)
    return code.prints[key]


def _in_circle(key: Key, circle: Sequence[Key], code: Code) -> str:
    """Return the print of one of a circle of definitions, in which they are numbered as met."""
    met, text = [key], []
    for one in met:  # which grows
        text.append("|")
        for part in said(one, code):
            if part in circle:
                met += [part] if part not in met else []
                part = f"#{met.index(part)}"
            text.append(code.prints[part] if isinstance(part, Key) else part)
    return digest("\0".join(text))
