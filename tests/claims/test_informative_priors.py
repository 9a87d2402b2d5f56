"""Claims of the page ``informative-priors``."""

import numpy as np

from tests.claims.new_tasks import BY_LABELS, DRAWS, ONE_NORMAL, PLAIN, gain, nll
from tests.claims.reading import is_open, lower_end, stored, upper_end
from tests.claims.said import says

TWO, FIVE, TEN, QUARTER, FIFTY = 1, 2, 3, 4, 5  # places among 0, 2, 5, 10, 25 and 50 labels
HEADS, CEILING = "32 shared features, trained heads", "known shape, unknown angle"


@says(
    "informative-priors",
    """With 2 to 10 labels scales reach on average {glue:text}`scales-share` % of the learnt prior's
    gain; five redraws do not show that this is more than half. With 50 labels no difference is
    shown.""",
)
def test_scales_reach_more_than_half_of_the_gain():
    scales, prior = (gain(name).mean(axis=0) for name in (BY_LABELS, ONE_NORMAL))
    few = [TWO, FIVE, TEN]
    assert (scales[few] > 0.5 * prior[few]).all()
    half = gain(BY_LABELS) - 0.5 * gain(ONE_NORMAL)
    assert all(is_open(half[:, place]) for place in few)
    assert scales[FIFTY] > 0.95 * prior[FIFTY]


@says(
    "informative-priors",
    """With 5 labels this excess is shown, and the next section is further evidence; from 10 on it
    is not.""",
)
def test_shape_counts_with_five_labels_and_later_we_cannot_tell():
    beyond = gain(ONE_NORMAL, BY_LABELS)
    assert lower_end(beyond[:, FIVE]) > 0
    assert all(is_open(beyond[:, place]) for place in (TEN, QUARTER, FIFTY))


@says(
    "informative-priors",
    "It is ahead of the learnt prior with 2 to 10 labels. With 25 the interval ends near 0",
)
def test_shared_features_are_ahead_of_the_learnt_prior():
    beyond = gain(HEADS, ONE_NORMAL)
    assert all(lower_end(beyond[:, place]) > 0 for place in (TWO, FIVE, TEN))
    assert (beyond[:, TWO:].mean(axis=0) > 0).all()
    assert abs(lower_end(beyond[:, QUARTER])) < 0.02


@says(
    "informative-priors",
    "With few labels every method is far from one who knows the shape of moons",
)
def test_every_method_is_far_from_known_shape():
    for name in (PLAIN, BY_LABELS, ONE_NORMAL, HEADS):
        assert lower_end((nll(name) - nll(CEILING))[:, FIVE]) > 0.05, name


@says(
    "informative-priors",
    "On five redraws we cannot tell weighing from one normal",
)
def test_the_draws_themselves_are_not_told_from_one_normal():
    assert is_open(gain(DRAWS, ONE_NORMAL)[:, FIVE])


@says(
    "informative-priors",
    """a wrong shape costs. Two round clouds need a straight boundary, and the learnt prior
    is behind the scales, too""",
    "Against N(0, 1) no cost was found on any kind",
    "Spirals wind as moons do, and there it gains",
)
def test_a_wrong_shape_costs_against_scales_and_not_against_a_standard_normal():
    for kind in ("mirrored", "clouds"):
        assert upper_end(gain(ONE_NORMAL, BY_LABELS, kind)[:, 0]) < 0, kind
    for kind in ("noise 0.6", "clouds", "mirrored", "spirals"):
        assert upper_end(gain(ONE_NORMAL, PLAIN, kind)[:, 0]) > 0, kind
    for over in (PLAIN, BY_LABELS):
        assert lower_end(gain(ONE_NORMAL, over, "spirals")[:, 0]) > 0, over


@says("informative-priors", "Heavier tails or several normals add little")
def test_richer_fits_add_little():
    found = stored("informative_priors/transfer")
    (row,) = (one for one in found if (one["name"], one.get("reference")) == ("fits", "their mean"))
    held_out = [one["held_out_density"] for one in row["scores"]]
    of_normal = np.array([np.mean(one["one normal"]) for one in held_out])
    for name in held_out[0]:
        if name == "Student-t" or name.startswith("mixture"):
            more = np.array([np.mean(one[name]) for one in held_out]) - of_normal
            assert more.mean() < 5, name


@says(
    "informative-priors",
    """With 5 features, as many as our last layer has, we cannot tell which is ahead with 5 labels,
    so the lead may be one of size.""",
)
def test_at_equal_width_the_order_is_open():
    over = gain("5 shared features, trained heads", ONE_NORMAL)
    assert is_open(over[:, FIVE])
