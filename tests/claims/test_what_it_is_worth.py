"""Claims of the page ``what-it-is-worth``."""

import numpy as np
from scipy import stats

from tests.claims.reading import is_open, lower_end, rows, stored, upper_end
from tests.claims.said import says

SAMPLERS = ["MCLMC", "MCLMC, adjusted", "MALA", "ChEES", "MEADS", "MILE"]
SAMPLERS += ["NUTS, Stan", "NUTS, Fisher", "tempered SMC"]


def lost(name, measure):
    """What a method loses near the data against the converged sampler, by task; below zero it is
    better.
    """
    found = rows("comparing_inference/worth")
    return np.subtract(found[name]["near"][measure], found["reference"]["near"][measure])


def cold_row(temperature, prior):
    """The cell of a temperature under a prior."""
    return rows("comparing_inference/cold")[f"T {temperature:g}, sd {prior}"]


def cold(temperature, prior, measure):
    """Loss of a cell, whose chains have mixed, by task."""
    row = cold_row(temperature, prior)
    assert row["check"]["mixed"]
    return np.array(row["near"][measure])


def left_out(model, name):
    """A score of labels left out, or of fresh ones, by data set."""
    return np.array(rows("comparing_inference/left_out", "model")[model][name])


def between(one, other, name):
    """A score of one model less another's, by data set."""
    return left_out(one, name) - left_out(other, name)


@says(
    "what-it-is-worth",
    "four {term}`chains <chain>` of 2000 draws, which have mixed.",
    """no one that sees all data differs from the reference by more than {glue:text}`samplers-most`
    nats a label.""",
)
def test_samplers_of_all_data_differ_by_nothing_that_matters():
    assert rows("comparing_inference/worth")["reference"]["check"]["mixed"]
    for name in SAMPLERS:
        assert max(abs(lost(name, measure).mean()) for measure in ("nll", "joint")) < 0.002, name


@says(
    "what-it-is-worth",
    """On labels alone the {term}`MAP`, one network, is ahead of the posterior that it
    approximates, by {glue:text}`map-alone`. On labels together it is behind, by
    {glue:text}`map-together`""",
    """in both the MAP is ahead of the posterior, by {glue:text}`map-risk` % and
    {glue:text}`map-cost`, as it is on labels alone.""",
)
@says(
    "which-method",
    """The {term}`MAP` and Laplace's last layer are ahead on labels alone, likely since N(0, 1)
    is too cautious; the MAP is behind on labels together.""",
)
def test_one_network_is_ahead_on_labels_alone_and_behind_on_labels_together():
    for measure in ("nll", "cost", "risk"):
        assert upper_end(lost("MAP", measure)) < 0
    assert lower_end(lost("MAP", "joint")) > 0
    assert upper_end(lost("Laplace, last layer", "nll")) < 0


@says(
    "what-it-is-worth",
    """keeps some or all of the first and mends the second: {glue:text}`last-together` and
    {glue:text}`full-together`.""",
)
def test_laplaces_method_round_the_network_mends_labels_together():
    for name in ("Laplace, last layer", "Laplace, full"):
        assert lower_end(lost("MAP", "joint") - lost(name, "joint")) > 0
        assert lower_end(lost(name, "joint")) < 0 and upper_end(lost(name, "nll")) < 0


@says(
    "what-it-is-worth",
    """Laplace's method with a diagonal matrix is the odd one out: ahead on labels together, by
    {glue:text}`diagonal-together`, and behind on labels alone, by {glue:text}`diagonal-alone`.""",
)
def test_laplaces_method_with_a_diagonal_is_the_odd_one_out():
    assert (
        upper_end(lost("Laplace, diagonal", "joint"))
        < 0
        < lower_end(lost("Laplace, diagonal", "nll"))
    )


@says(
    "what-it-is-worth",
    """The variational guides lose on both, the mean-field one {glue:text}`field-alone` and
    {glue:text}`field-together`.""",
)
@says("which-method", "The mean-field guide is behind on both.")
def test_variational_guides_lose_on_both():
    for name in ("mean-field", "low-rank", "full-rank", "flow"):
        assert all(lower_end(lost(f"SVI, {name}", measure)) > 0 for measure in ("nll", "joint"))


@says(
    "what-it-is-worth",
    """So distance tells how much predictions change, and less of the direction; on labels
    together a farther method is worse more often than not.""",
)
def test_distance_tells_how_much_predictions_change_and_less_of_the_direction():
    ladder = {
        row["name"]: row
        for row in stored("comparing_inference/ladder")[1:]
        if row["budget"] == 100_000 and not row["empty"]
    }
    other = ("the book's sampler", "deep ensemble", "ensemble of modes", "MC dropout")
    names = [name for name in ladder if name not in other]
    distance = [ladder[name]["tv_mean"] for name in names]
    rank, size = {}, {}
    for measure in ("nll", "joint"):
        losses = np.array([lost(name, measure).mean() for name in names])
        rank[measure] = stats.spearmanr(distance, losses).statistic
        size[measure] = stats.spearmanr(distance, np.abs(losses)).statistic
    assert rank["nll"] < 0.5 < rank["joint"] < 0.7 and min(size.values()) > 0.75


@says(
    "what-it-is-worth",
    """Under N(0, 1) the posterior at $T = 0.2$ is ahead of that at $T = 1$ by
    {glue:text}`cold-1-alone`, under a standard deviation of 2 by {glue:text}`cold-2-alone`, of
    3 by {glue:text}`cold-3-alone`. So the effect is there, and no matter of samplers: all these
    chains have mixed.""",
)
def test_cold_posteriors_gain_on_labels_alone_under_one_scale():
    for prior in ("1", "2", "3"):
        assert lower_end(cold(1, prior, "nll") - cold(0.2, prior, "nll")) > 0


@says(
    "what-it-is-worth",
    """Under N(0, 1) the same posterior is behind, by {glue:text}`cold-1-behind`; under a standard
    deviation of 2 it is ahead, by {glue:text}`cold-2-together`.""",
)
def test_cold_posteriors_lose_on_labels_together_under_the_standard_normal_prior():
    assert lower_end(cold(0.2, "1", "joint") - cold(1, "1", "joint")) > 0
    assert lower_end(cold(1, "2", "joint") - cold(0.2, "2", "joint")) > 0


@says(
    "what-it-is-worth",
    """There $T = 0.5$ differs from $T = 1$ by {glue:text}`cold-chosen-alone` on labels alone, and
    is behind by {glue:text}`cold-chosen-together` together; colder still, chains have not
    mixed, and nothing is compared.""",
)
def test_under_one_scale_a_layer_a_colder_posterior_gains_nothing():
    alone = cold(0.5, "chosen", "nll") - cold(1, "chosen", "nll")
    assert is_open(alone) and abs(alone.mean()) < 0.005
    assert lower_end(cold(0.5, "chosen", "joint") - cold(1, "chosen", "joint")) > 0
    assert not any(cold_row(temperature, "chosen")["check"]["mixed"] for temperature in (0.1, 0.2))


@says(
    "what-it-is-worth",
    """Bayes' rule is ahead of itself under N(0, 1) by {glue:text}`prior-alone` and
    {glue:text}`prior-together`.""",
)
@says(
    "which-method", "A prior with a standard deviation for each layer gains more than any of these"
)
def test_a_better_prior_gains_more_than_a_method_or_a_temperature():
    methods = ("MAP", "SWAG", "Laplace, last layer")
    for measure in ("nll", "joint"):
        gain = cold(1, "1", measure) - cold(1, "chosen", measure)
        assert lower_end(gain) > 0.05
        assert gain.mean() > 2 * max(-lost(name, measure).mean() for name in methods)
        colder = [cold(1, "1", measure) - cold(t, "1", measure) for t in (0.1, 0.2, 0.5)]
        assert gain.mean() > 2 * max(of.mean() for of in colder)


@says(
    "what-it-is-worth",
    """The best cell under one standard deviation, picked with hindsight for each measure, is
    behind Bayes' rule under the chosen ones by {glue:text}`best-together` on labels together;
    on labels alone {glue:text}`best-alone` is open.""",
    "Under one a layer they do not, and all do better there.",
)
def test_no_temperature_under_one_scale_comes_up_to_the_chosen_prior():
    found = rows("comparing_inference/cold")
    single = [name for name, row in found.items() if row["check"]["mixed"] and "chosen" not in name]
    for measure in ("nll", "joint"):
        rule = cold(1, "chosen", measure)
        behind = {name: found[name]["near"][measure] - rule for name in single}
        best = min(behind, key=lambda name: behind[name].mean())
        assert behind[best].mean() > 0 and (lower_end(behind[best]) > 0) == (measure == "joint")
        assert all(lower_end(of) > 0 for name, of in behind.items() if name != best)


@says(
    "what-it-is-worth",
    "*By point* all three estimates are right within their intervals.",
    """So both kinds of leaving out get the level of their own question right, and the answers
    differ""",
)
def test_both_ways_of_leaving_out_get_the_level_right():
    for model in rows("comparing_inference/left_out", "model"):
        for name in ("points", "tasks"):
            gap = left_out(model, name) - left_out(model, f"test_{name}")
            assert lower_end(gap) <= 0 <= upper_end(gap), (model, name)


@says(
    "what-it-is-worth",
    """The hierarchical network is ahead of the flat ones by {glue:text}`left-points` as estimated
    and by {glue:text}`left-test-points` in truth""",
    "and by point the order of the models, too.",
)
def test_by_point_the_order_of_the_models_is_right():
    for name in ("points", "test_points"):
        assert lower_end(between("hierarchical", "flat", name)) > 0
        assert lower_end(between("flat", "pooled", name)) > 0


@says(
    "what-it-is-worth",
    """k-hat is above 0.7 at {glue:text}`left-share` % of its labels, and at none of the
    others'.""",
)
def test_k_hat_is_above_its_limit_at_few_labels():
    share = {name: left_out(name, "share_above") for name in ("hierarchical", "flat", "pooled")}
    assert share["hierarchical"].mean() < 0.02 and share["flat"].max() == share["pooled"].max() == 0


@says(
    "what-it-is-worth",
    """is {glue:text}`left-tasks` as estimated and {glue:text}`left-test-tasks` in truth: nothing
    is shown.""",
    "The pooled network is worse than the coin: {glue:text}`pooled-test-tasks` in truth.",
)
def test_by_task_nothing_is_shown_but_that_the_pooled_network_is_worse_than_a_coin():
    for name in ("tasks", "test_tasks"):
        assert is_open(between("hierarchical", "flat", name))
    assert lower_end(between("flat", "pooled", "test_tasks")) > 0


@says(
    "what-it-is-worth",
    "Importance weights say of a new task nearly what the fit says of its own",
    "k-hat gives warning.",
)
def test_importance_weights_cannot_leave_out_a_task():
    weights = left_out("hierarchical", "tasks_by_weights") - left_out("hierarchical", "tasks")
    assert (
        lower_end(weights) > 0.2 and (left_out("hierarchical", "k_hat_of_tasks") > 0.7).mean() > 0.9
    )
