"""The house keeps its own rules: thin helpers, arrows one way, experiments that pages name, results
of known code.
"""

import ast
import json
import math
import re

import pytest
from chapters import ROOT, pages

from experiments.engine import run as engine

HELPERS = sorted((ROOT / "helpers").glob("*.py"))
TABLES = sorted((ROOT / "tables").glob("*.py"))
# what other helpers are made of
NOT_CALLED = "__init__", "full_metric", "hmc", "chains", "restarts", "warmups", "sgfs", "programs"


@pytest.fixture(scope="module")
def states():
    """The state of every result, by its name."""
    return engine.status()


@pytest.mark.parametrize("path", [*HELPERS, *TABLES], ids=lambda path: path.stem)
def test_a_helpers_docstring_shows_a_call(path):
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert path.stem in NOT_CALLED or re.search(r"\w\(.*\)", text)


def numbers(part):
    """Yield every number in a stored result."""
    if isinstance(part, (dict, list)):
        for item in part.values() if isinstance(part, dict) else part:
            yield from numbers(item)
    elif isinstance(part, (int, float)):
        yield part


def marked():
    """Results that a page says are of older code."""
    texts = "\n".join((ROOT / path).read_text() for path in pages())
    blocks = re.findall(r"^```\{admonition\} Older code\n(.*?)^```", texts, flags=re.M | re.S)
    return set(re.findall(r"`(\w+/\w+)`", "\n".join(blocks)))


def test_results_are_of_the_code_as_it_is_or_their_page_says_that_they_are_not(states):
    assert set(states.values()) <= {"made", "checked", "old"}
    assert {name for name, state in states.items() if state == "old"} == marked()


def test_results_have_rows_of_finite_numbers(states):
    for name in states:
        rows = json.loads((ROOT / f"book/results/{name}.json").read_text())["rows"]
        assert rows and all(math.isfinite(number) for number in numbers(rows)), name


def test_a_page_links_the_script_of_each_result(states):
    texts = "\n".join((ROOT / path).read_text() for path in pages())
    assert [name for name in states if f"<../experiments/pages/{name}.py>`" not in texts] == []


def test_an_experiment_has_no_main_and_prints_nothing(states):
    for name in states:
        text = (ROOT / f"experiments/pages/{name}.py").read_text()
        assert "__main__" not in text and not re.search(r"^\s*print\(", text, flags=re.M), name
