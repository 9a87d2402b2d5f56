"""Chains of three networks on ten splits of the airfoil table, four of each."""

from experiments.methods import column_chains, first_splits

CHAINS = dict.fromkeys(column_chains.ARMS, 4)  # by arm
SETTINGS = column_chains.settings("airfoil")
SETTINGS |= {"chains": CHAINS, "splits": first_splits.NUM_SPLITS}
SMALL = {"table": "airfoil", "arm": "noise by a second output", "split": 0, "num_chains": 4}
unit, score, rows = column_chains.unit, column_chains.score, column_chains.rows


def units() -> dict[str, dict]:
    """Return every arm on each of ten splits."""
    return {
        name: given | {"num_chains": CHAINS[given["arm"]]}
        for name, given in first_splits.first(column_chains.units(SETTINGS["table"])).items()
    }
