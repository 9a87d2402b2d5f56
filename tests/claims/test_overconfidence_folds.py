"""Claims of the page ``overconfidence`` of rivals by folds of all points, and from wide starts."""

from tests.claims.reading import is_open, lower_end
from tests.claims.said import says
from tests.claims.test_overconfidence import GUIDE, NETWORK, POSTERIOR, TEN, found, over, score

BY_FOLDS = " by folds"


@says(
    "overconfidence",
    """**Temperature**: sixty held-out points choose it poorly, from
    {glue:text}`temperature-least` to {glue:text}`temperature-most` over redraws""",
    """Folds of all points agree on {glue:text}`folds-least` to {glue:text}`folds-most`. Whether
    that gains NLL five training sets do not tell: {glue:text}`folds-gain` for one network. Its
    calibration error rises, by {glue:text}`folds-calibration`: the network is then underconfident,
    and still better calibrated than the guide.""",
    "With a temperature by folds a network is better calibrated than the guide, too",
)
def test_folds_of_all_points_agree_on_a_temperature_and_sixty_points_do_not():
    sixty, folds = (score(f"{NETWORK}, temperature{of}", "temperature") for of in ("", BY_FOLDS))
    assert max(sixty) > 10 * min(sixty) and max(folds) < 2 * min(folds)
    tempered, end = f"{NETWORK}, temperature{BY_FOLDS}", f"{NETWORK}, to the end"
    assert is_open(over(tempered, end, "NLL"))
    assert lower_end(over(tempered, end, "calibration error")) > 0
    assert lower_end(over(GUIDE, tempered, "calibration error")) > 0


@says(
    "overconfidence",
    """folds stop an ensemble after a tenth to a third of its steps.""",
    """Near the data its calibration error is less than the guide's, as it was before. Far away it
    is as certain as before, and has {glue:text}`stopped-far` bits fewer than the guide.""",
)
def test_an_ensemble_that_stops_early_is_calibrated_near_the_data_and_certain_far_away():
    stopped = f"{TEN}, stopped{BY_FOLDS}"
    steps = score(stopped, "steps")
    assert 500 < min(steps) < max(steps) < 3500
    assert lower_end(over(GUIDE, stopped, "calibration error")) > 0
    assert lower_end(over(GUIDE, stopped, "entropy_far")) > 0.3
    assert abs(over(f"{TEN}, to the end", stopped, "entropy_far").mean()) < 0.03


@says(
    "overconfidence",
    """Starts from the prior do not change that: under the lecture's prior every one of them
    ends, after as many steps, at less evidence than the best of the narrow ones; whether
    those ends are tops was not checked.""",
)
def test_wide_starts_of_laplaces_method_end_at_tops_of_less_evidence():
    name = "Laplace, wide starts too, prior sd 10"
    for row in found(name):
        assert max(row["log_evidence"][10:]) < max(row["log_evidence"][:10])
    for of in ("NLL", "entropy_near"):
        assert lower_end(over(name, POSTERIOR, of)) > 0.1
