"""Claims of the page ``modes``."""

import numpy as np

from tests.claims.reading import stored
from tests.claims.said import says

OUTPUT = 2  # the place of the output layer's region


def weighed(num_tasks):
    """Evidence of the regions by ten runs each: of the sources' data or, of fewer tasks, of the
    first redraw.
    """
    found = stored("hierarchical_bnn/masses")
    return [row for row in found if row["num_tasks"] == num_tasks and row["num_runs"] == 10]


def redrawn(num_tasks):
    """Evidence of the regions on redraws, by fewer runs each, in the order of the redraws."""
    found = stored("hierarchical_bnn/masses")
    found = [row for row in found if row["num_tasks"] == num_tasks and row["num_runs"] < 10]
    assert len(found) == 15  # five redraws under three hyperpriors
    return sorted(found, key=lambda row: row["redraw"])


def visits(**of):
    """Rows of draws counted by region."""
    found = [row for row in stored("hierarchical_bnn/visits") if row["num_samples"] <= 4000]
    return [row for row in found if all(row[key] == value for key, value in of.items())]


def long_visits():
    """The longer run, under HalfNormal(5), of five tasks."""
    (run,) = (row for row in stored("hierarchical_bnn/visits") if row["num_samples"] > 4000)
    return run


def gap(row):
    """Log evidence of the output layer's lowest run less that of the others' highest."""
    return min(row["by_run"][OUTPUT]) - max(map(max, row["by_run"][:OUTPUT]))


def outside(found):
    """Share of the mass outside of the output layer's region by evidence, and its error, [row]."""
    inside = np.exp([row["log_share"][OUTPUT][-1] for row in found])
    return 1 - inside, inside * [row["log_share_error"][OUTPUT][-1] for row in found]


def apart(row, run):
    """Share of each region by evidence less that by counting, and the error of that."""
    at = row["powers"].index(run["power"])
    share = np.exp(np.array(row["log_share"])[:, at])
    error = np.hypot(share * np.array(row["log_share_error"])[:, at], run["share_error"])
    return run["share"] - share, error


@says(
    "modes",
    """Of sixteen chains {glue:text}`stuck-near` are elsewhere at the end from starts near zero,
    and {glue:text}`stuck-middle` from a distance of 0.5. From N(0, 1) it is
    {glue:text}`stuck-far`, and under a lower power none.""",
)
def test_some_chains_are_elsewhere_at_the_end_and_none_under_a_lower_power():
    found = [row for row in stored("hierarchical_bnn/chain_ends") if row["kind"] == "starts"]
    stuck = [sum(np.argmax(sd) != OUTPUT for sd in row["sd_by_chain"]) for row in found]
    assert [(row["start"], row["power"]) for row in found[2:]] == [(1, 1), (1, 0.6), (1, 0.8)]
    assert stuck[0] >= 1 and stuck[2] >= 1 and stuck[3:] == [0, 0]


@says("modes", "At higher powers chains leave the other regions and hardly ever come back")
def test_chains_leave_the_other_regions_and_hardly_ever_come_back():
    found = [row for row in stored("hierarchical_bnn/chain_ends") if row["kind"][:4] == "from"]
    for row in (row for row in found if row["power"] >= 0.6):
        inside = np.argmax(row["path_of_sd"], axis=2) == OUTPUT
        assert inside[:, -1].all() and (inside.all() or row["kind"] == "from mode 1")


@says(
    "modes",
    """Where chains pass often enough to be counted, the two agree to about 0.1, and within
    {glue:text}`most-apart-powers` standard errors of their difference.""",
)
def test_evidence_and_count_agree_where_chains_pass_often():
    compared = 0
    for row in weighed(18):
        for run in visits(redraw="sources", hyperprior=row["hyperprior"]):
            if run["check"]["mixed"] and min(run["share"]) > 0.01:
                gaps, error = apart(row, run)
                assert (np.abs(gaps) < np.minimum(6 * error, 0.1 + 3 * error)).all()
                compared += 1
    assert compared == 6


@says(
    "modes",
    """under each hyperprior the lowest run of the output layer's region is above the highest of
    the others, by {glue:text}`least-gap` at least""",
)
def test_the_output_layers_region_is_far_ahead_on_the_sources_data():
    assert len(weighed(18)) == 3 and min(map(gap, weighed(18))) > 20


@says(
    "modes",
    """all {glue:text}`num-visitors` that started in the other two regions at power 1 were in the
    output layer's for good by draw {glue:text}`last-visit` of 4000 after warm-up.""",
)
def test_all_chains_arrive_at_power_1():
    for run in visits(redraw="sources", power=1.0):
        assert len(run["share_by_chain"]) == 12 and max(run["draws_until_output_for_good"]) < 2000


@says(
    "modes",
    """On each of the {glue:text}`num-redraws` redraws, under each hyperprior, the output layer's
    region is ahead by {glue:text}`redraws-gap` units or more.""",
)
def test_the_output_layers_region_is_far_ahead_on_redraws():
    assert min(map(gap, redrawn(18))) > 20 and max(outside(redrawn(18))[0]) < 1e-8


@says(
    "modes",
    """With two tasks {glue:text}`outside-two` of the mass is outside the region where the output
    layer's standard deviation is the largest, with five {glue:text}`outside-five`.""",
    """Left, two tasks: between 11 and 38 percent on four redraws and above 50 on the fifth. Right,
    five tasks: below 10 percent on the first two redraws""",
)
def test_with_few_tasks_the_regions_share_the_mass():
    (two, error_two), (five, error_five) = (outside(redrawn(count)) for count in (2, 5))
    assert min(two) > 0.05 and min(two[12:]) > 0.45
    # each bound as it is read off the figure, within four errors
    assert (np.maximum(0.11 - two, two - 0.38) < 4 * error_two)[:12].all()
    assert (five < 0.1 + 4 * error_five)[:6].all()


@says(
    "modes",
    """Evidence and count differ by {glue:text}`most-apart-few` standard errors of their difference
    at most""",
)
def test_evidence_and_count_agree_for_few_tasks():
    for row in (*weighed(2), *weighed(5)):
        (run,) = visits(redraw=0, num_tasks=row["num_tasks"], hyperprior=row["hyperprior"])
        longer = not run["check"]["mixed"]
        assert longer == ((row["num_tasks"], row["hyperprior"]) == (5, "HalfNormal(5)"))
        gaps, error = apart(row, long_visits() if longer else run)
        assert (np.abs(gaps) < 7 * error).all()


@says(
    "modes",
    "It has an effective sample size of {glue:text}`long-ess`",
    """Its R-hat of {glue:text}`long-rhat` is still beyond the bound, which so many draws make as
    narrow as {glue:text}`long-bound`""",
)
def test_the_longer_run_has_effective_draws_and_an_rhat_beyond_its_narrow_bound():
    run = long_visits()
    assert min(run["ess_log_sd"]) > 400 and not run["check"]["mixed"]
    assert run["check"]["rhat_bound"]["predictions"] < max(run["rhat_log_sd"]) < 1.005


@says("modes", "None of the twelve chains from all regions was outside after warm-up there")
def test_none_of_twelve_chains_is_outside_at_power_08():
    (run,) = visits(redraw="sources", hyperprior="HalfNormal(1)", power=0.8)
    assert run["draws_until_output_for_good"] == [0] * 12
