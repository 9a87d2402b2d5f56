"""Rows that test and have a copy among the rows that train: scores without them.

A forecast for such a row asks what was learnt by heart and not what is known of a new row.
"""

import numpy as np
from jaxtyping import Bool

from experiments.methods import column_scores
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables


def fresh(table: str, number: int) -> Bool[np.ndarray, " row"]:
    """Return which rows that test have columns that no row that trains has."""
    rows = usual_tables.read(table).to_numpy()
    train, test = (rows[part, :-1] for part in usual_tables.published(len(rows))[number])
    known = {row.tobytes() for row in train}
    return np.array([row.tobytes() not in known for row in test])


def without(predicted: Predicted, table: str, number: int) -> dict:
    """Return RMSE, mean log density and CRPS of rows without a copy, and those of copies."""
    rows, new = usual_tables.split(table, number), fresh(table, number)
    found = {"copies": float(1 - new.mean())}
    for at, kept in (("fresh", new), ("copies", ~new)):
        part = Predicted(*(values[..., kept] for values in predicted))
        scores = column_scores.three(part, rows.y_test[kept], rows.sd, number)
        found |= {f"{name}_{at}": value for name, value in scores.items()}
    return found
