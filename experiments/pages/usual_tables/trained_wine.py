"""Networks by other means than chains on ten splits of the table of red wine."""

from experiments.methods import column_copies, column_rivals, first_splits
from experiments.methods.column_scores import Predicted

SETTINGS = column_rivals.settings("wine") | {"splits": first_splits.NUM_SPLITS}
SMALL = {"table": "wine", "split": 0}
unit, rows = column_rivals.unit, column_rivals.rows


def units() -> dict[str, dict]:
    """Return each of ten splits."""
    return first_splits.first(column_rivals.units(SETTINGS["table"]))


def score(drawn: dict, table: str, split: int) -> dict:
    """Return the scores of ``column_rivals``, and of each arm those without copies."""
    found = column_rivals.score(drawn, table, split)
    for arm in found.keys() - {"stop"}:
        said = Predicted(drawn[arm]["mean"], drawn[arm]["log_noise"])
        found[arm] |= column_copies.without(said, table, split)
    return found
