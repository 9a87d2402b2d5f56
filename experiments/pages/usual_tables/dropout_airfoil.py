"""Monte Carlo dropout on the twenty splits of the airfoil table."""

from experiments.methods import dropout_splits

SETTINGS = dropout_splits.settings("airfoil")
SMALL = {"table": "airfoil", "split": 0, "epochs": 10}
unit, score, rows = dropout_splits.unit, dropout_splits.score, dropout_splits.rows


def units() -> dict[str, dict]:
    """Return every split."""
    return dropout_splits.units(SETTINGS["table"])
