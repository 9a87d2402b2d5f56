"""Claims of the page ``wide-limit``."""

from helpers import common

import numpy as np

from tests.claims.reading import lower_end, mixed, rows
from tests.claims.said import says

LECTURE, OUTSIDE, AT_95 = "N(0, 1), 10 tanh units", 1, 2


def bridged():
    """Evidence of each prior by bridges between chains, and by Laplace's method."""
    return rows("regression/variants")


def averages():
    """Evidence of each prior as an average over hidden weights, on all training sets."""
    return rows("regression/evidence_without_chains")


def apart(name):
    """How far two estimates of the evidence lie apart on the first training set."""
    return abs(averages()[name]["log_evidence"][0] - bridged()[name]["log_evidence"])


def error(name):
    """The Monte Carlo error of their difference."""
    pair = averages()[name]["log_evidence_error"][0], bridged()[name]["log_evidence_error"]
    return np.hypot(*pair)


@says(
    "wide-limit",
    """With two units the copies are apart, and one mode times their number is right to a fraction
    of a nat.""",
    """one mode alone is right, and multiplying by the number of copies would be wrong by that
    whole factor.""",
    "With ten units and sd 1 the truth lies between",
)
def test_when_one_mode_gives_the_evidence():
    two, narrow, base = (bridged()[name] for name in ("2 units", "sd 0.1", LECTURE))
    assert abs(two["laplace"] + two["log_copies"] - two["log_evidence"]) < 1
    assert abs(narrow["laplace"] - narrow["log_evidence"]) < 1 < narrow["log_copies"]
    assert base["laplace"] < base["log_evidence"] < base["laplace"] + base["log_copies"]


@says(
    "wide-limit",
    """We state an evidence only where the chains have mixed, {glue:text}`least-effective` draws or
    more carry the average, and the two estimates lie within {glue:text}`tolerance` nat of each
    other.""",
    "Not stated: {glue:text}`not-stated`.",
)
def test_the_evidence_of_six_priors_is_stated():
    rule = common.read_result("regression/evidence_without_chains")["settings"]
    not_stated = [
        name
        for name, row in bridged().items()
        if not mixed(row["first_check"])
        or averages()[name]["effective_draws"][0] < rule["least_effective"]
        or apart(name) >= rule["tolerance"]
    ]
    assert not_stated == [LECTURE, "sd 10", "sd learnt"]


@says(
    "wide-limit",
    "For the lecture's prior the two agree",
    """The chains of sd 10 have not mixed, and few draws carry its average, though the two agree
    there as well.""",
    """Those of the learnt scale have not mixed either, and there the two differ by
    {glue:text}`learnt-apart` nats""",
)
def test_of_the_three_that_are_not_stated_two_agree_and_one_does_not():
    rule = common.read_result("regression/evidence_without_chains")["settings"]
    few = averages()[LECTURE]["effective_draws"][0]
    assert 0.9 * rule["least_effective"] < few < rule["least_effective"]
    assert not any(mixed(bridged()[name]["first_check"]) for name in ("sd 10", "sd learnt"))
    assert averages()["sd 10"]["effective_draws"][0] < 10
    assert apart(LECTURE) < rule["tolerance"] and apart("sd learnt") > 3 * error("sd learnt")
    assert apart("sd 10") < 6 * error("sd 10")


@says(
    "wide-limit",
    """sd 0.1 loses {glue:text}`set-narrow` and 2 units lose {glue:text}`set-two`. Student's
    distribution gains {glue:text}`set-student`, a hundred units gain {glue:text}`set-hundred`,
    and ReLU gains {glue:text}`set-relu`.""",
)
def test_the_order_of_priors_by_evidence_over_training_sets():
    base = averages()[LECTURE]["log_evidence"]
    for name, sign in (
        ("sd 0.1", -1),
        ("2 units", -1),
        ("Student t, 3 df", 1),
        ("100 units", 1),
        ("ReLU", 1),
    ):
        assert lower_end(sign * np.subtract(averages()[name]["log_evidence"], base)) > 2, name


@says(
    "wide-limit",
    """It puts sd 0.1 last, whose 95 % band holds {glue:text}`held-narrow` of measurements outside
    the data. It puts ReLU above the lecture's prior, where these bands hold {glue:text}`held-relu`
    and {glue:text}`held-base`""",
)
def test_the_evidence_says_nothing_of_what_is_outside_the_data():
    level = {name: row["log_evidence"] for name, row in bridged().items()}
    held = {
        name: np.array(bridged()[name]["coverage"])[:, OUTSIDE, AT_95]
        for name in ("sd 0.1", "ReLU", LECTURE)
    }
    assert min(level, key=level.get) == "sd 0.1" and level["ReLU"] > level[LECTURE]
    assert lower_end(held["sd 0.1"] - held[LECTURE]) > 0.4
    assert lower_end(held[LECTURE] - held["ReLU"]) > 0
