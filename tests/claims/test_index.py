"""Claims of the landing page and of the README, which show the same headline numbers."""

import numpy as np

from experiments.engine import headlines
from tests.claims.reading import THRESHOLD, lower_end, rows, upper_end
from tests.claims.said import says


@says(
    "index",
    "sharing weights gains something, and much less than the choice of scales does.",
    "the NLL of the flat network is above that of the hierarchical one by {glue:text}`redrawn-tie`",
)
@says("README", "sharing weights gains something, and much less than the choice of scales.")
def test_sharing_weights_gains_something_and_much_less_than_the_choice_of_scales():
    choice = headlines.paired_differences("N(0, 1)", "chosen over tasks")
    for unmixed in (False, True):
        sharing = headlines.paired_differences(unmixed=unmixed)
        assert lower_end(sharing) > 0 and lower_end(choice) > 4 * upper_end(sharing)


@says(
    "index",
    """Separate networks would gain more from being told where each pair of moons lies, and how
    large it is, than from sharing weights""",
)
def test_centre_and_scale_are_worth_more_than_sharing():
    centres = rows("what_the_gain_is_made_of/centres")
    now, exact = (
        np.array(centres[f"rotated, chosen, {known}"]["nll"]) for known in ("as now", "exact")
    )
    assert lower_end(now - exact) > upper_end(headlines.paired_differences())


@says(
    "index",
    """then tried on {glue:text}`scaled-all` data sets that had no part in the choice. On the
    {glue:text}`scaled-count` of them where both fits passed their checks, it gains
    {glue:text}`scaled` over the chosen scales""",
)
@says(
    "README",
    "A network that shares more gains more",
)
def test_the_first_layer_alone_gains_over_chosen_scales():
    for unmixed in (False, True):
        assert lower_end(headlines.less_input_layer(unmixed=unmixed)) > THRESHOLD


@says(
    "index",
    """A choice of three scales, one for each layer, takes the flat network about half of the way
    from N(0, 1) to the exact answer.""",
    """By this score the network under N(0, 1) is behind logistic regression, which cannot bend at
    all""",
)
def test_chosen_scales_take_the_flat_network_about_half_of_the_way():
    exact, _, chosen, plain, line = (of["NLL"] for of in headlines.fifty_labels().values())
    share = (plain - chosen) / (plain - exact)
    assert lower_end(share) > 0.4 and upper_end(share) < 0.6
    assert lower_end(plain[: len(line)] - line) > THRESHOLD


@says(
    "index",
    """features that eighteen other tasks have taught gain more over N(0, 1) than scales chosen for
    five labels on the same tasks""",
)
def test_with_five_labels_taught_features_gain_more_than_chosen_scales():
    features, scales = (
        headlines.five_labels()[name]["NLL"]
        for name in (
            "32 features of eighteen other tasks, a logistic head trained on this one",
            "flat network, a scale per layer chosen for five labels on those tasks",
        )
    )
    assert lower_end(scales - features) > THRESHOLD
