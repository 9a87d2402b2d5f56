"""Claims of the page ``sharing-measured``."""

from helpers import metrics

import numpy as np

from experiments.engine import headlines
from tests.claims.reading import lower_end, mixed, rows, stored, within_bounds
from tests.claims.said import says


def long_runs():
    """Rows of the model with every layer special, and of that with a shared output layer."""
    return rows("hierarchical_bnn/long_runs").values()


def forms():
    """Rows of centred and of non-centred chains."""
    found = stored("hierarchical_bnn/chain_ends")
    return [
        next(row for row in found if row["kind"] == kind) for kind in ("centred", "non-centred")
    ]


@says(
    "sharing-measured",
    """The centred chains **have not mixed**: {glue:text}`centred-steps` times as many steps a draw
    give less than a hundredth of the effective draws.""",
    """warm-up has made the centred step so short that most of its trajectories end
    at the limit.""",
)
def test_centred_chains_have_not_mixed_and_non_centred_ones_have():
    centred, other = forms()
    assert within_bounds(other["check"]) and min(other["check"]["ess_alone"].values()) >= 400
    assert not mixed(centred["check"])
    assert centred["integration_steps"] > 5 * other["integration_steps"]
    for ess in ("ess_log_sd", "ess_log_density"):
        assert np.min(centred[ess]) < np.min(other[ess]) / 100
    assert centred["check"]["at_limit"] > 0.5


@says(
    "sharing-measured",
    "The first model's chains have mixed.",
    """Those of the second **have not**, by little: the tails of its group standard deviations have
    fewer than 400 effective draws""",
)
def test_chains_of_the_model_with_a_shared_output_layer_have_not_mixed_by_little():
    every, few = (row["check"] for row in long_runs())
    assert mixed(every) and not mixed(few) and within_bounds(few)
    assert {kind for kind, ess in few["ess_tail"].items() if ess < 400} == {"log sd"}
    assert few["ess_tail"]["log sd"] > 200 and min(few["ess_bulk"].values()) > 400


@says(
    "sharing-measured",
    """The second model's chains are set against the first's posterior one by one; all do worse.""",
)
def test_every_chain_with_a_shared_output_layer_does_worse_on_most_tasks():
    every, few = long_runs()
    of_chains = np.array(few["task_nll_by_chain"])
    assert of_chains.mean(axis=1).min() > np.mean(every["task_nll_by_chain"], axis=1).max() + 0.01
    for of_chain in of_chains:
        assert lower_end(of_chain - every["task_nll"]) > 0


@says(
    "sharing-measured",
    """A percentage from 900 points has a {term}`standard error` of about one; ours differ from
    theirs by less.""",
)
def test_accuracies_differ_from_those_of_the_sources_by_less_than_a_standard_error():
    every, few = long_runs()
    printed = (91.11, 89.78), (90.78, 89.33)
    for row, pairs in ((every, printed), (few, [(91.00, 87.33)])):
        for train, test in pairs:
            assert max(abs(row["accuracy_train"] - train), abs(row["accuracy_test"] - test)) < 1


@says(
    "sharing-measured",
    """But flat networks with chosen scales come as far: their NLL less that of the hierarchical
    network is {glue:text}`tie`, mean over the tasks and 95 % interval.""",
)
def test_chosen_scales_come_as_far_on_the_sources_data():
    mean, half = metrics.interval(headlines.chosen_less_hierarchical())
    assert abs(mean) < half < 0.02
