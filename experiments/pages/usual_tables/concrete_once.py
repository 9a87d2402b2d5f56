"""Concrete with each row once: arms of the usual tables on ten splits of its distinct rows."""

from experiments.methods import column_chains, column_once

SEED, TABLE = 3314, "concrete"
SETTINGS = column_once.settings(SEED, TABLE)
SMALL = {"arm": "ridge", "split": 0}
units, rows = column_once.units, column_chains.rows


def unit(arm: str, split: int) -> dict:
    """Fit an arm; return what it says of the rows that test."""
    return column_once.fitted(SEED, TABLE, arm, split)


def score(drawn: dict, arm: str, split: int) -> dict:
    """Return the scores of an arm; of chains how they agree, too."""
    return column_once.scored(drawn, TABLE, arm, split)
