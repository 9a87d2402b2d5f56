"""Claims of the page ``curves-measured``."""

import numpy as np

from tests.claims.reading import is_open, lower_end, rows, upper_end
from tests.claims.said import says

INSIDE, OUTSIDE, AT_95 = 0, 1, 2
LECTURE = "N(0, 1), 10 tanh units"


def nll_over_the_lectures(name, region):
    """NLL of a prior less that of the lecture's, by redraw."""
    found = rows("regression/variants")
    return np.subtract(found[name]["nll"], found[LECTURE]["nll"])[:, region]


def held(name, region):
    """Share of measurements that the 95 % band holds, by redraw."""
    return np.array(rows("regression/variants")[name]["coverage"])[:, region, AT_95]


@says(
    "curves-measured",
    "Prior sd 10 and the learnt scale **have not mixed** on any redraw",
    """The chains of 10 and of the learnt scale have not mixed, and of Student's distribution
    trajectories diverge.""",
    """Of Student's distribution the verdict passes {glue:text}`student-mixed` of sixteen, since
    trajectories diverge: its row is a lead as well.""",
)
def test_two_priors_have_not_mixed_on_any_redraw_and_the_others_on_all():
    mixed_on = {
        name: sum(check["mixed"] for check in row["check"])
        for name, row in rows("regression/variants").items()
    }
    assert [mixed_on.pop(name) for name in ("sd 10", "sd learnt")] == [0, 0]
    assert mixed_on.pop("Student t, 3 df") < 8 and set(mixed_on.values()) == {16}
    for check in rows("regression/variants")["Student t, 3 df"]["check"]:
        assert check["mixed"] or check["diverging"] > 0.002


@says(
    "curves-measured",
    "sd 0.1 costs {glue:text}`cost-narrow` nats a measurement, 2 units {glue:text}`cost-two`.",
    "More freedom costs little: a hundred units {glue:text}`cost-hundred`",
)
def test_inside_too_tight_a_prior_and_too_few_units_cost_and_more_freedom_costs_little():
    assert lower_end(nll_over_the_lectures("sd 0.1", INSIDE)) > 0.5
    assert lower_end(nll_over_the_lectures("2 units", INSIDE)) > 0.5
    assert upper_end(nll_over_the_lectures("100 units", INSIDE)) < 0.05


@says(
    "curves-measured",
    """The hundred units scaled down, which the lecture does not have, do cost a little (table).""",
)
def test_a_hundred_units_scaled_down_cost_a_little_inside():
    cost = nll_over_the_lectures("100 units, scaled", INSIDE)
    assert lower_end(cost) > 0 and upper_end(cost) < 0.2


@says(
    "curves-measured",
    """and sd 0.1, which takes the wave for noise and has a wide band everywhere,
    {glue:text}`held-narrow`""",
    "ReLU, which continues in straight lines, holds {glue:text}`held-relu`.",
)
def test_outside_the_tight_prior_holds_more_than_the_lectures_and_relu_less():
    assert lower_end(held("sd 0.1", OUTSIDE) - held(LECTURE, OUTSIDE)) > 0.4
    assert lower_end(held(LECTURE, OUTSIDE) - held("ReLU", OUTSIDE)) > 0


@says(
    "curves-measured",
    """Student's distribution does better, at no cost inside that is seen: with it the same network
    holds {glue:text}`held-student`""",
)
def test_outside_students_distribution_holds_more_at_no_cost_inside():
    assert lower_end(held("Student t, 3 df", OUTSIDE) - held(LECTURE, OUTSIDE)) > 0
    assert is_open(nll_over_the_lectures("Student t, 3 df", INSIDE))


@says(
    "curves-measured",
    """Of the six priors for one curve whose chains mix, the two that fit it worst inside the data
    hold most measurements outside: a standard deviation of 0.1""",
)
def test_the_two_that_fit_worst_inside_hold_most_outside():
    mixed = {
        name
        for name, row in rows("regression/variants").items()
        if sum(check["mixed"] for check in row["check"]) > 8
    }
    assert len(mixed) == 6
    worst = ["sd 0.1", "2 units"]
    for name in mixed - {*worst}:
        for poor in worst:
            worse = nll_over_the_lectures(poor, INSIDE) - nll_over_the_lectures(name, INSIDE)
            assert lower_end(worse) > 0
            assert lower_end(held(poor, OUTSIDE) - held(name, OUTSIDE)) > 0
    assert lower_end(held(worst[0], OUTSIDE) - held(worst[1], OUTSIDE)) > 0
