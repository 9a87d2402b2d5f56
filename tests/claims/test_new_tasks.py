"""Claims of the page ``new-tasks``: priors and scales. The rivals have a file of their own."""

from helpers import common

import numpy as np

from tests.claims.new_tasks import BY_LABELS, DRAWS, MAML, ONE_NORMAL, PLAIN, arms, gain, nll
from tests.claims.reading import is_open, lower_end, stored, upper_end
from tests.claims.said import says

FIVE, FIFTY = 2, 5  # places among 0, 2, 5, 10, 25 and 50 labels
CHOSEN_FOR_FIFTY, MIXTURE = "chosen scales", "mixture"


@says(
    "new-tasks",
    "With five labels it gains {glue:text}`gain-normal-5` in {term}`NLL` over $N(0, 1)$.",
    "The learnt prior gains from 2 labels on, the weighted draws and one normal alike",
)
def test_the_learnt_prior_gains_from_two_labels_on():
    for name in (ONE_NORMAL, DRAWS):
        gains = gain(name)[:, 1:]
        assert all(lower_end(of_size) > -0.006 for of_size in gains.T), name  # by Monte Carlo error


@says(
    "new-tasks",
    """Scales chosen for 50 labels gain {glue:text}`gain-chosen-5` with 5, and lose on each of the
    five redraws""",
)
def test_scales_chosen_for_fifty_labels_lose_with_five():
    assert (gain(CHOSEN_FOR_FIFTY)[:, FIVE] < 0).all()


@says("new-tasks", "and scales chosen for fifty are worse than these by {glue:text}`fifty-at-five`")
def test_scales_chosen_for_fifty_labels_are_worse_than_scales_chosen_for_five():
    assert lower_end(gain(BY_LABELS, CHOSEN_FOR_FIFTY)[:, FIVE]) > 0


@says("new-tasks", "with fifty labels, no difference to a good choice of scales could be measured")
def test_with_fifty_labels_the_learnt_prior_does_as_well_as_chosen_scales():
    for scales in (CHOSEN_FOR_FIFTY, BY_LABELS):
        beyond = gain(ONE_NORMAL, scales)[:, FIFTY]
        assert is_open(beyond) and abs(beyond.mean()) < 0.03


@says(
    "new-tasks",
    """With 2, 5 and 10 labels the choice falls on a small scale of the input layer, where tanh is
    nearly a straight line, and on a product of {glue:text}`products-few`""",
    """With 25 labels the choice is a network that can
    bend, with a product of {glue:text}`products-quarter`""",
)
def test_with_few_labels_the_chosen_networks_are_nearly_lines():
    found = stored("informative_priors/scales_by_labels")
    *few, quarter = (np.array(row["scales"]) for row in found)
    assert [row["labels"] for row in found] == [2, 5, 10, 25]
    for scales in few:
        assert (scales[:, 0] == 0.0625).all() and scales.prod(axis=1).max() < 1
    assert (quarter[:, 0] > 0.0625).all() and quarter.prod(axis=1).min() > 2


@says(
    "new-tasks",
    """scales chosen in this way gain {glue:text}`gain-tuned-scales-5` over $N(0, 1)$ with 5
    labels, and one normal, which gains {glue:text}`gain-normal-5`, is beyond them by
    {glue:text}`beyond-scales-5`. So with 5 labels a good part of the gain is scale""",
)
def test_with_five_labels_a_good_part_of_the_gain_is_scale_and_the_learnt_prior_gains_more():
    scales, prior = gain(BY_LABELS)[:, FIVE], gain(ONE_NORMAL)[:, FIVE]
    assert lower_end(scales) > 0 and lower_end(prior - scales) > 0
    assert scales.mean() > prior.mean() / 3


@says(
    "new-tasks",
    """it gains {glue:text}`gain-wrong-5` at 5 labels and {glue:text}`gain-wrong-50` at 50, about
    as much as the group's scales alone.""",
)
def test_a_normal_fitted_to_draws_that_are_not_aligned_gains_as_much_as_scales_alone():
    for place in (FIVE, FIFTY):
        beyond = gain("one normal, not aligned", "scales only")[:, place]
        assert abs(beyond.mean()) < 0.02


@says(
    "new-tasks",
    """Five redraws do not tell the draws themselves from either: they are beyond the mixture by
    {glue:text}`draws-beyond-mixture`, and beyond one normal by {glue:text}`draws-beyond`.""",
)
def test_the_draws_are_not_told_from_the_mixture_or_from_one_normal():
    for over in (MIXTURE, ONE_NORMAL):
        assert is_open(gain(DRAWS, over)[:, FIVE])


@says(
    "new-tasks",
    """One normal is beyond MAML by {glue:text}`beyond-maml-5` at 5 labels, which is open, and by
    {glue:text}`beyond-maml-50` at 50.""",
    """One point of all weights, fine-tuned or meta-trained, gains less than one normal on average
    at every number of labels""",
)
def test_one_point_of_all_weights_gains_less_than_one_normal():
    for point in ("fine-tuning", MAML):
        assert (gain(point, ONE_NORMAL).mean(axis=0) < 0).all()
    beyond = gain(ONE_NORMAL, MAML)
    assert is_open(beyond[:, FIVE]) and lower_end(beyond[:, FIFTY]) > 0


@says(
    "new-tasks",
    """The weighted draws and the averages of the joint fit's chains lie {glue:text}`gold-apart`
    apart at most.""",
)
def test_weighted_draws_agree_with_the_joint_fit():
    settings = common.read_result("informative_priors/transfer")["settings"]
    at = [settings["sizes"].index(size) for size in settings["joint_sizes"]]
    apart = nll(DRAWS)[:, at] - nll("joint fit, one new task")
    assert np.abs(apart.mean(axis=0)).max() < 0.01


@says(
    "new-tasks",
    """All sampled arms have mixed by this book's rule ({term}`R-hat bound`), in every redraw, but
    the joint fits.""",
)
def test_all_sampled_arms_have_mixed_but_the_joint_fits():
    mixed = {
        key: all(check["mixed"] for check in row["checks"] if "rhat" in check)
        for key, row in arms().items()
    }
    assert {name for (_, name), all_ in mixed.items() if not all_} == {
        "joint fit, one new task",
        "joint fit, all new tasks",
    }


@says("new-tasks", "We read it off two curves, that of $N(0, 1)$ up to 400 labels")
def test_more_labels_always_help_the_standard_normal_prior():
    curve = [nll(PLAIN, tasks).mean(axis=0) for tasks in ("moons", "moons, more labels")]
    assert (np.diff(np.concatenate([curve[0][1:], curve[1]])) < 0).all()


def elsewhere(kind, over=PLAIN):
    """Gain of one normal on another kind of tasks, [redraw, size], of 5 and of 25 labels."""
    return gain(ONE_NORMAL, over, kind)


@says(
    "new-tasks",
    """On noisier moons and on clouds no effect against $N(0, 1)$ could be measured with
    25 labels""",
    "No cost over $N(0, 1)$ could be measured.",
)
def test_on_noisier_moons_and_clouds_no_effect_is_measured_and_no_cost_anywhere():
    for kind in ("noise 0.6", "clouds"):
        assert is_open(elsewhere(kind)[:, 1]) and abs(elsewhere(kind)[:, 1].mean()) < 0.03
    for kind in ("noise 0.6", "clouds", "mirrored", "spirals"):
        assert all(upper_end(of_size) > 0 for of_size in elsewhere(kind).T)


@says(
    "new-tasks",
    """it is {glue:text}`mirrored-scales-5` with 5 (negative is worse) and
    {glue:text}`mirrored-scales-25` with 25: with few labels the moons' shape costs on its
    mirror image.""",
)
def test_with_few_labels_the_moons_shape_costs_on_its_mirror_image():
    over_scales = elsewhere("mirrored", BY_LABELS)[:, 0]
    assert upper_end(over_scales) < 0 and (over_scales < 0).all()


@says("new-tasks", "On spirals it gains {glue:text}`spirals-plain-5` over $N(0, 1)$ with 5 labels")
def test_on_spirals_the_learnt_prior_gains_with_five_labels():
    assert lower_end(elsewhere("spirals")[:, 0]) > 0
