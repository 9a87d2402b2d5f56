"""Claims of the page ``tables-beyond``."""

import numpy as np

from experiments.methods import column_scores
from experiments.pages.usual_tables import beyond
from tests.claims.reading import is_open, lower_end, rows
from tests.claims.said import says

MAIN, SECOND, QUANTILES = "learnt scales", "noise by a second output", "trees, quantiles"
TABLES = ("yacht", "concrete", "energy")


def far():
    """Rows of the arms beyond the rows that train, by name."""
    return rows("usual_tables/beyond")


def within(name):
    """The row of an arm on the published splits of the same table."""
    kinds = ("chains", "trained", "baselines", "dropout")
    found = {k: v for kind in kinds for k, v in rows(f"usual_tables/{kind}_concrete").items()}
    return found[name]


def held(name):
    """Share of the rows beyond that are in the central 90 % interval of an arm."""
    return np.mean(np.array(far()[name]["coverage"])[:, 1])


def ahead(name, score="log_density"):
    """By how much the chains are ahead of an arm, one value a column."""
    sign = 1 if score == "log_density" else -1
    return sign * np.subtract(far()[MAIN][score], far()[name][score])


@says(
    "tables-beyond",
    "and most of them do not say so ({numref}`fig-beyond`).",
    "Left: all lose about half a nat or more",
)
def test_every_forecast_is_worse_beyond():
    for name, row in far().items():
        assert 1.4 < np.mean(row["rmse"]) / np.mean(within(name)["rmse"]) < 2.8
        assert np.mean(row["log_density"]) < np.mean(within(name)["log_density"]) - 0.4


@says(
    "tables-beyond",
    "Two come nearest to it: the central 90 % interval of four chains with learnt scales holds",
    """Right: chains with learnt scales and trees by quantiles come nearest to what they say.""",
    """A Gaussian process holds {glue:text}`covered-process` % and noise by a second output
    {glue:text}`covered-second` %, so with them one cannot tell""",
)
def test_two_forecasts_hold_as_many_rows_as_they_say():
    good = {name for name in far() if held(name) > 0.875}
    assert good == {MAIN, QUANTILES}
    covered = {name: np.array(row["coverage"])[:, 1] - 0.9 for name, row in far().items()}
    assert is_open(covered["process, RBF"]) and is_open(covered[SECOND])
    for name in ("ensemble of 5", "trees", "Laplace", "best fit", "mean field"):
        assert lower_end(-covered[name]) > 0


@says(
    "tables-beyond",
    """By RMSE no difference is shown: that of the chains is larger by
    {glue:text}`rmse-over-trees`.""",
    """The chains are ahead by {glue:text}`ahead-trees` nats a row, so that is not shown on the
    whole.""",
    """By quantiles, within the rows among the worst forecasts, trees are not shown to be behind
    ({glue:text}`ahead-quantiles`)""",
)
def test_trees_are_not_shown_to_be_behind():
    assert is_open(ahead("trees", "rmse"))
    assert is_open(ahead("trees")) and is_open(ahead(QUANTILES))
    density = {name: np.mean(within(name)["log_density"]) for name in far()}
    assert sorted(density, key=density.get).index(QUANTILES) == 1


@says(
    "tables-beyond",
    "by log density it is behind by {glue:text}`ahead-ensemble` nats.",
    """By RMSE no difference is shown, {glue:text}`rmse-ensemble` in favour of the chains, nor by
    CRPS, where theirs is larger by {glue:text}`crps-over-ensemble`.""",
    """Laplace's method is behind by {glue:text}`ahead-laplace`, the best fit by
    {glue:text}`ahead-fit`.""",
    """is behind by {glue:text}`ahead-process` nats, and its RMSE is larger by
    {glue:text}`rmse-process`""",
)
def test_trained_networks_and_the_process_are_behind():
    assert is_open(ahead("ensemble of 5", "rmse")) and is_open(ahead("ensemble of 5", "crps"))
    assert lower_end(ahead("process, RBF", "rmse")) > 0
    for name in ("ensemble of 5", "Laplace", "best fit", "process, RBF"):
        assert lower_end(ahead(name)) > 0


@says(
    "tables-beyond",
    "the best forecast of this table within its rows, fails badly on one column of eight.",
    """Where the samples with most water are left out its log density is
    {glue:text}`second-water`, where that of one noise is {glue:text}`main-water`""",
    """Over all eight columns the difference is {glue:text}`ahead-second`, over the seven others
    {glue:text}`second-others` in favour of one noise, and neither is shown.""",
    "How bad exactly hangs on single chains",
)
def test_a_second_output_fails_on_one_column():
    density = {name: np.mean(within(name)["log_density"]) for name in far()}
    assert max(density, key=density.get) == SECOND
    behind = ahead(SECOND)
    assert np.argmax(behind) == beyond.COLUMNS.index("water") and behind.max() > 4
    assert is_open(behind) and is_open(np.delete(behind, np.argmax(behind)))
    assert far()[SECOND]["log_density_error"][np.argmax(behind)] > 3


@says("tables-beyond", "**Nothing here has mixed**")
def test_no_chains_beyond_have_mixed():
    assert min(one["predictions"] for one in far()[MAIN]["rhat"]) > 1.2
    assert min(one["predictions"] for one in far()[SECOND]["rhat"]) > 1.2


def change(name, table):
    """Log density gained by a change of the network on a table, one value a split."""
    found = rows(f"usual_tables/chains_{table}")
    grid = np.array(found[MAIN]["by_chains"])[:, :, -1]  # [split; 1, 2, 4, 8, 16 chains]
    of = {"one chain": grid[:, 0], "sixteen chains": grid[:, 4]}
    return of.get(name, np.array(found.get(name, {}).get("log_density", 0))) - grid[:, 2]


def shape(hidden):
    """Log density gained by another shape on yacht, one value a split."""
    found = rows("usual_tables/shapes")
    return np.subtract(found[hidden]["log_density"], found["50"]["log_density"])


def ends(values):
    """Both ends of the 95 % interval of a mean over splits that overlap."""
    mean, half = column_scores.interval(values)
    return mean - half, mean + half


@says(
    "tables-beyond",
    "One chain is behind four on each table",
    """Sixteen are ahead of four by a little, {glue:text}`gain-sixteen-yacht`,
    {glue:text}`gain-sixteen-concrete` and {glue:text}`gain-sixteen-energy`, the last not shown.""",
    """More than one chain matters on every table, scales on two; beyond fifty units no gain is
    shown.""",
)
def test_more_than_one_chain_matters_on_every_table():
    assert all(ends(change("one chain", table))[1] < 0 for table in TABLES)
    for table, shown in zip(TABLES, (True, True, False), strict=True):
        assert (ends(change("sixteen chains", table))[0] > 0) == shown


@says(
    "tables-beyond",
    """Left at 1 they are behind by {glue:text}`gain-unit-concrete` on *concrete* and by
    {glue:text}`gain-unit-energy` on *energy*; on *yacht* no difference is shown""",
    "**Noise that depends on the columns** gains on *concrete* alone",
)
def test_scales_matter_on_two_tables_and_a_second_output_gains_on_one():
    for table, shown in zip(TABLES, (False, True, True), strict=True):
        assert (ends(change("scales of 1", table))[1] < 0) == shown
    for table, shown in zip(TABLES, (False, True, False), strict=True):
        assert (ends(change(SECOND, table))[0] > 0) == shown


@says(
    "tables-beyond",
    "twelve units are behind by {glue:text}`gain-few-yacht`.",
    "With 200 units no difference from fifty is shown ({glue:text}`gain-wide-yacht`)",
    """and none with two layers of fifty ({glue:text}`gain-deep-yacht`); five splits would not show
    a small one.""",
    "No chains of any shape have mixed.",
)
def test_fifty_units_are_enough_on_yacht():
    assert ends(shape("12"))[1] < 0
    for hidden in ("200", "50 and 50"):
        low, high = ends(shape(hidden))
        assert low < 0 < high
    found = rows("usual_tables/shapes")
    assert min(one["predictions"] for row in found.values() for one in row["rhat"]) > 1.2


@says(
    "tables-beyond",
    """Trees are ahead on age and on fly ash, the two columns on which they hold most of the
    rows""",
    "On the six others they are behind, most on cement.",
    "on water they hold fewest.",
)
def test_trees_are_ahead_on_two_columns():
    covered, columns = np.array(far()["trees"]["coverage"])[:, 1], np.array(beyond.COLUMNS)
    behind = ahead("trees")
    assert {*columns[behind < 0]} == {*columns[np.argsort(covered)[-2:]]} == {"age_days", "fly_ash"}
    assert columns[behind.argmax()] == "cement" and columns[covered.argmin()] == "water"
