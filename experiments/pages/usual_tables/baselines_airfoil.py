"""Models that are no networks on the splits of the airfoil table."""

from experiments.methods import column_baselines, column_chains

SETTINGS = column_baselines.settings("airfoil")
SMALL = {"table": "airfoil", "arm": "ridge", "split": 0}
unit, score, rows = column_baselines.unit, column_baselines.score, column_chains.rows


def units() -> dict[str, dict]:
    """Return every arm on every split."""
    return column_baselines.units(SETTINGS["table"])
