"""Claims of the page ``which-method``."""

import numpy as np

from tests.claims.reading import THRESHOLD, is_open, lower_end, stored, upper_end
from tests.claims.said import says


def recipes():
    """Rows of the code that is printed on the page, by situation and recipe."""
    return {(row["situation"], row["recipe"]): row for row in stored("which_method/recipes")}


def gain(situation, rival, recipe):
    """NLL of one recipe less another's on the groups of both, by data set."""
    pairs = zip(*(recipes()[situation, r]["nll_by_group"] for r in (rival, recipe)), strict=True)
    return np.array(
        [np.mean(np.subtract(*(of[: min(map(len, pair))] for of in pair))) for pair in pairs]
    )


@says("which-method", "Every fit can be used by its own verdict, those with biases too.")
def test_every_recipe_mixes():
    assert all(np.mean(row["usable"]) == 1 for row in recipes().values())


@says(
    "which-method",
    """Over C, run in every group by itself, it gained {glue:text}`gain-shared` in the groups where
    both were run, which is open""",
    "with five groups of 50 rows its gain over D, {glue:text}`gain-alone-five`, is open.",
)
def test_networks_alone_and_together_are_not_told_apart_on_few_groups():
    assert is_open(gain("18 groups", "C", "D")) and is_open(gain("5 groups", "D", "C"))


@says("which-method", "With groups of 5 to 150 rows it gained {glue:text}`gain-unequal` over A.")
def test_networks_gain_over_the_mixed_model_on_moons():
    for situation, recipe in (("unequal groups", "D"), ("18 groups", "D"), ("18 groups", "C")):
        assert lower_end(gain(situation, "A", recipe)) > THRESHOLD


@says("which-method", "on the waves of the table it held less than a third of what lay there.")
def test_the_band_holds_little_of_what_lies_outside_the_data():
    band = recipes()["numbers", "B"]
    assert upper_end(band["outside"]) < 1 / 3 and lower_end(band["inside"]) > 0.9
