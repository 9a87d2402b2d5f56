"""An extension of IPython that writes down what a chapter asserts: both sides of every comparison,
and how far a run is from being refused.

It is loaded into the kernels that execute the book (``execute.py``), never into a reader's. The
source of a cell stays as it is. Its syntax tree is rewritten on the way to the interpreter, so that
every comparison in an ``assert``, and every ``np.testing.assert_...``, tells its sides before it is
decided as ever.

The kernel's environment says where to, and what to perturb, as ``shake.py`` asks:

    BOOK_CLAIMS      file to which every comparison is written, a line of JSON each
    BOOK_SHAKE       if set, a claim that does not hold does not stop the chapter
    BOOK_SEED        number added to every literal seed
    BOOK_NO_FLAGS    if set, XLA compiles as it would without ``helpers``
    BOOK_CORES       number of cores that the chapter is to see; it is bound to one if it is 1
"""

import ast
import builtins
import importlib.util
import json
import operator
import os
from pathlib import Path

import numpy as np
from processes import die_with_parent

OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}
NODES = ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn
NAMES = dict(zip(NODES, OPERATORS, strict=True))
SEEDED = ("key", "default_rng")


class Rewrite(ast.NodeTransformer):
    """Let comparisons in assertions tell their sides, and move literal seeds."""

    def __init__(self, seed=0, stop=True):
        self.seed, self.stop, self.cell, self.lines, self.asserted = seed, stop, 0, [], False

    def begin(self, source):
        """Take down the source of the cell that is about to run."""
        self.cell, self.lines = self.cell + 1, source.encode().split(b"\n")

    def visit_Assert(self, node):
        """Rewrite what is asserted."""
        self.asserted = True
        node.test = self.visit(node.test)
        self.asserted = False
        return node if self.stop else ast.copy_location(ast.Expr(node.test), node)

    def visit_Compare(self, node):
        """``a < b`` becomes ``book_compare(place, ["<"], a, b)``."""
        self.generic_visit(node)
        if not self.asserted:
            return node
        names = ast.List([ast.Constant(NAMES[type(op)]) for op in node.ops], ast.Load())
        return self._call("book_compare", node, [names, node.left, *node.comparators])

    def visit_Attribute(self, node):
        """``check.ok`` becomes ``book_verdict(place, check)``."""
        self.generic_visit(node)
        if not self.asserted or node.attr != "ok":
            return node
        return self._call("book_verdict", node, [node.value])

    def visit_Call(self, node):
        """``np.testing.assert_...(a, b)`` becomes ``book_agree(place, np.testing.assert_..., a,
        b)``.
        """
        self.generic_visit(node)
        name = (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        if name.startswith("assert_"):
            return self._call("book_agree", node, [node.func, *node.args], node.keywords)
        if name in SEEDED and node.args and isinstance(node.args[0], ast.Constant):
            node.args[0] = ast.copy_location(
                ast.Constant(node.args[0].value + self.seed), node.args[0]
            )
        return node

    def _call(self, name, node, arguments, keywords=()):
        """A call in the place of ``node``; its first argument says where that is, and how it
        reads.
        """
        lines = self.lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        place = self.cell, node.lineno, b" ".join(line.strip() for line in lines).decode()
        call = ast.Call(
            ast.Name(name, ast.Load()), [ast.Constant(place), *arguments], list(keywords)
        )
        return ast.fix_missing_locations(ast.copy_location(call, node))


def sides(name, left, right):
    """What is written of a comparison: of one of order the numbers nearest to breaking it, else two
    texts.
    """
    if name[0] not in "<>":
        return name, repr(left)[:80], repr(right)[:80]
    left, right = np.broadcast_arrays(np.asarray(left, float), np.asarray(right, float))
    gap = right - left if name[0] == "<" else left - right
    index = np.unravel_index(np.argmin(np.where(np.isnan(gap), -np.inf, gap)), gap.shape)
    return name, float(left[index]), float(right[index])


class Recorder:
    """Decides the comparisons of one run of a chapter as ever, and writes them down."""

    def __init__(self, path, stop=True):
        self.path, self.stop = path, stop

    def write(self, place, found, holds):
        """Write one line."""
        record = dict(
            zip(("cell", "line", "text"), place, strict=True), sides=found, holds=bool(holds)
        )
        with open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")

    def compare(self, place, names, *values):
        """Compare as Python does."""
        found = []
        for name, left, right in zip(names, values, values[1:], strict=False):
            result = OPERATORS[name](left, right)
            found.append(sides(name, left, right))
            if len(names) > 1 and not result:
                break
        self.write(place, found, np.all(result))
        return result

    def verdict(self, place, check):
        """Return whether draws can be used; what is written is the margin of the bound nearest to
        breaking.
        """
        self.write(place, [(">=", float(np.clip(check.margin, -99, 99)), 0.0)], check.ok)
        return check.ok

    def agree(self, place, assertion, *values, **settings):
        """Call one of NumPy's assertions; what is written is the largest difference, in units of
        what is allowed.
        """
        ratio = 0.0
        if assertion.__name__ == "assert_allclose":
            actual, desired = (np.asarray(value, float) for value in values)
            allowed = settings.get("atol", 0) + settings.get("rtol", 1e-7) * np.abs(desired)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = float(
                    np.nan_to_num(np.abs(actual - desired) / allowed, nan=0.0).max(initial=0.0)
                )
        try:
            assertion(*values, **settings)
        except AssertionError:
            self.write(place, [("agrees", max(ratio, 2.0), 1.0)], False)
            if self.stop:
                raise
            return
        self.write(place, [("agrees", ratio, 1.0)], True)


def perturb():
    """Change what the chapter's processor and compiler look like, before anything of it is
    imported.
    """
    if "BOOK_NO_FLAGS" in os.environ:
        import helpers  # noqa: F401, which sets the flags

        os.environ["XLA_FLAGS"] = ""
    if cores := int(os.environ.get("BOOK_CORES", 0)):
        os.cpu_count = lambda: cores
        if cores == 1 and hasattr(os, "sched_setaffinity"):
            own = sorted(os.sched_getaffinity(0))
            # not all chapters on the same one
            os.sched_setaffinity(0, {own[os.getpid() % len(own)]})


def load_ipython_extension(shell):
    """Rewrite every cell of this kernel from now on; end it if the code is another checkout's."""
    die_with_parent()
    ours, found = Path(__file__).parents[1], Path(importlib.util.find_spec("helpers").origin)
    if not found.is_relative_to(ours):
        # to the kernel's own output; IPython would go on without an extension that raises
        os.write(2, f"helpers: given {found}, expected that of {ours}\n".encode())
        os._exit(3)
    stop = "BOOK_SHAKE" not in os.environ
    rewrite = Rewrite(int(os.environ.get("BOOK_SEED", 0)), stop)
    recorder = Recorder(os.environ["BOOK_CLAIMS"], stop)
    perturb()
    builtins.book_compare, builtins.book_agree = recorder.compare, recorder.agree
    builtins.book_verdict = recorder.verdict
    # The transformed cell is what is parsed: without empty lines at its top, for one.
    shell.events.register(
        "pre_run_cell", lambda info: rewrite.begin(shell.transform_cell(info.raw_cell))
    )
    shell.ast_transformers.append(rewrite)
