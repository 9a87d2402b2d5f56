"""Every stored result was written by the script in `experiments/` as it now stands, and none is missing."""

import ast
import importlib.util
import json
import math
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path for path in (ROOT / "experiments").glob("*.py") if path.name not in ("store.py", "fits.py"))
SPEC = importlib.util.spec_from_file_location("store", ROOT / "experiments" / "store.py")
store = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(store)


def numbers(part):
    """Yield every number in a stored result."""
    if isinstance(part, (dict, list)):
        for item in part.values() if isinstance(part, dict) else part:
            yield from numbers(item)
    elif isinstance(part, (int, float)):
        yield part


def problems(script):
    """Yield where ``book/results/NAME.json`` is not what ``experiments/NAME.py`` writes."""
    result = json.loads((script.parent.parent / "book" / "results" / f"{script.stem}.json").read_text())
    statements = [s for s in ast.parse(script.read_text()).body if isinstance(s, ast.Assign)]
    assigned = {s.targets[0].id: s.value for s in statements if isinstance(s.targets[0], ast.Name)}
    if result["script"] != store.digest(script):
        yield "the script has changed since: run it again"
    if result["settings"] != ast.literal_eval(assigned["SETTINGS"]):
        yield "settings that are not the script's"
    if set(result["versions"]) != set(store.PACKAGES):
        yield "versions of other packages"
    if not result["rows"] or len({tuple(row) for row in result["rows"]}) > 1:
        yield "no rows, or rows with different entries"
    if not all(math.isfinite(number) for number in numbers(result["rows"])):
        yield "a number that is not finite"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_stored_result_is_what_its_script_writes(script):
    assert list(problems(script)) == []


def test_every_stored_result_has_a_script():
    written = {path.stem for path in (ROOT / "book" / "results").iterdir()} - {"claims"}  # that one is tools/shake.py's
    assert written == {path.stem for path in SCRIPTS}


@pytest.fixture
def experiment(tmp_path):
    """Return a script whose stored result is in order."""
    script = tmp_path / "experiments" / "example.py"
    script.parent.mkdir()
    (tmp_path / "book" / "results").mkdir(parents=True)
    script.write_text('SETTINGS = {"seed": 1, "sizes": [2.5, 3]}\n')
    return script


ROWS = [{"name": "a", "scores": {"NLL": 0.5}}, {"name": "b", "scores": {"NLL": 0.25}}]


def test_what_is_stored_can_be_read_back(experiment):
    store.write(str(experiment), {"seed": 1, "sizes": [2.5, 3]}, ROWS)
    assert list(problems(experiment)) == []
    assert json.loads((experiment.parents[1] / "book/results/example.json").read_text())["rows"] == ROWS


@pytest.mark.parametrize("edit", ['"seed": 2', '"seed":  1'])
def test_a_script_edited_after_its_run_is_found(experiment, edit):
    store.write(str(experiment), {"seed": 1, "sizes": [2.5, 3]}, ROWS)
    experiment.write_text(experiment.read_text().replace('"seed": 1', edit))
    assert "the script has changed since: run it again" in list(problems(experiment))


def test_a_script_that_it_imports_is_part_of_it(experiment):
    shared = experiment.with_name("shared.py")
    shared.write_text("X = 1\n")
    experiment.write_text("import json\nimport shared  # noqa: E402\n" + experiment.read_text())
    store.write(str(experiment), {"seed": 1, "sizes": [2.5, 3]}, ROWS)
    assert list(problems(experiment)) == []
    shared.write_text("X = 2\n")
    assert list(problems(experiment)) == ["the script has changed since: run it again"]


@pytest.mark.parametrize(
    "settings, rows",
    [
        ({"seed": 2, "sizes": [2.5, 3]}, ROWS),
        ({"seed": 1, "sizes": [2.5, 3]}, []),
        ({"seed": 1, "sizes": [2.5, 3]}, [*ROWS, {"name": "c"}]),
        ({"seed": 1, "sizes": [2.5, 3]}, [{"name": "a", "scores": {"NLL": math.nan}}]),
    ],
)
def test_a_result_that_is_not_in_order_is_found(experiment, settings, rows):
    store.write(str(experiment), settings, rows)
    assert len(list(problems(experiment))) == 1
