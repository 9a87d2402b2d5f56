"""Chains of a network with learnt scales on ten splits of the table of red wine, four of each."""

import numpy as np

from experiments.methods import column_chains, column_copies, first_splits
from experiments.methods.column_scores import Predicted

ARM, NUM_CHAINS = "learnt scales", 4
SETTINGS = column_chains.settings("wine")
SETTINGS |= {"chains": {ARM: NUM_CHAINS}, "splits": first_splits.NUM_SPLITS}
SMALL = {"table": "wine", "arm": ARM, "split": 0, "num_chains": NUM_CHAINS}
unit, rows = column_chains.unit, column_chains.rows


def units() -> dict[str, dict]:
    """Return each of ten splits."""
    return {
        name: given | {"num_chains": NUM_CHAINS}
        for name, given in first_splits.first(column_chains.units(SETTINGS["table"])).items()
        if given["arm"] == ARM
    }


def score(drawn: dict, table: str, arm: str, split: int, num_chains: int) -> dict:
    """Return the scores of ``column_chains``, and those without copies."""
    noise = np.broadcast_to(drawn["base"][..., None], drawn["mean"].shape)
    found = column_chains.score(drawn, table, arm, split, num_chains)
    return found | column_copies.without(Predicted(drawn["mean"], noise), table, split)
