"""Claims of the page ``flat-measured``."""

from tests.claims.reading import mixed, rows
from tests.claims.said import says


def baselines():
    """Rows of the two networks for all tasks and of the hierarchical logistic regression."""
    return rows("flat_bnn/baselines")


@says("flat-measured", "One network that cannot see the task is as poor as claimed")
def test_one_network_for_all_tasks_is_poor():
    assert baselines()["one network for all tasks"]["scores"]["accuracy %"] < 65


@says("flat-measured", "The task as 18 indicator inputs is **not** at chance.")
def test_a_network_that_is_told_the_task_is_not_at_chance():
    assert baselines()["task as a feature"]["scores"]["accuracy %"] > 80


@says(
    "flat-measured",
    "Its chains **have not mixed** (R-hat above its bound)",
    "where a table has a row whose chains have not mixed, the text says so.",
)
def test_of_the_baselines_only_the_network_that_is_told_the_task_has_not_mixed():
    assert [name for name, row in baselines().items() if not mixed(row["check"])] == [
        "task as a feature"
    ]
