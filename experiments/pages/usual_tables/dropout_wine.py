"""Monte Carlo dropout on the twenty splits of the wine table."""

from experiments.methods import dropout_splits

SETTINGS = dropout_splits.settings("wine")
SMALL = {"table": "wine", "split": 0, "epochs": 10}
unit, score, rows = dropout_splits.unit, dropout_splits.score, dropout_splits.rows


def units() -> dict[str, dict]:
    """Return every split."""
    return dropout_splits.units(SETTINGS["table"])
