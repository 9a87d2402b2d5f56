"""Hashes of code: of named definitions and of all that they use in the project, and of nothing
else.

Found in the syntax trees, nothing is imported. Comments, docstrings, layout and annotations do not
count, nor does the version of Python that asks.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

COMPUTING = ["jax", "jaxlib", "numpy", "scipy", "blackjax", "numpyro", "flax", "optax"]
COMPUTING += ["tfp-nightly", "arviz", "scikit-learn"]
# Annotations, what only newer Pythons have, and what the place of a node says already.
SKIPPED = {"annotation", "returns", "type_comment", "type_params", "ctx", "kind", "simple"}
DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
ASSIGNED = (ast.Assign, ast.AugAssign, ast.AnnAssign)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class House(NamedTuple):
    """Where code is: folders ``packages`` in ``root``. The first holds FLAGS, the last the
    experiments.
    """

    root: Path = Path(__file__).resolve().parents[2]
    packages: tuple[str, ...] = ("helpers", "tables", "experiments")
    # module -> source that takes precedence over the file
    sources: Mapping[str, str] = MappingProxyType({})


HOUSE = House()


class Module(NamedTuple):
    """The top level of a module."""

    package: str
    bound: dict[str, list[ast.stmt]]  # name -> all statements that bind it
    # name -> dotted paths that it may stand for: definitions here, imports
    scope: dict[str, list[str]]
    acting: list[ast.stmt]  # neither definitions nor imports: they act when the module is imported
    imports: list[str]


def fingerprint(module: str, names: Sequence[str], house: House = HOUSE) -> str:
    """Return the SHA-256 (hex) of ``definitions`` and ``surroundings``, which see for what counts
    and for errors.
    """
    return digest(
        json.dumps([definitions(module, names, house), surroundings(house)], sort_keys=True)
    )


def surroundings(house: House = HOUSE) -> dict:
    """Return what numbers depend on beside the code: ``versions`` and ``flags``, both as written,
    not as found here.

    ``versions`` has every pin (with its marker) that ``requirements.txt`` has of each package in
    `COMPUTING`, ``flags`` the source of ``FLAGS``. ValueError where there is none.
    """
    lock = installed("requirements.txt", house, otherwise="requirements.txt").read_text(
        encoding="utf-8"
    )
    pins = {
        name: re.findall(rf"^{re.escape(name)}==([^\\\n]*[^\\\s])", lock, re.MULTILINE)
        for name in COMPUTING
    }
    versions = {name: found for name, found in pins.items() if found}
    first = load(house.packages[0], house)
    if first is None or "FLAGS" not in first.bound:
        raise ValueError(
            f"{house.packages[0]}/__init__.py: given no FLAGS, expected the flags of XLA"
        )
    return {"versions": versions, "flags": canonical(first.bound["FLAGS"])}


def installed(name: str, house: House, otherwise: str) -> Path:
    """Return where a part of the project is: in the first package where that is installed, else in
    the checkout.
    """
    inside = house.root / house.packages[0] / name
    return inside if inside.exists() else house.root / otherwise


def definitions(module: str, names: Sequence[str], house: House = HOUSE) -> dict[str, str]:
    """Return the hash of each definition, by qualified name, that ``names`` of ``module`` are or
    use, however far away.

    Definitions are top-level functions, classes and assignments. What else a module does on import
    is "MODULE on import", and counts where the module is imported. A module used as an object
    counts whole. ValueError for a path into the project that leads to nothing, and for ``import
    *``. What strings name (``importlib``) is not seen.
    """
    taken: dict[str, str] = {}
    todo: list[tuple[str, str | None]] = []

    def touch(path: str) -> None:
        """Add what acts when a dotted path is imported: in every module on the way."""
        parts = path.split(".")
        ways = (
            [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
            if parts[0] in house.packages
            else []
        )
        todo.extend((way, None) for way in ways if load(way, house))

    def take(path: str, user: str) -> None:
        """Add what a dotted path leads to: a definition, here or imported from elsewhere, or a
        whole module.
        """
        at, *rest = path.split(".")
        if at not in house.packages:
            return
        while rest:
            found, (name, *rest) = load(at, house), rest
            if found and name in found.scope:
                todo.extend([(at, name)] if name in found.bound else [])
                for lead in set(found.scope[name]) - {f"{at}.{name}"}:
                    take(".".join([lead, *rest]), user)
                return
            at = f"{at}.{name}"
            if not load(at, house):
                raise ValueError(
                    f"{user}: given {path}, expected a definition or a module of {house.packages}"
                )
        todo.extend((at, name) for name in [None, *load(at, house).bound])

    for name in names:
        take(f"{module}.{name}", module)
    while todo:
        at, name = todo.pop()
        key = f"{at}.{name}" if name else f"{at} on import"
        if key in taken:
            continue
        found = load(at, house)
        statements = found.bound[name] if name else found.acting
        taken[key] = digest(canonical(statements)) if statements else ""
        inner = [path for _, _, path in imports(statements, found.package)]
        for path in [at, *inner, *([] if name else found.imports)]:
            touch(path)
        for path in uses(statements, found.scope, found.package):
            take(path, key)
    return {key: taken[key] for key in sorted(taken) if taken[key]}


def digest(text: str) -> str:
    """Return the SHA-256 of a text, hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def load(module: str, house: House) -> Module | None:
    """Return the top level of a module or package, None where there is none."""
    path = house.root.joinpath(*module.split("."))
    file, initial = path.with_suffix(".py"), path / "__init__.py"
    is_package = path.is_dir() and not file.exists()
    if not (module in house.sources or file.exists() or is_package):
        return None
    files = [one for one in (file, initial) if one.exists()]
    text = house.sources.get(module) or (files[0].read_text(encoding="utf-8") if files else "")
    return _parsed(
        text, module, module if is_package else module.rpartition(".")[0], house.packages
    )


@lru_cache(maxsize=1024)
def _parsed(text: str, module: str, package: str, packages: tuple[str, ...]) -> Module:
    found = Module(package, {}, {}, [], [])
    for statement in ast.parse(text, filename=module).body:
        if (
            isinstance(statement, ast.If)
            and canonical(statement.test) == MAIN
            and not statement.orelse
        ):
            continue  # nothing of it happens on import
        if not isinstance(statement, DEFINED):
            for name, path, imported in imports([statement], package):
                if path.endswith(".*") and path.split(".")[0] in packages:
                    raise ValueError(f"{module}: given from {path[:-2]} import *, expected names")
                found.scope.setdefault(name, []).append(path)
                found.imports.append(imported)
        if _idle(statement) or isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        stores = [n for n in ast.walk(statement) if isinstance(getattr(n, "ctx", None), ast.Store)]
        # changes what another one made
        inside = any(isinstance(n, (ast.Attribute, ast.Subscript)) for n in stores)
        if not isinstance(statement, DEFINED) and (inside or not isinstance(statement, ASSIGNED)):
            found.acting.append(statement)
        for name in sorted(set(_binds(statement))):
            found.bound.setdefault(name, []).append(statement)
            found.scope.setdefault(name, []).append(f"{module}.{name}")
    return found


def imports(statements: Sequence[ast.AST], package: str) -> Iterator[tuple[str, str, str]]:
    """Yield of each import in statements: the name that it binds, the dotted path of that, the path
    imported.
    """
    for node in (node for statement in statements for node in ast.walk(statement)):
        for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else []:
            path = alias.name
            if isinstance(node, ast.ImportFrom):
                above = (
                    package.split(".")[: len(package.split(".")) + 1 - node.level]
                    if node.level
                    else []
                )
                path = ".".join([*above, *([node.module] if node.module else []), alias.name])
            elif not alias.asname:
                yield path.split(".")[0], path.split(".")[0], path
                continue
            yield alias.asname or alias.name, path, path


def _binds(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds in its own scope, not in the scopes of functions and
    comprehensions in it.
    """
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    if isinstance(node, (*DEFINED, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    if not isinstance(node, (*DEFINED, *COMPREHENSIONS, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from _binds(child)


def uses(node: object, scope: Mapping[str, list[str]], package: str) -> Iterator[str]:
    """Yield the dotted paths that a tree uses; ``scope`` has the paths for which names stand, local
    ones have none.
    """
    if isinstance(node, list):
        for part in node:
            yield from uses(part, scope, package)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        chain: list[str] = []
        while isinstance(node, ast.Attribute):
            chain, node = [node.attr, *chain], node.value
        if not isinstance(node, ast.Name):
            yield from uses(node, scope, package)
        for path in scope.get(node.id, []) if isinstance(node, ast.Name) else []:
            yield ".".join([path, *chain])
    elif isinstance(node, (*DEFINED, ast.Lambda)):
        body = node.body if isinstance(node.body, list) else [node.body]
        local: dict[str, list[str]] = {}
        # names of a class's body are not seen in its functions
        if not isinstance(node, ast.ClassDef):
            a = node.args
            yield from uses([*a.defaults, *a.kw_defaults], scope, package)
            local |= {
                one.arg: []
                for one in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg)
                if one
            }
            shared = {
                name
                for part in body
                for n in ast.walk(part)
                if isinstance(n, ast.Global)
                for name in n.names
            }
            local |= {name: [] for part in body for name in _binds(part) if name not in shared}
        for name, path, _ in imports(body, package):
            local[name] = [*local.get(name, scope.get(name, [])), path]
        outside = [
            value
            for field in ("decorator_list", "bases", "keywords")
            for value in getattr(node, field, [])
        ]
        yield from uses(outside, scope, package)
        yield from uses(body, {**scope, **local}, package)
    elif isinstance(node, COMPREHENSIONS):
        first, *rest = node.generators
        yield from uses(first.iter, scope, package)
        local = {name: [] for part in node.generators for name in _binds(part.target)}
        parts = [value for field, value in _fields(node) if field != "generators"]
        parts += [part for one in node.generators for part in (one.target, one.ifs)] + [
            one.iter for one in rest
        ]
        yield from uses(parts, {**scope, **local}, package)
    elif isinstance(node, ast.AST):
        yield from uses([value for _, value in _fields(node)], scope, package)


def canonical(node: object, in_class: bool = False) -> str:
    """Return a tree as text, without what says nothing of what the code does."""
    if isinstance(node, list):
        return (
            f"[{','.join(canonical(part, in_class) for part in node if not _idle(part, in_class))}]"
        )
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!a}"
    if isinstance(node, ast.JoinedStr):  # Pythons part the text between fields differently
        texts = [
            ascii(v.value)[1:-1] if isinstance(v, ast.Constant) else f"\0{canonical(v)}\0"
            for v in node.values
        ]
        return f"JoinedStr({''.join(texts)})"
    if isinstance(node, ast.AnnAssign) and not in_class:  # in a class it is a field
        node = ast.Assign(targets=[node.target], value=node.value)
    if isinstance(node, ast.AST):
        parts = [
            (name, canonical(value, isinstance(node, ast.ClassDef)))
            for name, value in _fields(node)
        ]
        return f"{type(node).__name__}({','.join(f'{name}={text}' for name, text in parts if text != '[]')})"
    return ascii(node)


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Yield the fields of a node that may say something."""
    return (
        (name, value)
        for name, value in ast.iter_fields(node)
        if name not in SKIPPED and value is not None
    )


def _idle(node: object, in_class: bool = False) -> bool:
    """Whether a statement does nothing: ``pass``, a docstring, a bare annotation other than a
    field.
    """
    bare = isinstance(node, ast.AnnAssign) and node.value is None and not in_class
    return (
        bare
        or isinstance(node, ast.Pass)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    )


MAIN = canonical(ast.parse('__name__ == "__main__"').body[0].value)
