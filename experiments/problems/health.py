"""The RAND Health Insurance Experiment as a table: rows in persons, in families, in sites and
plans.

Newhouse et al. (1987); the file, in the public domain, comes with statsmodels.
"""

from importlib.resources import files

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

OUTCOME = "binexp"  # any medical expense in the year
AT_ENROLMENT = ["xage", "female", "black", "educdec", "linc", "lnum", "child", "fchild", "mhi"]
AT_ENROLMENT += ["disea", "physlm", "xghindx", "hlthg", "hlthf", "hlthp", "tookphys"]
FEATURES = [*AT_ENROLMENT, "year"]
# What follows from the year's expenses, and what was known only when the year was over.
AFTERWARDS = ["outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "meddol", "lnmeddol"]
AFTERWARDS += ["totadm", "inpmis", "mentvis", "mdvis", "notmdvis", "time"]
EFFECTS = {"site": "intercept", "plan": "intercept", "family": "intercept"}


def load() -> pd.DataFrame:
    """Return a row a person and year, by person; covariates as they were in the first year."""
    raw = pd.read_csv(files("statsmodels.datasets.randhie") / "src" / "randhie.csv")
    raw = raw.sort_values(["zper", "year"], ignore_index=True)
    first = raw.groupby("zper").first()
    for name in AT_ENROLMENT:
        raw[name] = raw.zper.map(first[name])
    raw["family"] = raw.zper.map(families(first))
    raw["cell"] = 100 * raw.site + raw.plan
    return raw


def families(persons: pd.DataFrame) -> pd.Series:
    """Return a family for each person, sorted by number: all whom any of two keys joins.

    The file has no family. Neighbours in number with equal site, plan, income and size are one; so
    are persons of equal site, plan, income, deductible limit and race, wherever they stand. Some
    incomes were filled in with one number for many, so the second key joins too many rather than
    too few: no family then has rows on both sides of a split.
    """
    key = persons[["plan", "site", "linc", "num"]]
    block = (key != key.shift()).any(axis=1).cumsum().to_numpy() - 1
    key = ["site", "plan", "income", "fmde", "black"]
    alike = persons.groupby(key, sort=False).ngroup().to_numpy()
    size = block.max() + 1
    shape = 2 * (size + alike.max() + 1,)
    joined = coo_matrix((np.ones(len(block)), (block, size + alike)), shape=shape)
    component = connected_components(joined, directed=False)[1][block]
    return pd.Series(pd.factorize(component)[0], persons.index)


def parts(frame: pd.DataFrame, seed: int, share: float = 0.25) -> pd.Series:
    """Return each family's place in its cell's random order, 0, 1, ...; below 0: to be tested.

    A quarter of each cell's families is for testing, one at least, and the order does not depend on
    how many train.
    """
    cell = frame.groupby("family").cell.first()
    order = cell.sample(frac=1, random_state=seed)
    place = order.groupby(order).cumcount()
    tested = np.ceil(share * order.map(order.value_counts())).astype(int)
    return (place - tested).sort_index()
