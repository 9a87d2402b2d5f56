"""Claims of the page ``numpyro-study``."""

import numpy as np

from experiments.methods import runs
from tests.claims.reading import rows
from tests.claims.said import says

STUDY = "originals/in_numpyro"
HIGHER = "hierarchical, 0.95"


@says(
    "numpyro-study",
    """This book's sampler gives the same NLLs: {glue:text}`ours-flat` for separate networks
    ({ref}`flat-scores`) and {glue:text}`ours-shared` for the hierarchical one""",
    "Separate networks and the hierarchical network have the same scores by this book's sampler.",
)
def test_both_samplers_give_the_same_scores():
    found = rows(STUDY)
    plain, of_all = found["flat"], found[HIGHER]
    (ours,) = (
        row for row in rows("flat_bnn/prior_scale", "test_nll").values() if row["scales"] == 3 * [1]
    )
    error = np.hypot(plain["nll_error"], ours["test_nll_error"])
    assert abs(plain["nll"] - ours["test_nll"]) < 6 * error
    long_run = next(iter(rows("hierarchical_bnn/long_runs", "nll").values()))
    error = np.hypot(of_all["nll_error"], long_run["nll_error"])
    assert abs(of_all["nll"] - long_run["nll"]) < 6 * error


@says(
    "numpyro-study",
    """By that rule the predictions, log densities and standard deviations of all agree, and they
    have effective draws enough.""",
    """diverged, one too many: by this book's rule that run is not to be used.""",
    """the number of divergences is then {glue:text}`diverged-higher`, and the run is within the
    rule.""",
    "at a target acceptance of 0.95 it can be used.",
    "The new run has the NLL of the first",
    "Tasks differ in the last layer, and hardly in the others.",
)
def test_one_divergence_too_many_refuses_the_run_at_the_defaults_and_no_other():
    found = rows(STUDY)
    refused = [name for name, row in found.items() if not row["check"]["mixed"]]
    assert refused == ["hierarchical"]
    check = runs.check_of(found["hierarchical"]["check"])
    assert check.divergences == 4000 // 500 + 1 and len(check.reasons) == 1
    first, second = (found[name] for name in ("hierarchical", HIGHER))
    error = np.hypot(first["nll_error"], second["nll_error"])
    assert abs(first["nll"] - second["nll"]) < 6 * error
    sds = second["more"]["sd_by_chain"]
    assert min(sds["sd_w2"]) > 50 * max(*sds["sd_w0"], *sds["sd_w1"])


@says("numpyro-study", "NumPyro's sampler finds what the port prints.")
def test_the_port_prints_what_the_models_score():
    port = {"flat": (86.67, 83.56), "hierarchical": (90.78, 89.33)}
    port["informed prior"] = (91.44, 86.67)
    port[HIGHER] = port["hierarchical"]
    for name, row in rows(STUDY).items():
        own = row["accuracy_train"], row["accuracy_test"]
        assert np.abs(np.subtract(own, port[name])).max() < 1.0, name
    nll = {name: row["nll"] for name, row in rows(STUDY).items()}
    assert nll["hierarchical"] < nll["informed prior"] - 0.01 < nll["flat"] - 0.06
