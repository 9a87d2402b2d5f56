"""Claims of the page ``overconfidence``."""

import numpy as np

from tests.claims.reading import is_open, lower_end, mixed, stored, upper_end
from tests.claims.said import says

GUIDE, POSTERIOR = "SVI, prior sd 10", "NUTS, prior sd 10"
NARROW_GUIDE, NARROW_POSTERIOR = "SVI, prior sd 1", "NUTS, prior sd 1"
NETWORK, FIVE, TEN = "one network", "ensemble of 5", "ensemble of 10"


def found(name):
    """Rows of a method, one a training set: networks and guides, chains and rivals."""
    every = [row for name in ("", "_references", "_rivals") for row in stored(f"svi/spiral{name}")]
    return [row for row in every if row["name"] == name]


def score(name, of):
    """A score of a method on the five training sets."""
    return np.array([row["scores"].get(of, row.get(of)) for row in found(name)])


def over(one, other, of):
    """A score of one method less another's, on the five training sets."""
    return score(one, of) - score(other, of)


@says(
    "overconfidence",
    """On the four others (grey) it rises in the end to {glue:text}`rise-least` to
    {glue:text}`rise-most` times its least value, while the training loss goes on falling.""",
)
def test_a_network_grows_too_certain_on_four_of_five_training_sets():
    fresh = [row["losses"] for row in found(NETWORK)]
    assert sum(nll[-1] > 1.2 * min(nll) for nll in fresh) == 4 and len(fresh) == 5


@says(
    "overconfidence",
    """Under the prior of the regression {glue:text}`mixed-narrow` of five have mixed by the book's
    rule, under the lecture's {glue:text}`mixed-wide`: every {term}`R-hat` of a prediction is
    within its bound, but the chains have fewer effective draws than the 400 that the rule asks
    for""",
)
def test_chains_have_mixed_under_the_narrow_prior_and_are_short_of_draws_under_the_wide():
    narrow, wide = ([row["check"] for row in found(name)] for name in (NARROW_POSTERIOR, POSTERIOR))
    assert len(narrow) == len(wide) == 5 and all(map(mixed, narrow)) and not any(map(mixed, wide))
    for check in wide:
        assert check["rhat"]["predictions"] <= check["rhat_bound"]["predictions"]
        assert check["ess_alone"]["predictions"] > 200


@says(
    "overconfidence",
    """Their {term}`Monte Carlo error` (one {term}`standard error`) is {glue:text}`nuts-far-error`
    bits of entropy far away and {glue:text}`nuts-nll-error` of NLL at most, small against the
    differences below""",
)
def test_errors_of_short_chains_are_small_against_the_differences():
    errors = {of: score(POSTERIOR, f"{of}_error").max() for of in ("entropy_far", "NLL")}
    for of, error in errors.items():
        assert error < abs(over(GUIDE, POSTERIOR, of).mean()) / 5


@says(
    "overconfidence",
    "**Whose underconfidence?** Both's.",
    """and the guide adds to it: its own is {glue:text}`calibration-guide`, its entropy near the
    data exceeds the posterior's by {glue:text}`near-guide` bits, and its NLL by
    {glue:text}`nll-guide`.""",
)
def test_underconfidence_is_the_posteriors_and_more_so_the_guides():
    assert lower_end(score(POSTERIOR, "calibration error")) > 0
    for of in ("NLL", "calibration error", "entropy_near"):
        assert lower_end(over(GUIDE, POSTERIOR, of)) > 0


@says(
    "overconfidence",
    """**Whose doubts far away?** Under the lecture's prior the posterior's, and the guide has lost
    a part of them: {glue:text}`far-lost` bits. Under the standard normal prior of the
    regression it is the other way round: the guide has {glue:text}`far-added` bits more than a
    posterior whose chains have mixed.""",
)
def test_doubts_far_away_are_the_posteriors_under_the_wide_prior_and_the_guides_under_the_narrow():
    assert lower_end(over(POSTERIOR, GUIDE, "entropy_far")) > 0
    assert lower_end(over(NARROW_GUIDE, NARROW_POSTERIOR, "entropy_far")) > 0


@says(
    "overconfidence",
    """**Accuracy**: the posterior gets {glue:text}`accuracy-lost` percentage points more right
    than the guide, one interval of many, and it ends near 0. Between these two and the networks
    and ensembles no difference is shown.""",
)
def test_which_accuracies_are_told_apart():
    more = over(POSTERIOR, GUIDE, "accuracy %")
    assert more.mean() > 0 and abs(lower_end(more)) < 0.5
    for name in (NETWORK, f"{NETWORK}, temperature", FIVE, TEN):
        for other in (GUIDE, POSTERIOR):
            assert is_open(over(name, other, "accuracy %")), (name, other)


@says(
    "overconfidence",
    "One network and an ensemble are better calibrated than the guide where the data are",
)
def test_networks_and_ensembles_are_better_calibrated_than_the_guide():
    for name in (NETWORK, FIVE, TEN):
        assert upper_end(over(name, GUIDE, "calibration error")) < 0


@says(
    "overconfidence",
    "with ten networks in place of five no change of NLL or of calibration error is shown.",
)
def test_ten_networks_are_not_shown_to_differ_from_five():
    for of in ("NLL", "calibration error"):
        assert is_open(over(TEN, FIVE, of))


@says(
    "overconfidence",
    """Far away ten have {glue:text}`far-ten` bits, five {glue:text}`far-five` and the guide
    {glue:text}`far-guide`.""",
    "the guide keeps a part of them, an ensemble of five or ten few.",
)
def test_ensembles_have_few_doubts_far_away_and_a_network_fewer():
    guide, five, ten, one = (score(name, "entropy_far") for name in (GUIDE, FIVE, TEN, NETWORK))
    assert lower_end(guide - 3 * ten) > 0 and lower_end(guide - five) > 0
    assert guide.mean() > 3 * five.mean() > 9 * one.mean()


@says(
    "overconfidence",
    """**Linearised Laplace**: with this wide prior it has doubts everywhere, near the data too.""",
)
def test_linearised_laplace_has_doubts_everywhere():
    for of in ("NLL", "entropy_near"):
        assert lower_end(over("Laplace, prior sd 10", POSTERIOR, of)) > 0.1


@says(
    "overconfidence",
    """With the standard normal prior the guide gets {glue:text}`narrow-accuracy` % right and the
    posterior {glue:text}`narrow-nuts` %: a part of the loss is the prior's, and a part the
    guide's.""",
)
def test_the_narrow_prior_and_the_guide_both_cost_accuracy():
    assert lower_end(over(POSTERIOR, NARROW_POSTERIOR, "accuracy %")) > 2
    assert lower_end(over(NARROW_POSTERIOR, NARROW_GUIDE, "accuracy %")) > 2
