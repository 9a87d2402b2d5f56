"""The order of the rooms: each imports only from those before it, and a page from no other page."""

from helpers import smc

import ast
import json

import pytest
from chapters import ROOT

from experiments.methods import gradient_timer, region_masses
from experiments.pages.are_the_samplers_right import gradient_time
from experiments.pages.hierarchical_bnn import masses
from experiments.pages.regression import variants
from experiments.pages.svi import spiral, spiral_references
from experiments.problems import spirals, wave_networks

PACKAGES = ["helpers", "tables", "experiments"]
ROOMS = ["helpers", "tables", "problems", "methods", "engine", "pages"]
ORDER = [
    "__init__",
    "checks",
    "common",
    "programs",
    "progress",
    "pages",
    "data",
    "networks",
    "densities",
    "hierarchical",
    "full_metric",
    "hmc",
    "chains",
    "restarts",
    "warmups",
    "mcmc",
    "sgfs",
]
ORDER += [
    "sgmcmc",
    "svi",
    "predict",
    "numpyro_models",
    "metrics",
    "summaries",
    "diagnostics",
    "verify",
    "plots",
]
ORDER += ["copies", "smc", "tempering", "training", "monte_carlo"]


def modules(root):
    """Yield the dotted name and the file of each module of the packages."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            yield ".".join(path.relative_to(root).with_suffix("").parts), path


def place(module):
    """Return the room of a dotted name, and its page if it has one; None outside of the rooms."""
    package, *below = module.split(".")
    if package in ("helpers", "tables"):
        return package, None
    if package != "experiments" or not below or below[0] not in ROOMS:
        return None
    return below[0], below[1] if below[0] == "pages" and len(below) > 1 else None


def imported(path):
    """Yield what a file imports, at its top or in a function, as dotted names."""
    yield from names_in(ast.walk(ast.parse(path.read_text())))


def at_top(path):
    """Yield what a file imports when it is imported itself, as dotted names."""
    yield from names_in(ast.parse(path.read_text()).body)


def names_in(nodes):
    """Yield the dotted names that statements import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def wrong(root):
    """Return the imports that go up, or from one page to another: (module, what it imports)."""
    found = []
    for module, path in modules(root):
        here = place(module)
        for name in imported(path):
            there = place(name)
            if not here or not there:
                continue
            up = ROOMS.index(there[0]) > ROOMS.index(here[0])
            sideways = here[0] == there[0] == "pages" and here[1] != there[1]
            found += [(module, name)] * (up or sideways)
    return found


def test_no_import_goes_up_or_from_page_to_page():
    assert wrong(ROOT) == []


def test_a_helper_imports_only_from_its_left():
    helpers = sorted((ROOT / "helpers").glob("*.py"))
    assert [path.stem for path in helpers] == sorted(ORDER)
    for path in helpers:
        found = [name.split(".") for name in imported(path)]
        found = [name for name in found if name[0] in PACKAGES]
        assert {package for package, *_ in found} <= {"helpers"}, path
        assert all(ORDER.index(name[1]) < ORDER.index(path.stem) for name in found), path


def test_no_modules_import_each_other_in_a_circle():
    names = dict(modules(ROOT))
    above = {}
    for name, path in names.items():
        found = {f"{one}." for one in at_top(path)}
        above[name] = {part for part in names if any(one.startswith(f"{part}.") for one in found)}
    while free := [name for name in above if not above[name] & above.keys()]:
        for name in free:
            del above[name]
    assert above == {}


@pytest.mark.parametrize(
    "shared, kept",
    [
        (gradient_timer, [gradient_time]),
        (region_masses, [masses]),
        (wave_networks, [variants]),
        (spirals, [spiral, spiral_references]),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_settings_that_results_share_are_those_that_they_keep(shared, kept):
    """A result keeps its settings whole, and what other pages need of them lies further down."""
    found = {}
    for result in reversed(kept):
        found |= result.SETTINGS
    assert shared.SETTINGS.items() <= found.items()


def test_particles_move_as_the_stored_masses_say():
    moves = json.loads(json.dumps(smc.Settings()._asdict()))
    assert moves.items() <= masses.SETTINGS.items()


def test_every_module_of_the_experiments_is_in_a_room():
    folders = {
        path.relative_to(ROOT / "experiments").parts[0]
        for _, path in modules(ROOT)
        if path.is_relative_to(ROOT / "experiments")
    }
    assert folders == {"__init__.py", *ROOMS[2:]}


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("helpers/mcmc", "from tables import formulas"),
        ("experiments/problems/waves", "from experiments.methods import crps"),
        ("experiments/methods/crps", "import experiments.engine.run"),
        ("experiments/methods/crps", "def one():\n    from experiments.pages.svi import moons"),
        ("experiments/engine/run", "from experiments.pages import svi"),
        ("experiments/pages/svi/moons", "from experiments.pages.regression.variants import row"),
    ],
)
def test_an_import_that_is_wrong_is_found(tmp_path, module, line):
    path = tmp_path / f"{module}.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"from helpers import data\nfrom experiments.engine import store\n{line}\n"
        if "pages" in module
        else f"{line}\n"
    )
    assert [name for name, _ in wrong(tmp_path)] == [module.replace("/", ".")]
