"""The insurance experiment's table: no column tells the answer, and no family stands on both sides
of a split.
"""

import numpy as np
import pandas as pd
import pytest

from experiments.pages.real_data import table_fits
from experiments.problems import health

FRAME = health.load()
# what a plan is
DESIGN = {"plan", "site", "coins", "idp", "logc", "fmde", "lpi", "mdeoff", "pioff"}
# who, or what a feature says already
PERSON = {"zper", "family", "cell", "income", "num", "lfam", "ghindx"}


def test_every_column_has_a_place_and_what_follows_from_the_year_is_no_feature():
    places = [set(health.FEATURES), set(health.AFTERWARDS), DESIGN, PERSON, {health.OUTCOME}]
    assert set.union(*places) == set(FRAME.columns) and sum(map(len, places)) == len(FRAME.columns)
    spent = FRAME.meddol > 0
    assert (spent == (FRAME.binexp == 1)).all()  # so that any of the expenses tells the outcome
    assert {"time", "meddol", "outpdol", "mdvis", "inpmis"} <= set(health.AFTERWARDS)


def test_covariates_are_those_of_the_first_year():
    assert FRAME.groupby("zper")[health.AT_ENROLMENT].nunique(dropna=False).max().max() == 1


def test_no_arm_sees_what_was_known_afterwards(monkeypatch):
    """Of a hundred families, by one setting of the trees."""
    one = {"learning_rate": [0.05], "max_iter": [50], "max_leaf_nodes": [4]}
    monkeypatch.setitem(table_fits.SETTINGS, "trees", one)
    parts = table_fits.split("family", 4, 0)
    train, test = (rows[rows.family.isin(rows.family.unique()[:100])] for rows in parts)
    taken = [rows.assign(**dict.fromkeys(health.AFTERWARDS, 0.0)) for rows in (train, test)]
    for arm in (table_fits.logistic, table_fits.boosted):
        np.testing.assert_array_equal(arm(train, test), arm(*taken))
    (_, plain, features), (_, changed, _) = table_fits.bent(train, test), table_fits.bent(*taken)
    # and `sampled` encodes no others
    np.testing.assert_array_equal(plain[features], changed[features])


def test_families_are_whole_and_persons_of_one_key_are_one_family():
    assert (FRAME.groupby("zper").family.nunique() == 1).all() and (
        FRAME.groupby("family").cell.nunique() == 1
    ).all()
    first = FRAME.groupby("zper").first()
    alike = first.groupby(["site", "plan", "income", "fmde", "black"]).family.nunique()
    assert (alike == 1).all()


@pytest.mark.parametrize(
    ("what", "size", "part"),
    [("family", 4, 0), ("family", 1000, 0), ("cell", 16, 0), ("site", 16, 5), ("plan", 16, 2)],
)
def test_a_split_keeps_families_apart_and_leaves_out_what_it_says(what, size, part):
    train, test = table_fits.split(what, size, part)
    assert len(train) and len(test) and not set(train.family) & set(test.family)
    if what == "family":
        assert set(train.cell) == set(test.cell) == set(FRAME.cell)
    else:
        assert not set(train[what]) & set(test[what])
    assert train.groupby("cell").family.nunique().max() <= size


def test_parts_cover_every_level_once():
    for what, parts in table_fits.SETTINGS["num_parts"].items():
        levels = pd.concat(
            [table_fits.split(what, 16, i)[1][what].drop_duplicates() for i in range(parts)]
        )
        assert sorted(levels) == sorted(FRAME[what].unique())


def test_families_to_be_tested_do_not_depend_on_how_many_train():
    few, all_ = (table_fits.split("family", n, 0) for n in (4, 1000))
    assert set(few[1].family) == set(all_[1].family) and set(few[0].family) < set(all_[0].family)
