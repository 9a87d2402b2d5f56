"""A table with each row once: arms of the usual tables on splits of its distinct rows, by the rule
of the published ones.
"""

from helpers import common

from functools import partial

import numpy as np

from experiments.methods import (
    column_baselines,
    column_chains,
    column_dropout,
    column_scores,
    column_tails,
    column_trees,
    first_splits,
)
from experiments.methods.column_rivals import repeated
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables

CHAINS, TREES, DROPOUT = "learnt scales", "trees", column_dropout.ARMS[1]
ARMS = ["ridge", TREES, DROPOUT, CHAINS, "process, RBF"]


def settings(seed: int, table: str) -> dict:
    """Return what a table's result is told to be."""
    about = {"arms": ARMS, "splits": first_splits.NUM_SPLITS, "chains": column_tails.NUM_CHAINS}
    return {"seed": seed, "table": table, **about}


def units() -> dict[str, dict]:
    """Return every arm on each of ten splits."""
    return {
        f"{arm}; split {split}": {"arm": arm, "split": split}
        for arm in ARMS
        for split in range(first_splits.NUM_SPLITS)
    }


def parts(table: str, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that train and those that test, of rows that are all distinct."""
    distinct = usual_tables.read(table).drop_duplicates().to_numpy()
    train, test = usual_tables.published(len(distinct))[split]
    return distinct[train], distinct[test]


def fitted(seed: int, table: str, arm: str, split: int) -> dict:
    """Fit an arm; return what it says of the rows that test."""
    key = partial(common.key, seed, arm, split)
    train, test = parts(table, split)
    rows = usual_tables.standardized(train, test)
    if arm == CHAINS:
        return column_tails.chains(key, arm, table, rows)[arm]
    if arm == DROPOUT:
        return column_tails.dropout(key, table, train, test, rows)[arm]
    if arm == TREES:
        return boosted(key, rows)
    return column_tails.baseline(key, arm, rows)[arm]


def boosted(key, rows):
    """Choose and fit trees; return the normals that they say."""
    seed = int(common.generator(key("seed")).integers(2**31))
    found = column_trees.choose(seed, rows)
    given = rows.x_train, rows.y_train, rows.x_test
    every = column_trees.stages(seed, found.rate, found.depth, *given)
    mean = every[column_trees.NUMBERS.index(found.number)]
    said = column_baselines.one_noise(mean, found.left, rows.y_train)
    return {"mean": said.mean[0, 0], "sd": np.exp(said.log_noise[0, 0])}


def scored(drawn: dict, table: str, arm: str, split: int) -> dict:
    """Return the scores of an arm; of chains how they agree, too."""
    rows = usual_tables.standardized(*parts(table, split))
    said = (
        repeated(drawn["mean"], drawn["sd"])
        if "sd" in drawn
        else Predicted(drawn["mean"], drawn["log_noise"])
    )
    found = column_scores.scored(said, rows.y_test, rows.sd, split)
    return found | (column_chains.agreement(drawn) if arm == CHAINS else {})
