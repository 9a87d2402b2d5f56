"""What the pages say of stored results holds of the stored numbers: a result computed anew may
break it.

A page recomputes one row and compares; what it says of the other rows is held to here, chapter by
chapter.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

RESULTS = Path(__file__).parents[1] / "book/results"


def rows(name, key="name"):
    """Rows of a stored result, by name."""
    return {row[key]: row for row in json.loads((RESULTS / f"{name}.json").read_text())["rows"]}


def mixed(check):
    """Whether every R-hat of a stored check is within its bound, at 400 effective draws or more."""
    within = [check["rhat"][kind] <= check["rhat_bound"][kind] for kind in check["rhat"]]
    return all(within) and min(check["ess"].values()) >= 400


# of NLL, fixed by experiments/what_the_gain_is_made_of/attribution.py before any result was seen
THRESHOLD = 0.005


def lower_end(values):
    """The lower end of the 95 % t interval of the mean over data sets."""
    values = np.asarray(values)
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() - half


@pytest.fixture(scope="module")
def cells():
    """The ladder's cells that are defined, by method and budget."""
    found = json.loads((RESULTS / "comparing_inference/ladder.json").read_text())["rows"][1:]
    return {(row["name"], row["budget"]): row for row in found if not row["empty"]}


MINIBATCHES = ["SGLD", "SGLD, cyclical"]


def test_comparing_references_have_mixed_and_agree_with_smc():
    found = json.loads((RESULTS / "comparing_inference/references.json").read_text())["rows"]
    for row in found:
        if row["method"] == "chains":
            assert mixed(row["check"]) and row["check"]["divergences"] == 0
            assert row["kind"] == "tuning" or min(row["check"]["ess"].values()) >= 4000
        else:
            assert row["power"] == 1
    for task in range(6):
        of_task = [row for row in found if row["kind"] == "ladder" and row["task"] == task]
        chains = np.array([row["p"] for row in of_task if row["method"] == "chains"])[:, :200]
        clouds = np.array([row["p"] for row in of_task if row["method"] == "SMC"])[:, :200]
        assert np.abs(chains[0] - chains[1]).mean() < 0.0015
        # Four runs tell little of their own spread at one point, so that points are taken together.
        chance = np.sqrt(2 / np.pi * clouds.var(axis=0, ddof=1) / len(clouds)).mean()
        assert np.abs(clouds.mean(axis=0) - chains.mean(axis=0)).mean() < 3 * chance


def test_comparing_harder_references_have_mixed_and_agree_with_each_other_and_with_particles_that_moved_on():
    found = json.loads((RESULTS / "comparing_inference/harder.json").read_text())["rows"]
    for name in ("hierarchical", "regression", "spiral"):
        runs = [row for row in found if row["posterior"] == name and row["method"] == "chains"]
        assert len(runs) == 2
        for row in runs:
            assert mixed(row["check"]) and row["check"]["chains"] == 8
            assert min(row["check"]["ess"].values()) >= 4000 and row["check"]["divergences"] <= 1
        gap = np.abs(np.subtract(runs[0]["mean"], runs[1]["mean"]))
        in_errors = gap / np.hypot(runs[0]["mean_error"], runs[1]["mean_error"])
        assert in_errors.max() < 6 and in_errors.mean() < 1.1
    chains = np.mean(
        [
            row["mean"]
            for row in found
            if row["posterior"] == "hierarchical" and row["method"] == "chains"
        ],
        0,
    )
    clouds = [row for row in found if row["method"] == "SMC"]
    assert all(row["power"] == 1 for row in clouds)
    before, after = (np.array([row[part] for row in clouds]) for part in ("mean", "mean_after"))

    def off(p):
        """How far the mean of runs is off, and what their spread explains."""
        return np.abs(p.mean(axis=0) - chains).mean(), np.sqrt(
            2 / np.pi * p.var(axis=0, ddof=1) / len(p)
        ).mean()

    # Four runs tell little of their own spread at one point, so that points are taken together.
    assert off(before)[0] < 3 * off(before)[1] < 0.03
    assert off(after)[0] < 3 * off(after)[1] < 0.003


def test_comparing_no_cell_failed_and_gradients_are_within_their_budget(cells):
    for (_, budget), row in cells.items():
        assert row["failed"] == 0
        assert np.mean(row["gradients"]) <= 1.3 * budget


def test_comparing_ten_million_gradients_come_no_nearer_than_references_and_kept_draws_can_show(
    cells,
):
    rows = {
        row["name"]: row
        for row in json.loads((RESULTS / "comparing_inference/longest.json").read_text())["rows"]
    }
    assert len(rows) == 6 and all(row["failed"] == 0 for row in rows.values())
    floor = json.loads((RESULTS / "comparing_inference/ladder.json").read_text())["rows"][0]["tv"]
    for name, row in rows.items():
        assert np.mean(row["gradients"]) <= 1.3e7
        assert (
            np.mean(row["tv"]) <= 2 * floor
            and np.mean(row["tv"]) > 0.4 * cells[name, 1_000_000]["tv_mean"]
        )


def test_comparing_every_sampler_of_all_data_is_nearer_than_every_fit(cells):
    at = [row for (_, budget), row in cells.items() if budget == 100_000]
    samplers = [row for row in at if row["kind"] == "samples" and row["name"] not in MINIBATCHES]
    fits = [row for row in at if row["kind"] == "fits"]
    assert len(samplers) >= 9 and len(fits) >= 9
    assert max(row["tv_mean"] + row["tv_half"] for row in samplers) < min(
        row["tv_mean"] - row["tv_half"] for row in fits
    )


def test_comparing_what_a_gradient_costs_in_seconds(cells):
    rows = json.loads((RESULTS / "comparing_inference/seconds.json").read_text())["rows"]
    times = {(row["name"], row["budget"]): row["times_bare"] for row in rows}
    samplers = {
        name
        for name, budget in cells
        if budget == 100_000 and cells[name, budget]["kind"] == "samples"
    }
    of_all_data = {name: times[name, 100_000] for name in samplers - set(MINIBATCHES)}
    guides = [value for (name, _), value in times.items() if name.startswith("SVI")]
    assert min(of_all_data, key=of_all_data.get) == "ChEES" and max(of_all_data.values()) < min(
        guides
    )
    assert min(times[name, 100_000] for name in MINIBATCHES) > max(guides)
    growth = {
        name: times[name, 1_000_000] / times[name, 100_000]
        for name, budget in times
        if budget == 1_000_000
    }
    assert growth.pop("the book's sampler") > 1.5 and len(growth) == 5
    assert max(growth.values()) < 1.1 and min(growth.values()) > 0.9


def test_comparing_fits_do_not_come_nearer_and_samplers_do(cells):
    for name in {name for name, _ in cells}:
        early, late = (cells.get((name, budget)) for budget in (10_000, 1_000_000))
        if early and late and early["kind"] == "fits" and name != "multi-Pathfinder":
            assert late["tv_mean"] > 0.6 * early["tv_mean"]
        if early and late and early["kind"] == "samples" and name not in [*MINIBATCHES, "MALA"]:
            assert late["tv_mean"] < 0.5 * early["tv_mean"]


def test_comparing_converged_guides_are_farther_than_the_most_probable_network_and_than_before(
    cells,
):
    for name in ("SVI, mean-field", "SVI, low-rank", "SVI, full-rank", "SVI, flow"):
        assert (
            lower_end(np.subtract(cells[name, 1_000_000]["tv"], cells["MAP", 1_000_000]["tv"])) > 0
        )
        assert (
            lower_end(
                np.subtract(cells[name, 1_000_000]["tv"], cells["Laplace, full", 1_000_000]["tv"])
            )
            > 0
        )
    for name in ("SVI, mean-field", "SVI, low-rank"):
        assert lower_end(np.subtract(cells[name, 1_000_000]["tv"], cells[name, 10_000]["tv"])) > 0


def test_comparing_the_nearest_fit_is_multi_pathfinder_and_an_ensemble_that_stops_early_is_nearer(
    cells,
):
    fits = {
        name: row["tv_mean"]
        for (name, budget), row in cells.items()
        if budget == 100_000 and row["kind"] == "fits"
    }
    assert min(fits, key=fits.get) == "multi-Pathfinder"
    assert np.mean(cells["deep ensemble", 100_000]["tv"]) < min(fits.values())


def test_comparing_mala_with_a_fixed_step_gets_stuck_in_some_seeds_and_not_in_others(cells):
    late = cells["MALA", 1_000_000]["tv"]
    assert max(late) > 0.01 and min(late) < 0.002


def test_comparing_nearness_is_not_what_predicts_best(cells):
    reference = json.loads((RESULTS / "comparing_inference/ladder.json").read_text())["rows"][0]
    assert max(cells["MAP", 100_000]["nll"]) < reference["nll"] - 0.02
    assert max(cells["Laplace, last layer", 100_000]["nll"]) < reference["nll"] - 0.02


@pytest.fixture
def lost():
    """What a method loses against the converged sampler, by task; below zero it is better."""
    found = {
        row["name"]: row
        for row in json.loads((RESULTS / "comparing_inference/worth.json").read_text())["rows"]
    }
    assert found["reference"]["check"]["mixed"]

    def of(name, measure, place="near"):
        return np.subtract(found[name][place][measure], found["reference"][place][measure])

    return of


def test_worth_samplers_of_all_data_differ_by_nothing_that_matters(lost):
    for name in (
        "MCLMC",
        "MCLMC, adjusted",
        "MALA",
        "ChEES",
        "MEADS",
        "MILE",
        "NUTS, Stan",
        "NUTS, Fisher",
    ):
        for measure in ("nll", "joint"):
            assert abs(lost(name, measure).mean()) < 0.0015


def test_worth_one_network_is_ahead_on_labels_alone_and_behind_on_labels_together(lost):
    for measure in ("nll", "cost", "risk"):
        assert lower_end(-lost("MAP", measure)) > 0
    assert lower_end(lost("MAP", "joint")) > 0
    for name in ("deep ensemble", "ensemble of modes"):
        assert lower_end(lost(name, "joint")) > 0
    for name in ("Laplace, last layer", "Laplace, full"):  # mend that, or are open
        assert (
            lower_end(lost("MAP", "joint") - lost(name, "joint")) > 0
            and lower_end(lost(name, "joint")) < 0
        )
    assert (
        lower_end(-lost("Laplace, diagonal", "joint")) > 0
        and lower_end(lost("Laplace, diagonal", "nll")) > 0
    )
    for name in ("mean-field", "low-rank", "full-rank", "flow"):
        for measure in ("nll", "joint"):
            assert lower_end(lost(f"SVI, {name}", measure)) > 0


def test_worth_distance_tells_how_much_predictions_change_and_little_of_the_direction(lost, cells):
    names = [name for (name, budget) in cells if budget == 100_000 and name != "the book's sampler"]
    distance = [cells[name, 100_000]["tv_mean"] for name in names]
    losses = {
        measure: np.array([lost(name, measure).mean() for name in names])
        for measure in ("nll", "joint")
    }
    rank = {measure: stats.spearmanr(distance, values)[0] for measure, values in losses.items()}
    size = {
        measure: stats.spearmanr(distance, np.abs(values))[0] for measure, values in losses.items()
    }
    assert rank["nll"] < 0.4 < rank["joint"] < 0.75 and min(size.values()) > 0.75


@pytest.fixture
def cold():
    """Loss of a cell, by task, at a temperature under a prior; an error where chains have not
    mixed.
    """
    rows = json.loads((RESULTS / "comparing_inference/cold.json").read_text())["rows"]
    found = {row["name"]: row for row in rows}

    def of(temperature, prior, measure):
        row = found[f"T {temperature:g}, sd {prior}"]
        assert row["check"]["mixed"]
        return np.array(row["near"][measure])

    of.unmixed = {row["name"] for row in rows if not row["check"]["mixed"]}
    return of


def test_worth_cold_posteriors_gain_under_one_scale_and_not_under_one_a_layer(cold):
    for prior in ("1", "2", "3"):
        assert lower_end(cold(1, prior, "nll") - cold(0.2, prior, "nll")) > 0
    assert lower_end(cold(0.2, "1", "joint") - cold(1, "1", "joint")) > 0
    assert lower_end(cold(1, "2", "joint") - cold(0.2, "2", "joint")) > 0
    alone = cold(0.5, "chosen", "nll") - cold(1, "chosen", "nll")
    assert lower_end(alone) < 0 and lower_end(-alone) < 0 and abs(alone.mean()) < 0.005
    assert lower_end(cold(0.5, "chosen", "joint") - cold(1, "chosen", "joint")) > 0
    assert cold.unmixed == {"T 0.1, sd 3", "T 0.1, sd chosen", "T 0.2, sd chosen"}


def test_worth_a_better_prior_gains_more_than_a_method_or_a_temperature(cold, lost):
    for measure in ("nll", "joint"):
        gain = cold(1, "1", measure) - cold(1, "chosen", measure)
        assert lower_end(gain) > 0.05
        assert gain.mean() > 2 * max(
            -lost(name, measure).mean() for name in ("MAP", "SWAG", "Laplace, last layer")
        )
        assert gain.mean() > 2 * max(
            (cold(1, "1", measure) - cold(t, "1", measure)).mean() for t in (0.1, 0.2, 0.5)
        )
        for temperature in (0.1, 0.2, 0.5, 1, 2):
            for prior in ("0.5", "1", "2", "3"):
                if f"T {temperature:g}, sd {prior}" not in cold.unmixed:
                    gap = cold(temperature, prior, measure) - cold(1, "chosen", measure)
                    assert gap.mean() > 0 and (
                        lower_end(gap) > 0 or (measure, temperature, prior) == ("nll", 0.1, "2")
                    )


def test_worth_leaving_out_points_and_tasks_answer_two_questions():
    found = {
        row["model"]: row
        for row in json.loads((RESULTS / "comparing_inference/left_out.json").read_text())["rows"]
    }

    def of(model, name):
        return np.array(found[model][name])

    for model in found:
        for estimate, truth in (("points", "test_points"), ("tasks", "test_tasks")):
            gap = of(model, estimate) - of(model, truth)
            assert lower_end(gap) <= 0 and lower_end(-gap) <= 0
    for name in ("points", "test_points"):
        assert lower_end(of("hierarchical", name) - of("flat", name)) > 0
        assert lower_end(of("flat", name) - of("pooled", name)) > 0
    for name in ("tasks", "test_tasks"):
        gap = of("hierarchical", name) - of("flat", name)
        assert lower_end(gap) < 0 and lower_end(-gap) < 0  # open
    assert lower_end(of("flat", "test_tasks") - of("pooled", "test_tasks")) > 0
    assert of("hierarchical", "share_above").mean() < 0.02 and of("flat", "share_above").max() == 0
    weights = of("hierarchical", "tasks_by_weights") - of("hierarchical", "tasks")
    assert lower_end(weights) > 0.2 and (of("hierarchical", "k_hat_of_tasks") > 0.7).mean() > 0.9


def test_costs_of_processes():
    *found, model = json.loads((RESULTS / "scaling_out/costs.json").read_text())["rows"]
    efficiency = {(row["kind"], row["size"]): row["efficiency"] for row in found}
    lower = {
        (row["kind"], row["size"]): row["efficiency"] - row["efficiency_half"] for row in found
    }
    assert lower["chains", 1000] > 0.9 and 2 * lower["workers", 48] > 1.6
    # Two processes become 90 % efficient between 10,000 and 100,000 tasks each, as the fitted line
    # says.
    assert efficiency["tasks", 10_000] < 0.9 < efficiency["tasks", 100_000]
    assert (
        10_000
        < model["pays_from"] - model["pays_from_half"]
        < model["pays_from"] + model["pays_from_half"]
        < 100_000
    )
    of_tasks = [row for row in found if row["kind"] == "tasks" and row["size"] <= 10_000]
    added = [np.median(np.subtract(row["two"], row["one"])) for row in of_tasks]
    assert max(added) < 1.5 * min(added) and model["largest_misfit"] < 0.15
    for size in (1000, 10_000):
        assert efficiency["tasks, gathered", size] < lower["tasks", size]
    # Of a million groups on 64 hosts, sums would be more than half of the time.
    assert 20 < model["speed_up"] < 40 and 6 * model["c"] > model["all_hosts"] / 2


def test_memory_of_streamed_runs():
    found = json.loads((RESULTS / "scaling_out/memory.json").read_text())["rows"]
    own, most = (
        {(row["way"], row["rows"]): np.mean(row[name]) for row in found} for name in ("own", "most")
    )
    for way in ("SG-MCMC", "SVI"):
        of_way = [own[one] for one in own if one[0] == way]
        assert len(of_way) == 4 and max(of_way) - min(of_way) < 15
        assert max(most[one] - own[one] for one in own if one[0] == way) < 60
    assert own["in memory", 10_000_000] > own["SG-MCMC", 10_000_000] + 150
