"""Ridge regression and a Gaussian process on ten splits of the table of red wine."""

from experiments.methods import column_baselines, column_chains, column_copies, first_splits
from experiments.methods.column_rivals import repeated

ARMS = ["ridge", "process, RBF"]
SETTINGS = column_baselines.settings("wine") | {"arms": ARMS, "splits": first_splits.NUM_SPLITS}
SMALL = {"table": "wine", "arm": "ridge", "split": 0}
unit, rows = column_baselines.unit, column_chains.rows


def units() -> dict[str, dict]:
    """Return each arm on each of ten splits."""
    found = first_splits.first(column_baselines.units(SETTINGS["table"]))
    return {name: given for name, given in found.items() if given["arm"] in ARMS}


def score(drawn: dict, table: str, arm: str, split: int) -> dict:
    """Return the scores of ``column_baselines``, and those without copies."""
    said = repeated(drawn["mean"], drawn["sd"])
    found = column_baselines.score(drawn, table, arm, split)
    return found | column_copies.without(said, table, split)
