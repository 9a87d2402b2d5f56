"""Rows beyond those that train: the arms of the usual tables on a table whose largest values of one
column are left out.

Lengths, grids and priors are those of the published splits.
"""

from helpers import common, mcmc

from functools import partial

import numpy as np

from experiments.methods import (
    column_baselines,
    column_chains,
    column_dropout,
    column_networks,
    column_rivals,
    column_scores,
    dropout_splits,
    runs,
)
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables

NUM_CHAINS, SHARE = 4, 0.9  # of the rows that train


def parts(table: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that train and those that test: whose column is above its 90 % quantile."""
    frame = usual_tables.read(table)
    beyond = (frame[column] > frame[column].quantile(SHARE)).to_numpy()
    order = np.random.default_rng(0).permutation(len(frame))  # folds take rows in turn
    rows, beyond = frame.to_numpy()[order], beyond[order]
    return rows[~beyond], rows[beyond]


def chains(key, arm, table, rows):
    """Sample an arm; return what it says, and its run."""
    made = column_chains.model(table, **column_chains.ARMS[arm])
    posterior = mcmc.sample(
        key("chains"),
        made.log_density,
        column_chains.starts(key("start"), made.shapes, NUM_CHAINS),
        data=column_networks.observed(rows.x_train, rows.y_train),
        **column_chains.LENGTHS,
    )
    said = column_chains.said(made, posterior.draws, np.float32(rows.x_test))
    base = np.asarray(posterior.draws["log_noise"])
    return {arm: Predicted(*said)._asdict() | {"base": base, **runs.kept_run(posterior)}}


def trained(key, table, rows):
    """Fit the network by other means; return what each says."""
    setting, found = column_rivals.chosen(key("folds"), table, rows), {}
    for arm, members in (("best fit", 1), ("ensemble of 5", column_rivals.MEMBERS)):
        said, noise = column_rivals.ensemble(key(arm), table, rows, setting, members)
        single = column_rivals.repeated(said.mean[0, 0], noise) if members == 1 else said
        found[arm] = single._asdict()
    found["Laplace"] = column_rivals.laplace(key("laplace"), table, rows)[0]._asdict()
    found["mean field"] = column_rivals.mean_field(key("mean field"), table, rows)[0]._asdict()
    return found


def baseline(key, arm, rows):
    """Fit a model that is no network; return what it says."""
    seed = int(common.generator(key("seed")).integers(2**31))
    said = column_baselines.ARMS[arm](rows, seed)
    return {arm: {"mean": said.mean[0, 0], "sd": np.exp(said.log_noise[0, 0])}}


def dropout(key, table, train, test, rows):
    """Train by dropout with a free precision; return what it says."""
    grid, arm = dropout_splits.grid_of(table), column_dropout.ARMS[1]
    means, (_, free), _ = column_dropout.repeated(
        key("dropout"), train, test, grid, dropout_splits.EPOCHS
    )
    mean = np.stack(np.split(means[:, 1], dropout_splits.GROUPS))
    noise = -0.5 * np.log(free.tau * rows.sd**2)
    return {arm: {"mean": mean, "log_noise": np.full_like(mean, noise)}}


KINDS = {
    "learnt scales": "chains",
    "noise by a second output": "chains",
    "trained": "trained",
    **dict.fromkeys(column_baselines.ARMS, "baseline"),
    column_dropout.ARMS[1]: "dropout",
}


def fitted(seed: int, kind: str, table: str, column: str) -> dict:
    """Fit what a kind of ``KINDS`` names; return by arm what is said of the rows that test."""
    key = partial(common.key, seed, kind, table, column)
    train, test = parts(table, column)
    rows = usual_tables.standardized(train, test)
    if KINDS[kind] == "chains":
        return chains(key, kind, table, rows)
    if KINDS[kind] == "trained":
        return trained(key, table, rows)
    if KINDS[kind] == "baseline":
        return baseline(key, kind, rows)
    return dropout(key, table, train, test, rows)


def scored(drawn: dict, table: str, column: str) -> dict:
    """Return by arm the scores, coverage included; of chains how they agree, too."""
    rows, found = usual_tables.standardized(*parts(table, column)), {}
    for arm, of in drawn.items():
        predicted = (
            column_rivals.repeated(of["mean"], of["sd"])
            if "sd" in of
            else Predicted(of["mean"], of["log_noise"])
        )
        found[arm] = column_scores.scored(predicted, rows.y_test, rows.sd, 0)
        if "base" in of:
            found[arm] |= column_chains.agreement(of)
            found[arm]["far"] = int((~column_scores.near(of["stats"]["log_density"])).sum())
    return found
