"""What the packages say of themselves, and how long their parts may be: docstrings name parameters
that exist, and the errors that are raised.
"""

import ast
import re

import pytest
from chapters import ROOT

DOCUMENTED = ["helpers", "tables"]  # folders whose public parts say all that is asked for
SHORT = ["helpers", "tables", "experiments"]  # folders whose modules and functions are short
MAX_MODULE_LINES, MAX_FUNCTION_LINES = 300, 60  # of a function without its docstring
MAX_PARAMETERS = 3  # that are explained without a list
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def modules(folders):
    """Paths of the modules in folders, each as a parameter of a test."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in paths]


def parameters(node):
    """Names of a function's parameters, or of a class's fields."""
    if isinstance(node, ast.ClassDef):
        return [part.target.id for part in node.body if isinstance(part, ast.AnnAssign)]
    given = node.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [one.arg for one in every if one is not None]


def listed(docstring):
    """Names that the block ``Args:`` of a docstring explains; None where there is no block."""
    block = re.search(r"^Args:\n((?:    .*(?:\n|$))+)", docstring, flags=re.MULTILINE)
    if block is None:
        return None
    names = re.findall(r"^    (\w+(?:, \w+)*): ", block[1], flags=re.MULTILINE)
    return [name for group in names for name in group.split(", ")]


def raised(node):
    """Names of the errors that the body of a function raises by name."""
    for part in ast.walk(node):
        if isinstance(part, ast.Raise) and isinstance(part.exc, ast.Call):
            yield ast.unparse(part.exc.func)


def is_record(node):
    """Whether a class is a NamedTuple, whose fields have comments beside them."""
    bases = getattr(node, "bases", [])
    return any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in bases)


def faults_of(node):
    """Return what the docstring of a public function or class lacks, or says wrongly."""
    docstring, names = ast.get_docstring(node) or "", parameters(node)
    explained = listed(docstring)
    if not re.fullmatch(r"(?!Args:)[A-Z].*\.", docstring.split("\n\n")[0], flags=re.DOTALL):
        yield "no sentence"
    if explained is None and len(names) > MAX_PARAMETERS and not is_record(node):
        yield f"no Args, {len(names)} parameters"
    if explained is not None and not explained:
        yield "Args without a name"
    yield from (f"Args: no parameter {name}" for name in explained or [] if name not in names)
    if len(names) > MAX_PARAMETERS and not is_record(node):
        unsaid = [n for n in names if n != "key" and not re.search(rf"\b{n}\b", docstring)]
        yield from (f"nothing of {name}" for name in unsaid)
    errors = set(raised(node)) if isinstance(node, FUNCTION) else set()
    yield from (f"nothing of {error}" for error in sorted(errors) if f"{error}: " not in docstring)


def faults(source):
    """Return what public functions and classes of a module's source lack, one text a fault."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, (*FUNCTION, ast.ClassDef)) and not node.name.startswith("_"):
            found += [f"{node.name}: {fault}" for fault in faults_of(node)]
    return found


def long_parts(source):
    """Return what is too long in a module's source: functions, or the module itself."""
    size = len(source.splitlines())
    found = [f"module: {size} lines"] if size > MAX_MODULE_LINES else []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, FUNCTION):
            has_docstring = ast.get_docstring(node) is not None and len(node.body) > 1
            size = node.end_lineno - node.body[int(has_docstring)].lineno + 1
            found += [f"{node.name}: {size} lines"] if size > MAX_FUNCTION_LINES else []
    return found


@pytest.mark.parametrize("path", modules(DOCUMENTED))
def test_docstrings_name_what_there_is(path):
    assert faults(path.read_text()) == []


@pytest.mark.parametrize("path", modules(SHORT))
def test_modules_and_functions_are_short(path):
    assert long_parts(path.read_text()) == []


GOOD = '''
def f(key, a, b, *, c=1, **more):
    """Return a number.

    Args:
        a, b: two
            numbers.
        c: another.
        more: others.

    ValueError: always.
    """
    raise ValueError("c")
'''


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("", "", None),
        ("Return a number.", "", "f: no sentence"),
        ("    Args:\n", "", "f: no Args, 5 parameters"),
        ("        c: another.\n", "", "f: nothing of c"),
        ("c: another", "d: another", "f: Args: no parameter d"),
        ("    ValueError: always.\n", "", "f: nothing of ValueError"),
        ('"c")', f'"c"){chr(10) * 60}    pass', "f: 61 lines"),
        ('"c")\n', '"c")\n' + "x = 1\n" * 300, "module: 313 lines"),
    ],
)
def test_each_rule_is_broken_by_what_breaks_it(old, new, fault):
    source = GOOD.replace(old, new, 1)
    found = faults(source) + long_parts(source)
    assert fault in found if fault else found == []


def test_fields_of_a_class_that_is_no_record_are_its_parameters():
    fields = "".join(f"    {name}: int = 0\n" for name in "abcd")
    head = '    """Something."""\n\n'
    assert faults(f"class Record(NamedTuple):\n{head}{fields}") == []
    assert "Module: no Args, 4 parameters" in faults(f"class Module(nn.Module):\n{head}{fields}")
