"""Beyond the rows: concrete, of each column in turn the largest tenth left out to test.

The arms of the table but scales of 1, the Matern process and the published grid of dropout; four
chains of an arm.
"""

from experiments.methods import column_scores, column_tails

SEED, TABLE = 3308, "concrete"
COLUMNS = ["cement", "slag", "fly_ash", "water", "superplasticizer"]
COLUMNS += ["coarse_aggregate", "fine_aggregate", "age_days"]
SETTINGS = {
    "seed": SEED,
    "table": TABLE,
    "columns": COLUMNS,
    "share": column_tails.SHARE,
    "chains": column_tails.NUM_CHAINS,
}
SMALL = {"kind": "ridge", "column": COLUMNS[0]}
KINDS = [kind for kind in column_tails.KINDS if "Matern" not in kind]  # as RBF within the rows


def units() -> dict[str, dict]:
    """Return every kind of arm beyond every column."""
    return {
        f"{kind}; {column}": {"kind": kind, "column": column}
        for kind in KINDS
        for column in COLUMNS
    }


def unit(kind: str, column: str) -> dict:
    """Fit what a kind names; return by arm what is said of the rows that test."""
    return column_tails.fitted(SEED, kind, TABLE, column)


def score(drawn: dict, kind: str, column: str) -> dict:
    """Return the scores by arm."""
    return column_tails.scored(drawn, TABLE, column)


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row an arm, whose entries are lists over columns."""
    found = {}
    for of_arms in scored.values():
        for arm, one in of_arms.items():
            found.setdefault(arm, []).append(one)
    return [column_scores.row(arm, each) for arm, each in found.items()]
