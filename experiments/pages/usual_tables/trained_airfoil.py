"""Networks by other means than chains on ten splits of the airfoil table."""

from experiments.methods import column_rivals, first_splits

SETTINGS = column_rivals.settings("airfoil") | {"splits": first_splits.NUM_SPLITS}
SMALL = {"table": "airfoil", "split": 0}
unit, score, rows = column_rivals.unit, column_rivals.score, column_rivals.rows


def units() -> dict[str, dict]:
    """Return each of ten splits."""
    return first_splits.first(column_rivals.units(SETTINGS["table"]))
