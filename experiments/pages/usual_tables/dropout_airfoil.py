"""Monte Carlo dropout on ten splits of the airfoil table."""

from experiments.methods import dropout_splits, first_splits

SETTINGS = dropout_splits.settings("airfoil") | {"splits": first_splits.NUM_SPLITS}
SMALL = {"table": "airfoil", "split": 0, "epochs": 10}
unit, score, rows = dropout_splits.unit, dropout_splits.score, dropout_splits.rows


def units() -> dict[str, dict]:
    """Return each of ten splits."""
    return first_splits.first(dropout_splits.units(SETTINGS["table"]))
