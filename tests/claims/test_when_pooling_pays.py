"""Claims of the page ``when-pooling-pays``: tasks, labels, an alien, and costs. The rivals have a
file of their own.
"""

import numpy as np

from experiments.pages.what_the_gain_is_made_of import pooling
from tests.claims.reading import (
    THRESHOLD,
    arms,
    is_open,
    lower_end,
    rows,
    stored,
    within_bounds,
)
from tests.claims.said import says

PLAIN, CHOSEN, POOLED = "N(0, 1)", "scales chosen", "hierarchical, N+(0, 1)"
POOLED_WIDE, LEARNT = "hierarchical, N+(0, 5)", "scales learnt, N+(0, 5)"


def pool():
    """Rows by setting and arm; those of the base are arms of the gain."""
    found = [
        row for of in ("pooling", "pooling_ten") for row in stored(f"what_the_gain_is_made_of/{of}")
    ]
    found = {(row["more"]["setting"], row["more"]["arm"]): row for row in found}
    names = {PLAIN: "N(0, 1)", CHOSEN: "chosen over tasks", POOLED: "shared, N+(0, 1)"}
    return found | {("18, 50", arm): arms()[name] for arm, name in names.items()}


def settings():
    """The settings by tasks and labels, each of which has three arms."""
    return [setting for setting, arm in pool() if arm == POOLED and setting[0].isdigit()]


def gain(setting, over, arm=POOLED):
    """Gain of an arm over another at a setting, one value a data set."""
    found = pool()
    return np.subtract(*(np.array(found[setting, name]["nll"]) for name in (over, arm)))


def by_task(setting, arm):
    """NLL of every task, [data set, task]; at the base of the data sets of this result."""
    found = rows("what_the_gain_is_made_of/pooling")[f"{setting}, {arm}"]
    return np.array(found["more"]["task_nll"])


def apart(setting):
    """Number of data sets on which the hierarchical network's chains disagree."""
    return sum(not within_bounds(check) for check in pool()[setting, POOLED]["check"])


@says(
    "when-pooling-pays",
    """So **with five tasks it is better to choose three scales than to pool under $N_+(0, 1^2)$,
    and with fifty it is better to pool**; with two it is open.""",
    "Of the pooled fits to five tasks two of eight have mixed, of those to fifty two of three.",
)
def test_pooling_loses_to_chosen_scales_with_five_tasks_and_gains_with_fifty():
    assert lower_end(-gain("5, 50", CHOSEN)) > THRESHOLD
    assert lower_end(gain("50, 50", CHOSEN)) > THRESHOLD
    assert is_open(gain("2, 50", CHOSEN))
    for setting, count in (("5, 50", 2), ("50, 50", 2)):
        assert sum(check["mixed"] for check in pool()[setting, POOLED]["check"]) == count


@says(
    "when-pooling-pays",
    "With fifty tasks of 50 labels each chain alone is better than the chosen scales.",
)
def test_with_fifty_tasks_each_chain_alone_is_better_than_chosen_scales():
    found = pool()
    chains = np.array(found["50, 50", POOLED]["nll_by_chain"])
    assert (chains.max(axis=1) < found["50, 50", CHOSEN]["nll"]).all()


@says(
    "when-pooling-pays",
    "With two tasks the wider hyperprior gains {glue:text}`wide-2`.",
    "the wider one gains {glue:text}`searched-wide` over the narrow",
)
def test_a_wider_hyperprior_gains_with_few_tasks():
    assert lower_end(gain("2, 50", POOLED, POOLED_WIDE)) > 0
    assert lower_end(searched(POOLED) - searched(POOLED_WIDE)) > THRESHOLD


def searched(arm, tasks=5):
    """NLL by data set where scales are searched by all labels, and chains are longer."""
    found = rows("what_the_gain_is_made_of/pooling_searched")
    return np.array(found[f"{tasks}, 50, {arm}"]["nll"])


def searched_mixed(arm):
    """Whether the chains to five tasks have mixed, by data set."""
    found = rows("what_the_gain_is_made_of/pooling_searched")
    return np.array([check["mixed"] for check in found[f"5, 50, {arm}"]["check"]])


@says(
    "when-pooling-pays",
    """With fifty tasks the search ends at other scales and no lower an NLL: pooling gains
    {glue:text}`searched-50` over it""",
    """With five it is behind by {glue:text}`searched-5`, and all chains of both have mixed.""",
    """the chosen scales are still ahead of it by {glue:text}`searched-wide-5`""",
    """With five tasks a wider hyperprior closes part of the loss, and leaves
    {glue:text}`searched-wide-5`.""",
)
@says(
    "hierarchical-bnn",
    "With five tasks sharing was behind chosen scales, under a wider hyperprior, too.",
)
def test_searched_by_all_labels_scales_win_with_five_tasks_and_lose_with_fifty():
    assert searched_mixed(POOLED).all() and searched_mixed(CHOSEN).all()
    assert lower_end(searched(POOLED) - searched(CHOSEN)) > THRESHOLD
    over_wide = searched(POOLED_WIDE) - searched(CHOSEN)
    assert lower_end(over_wide) > THRESHOLD / 2
    assert lower_end(over_wide[searched_mixed(POOLED_WIDE)]) > 0
    fifty = searched(CHOSEN, 50)
    assert lower_end(fifty - pool()["50, 50", POOLED]["nll"]) > THRESHOLD
    assert np.mean(fifty) > np.mean(pool()["50, 50", CHOSEN]["nll"]) - THRESHOLD / 2


@says("when-pooling-pays", "that sharing does clear harm is not shown.")
def test_that_sharing_weights_does_harm_is_not_shown():
    assert lower_end(-gain("2, 50", LEARNT, POOLED_WIDE)) < THRESHOLD / 2
    assert lower_end(searched(POOLED_WIDE) - searched(LEARNT)) < THRESHOLD / 2


@says(
    "when-pooling-pays",
    "pooling gains over N(0, 1) nearly everywhere",
    "Pooling then gains {glue:text}`over-plain-2-5` over N(0, 1), which is open",
    "Over N(0, 1) pooling gains, most with many tasks of 50 labels.",
    "little with five labels in all tasks",
)
@says(
    "which-method",
    "With five rows in every group pooled networks gained little over N(0, 1)",
)
def test_pooling_gains_over_the_standard_normal_prior_nearly_everywhere():
    gains = {setting: gain(setting, PLAIN) for setting in settings()}
    # an end is known to some 0.001 by Monte Carlo error
    ends = {setting: lower_end(of_sets) for setting, of_sets in gains.items()}
    assert max(ends.pop("18, 15"), ends.pop("2, 5")) < 0.001 and min(ends.values()) > -0.003
    assert max(gains, key=lambda setting: gains[setting].mean()) == "50, 50"
    assert max(gains[f"{tasks}, 5"].mean() for tasks in (2, 18, 50)) < 0.03


@says(
    "when-pooling-pays",
    """Over the chosen scales it is {glue:text}`over-chosen-18-5`, {glue:text}`over-chosen-18-15`,
    {glue:text}`over-chosen-18-50` and {glue:text}`over-chosen-18-200`. None is shown""",
    "Over the chosen scales {glue:text}`over-chosen-50-200` is open",
    "For two or fifty tasks of few or many labels, points near zero with intervals",
)
def test_with_few_or_many_labels_the_gain_over_chosen_scales_is_open():
    for setting in ("18, 5", "18, 15", "18, 50", "18, 200", "50, 5", "2, 200", "50, 200"):
        gains = gain(setting, CHOSEN)
        assert max(lower_end(gains), lower_end(-gains)) < THRESHOLD / 2, setting


@says(
    "when-pooling-pays",
    "the chains disagree, all of them with fifty tasks or with 200 labels",
    "and on two of the three data sets its chains disagree.",
)
def test_chains_disagree_with_fifty_tasks_or_two_hundred_labels_alone():
    disagree = {setting for setting in settings() if apart(setting)}
    assert disagree == {"50, 10", "50, 50", "18, 200", "50, 200"}
    assert apart("50, 200") == 2 and len(pool()["50, 200", POOLED]["check"]) == 3


@says(
    "when-pooling-pays",
    """Two tasks of five labels leave the folds ten labels to choose by; what they choose scores
    {glue:text}`few-chosen`, where N(0, 1) has {glue:text}`few-plain`.""",
    "and {glue:text}`over-chosen-2-5` over the chosen scales, because the folds choose badly.",
)
@says("which-method", "With two groups of five rows folds chose badly, and D was ahead.")
def test_ten_labels_are_too_few_to_choose_scales_by():
    assert lower_end(gain("2, 5", CHOSEN)) > THRESHOLD
    assert lower_end(gain("2, 5", CHOSEN, PLAIN)) > THRESHOLD


@says(
    "when-pooling-pays",
    """With 10 labels it loses, {glue:text}`over-chosen-18-10` on eight data sets; no R-hat of these
    fits is beyond its bound""",
    "So with ten labels a task, as with 50, more tasks turn a loss into a gain.",
    """It gains with fifty tasks of ten labels or 50, and where ten labels in all are too few to
    choose by.""",
)
@says(
    "which-method",
    "with ten rows in each of fifty they were ahead of it and of chosen scales",
)
@says(
    "your-table",
    """- *fifty groups of ten rows, or of fifty*: shared weights; with ten rows they gained where
    chains had mixed, too.""",
)
def test_with_ten_labels_a_task_the_number_of_tasks_decides():
    assert lower_end(-gain("18, 10", CHOSEN)) > THRESHOLD and apart("18, 10") == 0
    fifty = gain("50, 10", CHOSEN)
    mixed = [check["mixed"] for check in pool()["50, 10", POOLED]["check"]]
    assert lower_end(fifty) > THRESHOLD < lower_end(fifty[mixed]) and sum(mixed) == 4
    assert lower_end(gain("50, 10", PLAIN)) > THRESHOLD


@says("when-pooling-pays", "at fifty tasks of 50 labels none does.")
def test_with_fifty_tasks_of_fifty_labels_no_chosen_scale_lies_at_an_end():
    grid, many = np.array(pooling.TRIPLES), np.array(pool()["50, 50", CHOSEN]["more"]["scales"])
    assert (many[:, 0] < grid[:, 0].max()).all()
    assert (many[:, 2] > grid[:, 2].min()).all() and (many[:, 2] < grid[:, 2].max()).all()


@says(
    "when-pooling-pays", "No cost to the others is seen: their change is {glue:text}`alien-others`"
)
def test_an_alien_is_not_seen_to_cost_the_others():
    change = (by_task("alien", POOLED) - by_task("18, 50", POOLED))[:, :-1].mean(axis=1)
    assert abs(change.mean()) < THRESHOLD and lower_end(change) < 0


@says(
    "when-pooling-pays",
    """has an NLL that differs by {glue:text}`alien-plain` from that of N(0, 1) on its own;
    negative is better, and so it is on every data set.""",
)
def test_an_alien_gains_from_the_prior_of_the_others():
    assert ((by_task("alien", PLAIN) - by_task("alien", POOLED))[:, -1] > 0).all()


def price(row):
    """Gradients of a run, and the effective draws for each."""
    gradients = np.mean(row["gradients_warmup"]) + np.mean(row["gradients_sampling"])
    return gradients, row["ess_predictions_p5"] / gradients


@says(
    "when-pooling-pays",
    """Both find the mode of the output layer. The study's settings take {glue:text}`cost-times`
    times the gradients of ours""",
    """For a gradient, ours give {glue:text}`cost-per-gradient` times the effective draws of the
    predictions""",
)
def test_the_studys_settings_cost_more_and_give_less_for_a_gradient():
    theirs, ours = stored("what_the_gain_is_made_of/settings_cost")
    assert max(theirs["rhat_log_sd_max"], ours["rhat_log_sd_max"]) < 1.05
    assert price(theirs)[0] > 4 * price(ours)[0] and price(ours)[1] > 2 * price(theirs)[1]
