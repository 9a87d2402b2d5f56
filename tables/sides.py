"""One side of a formula: the columns that it names, and those that its dot stands for:
``sides.variables("log(x) + z", labels)``.
"""

import re
from collections.abc import Sequence

from formulaic import Formula
from formulaic.errors import FormulaicError
from formulaic.parser.types import Factor

DOT = r"(`[^`]*`)|(?<![\w.)])\.(?![\w.])"  # by itself: not of a number, a name or between backticks


def formula(right: str) -> Formula:
    """Return a right side as formulaic reads it.

    ValueError: what it cannot read.
    """
    try:
        return Formula(right)
    except FormulaicError as error:
        raise ValueError(
            f"formula: given {right!r}, expected formulaic's language: {plain(error)}"
        ) from error


def plain(error: Exception) -> str:
    """Return the text of an error without the colours of a terminal."""
    return re.sub("\x1b\\[[0-9;]*m|[\u29da\u29db]", "", str(error))


def refuse_intercepts(text: str) -> None:
    """Check that no column is called as formulaic calls an intercept.

    ValueError: one that is.
    """
    if odd := [name for name in ("`0`", "`1`") if name in text]:
        raise ValueError(f"formula: given {odd[0]}, which means an intercept: rename the column")


def written_out(right: str, others: Sequence[str]) -> str:
    """Return a right side with the names of all other columns where it has a dot.

    ValueError: no other column, or one that is called 0 or 1.
    """
    every = "(" + " + ".join(f"`{name}`" for name in others) + ")"
    found = re.sub(DOT, lambda at: at[1] or every, right)
    if found != right:
        refuse_intercepts(every)
        if not others:
            raise ValueError(f"formula: given {right!r}, expected other columns for the dot")
    return found


def refuse_dot(side: str) -> None:
    """Check that a side has no dot, where it would not be clear for what.

    ValueError: one that has.
    """
    if any(not at[1] for at in re.finditer(DOT, side)):
        raise ValueError(f"formula: given a dot in {side!r}, expected names of columns")


def variables(right: str, labels: Sequence[str]) -> list[str]:
    """Return the columns of a data frame that a right side needs, without what it takes away.

    Args:
        right: the right side.
        labels: the data frame's columns, which functions such as ``poly(x, 2)`` may name.

    ValueError: what formulaic cannot read.
    """
    found = set()
    for factor in {factor for term in formula(right) for factor in term.factors}:
        if factor.eval_method is Factor.EvalMethod.LOOKUP:
            found.add(factor.expr)
        elif factor.eval_method is Factor.EvalMethod.PYTHON:
            pairs = re.findall(r"`([^`]+)`|([^\W\d]\w*)", factor.expr)
            found |= {name for pair in pairs for name in pair} & {*labels}
            found |= {str(name) for name in formula(f"{{{factor.expr}}}").required_variables}
    return sorted(found)
