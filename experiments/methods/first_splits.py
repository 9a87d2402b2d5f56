"""The first ten of the twenty published splits, for a table whose fits are long.

Splits overlap: ten make an interval for their mean 1.24 times as wide as twenty do
(`column_scores.interval`), for half of the work.
"""

NUM_SPLITS = 10


def first(units: dict[str, dict]) -> dict[str, dict]:
    """Return those units whose split is one of the first ten."""
    return {name: given for name, given in units.items() if given["split"] < NUM_SPLITS}
