"""Models that are no networks on ten splits of the airfoil table."""

from experiments.methods import column_baselines, column_chains, first_splits

SETTINGS = column_baselines.settings("airfoil") | {"splits": first_splits.NUM_SPLITS}
SMALL = {"table": "airfoil", "arm": "ridge", "split": 0}
unit, score, rows = column_baselines.unit, column_baselines.score, column_chains.rows


def units() -> dict[str, dict]:
    """Return every arm on each of ten splits."""
    return first_splits.first(column_baselines.units(SETTINGS["table"]))
