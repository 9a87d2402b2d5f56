"""Boosted trees, deeper ones too, on the splits of four tables; of airfoil the first ten."""

from experiments.methods import column_scores, column_trees, first_splits
from experiments.problems import usual_tables

SPLITS = dict.fromkeys(("yacht", "concrete", "energy"), usual_tables.NUM_SPLITS)
SPLITS |= {"airfoil": first_splits.NUM_SPLITS}
SETTINGS = column_trees.SETTINGS | {"splits": SPLITS}
SMALL = {"table": "yacht", "split": 0}
unit, score = column_trees.unit, column_trees.score


def units() -> dict[str, dict]:
    """Return every split of every table, the longest first."""
    return {
        f"{table}; split {split}": {"table": table, "split": split}
        for table in ("concrete", "airfoil", "energy", "yacht")
        for split in range(SPLITS[table])
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row a table, whose entries are lists over splits."""
    found = {}
    for name, one in scored.items():
        found.setdefault(name.split("; ")[0], []).append(one)
    return [column_scores.row(table, each) for table, each in found.items()]
