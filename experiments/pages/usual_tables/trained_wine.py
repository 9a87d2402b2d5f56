"""Networks by other means than chains on the splits of the wine table."""

from experiments.methods import column_rivals

SETTINGS = column_rivals.settings("wine")
SMALL = {"table": "wine", "split": 0}
unit, score, rows = column_rivals.unit, column_rivals.score, column_rivals.rows


def units() -> dict[str, dict]:
    """Return every split."""
    return column_rivals.units(SETTINGS["table"])
