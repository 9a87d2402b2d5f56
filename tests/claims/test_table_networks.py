"""Claims of the page ``table-networks``."""

import numpy as np

from experiments.methods import column_scores
from experiments.pages.usual_tables import calls, groups_by_call
from experiments.pages.what_the_gain_is_made_of import pooling
from tests.claims.reading import is_open, lower_end, rows, stored
from tests.claims.said import says

GRID = [str(sd) for sd in calls.SETTINGS["grid"]]


def of(table, arm, score):
    """Return the scores of an arm of a table, by split."""
    return np.array(rows("usual_tables/calls")[f"{table}; {arm}"][score])


def ends(values):
    """Return both ends of the 95 % interval of a mean over splits that overlap."""
    mean, half = column_scores.interval(values)
    return mean - half, mean + half


@says(
    "table-networks",
    "On *concrete* a scale of 4 for them forecasts better than the default, 1",
    "On *concrete* the mean CRPS falls up to the end of the grid,",
)
def test_large_weights_have_the_smaller_crps_on_concrete():
    means = [of("concrete", sd, "crps").mean() for sd in GRID]
    assert means == sorted(means, reverse=True)
    for arm in ("4.0", calls.LEARNT):
        assert ends(of("concrete", arm, "crps") - of("concrete", "1.0", "crps"))[1] < 0


@says("table-networks", "but on one split of five a single chain decides how much.")
def test_a_single_chain_decides_on_one_split_of_yacht():
    errors = rows("usual_tables/calls")["yacht; 4.0"]["log_density_error"]
    assert max(errors) > 0.5 > 0.2 > sorted(errors)[-2]


@says(
    "table-networks",
    "*Chosen* is the end on every split, as printed,",
    "`tables.compare` prefers the largest on every split of both",
)
def test_compare_prefers_large_weights_everywhere():
    for table in calls.SETTINGS["tables"]:
        found = np.array([of(table, sd, "loo") for sd in GRID])
        assert (np.diff(found, axis=0) > 0).all()


@says("table-networks", "Every fit has rows whose Pareto k is above 0.7", "No arm's chains agree.")
def test_no_fit_can_be_relied_on():
    for row in stored("usual_tables/calls"):
        assert min(row["k"]) > 0.7 and min(row["rhat"]) > 1.1


@says("table-networks", "and on the median split its root mean square error is")
def test_a_second_output_errs_more_on_yacht():
    worse = of("yacht", calls.SECOND, "rmse") / of("yacht", calls.LEARNT, "rmse")
    assert np.median(worse) > 1.3


def eight(arm):
    """Return the NLL of an arm of ``pooling`` on its eight data sets."""
    found = stored("what_the_gain_is_made_of/pooling")
    (row,) = (
        row
        for row in found
        if (row["more"]["setting"], row["more"]["arm"]) == (groups_by_call.SETTING, arm)
    )
    return np.array(row["nll"])


@says(
    "table-networks",
    "with chosen ones no more is shown ({glue:text}`learnt-chosen`).",
    "Chosen ones are ahead of shared weights, by {glue:text}`shared-chosen`; over shared",
    "Of learnt scales and shared weights the order is open",
)
def test_separate_networks_with_scales_on_five_tasks():
    learnt, chosen = eight(pooling.LEARNT), eight("scales chosen")
    shared = eight("hierarchical, N+(0, 1)")
    assert lower_end(eight("N(0, 1)") - learnt) > 0 and is_open(learnt - chosen)
    assert lower_end(shared - chosen) > 0 and is_open(shared - learnt)
    assert is_open(eight("hierarchical, N+(0, 5)") - chosen)


@says(
    "table-networks", "N(0, 1) and *chosen* are the same models in both columns and agree on both"
)
def test_the_calls_agree_with_the_code_of_the_chapters():
    called = rows("usual_tables/groups_by_call")
    for arm, name in ((groups_by_call.ONES, "N(0, 1)"), (groups_by_call.CHOSEN, "scales chosen")):
        assert np.abs(np.subtract(called[arm]["nll"], eight(name)[:2])).max() < 0.015
