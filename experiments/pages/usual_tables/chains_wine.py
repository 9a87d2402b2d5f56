"""Chains of two networks on ten splits of the table of red wine, four of each."""

import numpy as np

from experiments.methods import column_chains, column_copies, column_scores, first_splits
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables

CHAINS = {"learnt scales": 4, "noise by a second output": 4}  # by arm
SETTINGS = column_chains.settings("wine")
SETTINGS |= {"chains": CHAINS, "splits": first_splits.NUM_SPLITS}
SHARP = 0.02  # points of taste, which are whole numbers
SMALL = {"table": "wine", "arm": "learnt scales", "split": 0, "num_chains": 4}
unit, rows = column_chains.unit, column_chains.rows


def units() -> dict[str, dict]:
    """Return both arms on each of ten splits."""
    return {
        name: given | {"num_chains": CHAINS[given["arm"]]}
        for name, given in first_splits.first(column_chains.units(SETTINGS["table"])).items()
        if given["arm"] in CHAINS
    }


def score(drawn: dict, table: str, arm: str, split: int, num_chains: int) -> dict:
    """Return the scores of ``column_chains``, those without copies, the log densities of the two
    rows that are forecast worst, and the share of draws whose noise is below `SHARP`.
    """
    same = np.broadcast_to(drawn["base"][..., None], drawn["mean"].shape)
    said = Predicted(drawn["mean"], drawn.get("log_noise", same))
    found = column_chains.score(drawn, table, arm, split, num_chains)
    parts = usual_tables.split(table, split)
    each = column_scores.averaged(column_scores.log_densities(said, parts.y_test))
    found["lowest"] = (np.sort(each)[:2] - np.log(parts.sd)).tolist()
    found["sharp"] = float((parts.sd * np.exp(said.log_noise) < SHARP).mean())
    return found | column_copies.without(said, table, split)
