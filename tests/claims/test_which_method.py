"""Claims of the page ``which-method``."""

from experiments.engine import headlines
from tests.claims.said import says


@says("which-method", "take C, whose measured fits mixed")
def test_fits_with_scales_by_five_folds_have_mixed():
    assert headlines.chosen_network()["mixed"]
