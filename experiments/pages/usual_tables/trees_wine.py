"""Boosted trees, deeper ones too, on ten splits of the table of red wine."""

from experiments.methods import column_copies, column_scores, column_trees, first_splits
from experiments.methods.column_rivals import repeated

SETTINGS = column_trees.SETTINGS | {"table": "wine", "splits": first_splits.NUM_SPLITS}
SMALL = {"table": "wine", "split": 0}
unit = column_trees.unit


def units() -> dict[str, dict]:
    """Return each of ten splits."""
    return {
        f"split {split}": {"table": SETTINGS["table"], "split": split}
        for split in range(first_splits.NUM_SPLITS)
    }


def score(drawn: dict, table: str, split: int) -> dict:
    """Return the scores of ``column_trees``, and those without copies."""
    said = repeated(drawn["mean"], drawn["sd"])
    found = column_trees.score(drawn, table, split)
    return found | column_copies.without(said, table, split)


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return one row, whose entries are lists over splits."""
    return [column_scores.row("trees", list(scored.values()))]
