"""Models that are no networks on the splits of the wine table."""

from experiments.methods import column_baselines, column_chains

SETTINGS = column_baselines.settings("wine")
SMALL = {"table": "wine", "arm": "ridge", "split": 0}
unit, score, rows = column_baselines.unit, column_baselines.score, column_chains.rows


def units() -> dict[str, dict]:
    """Return every arm on every split."""
    return column_baselines.units(SETTINGS["table"])
