"""Claims of the page ``scaling-out``."""

import numpy as np

from tests.claims.reading import stored
from tests.claims.said import says


def costs():
    """Times of one process and of two, by what is divided and size, and the fitted model."""
    *measured, model = stored("scaling_out/costs")
    return {(row["kind"], row["size"]): row for row in measured}, model


def least_efficiency(row):
    """The lower end of the interval of an efficiency over starts."""
    return row["efficiency"] - row["efficiency_half"]


def memory(name):
    """Megabytes of a process, mean of three runs, by way and number of rows."""
    return {(row["way"], row["rows"]): np.mean(row[name]) for row in stored("scaling_out/memory")}


@says(
    "scaling-out",
    """Chains do not talk at a gradient, and their efficiency of {glue:text}`scaling-chains` says
    what the two cores take from each other without any talk.""",
)
def test_chains_are_divided_at_little_cost():
    assert least_efficiency(costs()[0]["chains", 1000]) > 0.9


@says(
    "scaling-out",
    """One worker took {glue:text}`scaling-list` s; two were {glue:text}`scaling-workers` times as
    fast.""",
)
def test_two_workers_are_nearly_twice_as_fast():
    assert 2 * least_efficiency(costs()[0]["workers", 48]) > 1.6


@says(
    "scaling-out",
    "Two processes are 90 % efficient from {glue:text}`scaling-pays` tasks each on",
)
def test_two_processes_become_efficient_where_the_fitted_line_says():
    measured, model = costs()
    efficiency = [measured["tasks", size]["efficiency"] for size in (10_000, 100_000)]
    assert efficiency[0] < 0.9 < efficiency[1]
    ends = (
        model["pays_from"] - model["pays_from_half"],
        model["pays_from"] + model["pays_from_half"],
    )
    assert 10_000 < ends[0] < ends[1] < 100_000


@says(
    "scaling-out",
    "A sum adds about as much to a gradient of 100 tasks as to one of 10,000.",
    "No time is further from its fit than {glue:text}`scaling-misfit` %.",
)
def test_a_sum_adds_about_as_much_whatever_the_number_of_tasks():
    measured, model = costs()
    few = [row for (kind, size), row in measured.items() if kind == "tasks" and size <= 10_000]
    added = [np.median(np.subtract(row["two"], row["one"])) for row in few]
    assert max(added) < 1.5 * min(added) and model["largest_misfit"] < 0.15


@says(
    "scaling-out",
    """Where the weights of 10,000 tasks are gathered the efficiency is
    {glue:text}`scaling-gathered`, against {glue:text}`scaling-kept` where they stay.""",
)
def test_gathering_weights_costs():
    measured, _ = costs()
    for size in (1000, 10_000):
        gathered = measured["tasks, gathered", size]["efficiency"]
        assert gathered < least_efficiency(measured["tasks", size])


@says(
    "scaling-out",
    """and 64 hosts {glue:text}`scaling-all-hosts` ms: {glue:text}`scaling-speed-up` times less.
    Six sums over two processes, one after the other, would be {glue:text}`scaling-share` % of
    that.""",
)
def test_on_64_hosts_sums_would_be_more_than_half_of_the_time():
    _, model = costs()
    assert 20 < model["speed_up"] < 40 and 6 * model["c"] > model["all_hosts"] / 2


@says(
    "scaling-out",
    "What a streamed run takes for itself does not depend on the number of rows.",
    "at ten million rows {glue:text}`scaling-pages` MB were there at a time.",
)
def test_memory_of_a_streamed_run_does_not_depend_on_the_number_of_rows():
    own, most = memory("own"), memory("most")
    for way in ("SG-MCMC", "SVI"):
        of_way = {size: own[way, size] for one, size in own if one == way}
        assert len(of_way) == 4 and max(of_way.values()) - min(of_way.values()) < 15
        assert max(most[way, size] - of_way[size] for size in of_way) < 60


@says(
    "scaling-out",
    """Read whole, ten million rows, {glue:text}`scaling-files` MB, take
    {glue:text}`scaling-loaded` MB.""",
)
def test_ten_million_rows_read_whole_take_much_more():
    own = memory("own")
    assert own["in memory", 10_000_000] > own["SG-MCMC", 10_000_000] + 150


@says(
    "scaling-out",
    """The differences had a root mean square of at most {glue:text}`scaling-apart` {term}`standard
    errors <standard error>`, where chance gives about 1, and none was above
    {glue:text}`scaling-apart-most`.""",
)
def test_all_devices_draw_from_the_same_posterior():
    devices = [row for row in stored("scaling_out/many_chains") if "device" in row]
    assert [one["device"].split()[0] for one in devices] == ["NVIDIA", "16", "2"]
    for one in devices:
        assert set(one["apart"]) == {"flat", "hierarchical", "hierarchical, all tasks at once"}
        assert all(z["root_mean_square"] < 2 and z["largest"] < 5 for z in one["apart"].values())
