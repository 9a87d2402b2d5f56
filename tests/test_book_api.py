"""The pages of helpers are made from docstrings and from the comments of fields."""

from book_api import field_comments, mark_up

SOURCE = '''class Summary(NamedTuple):
    """Of each quantity.

    ValueError: never.
    """

    rhat: Float[np.ndarray, " quantity"]  # of location
    # of chains taken
    # one at a time
    ess: Float[np.ndarray, " quantity"]
    name: str
    count: int = 0  # of draws
'''


def test_a_fields_comment_stands_beside_or_above_it():
    assert field_comments(SOURCE) == {
        "rhat": "of location",
        "ess": "of chains taken one at a time",
        "count": "of draws",
    }


def test_arguments_and_errors_are_marked_up():
    lines = ["Return x.", "", "Args:", "    a: [*point].", "", "ValueError: no", "    points."]
    mark_up(None, "function", "f", None, None, lines)
    expected = [
        "Return x.",
        "",
        "Args:",
        r"    a: [\*point].",
        "",
        ":raises ValueError: no points.",
    ]
    assert lines == [*expected, ""]
