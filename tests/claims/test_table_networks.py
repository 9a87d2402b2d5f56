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
    "On *concrete* weights with a standard deviation of 4 forecast better than those of the",
    "On *concrete* the mean CRPS falls up to the end of the grid, though from 2 to 4 no difference",
)
def test_large_weights_have_the_smaller_crps_on_concrete():
    means = [of("concrete", sd, "crps").mean() for sd in GRID]
    assert means == sorted(means, reverse=True)
    for arm in ("4.0", calls.LEARNT):
        assert ends(of("concrete", arm, "crps") - of("concrete", "1.0", "crps"))[1] < 0
    low, high = ends(of("concrete", "4.0", "crps") - of("concrete", "2.0", "crps"))
    assert low < 0 < high


@says(
    "table-networks",
    "On *yacht* no difference of CRPS is shown.",
    "a single chain decides how much, and by CRPS nothing is shown.",
)
def test_no_difference_of_crps_is_shown_on_yacht():
    for arm in ("4.0", calls.LEARNT):
        low, high = ends(of("yacht", arm, "crps") - of("yacht", "1.0", "crps"))
        assert low < 0 < high
    errors = rows("usual_tables/calls")["yacht; 4.0"]["log_density_error"]
    assert max(errors) > 0.5 > 0.2 > sorted(errors)[-2]


@says(
    "table-networks",
    "*Chosen* is the end on every split, as printed, also where rows that test prefer 2;",
    "`tables.compare` prefers the largest on every split of both",
)
def test_compare_prefers_large_weights_everywhere():
    for table in calls.SETTINGS["tables"]:
        found = np.array([of(table, sd, "loo") for sd in GRID])
        assert (np.diff(found, axis=0) > 0).all()
    density = {sd: of("concrete", sd, "log_density")[0] for sd in GRID}
    assert max(density, key=density.get) == "2.0"


@says("table-networks", "Every fit has rows whose Pareto k is above 0.7", "No arm's chains agree.")
def test_no_fit_can_be_relied_on():
    for row in stored("usual_tables/calls"):
        assert min(row["k"]) > 0.7 and min(row["rhat"]) > 1.1


@says(
    "table-networks", "and on each its root mean square error is at least {glue:text}`second-worse`"
)
def test_a_second_output_errs_more_on_yacht():
    worse = of("yacht", calls.SECOND, "rmse") / of("yacht", calls.LEARNT, "rmse")
    assert worse.min() > 1.2


@says("table-networks", "On *concrete* no difference is shown by either score.")
def test_a_second_output_is_level_on_concrete():
    for score in ("log_density", "crps"):
        gains = of("concrete", calls.SECOND, score) - of("concrete", calls.LEARNT, score)
        low, high = ends(gains)
        assert max(low, -high) < 0.1


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
    "Chosen ones are ahead of shared weights, by {glue:text}`shared-chosen`, and under a prior",
    "Of learnt scales and shared weights the order is open",
)
def test_separate_networks_with_scales_on_five_tasks():
    learnt, chosen = eight(pooling.LEARNT), eight("scales chosen")
    shared = eight("hierarchical, N+(0, 1)")
    assert lower_end(eight("N(0, 1)") - learnt) > 0 and is_open(learnt - chosen)
    assert lower_end(shared - chosen) > 0 and is_open(shared - learnt)
    assert is_open(eight("hierarchical, N+(0, 5)") - chosen)
