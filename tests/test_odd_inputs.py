"""Bad input is refused before any work starts, with what was given and what was expected.

Every public function is asked for by name; those of the sampler's own rooms, which nobody calls by
hand, are named with the reason.
"""

import helpers

import importlib
import inspect
import pkgutil

import pytest

from tests import odd_inputs

# What is called by other modules alone, on what these have checked.
ROOMS = {"chains", "full_metric", "hmc", "restarts", "warmups", "programs", "progress", "checks"}
# Functions whose arguments are trees, networks, keys or names: shapes are checked where these meet.
NO_NUMBERS = {
    "common": {"stack", "float_shapes", "read_result", "mixed_types", "generator", "key"},
    "copies": {"relabel", "nearest_copy", "task_weights"},
    "data": {"source_moons", "fresh_moons", "unit"},
    "densities": {
        "label_log_likelihood",
        "flat_log_density",
        "informed_log_density",
        "regression_log_likelihood",
    },
    "diagnostics": {"of_summaries", "describe"},
    "hierarchical": {
        "task_weights",
        "logits",
        "log_prior",
        "log_density",
        "total_log_likelihood",
        "sum_over_tasks",
    },
    "mcmc": {"cores", "batch_of"},
    "numpyro_models": {"of"},
    "pages": {"glue"},
    "plots": {"use_style", "points", "surface", "task_panels", "reliability"},
    "sgmcmc": {"position_of", "read"},
    "smc": {"next_power", "adapted"},
    "svi": {"run", "check_losses", "made", "network_position"},
}
CALLS = [
    pytest.param(case, what, arguments, id=f"{name}: {what}")
    for name, case in odd_inputs.CASES.items()
    for what, arguments in odd_inputs.bad_calls(case)
]


def public_functions():
    """Yield the module and the name of each function that users call."""
    for found in pkgutil.iter_modules(helpers.__path__):
        module = importlib.import_module(f"helpers.{found.name}")
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and callable(value) and not name.startswith("_") and not inspect.isclass(value):
                yield found.name, name


def test_every_public_function_is_asked():
    asked = {tuple(name.split(".")) for name in odd_inputs.CASES}
    apart = {(module, name) for module, names in NO_NUMBERS.items() for name in names}
    known = {pair for pair in public_functions() if pair[0] not in ROOMS}
    assert apart <= known
    assert known - apart == asked - {("networks", "MLP"), ("checks", "labels")}


@pytest.mark.parametrize("name", odd_inputs.CASES)
def test_the_good_call_is_good(name):
    case = odd_inputs.CASES[name]
    case.function(**case.good)


@pytest.mark.parametrize("case, what, arguments", CALLS)
def test_a_bad_call_is_refused_clearly(case, what, arguments):
    assert odd_inputs.outcome(case, arguments) == "clear", what
