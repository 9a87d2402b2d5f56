"""Monte Carlo dropout on ten splits of the table of red wine."""

import numpy as np

from experiments.methods import column_copies, dropout_splits, first_splits
from experiments.methods.column_dropout import ARMS
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables

SETTINGS = dropout_splits.settings("wine") | {"splits": first_splits.NUM_SPLITS}
SMALL = {"table": "wine", "split": 0, "epochs": 10}
unit, rows = dropout_splits.unit, dropout_splits.rows


def units() -> dict[str, dict]:
    """Return each of ten splits."""
    return first_splits.first(dropout_splits.units(SETTINGS["table"]))


def score(drawn: dict, table: str, split: int, epochs: int) -> dict:
    """Return the scores of ``dropout_splits``, and those without copies."""
    found = dropout_splits.score(drawn, table, split, epochs)
    sd = usual_tables.split(table, split).sd
    for k, arm in enumerate(ARMS):
        mean = np.stack(np.split(drawn["mean"][k], dropout_splits.GROUPS))
        noise = -0.5 * np.log(drawn["chosen"]["tau"][k] * sd**2)
        said = Predicted(mean, np.full_like(mean, noise))
        found[arm] |= column_copies.without(said, table, split)
    return found
