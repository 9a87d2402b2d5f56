"""What Python code says, as text: without layout, with its names followed to where they lead.

Nothing is imported. The text is the same on every version of Python.

    module = parsed(source, "helpers.data", "helpers", ("helpers", "experiments"))
    text = spelt(module.bound["rotate"], module, look)
"""

import ast
import copy
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

# Annotations, what only newer Pythons have, and what the place of a node says already.
SKIPPED = {"annotation", "returns", "type_comment", "type_params", "ctx", "kind", "simple"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINED = (*FUNCTIONS, ast.ClassDef)
ASSIGNED = (ast.Assign, ast.AugAssign, ast.AnnAssign)
IMPORTS = (ast.Import, ast.ImportFrom)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Module(NamedTuple):
    """The top level of a module."""

    package: str
    bound: dict[str, list[ast.stmt]]  # name -> all statements that bind it
    scope: dict[str, list[str]]  # name -> dotted paths it may stand for: definitions, imports
    acting: list[ast.stmt]  # neither definitions nor imports: they act when it is imported
    imports: list[str]


@lru_cache(maxsize=1024)
def parsed(text: str, module: str, package: str, packages: tuple[str, ...]) -> Module:
    """Return the top level of a module's source; ValueError for ``import *`` from ``packages``."""
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
        if _idle(statement) or _only_imports(statement):
            continue
        stores = [n for n in ast.walk(statement) if isinstance(getattr(n, "ctx", None), ast.Store)]
        # changes what another statement made
        inside = any(isinstance(n, (ast.Attribute, ast.Subscript)) for n in stores)
        if not isinstance(statement, DEFINED) and (inside or not isinstance(statement, ASSIGNED)):
            found.acting.append(statement)
        for name in dict.fromkeys(binds(statement)):
            found.bound.setdefault(name, []).append(statement)
            found.scope.setdefault(name, []).append(f"{module}.{name}")
    return found


def imports(statements: Sequence[ast.AST], package: str) -> Iterator[tuple[str, str, str]]:
    """Yield of each import: the name that it binds, the dotted path of that, the path imported."""
    for node in (node for statement in statements for node in ast.walk(statement)):
        for alias in node.names if isinstance(node, IMPORTS) else []:
            path = alias.name
            if isinstance(node, ast.ImportFrom):
                parts = package.split(".")
                above = parts[: len(parts) + 1 - node.level] if node.level else []
                path = ".".join([*above, *([node.module] if node.module else []), alias.name])
            elif not alias.asname:
                yield path.split(".")[0], path.split(".")[0], path
                continue
            yield alias.asname or alias.name, path, path


def binds(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds in its own scope, not in those of functions in it."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    if isinstance(node, (*DEFINED, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    if not isinstance(node, (*DEFINED, *COMPREHENSIONS, ast.Lambda)):
        for child in ast.iter_child_nodes(node):
            yield from binds(child)


def spelt(
    statements: Sequence[ast.AST],
    module: Module,
    look: Callable[[str, str | None], str | None],
    own: Sequence[str] = (),
    words: bool = False,
) -> str:
    """Return statements of a module's top level as text, in which no name of the project stands.

    Args:
        look: given a dotted path, what stands for it in the text; given a key as well, what stands
            for that entry of what the path leads to, None if it has no such entry of its own.
        own: names that the statements bind: their places stand for them.
        words: whether texts of errors and warnings are kept, and names of all classes.
    """
    speller = _Speller(module, look, {name: f"@{i}" for i, name in enumerate(own)}, words)
    said = [speller.visit(copy.deepcopy(one)) for one in statements]
    return canonical([one for one in said if one is not None])


class _Speller(ast.NodeTransformer):
    """Replaces names in a tree, which it changes: local ones by numbers, others by ``look``."""

    def __init__(self, module: Module, look: Callable, own: dict[str, str], words: bool):
        self.module, self.look, self.own, self.words = module, look, own, words
        self.local: dict[str, str | list[str]] = {}  # what stands for it, or the paths it leads to
        self.numbers = itertools.count()

    def paths(self, node: ast.AST) -> list[str]:
        """Return the dotted paths to which a name with attributes leads; none for a local value."""
        chain: list[str] = []
        while isinstance(node, ast.Attribute):
            chain, node = [node.attr, *chain], node.value
        leads = node.id if isinstance(node, ast.Name) else ""
        leads = self.local.get(leads, self.module.scope.get(leads, []))
        return [] if isinstance(leads, str) else [".".join([lead, *chain]) for lead in leads]

    def visit_Name(self, node):
        known = self.local.get(node.id)
        if known is None and isinstance(node.ctx, ast.Store):
            known = self.own.get(node.id)
        if isinstance(known, str):
            return ast.Name(known)
        return ast.Name("|".join(map(self.look, self.paths(node))) or node.id)

    def visit_Attribute(self, node):
        paths = self.paths(node)
        return ast.Name("|".join(map(self.look, paths))) if paths else self.generic_visit(node)

    def visit_Subscript(self, node):
        paths, key = self.paths(node.value), getattr(node.slice, "value", None)
        if len(paths) == 1 and isinstance(key, str) and isinstance(node.ctx, ast.Load):
            entry = self.look(paths[0], key)
            if entry is not None:
                return ast.Name(entry)
        return self.generic_visit(node)

    def visit_Raise(self, node):
        if not self.words:
            node = ast.Raise(node.exc.func if isinstance(node.exc, ast.Call) else node.exc, None)
        return self.generic_visit(node)

    def visit_Expr(self, node):
        is_call = isinstance(node.value, ast.Call) and not self.words
        if is_call and self.paths(node.value.func) == ["warnings.warn"]:
            return None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node):
        value = node.value and self.visit(node.value)
        return ast.AnnAssign(self.visit(node.target), None, value, node.simple)

    def visit_Import(self, node):
        return None  # what it binds is followed where it is used

    visit_ImportFrom = visit_Global = visit_Nonlocal = visit_Import

    def visit_ExceptHandler(self, node):
        node = self.generic_visit(node)
        node.name = self.local.get(node.name, node.name)
        return node

    visit_MatchAs = visit_MatchStar = visit_ExceptHandler

    def visit_FunctionDef(self, node, name: str | None = None):
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.name = name or self.local.get(node.name, self.own.get(node.name, ""))
        return self.function(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        return self.function(node, [node.body])

    def function(self, node, body: list):
        """Number what a function binds, and visit its body."""
        a, outer = node.args, self.local
        a.defaults = [self.visit(one) for one in a.defaults]
        a.kw_defaults = [one and self.visit(one) for one in a.kw_defaults]
        said = [*a.posonlyargs, *a.args, *a.kwonlyargs]  # callers may name them
        unsaid = [one for one in (a.vararg, a.kwarg) if one]
        inside = [node for part in body for node in ast.walk(part)]
        shared = {x for n in inside if isinstance(n, (ast.Global, ast.Nonlocal)) for x in n.names}
        bound = [one.arg for one in (*said, *unsaid)]
        bound += [name for part in body for name in binds(part) if name not in shared]
        self.local = outer | {name: f"%{next(self.numbers)}" for name in dict.fromkeys(bound)}
        for name, path, _ in imports(body, self.module.package):
            before = self.local.get(name, [])
            self.local[name] = [*(before if isinstance(before, list) else []), path]
        for one in unsaid if isinstance(node, FUNCTIONS) else [*said, *unsaid]:
            one.arg = self.local[one.arg]
        visited = [new for part in body if (new := self.visit(part)) is not None]
        node.body = visited if isinstance(node.body, list) else visited[0]
        self.local = outer
        return node

    def visit_ClassDef(self, node):
        for field in ("decorator_list", "bases", "keywords"):
            setattr(node, field, [self.visit(one) for one in getattr(node, field)])
        bases = [one.id if isinstance(one, ast.Name) else "" for one in node.bases]
        plain = all(base == "typing.NamedTuple" for base in bases)
        if plain and not self.words:  # a library may read the name of any other
            node.name = ""
        outer, body = self.local, []
        names = {name: name for part in node.body for name in binds(part)}  # they are attributes
        for part in node.body:
            if isinstance(part, FUNCTIONS):  # in which the others are no names
                body.append(self.visit_FunctionDef(part, part.name))
                continue
            self.local = outer | names
            body.append(self.visit(part))
            self.local = outer
        node.body = [part for part in body if part is not None]
        return node

    def comprehension(self, node):
        """Number what a comprehension binds; its first iterable is outside."""
        outer = self.local
        node.generators[0].iter = self.visit(node.generators[0].iter)
        bound = [name for one in node.generators for name in binds(one.target)]
        self.local = outer | {name: f"%{next(self.numbers)}" for name in dict.fromkeys(bound)}
        for i, one in enumerate(node.generators):
            one.target, one.ifs = self.visit(one.target), [self.visit(test) for test in one.ifs]
            one.iter = self.visit(one.iter) if i else one.iter
        for field in ("key", "value", "elt"):
            if hasattr(node, field):
                setattr(node, field, self.visit(getattr(node, field)))
        self.local = outer
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension


def canonical(node: object, in_class: bool = False) -> str:
    """Return a tree as text, without what says nothing of what the code does."""
    if isinstance(node, list):
        parts = (canonical(part, in_class) for part in node if not _idle(part, in_class))
        return f"[{','.join(parts)}]"
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!a}"
    if isinstance(node, ast.Name):
        return f"Name({node.id})"
    if isinstance(node, ast.JoinedStr):  # Pythons part the text between fields differently
        texts = [
            ascii(v.value)[1:-1] if isinstance(v, ast.Constant) else f"\1{canonical(v)}\1"
            for v in node.values
        ]
        return f"JoinedStr({''.join(texts)})"
    if isinstance(node, ast.AnnAssign) and not in_class:  # in a class it is a field
        node = ast.Assign(targets=[node.target], value=node.value)
    if isinstance(node, ast.AST):
        inside = isinstance(node, ast.ClassDef)
        parts = (
            (name, canonical(value, inside))
            for name, value in ast.iter_fields(node)
            if name not in SKIPPED and value is not None
        )
        said = ",".join(f"{name}={text}" for name, text in parts if text != "[]")
        return f"{type(node).__name__}({said})"
    return ascii(node)


def _idle(node: object, in_class: bool = False) -> bool:
    """Whether a statement does nothing: ``pass``, a docstring, a bare annotation, no field's."""
    bare = isinstance(node, ast.AnnAssign) and node.value is None and not in_class
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return bare or text or isinstance(node, ast.Pass)


def _only_imports(statement: ast.stmt) -> bool:
    """Whether a statement is an import, or a block of such, in which warnings may be silenced."""
    if isinstance(statement, (ast.With, ast.If)) and not getattr(statement, "orelse", []):
        body = [(ast.unparse(part), part) for part in statement.body]
        return all(text.startswith("warnings.") or _only_imports(part) for text, part in body)
    return isinstance(statement, IMPORTS)


MAIN = canonical(ast.parse('__name__ == "__main__"').body[0].value)
