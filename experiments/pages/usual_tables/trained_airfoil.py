"""Networks by other means than chains on the splits of the airfoil table."""

from experiments.methods import column_rivals

SETTINGS = column_rivals.settings("airfoil")
SMALL = {"table": "airfoil", "split": 0}
unit, score, rows = column_rivals.unit, column_rivals.score, column_rivals.rows


def units() -> dict[str, dict]:
    """Return every split."""
    return column_rivals.units(SETTINGS["table"])
