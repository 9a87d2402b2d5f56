"""Claims of the page ``new-tasks`` of the ceiling, of the rivals and of calibration."""

import numpy as np

from tests.claims.new_tasks import (
    BY_LABELS,
    DRAWS,
    MAML,
    ONE_NORMAL,
    PLAIN,
    arms,
    gain,
    nll,
    scores,
)
from tests.claims.reading import THRESHOLD, is_open, lower_end, stored, upper_end
from tests.claims.said import says

FIVE, TEN, QUARTER, FIFTY = 2, 3, 4, 5  # places among 0, 2, 5, 10, 25 and 50 labels
KNOWN = "known shape, unknown angle"
HEADS = "{} shared features, {}"
TRAINED, FEW_FEATURES = HEADS.format(32, "trained heads"), HEADS.format(5, "trained heads")
CHAINS, LAPLACE = HEADS.format(32, "heads by MCMC"), HEADS.format(32, "heads by Laplace")
PROCESS = "odd Gaussian process"


def few(name, size):
    """NLL of an arm that the other tables lack, by redraw."""
    found = {(row["name"], row["size"]): row for row in stored("informative_priors/few_labels")}
    return np.array(found[name, size]["scores"]["nll"])


def every():
    """Names of the arms that have all numbers of labels of new tasks."""
    found = arms()
    sizes = found["moons", PLAIN]["sizes"]
    return [
        name for (kind, name), row in found.items() if kind == "moons" and row["sizes"] == sizes
    ]


@says(
    "new-tasks",
    "With 5 labels every method is far from the ceiling (lowest line).",
    """The line of known shape and unknown angle lies far below all others in NLL and
    is at the dashed line from 25 labels on.""",
)
def test_the_ceiling_is_far_ahead_and_near_the_optimum_from_25_labels_on():
    for name in (name for name in every() if KNOWN not in name):
        assert (gain(name, KNOWN)[:, 1:] < 0).all(), name
        share = (gain(name) / gain(KNOWN))[:, FIVE]
        assert (share < 0.75).all() and share.mean() < 0.55, name
    beyond = nll(KNOWN)[:, [QUARTER, FIFTY]] - nll("Bayes optimum")[:, :1]
    assert (beyond < [0.01, 0.005]).all()


@says(
    "new-tasks",
    """With 5 labels, labels alone could close {glue:text}`share-labels-5` %; the draws close
    {glue:text}`share-draws-5` % and one normal {glue:text}`share-normal-5` %.""",
)
def test_labels_alone_could_close_more_than_the_learnt_priors_do():
    labels, draws, normal = (
        (gain(name) / gain(KNOWN))[:, FIVE]
        for name in (f"{KNOWN}, labels alone", DRAWS, ONE_NORMAL)
    )
    assert lower_end(labels) > 0.5
    assert lower_end(labels - draws) > 0 and lower_end(labels - normal) > 0


@says(
    "new-tasks",
    """With 5 labels trained heads on 32 features are beyond one normal by
    {glue:text}`rival-features-normal-5`; beyond the draws it is
    {glue:text}`rival-features-draws-5`, which is open.""",
    "A network with two hidden layers of 5 or 32 units",
)
def test_trained_heads_on_32_features_are_beyond_one_normal_with_five_labels():
    assert lower_end(gain(TRAINED, ONE_NORMAL)[:, FIVE]) > 0
    assert is_open(gain(TRAINED, DRAWS)[:, FIVE])


@says(
    "new-tasks",
    """On 5 features, as many as the networks of this page have, they are beyond one normal by
    {glue:text}`rival-few-features-normal-5`, which is open, too.""",
)
def test_trained_heads_on_5_features_are_not_shown_to_be_beyond_one_normal():
    assert is_open(gain(FEW_FEATURES, ONE_NORMAL)[:, FIVE])


@says(
    "new-tasks",
    """By the NLL of labels left out, the training tasks choose trained heads on 32 features
    for 5 labels, too, in {glue:text}`chosen-rival` of the five redraws.""",
)
def test_the_training_tasks_choose_trained_heads_on_32_features_too():
    rivals = [row for row in arms().values() if "least_left_out" in row]
    left_out = {row["name"]: np.array(row["least_left_out"])[:, FIVE - 1] for row in rivals}
    assert len(left_out) == 6
    assert all((left_out[TRAINED] <= of).all() for of in left_out.values())


@says(
    "new-tasks",
    """With 50 labels 32 features are beyond 5 by {glue:text}`rival-features-few-50`. They are
    beyond chosen scales by {glue:text}`rival-features-scales-50`, an interval ending near 0.""",
)
def test_with_fifty_labels_32_features_are_beyond_5_and_not_shown_to_be_beyond_chosen_scales():
    assert lower_end(gain(TRAINED, FEW_FEATURES)[:, FIFTY]) > 0
    beyond = gain(TRAINED, BY_LABELS)[:, FIFTY]
    assert lower_end(beyond) < THRESHOLD / 2 and abs(beyond.mean()) < 0.015


@says(
    "new-tasks",
    "With 5 labels trained heads are beyond the chains by {glue:text}`rival-trained-chains-5`",
    "Chains are beyond {term}`Laplace's approximation` by {glue:text}`rival-chains-laplace-5`.",
)
def test_trained_heads_are_beyond_chains_and_chains_beyond_laplaces_approximation():
    assert lower_end(gain(TRAINED, CHAINS)[:, FIVE]) > 0
    assert lower_end(gain(CHAINS, LAPLACE)[:, FIVE]) > 0


@says(
    "new-tasks",
    """it closes {glue:text}`share-process-5` % with 5 labels, where one normal is beyond it by
    {glue:text}`rival-normal-process-5`""",
)
def test_one_normal_is_beyond_the_odd_gaussian_process_with_five_labels():
    assert lower_end(gain(ONE_NORMAL, PROCESS)[:, FIVE]) > 0 and gain(PROCESS)[:, FIVE].mean() > 0


def beyond_draws(name):
    """Calibration error with five labels less that of the draws, [redraw]."""
    return np.subtract(*(scores(one, "calibration_error")[:, FIVE] for one in (name, DRAWS)))


@says(
    "new-tasks",
    """MAML's less theirs is {glue:text}`calibration-less-maml` and fine-tuning's
    {glue:text}`calibration-less-tuned`: five redraws do not tell these apart.""",
)
def test_calibration_errors_of_points_of_all_weights_are_not_told_from_that_of_the_draws():
    for name in (MAML, "fine-tuning"):
        assert is_open(beyond_draws(name)), name


@says(
    "new-tasks",
    """Smaller is that of the mixture, by {glue:text}`calibration-less-mixture`, and of
    trained heads on 5 features, {glue:text}`calibration-less-few-features`. On 32 features it is
    smaller by {glue:text}`calibration-less-features`, and the interval ends near 0. Larger is that
    of Laplace's heads, {glue:text}`calibration-less-laplace`.""",
    """have a calibration error of {glue:text}`calibration-draws`, the ceiling
    {glue:text}`calibration-ceiling`.""",
)
def test_calibration_errors_that_are_told_from_that_of_the_draws():
    for name in ("mixture", FEW_FEATURES, TRAINED, KNOWN):
        # of trained heads on 32 features the end is below 0 by less than its Monte Carlo error
        assert upper_end(beyond_draws(name)) < (0.008 if name == TRAINED else 0.002), name
    assert lower_end(beyond_draws(LAPLACE)) > 0


@says(
    "new-tasks",
    """The small end of the grid is taken there; a search that may go on beyond it gains
    {glue:text}`searched-beyond` more with 5 labels, which is open""",
)
def test_scales_beyond_the_grid_gain_nothing_that_is_shown():
    assert is_open(nll(BY_LABELS)[:, FIVE] - few("scales searched for five labels", 5))


@says(
    "new-tasks",
    """gains {glue:text}`line-gain-5` with 5 labels. It is beyond the scales by
    {glue:text}`line-beyond-5`, which is open. With 10 it is beyond them by
    {glue:text}`line-beyond-10`, with 25 it is {glue:text}`line-behind-25` behind. With 5 labels one
    normal, which knows the bend, is beyond the line by {glue:text}`normal-beyond-line`.""",
)
def test_with_few_labels_a_line_does_as_well_as_networks_that_know_no_bend():
    line = {size: few("Bayesian logistic regression", size) for size in (5, 10, 25)}
    assert lower_end(nll(PLAIN)[:, FIVE] - line[5]) > 0.03
    assert lower_end(nll(BY_LABELS)[:, FIVE] - line[5]) > -0.005
    assert lower_end(line[25] - nll(BY_LABELS)[:, QUARTER]) > 0
    assert lower_end(nll(BY_LABELS)[:, TEN] - line[10]) > 0
    assert lower_end(line[5] - nll(ONE_NORMAL)[:, FIVE]) > 0
