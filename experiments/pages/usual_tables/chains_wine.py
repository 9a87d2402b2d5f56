"""Chains of three networks on the twenty splits of the wine table."""

from experiments.methods import column_chains

SETTINGS = column_chains.settings("wine")
SMALL = {"table": "wine", "arm": "noise by a second output", "split": 0, "num_chains": 4}
unit, score, rows = column_chains.unit, column_chains.score, column_chains.rows


def units() -> dict[str, dict]:
    """Return every arm on every split."""
    return column_chains.units(SETTINGS["table"])
