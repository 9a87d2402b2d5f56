"""Claims of the page ``which-method``."""

import numpy as np

from tests.claims.reading import THRESHOLD, is_open, lower_end, stored, upper_end
from tests.claims.said import says


def recipes():
    """Rows of the code that is printed on the page, by situation and recipe."""
    return {(row["situation"], row["recipe"]): row for row in stored("which_method/recipes")}


def gain(situation, rival, recipe):
    """NLL of one recipe less another's on the groups of both, where both can be used."""
    one, other = (recipes()[situation, name] for name in (rival, recipe))
    num = min(len(row["nll_by_group"][0]) for row in (one, other))
    nll = [np.array(row["nll_by_group"])[:, :num].mean(axis=1) for row in (one, other)]
    return (nll[0] - nll[1])[np.minimum(one["usable"], other["usable"]) == 1]


@says(
    "which-method",
    """Of D one data set of six is refused by its verdict, with biases and without, and G on
    that data set with it; all other fits can be used.""",
)
def test_all_recipes_but_those_of_one_data_set_can_be_used():
    found = {key: np.array(row["usable"]) for key, row in recipes().items()}
    refused = {key: np.flatnonzero(of != 1).tolist() for key, of in found.items()}
    some = [("18 groups", "D"), ("18 groups", "D with biases"), ("new groups", "G")]
    assert [refused.pop(key) for key in some] == 3 * [[5]] and not any(refused.values())


@says(
    "which-method",
    """Over C, run in every group by itself, it gained {glue:text}`gain-shared` in the
    groups where both were run, which is open""",
    "with five groups of 50 rows its gain over D, {glue:text}`gain-alone-five`, is open.",
)
def test_networks_alone_and_together_are_not_told_apart_on_few_groups():
    assert is_open(gain("18 groups", "C", "D")) and is_open(gain("5 groups", "D", "C"))


@says("which-method", "With groups of 5 to 150 rows it gained {glue:text}`gain-unequal` over A.")
def test_networks_gain_over_the_mixed_model_on_moons():
    for situation, recipe in (("unequal groups", "D"), ("18 groups", "D"), ("18 groups", "C")):
        assert lower_end(gain(situation, "A", recipe)) > THRESHOLD


@says("which-method", "There it held less than a third of the measurements of the waves above.")
def test_the_band_holds_little_of_what_lies_outside_the_data():
    band = recipes()["numbers", "B"]
    assert upper_end(band["outside"]) < 1 / 3 and lower_end(band["inside"]) > 0.9


@says(
    "which-method",
    """on the spiral's three hundred, ten networks that stop early are not shown to gain
    over one.""",
)
def test_on_the_spiral_ten_networks_that_stop_early_are_not_shown_to_gain_over_one():
    ten, one = (
        np.array([r["scores"]["NLL"] for r in stored("svi/spiral_rivals") if r["name"] == name])
        for name in ("ensemble of 10, stopped by folds", "one network, stopped by folds")
    )
    assert lower_end(ten - one) > -0.02 and upper_end(ten - one) > -0.005
