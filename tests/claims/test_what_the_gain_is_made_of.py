"""Claims of the page ``what-the-gain-is-made-of``."""

from helpers import metrics

import numpy as np

from experiments.engine import headlines
from tests.claims.centres import saved
from tests.claims.reading import THRESHOLD, arms, is_open, lower_end, rows, stored, upper_end
from tests.claims.said import says

NARROW, WIDE, CAUCHY = "HalfNormal(1)", "HalfNormal(5)", "HalfCauchy(1)"
FULL = f"every layer, means' scale 1, {NARROW}"  # the sources' model
PLAIN, CHOSEN = "N(0, 1)", "chosen over tasks"
ALONE = "{} layer alone, means' scale {}, {}".format
LEARNT = "every layer, means' scale learnt, {}".format


def less(one, other):
    """NLL of one arm of the attribution less another's, on the data sets of both."""
    found = rows("what_the_gain_is_made_of/attribution")
    found |= {CHOSEN: {"nll": headlines.nll_on_redraws(CHOSEN)[0]}}
    pair = [np.array(found[name]["nll"]) for name in (one, other)]
    count = min(map(len, pair))
    return pair[0][:count] - pair[1][:count]


def num_mixed(name):
    """Number of fits of an arm of the attribution that have mixed."""
    row = rows("what_the_gain_is_made_of/attribution")[name]
    return sum(check["mixed"] for check in row["check"])


@says(
    "what-the-gain-is-made-of",
    """The scales that are chosen on the training points of all tasks gain
    {glue:text}`gain-chosen`, the sources' model {glue:text}`gain-one-narrow`: these data sets
    do not tell the two apart""",
)
def test_chosen_scales_and_the_sources_model_gain_alike_over_the_standard_normal_prior():
    assert lower_end(less(PLAIN, CHOSEN)) > THRESHOLD and lower_end(less(PLAIN, FULL)) > THRESHOLD
    assert is_open(less(CHOSEN, FULL))


@says("what-the-gain-is-made-of", "and under the wider hyperpriors no fit has mixed.")
def test_without_means_no_fit_under_the_wider_hyperpriors_has_mixed():
    assert not any(num_mixed(f"every layer, means 0, {prior}") for prior in (WIDE, CAUCHY))


@says(
    "what-the-gain-is-made-of",
    """*A wider hyperprior* by itself changes the sources' model by {glue:text}`less-one-wide` and
    {glue:text}`less-one-cauchy`: no difference that counts is shown.""",
)
def test_a_wider_hyperprior_by_itself_shows_no_difference_that_counts():
    for prior in (WIDE, CAUCHY):
        change = less(f"every layer, means' scale 1, {prior}", FULL)
        assert max(lower_end(change), lower_end(-change)) < THRESHOLD


@says(
    "what-the-gain-is-made-of",
    "({glue:text}`mixed-learnt-narrow` of {glue:text}`num-sets` fits mixed)",
    "The last interval lies beyond the threshold.",
)
def test_a_scale_for_the_means_gains_over_chosen_scales_under_the_wider_hyperprior():
    assert num_mixed(LEARNT(NARROW)) == 0
    assert lower_end(less(CHOSEN, LEARNT(WIDE))) > THRESHOLD


@says(
    "what-the-gain-is-made-of",
    "One triple for all tasks is better than N(0, 1), and better than a triple for each task",
)
def test_one_triple_for_all_tasks_is_better_than_a_triple_for_each():
    for worse, by in ((PLAIN, 0.06), ("chosen per task", 0.01)):
        saved = np.subtract(*(arms()[name]["nll"][:12] for name in (worse, CHOSEN)))
        assert lower_end(saved) > by


@says(
    "what-the-gain-is-made-of",
    """averaged over scales its NLL falls by {glue:text}`mixture-saves` (all data sets), and the
    triple chosen over tasks is ahead by {glue:text}`mixture-costs` only.""",
)
def test_an_average_over_scales_is_better_than_a_choice_by_fifty_labels():
    saved = headlines.paired_differences("chosen per task", "mixture per task", unmixed=True)
    costs = headlines.paired_differences("mixture per task", CHOSEN)
    assert lower_end(saved) > 0 and lower_end(costs) > 0 and costs.mean() < saved.mean()


@says(
    "what-the-gain-is-made-of",
    "So **sharing weights does add something to well-chosen scales**",
    """The interval lies above 0, but not above the threshold: that the gain is large enough to
    count is not shown.""",
    "a gain, not shown to exceed the threshold.",
)
def test_sharing_weights_adds_a_gain_that_is_not_shown_to_exceed_the_threshold():
    for unmixed in (False, True):
        mean, half = metrics.interval(headlines.paired_differences(unmixed=unmixed))
        assert 0 < mean - half < THRESHOLD < mean + half < 0.02


@says(
    "what-the-gain-is-made-of",
    "Twelve data sets did not tell the difference from 0; all together do.",
    """The interval of the first twelve holds zero; those of the new ones and of all lie to its
    right""",
)
def test_twelve_data_sets_leave_the_gain_of_sharing_open_and_the_later_ones_show_it():
    every = headlines.paired_differences(unmixed=True)
    assert is_open(every[:12]) and lower_end(every[12:]) > 0 and lower_end(every) > 0


@says(
    "what-the-gain-is-made-of",
    """Under the sources' prior the input layer alone is behind the output layer alone by
    {glue:text}`input-less-output-one`.""",
    "With learnt scales of the means that is gone",
    "With learnt scales for the common weights it no longer is.",
)
def test_with_learnt_scales_the_input_layer_alone_is_no_longer_behind():
    def gap(means, prior):
        return less(*(ALONE(layer, means, prior) for layer in ("input", "output")))

    assert lower_end(gap("1", NARROW)) > THRESHOLD
    for prior in (NARROW, WIDE):
        assert lower_end(gap("1", NARROW) - gap("learnt", prior)) > THRESHOLD


@says(
    "what-the-gain-is-made-of",
    "Which of the two is ahead depends on the data set, and none is shown on the whole.",
)
def test_with_learnt_scales_neither_input_nor_output_layer_is_shown_to_be_ahead():
    for prior in (NARROW, WIDE):
        gap = less(*(ALONE(layer, "learnt", prior) for layer in ("input", "output")))
        assert is_open(gap) and min(gap) < 0 < max(gap)


@says("what-the-gain-is-made-of", "by fits of which the verdict passes {glue:text}`layers-mixed`.")
def test_most_fits_with_one_layer_alone_have_mixed():
    mixed = [
        num_mixed(ALONE(layer, "learnt", prior))
        for layer in ("input", "output")
        for prior in (NARROW, WIDE)
    ]
    assert 24 / 2 < sum(mixed) < 24


@says("what-the-gain-is-made-of", "Less the sources' model, both are below 0 under $N_+(0, 5^2)$")
def test_under_the_wider_hyperprior_either_layer_alone_is_better_than_the_sources_model():
    for layer in ("input", "output"):
        assert upper_end(less(ALONE(layer, "learnt", WIDE), FULL)) < 0


@says(
    "what-the-gain-is-made-of",
    """Over the chosen scales the input layer alone gains {glue:text}`input-over-chosen` there, and
    {glue:text}`input-over-chosen-narrow` under $N_+(0, 1)$, an interval ending near
    the threshold.""",
)
def test_the_input_layer_alone_gains_more_than_the_threshold_under_the_wider_hyperprior_alone():
    assert lower_end(less(CHOSEN, ALONE("input", "learnt", WIDE))) > THRESHOLD
    # so near to the threshold that its Monte Carlo error, some 0.0003, decides
    assert 0 < lower_end(less(CHOSEN, ALONE("input", "learnt", NARROW))) < THRESHOLD + 0.0015


@says(
    "what-the-gain-is-made-of",
    """Under a wider {term}`hyperprior` it gains {glue:text}`later-over-chosen` over the chosen
    scales and {glue:text}`later-over-shared` over the sources' model, on data sets that had no part
    in picking it.""",
    """With a learnt scale for the common weights of each layer, sharing is worth more:
    {glue:text}`later-over-chosen` over the chosen scales""",
)
def test_on_other_data_sets_it_gains_more_than_the_threshold_over_both():
    for unmixed in (False, True):
        over_chosen = headlines.less_input_layer(unmixed=unmixed)
        over_shared = headlines.less_input_layer("shared, N+(0, 1)", unmixed)
        assert lower_end(over_chosen) > THRESHOLD and lower_end(over_shared) > THRESHOLD
        # more than what the hierarchical network gains over the same scales
        assert lower_end(over_chosen) > upper_end(headlines.paired_differences(unmixed=unmixed))


def places(name="log_evidence"):
    """Log evidence by the layer that differs most, by hyperprior and data set."""
    return {
        (row["hyperprior"], row["redraw"]): row[name]
        for row in stored("what_the_gain_is_made_of/masses_of_turns")
    }


@says(
    "what-the-gain-is-made-of",
    """The hidden layer's place is behind the better of the others by
    {glue:text}`hidden-behind-mass` or more everywhere.""",
)
def test_the_hidden_layers_place_is_far_behind():
    for one in places().values():
        level = np.array(one)[:, -1]
        assert max(level[0], level[2]) - level[1] > 5


@says(
    "what-the-gain-is-made-of",
    """the runs' ranges are apart in {glue:text}`ahead-told` of the six rows""",
    "So three runs do not tell which of the two holds more",
    "Which layer a posterior prefers, three runs do not tell.",
)
def test_the_runs_ranges_of_input_and_output_layers_place_are_apart_in_one_of_six_rows():
    apart = [max(of[0]) < min(of[2]) or max(of[2]) < min(of[0]) for of in places("by_run").values()]
    assert (sum(apart), len(apart)) == (1, 6)  # by chance alone one or more about half the time


@says("what-the-gain-is-made-of", "and knowing them would save more than this")
def test_knowing_centre_and_scale_would_save_more_than_sharing():
    assert lower_end(saved("chosen", "exact")) > upper_end(headlines.paired_differences())
