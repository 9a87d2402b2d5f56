"""The eight tables: four that mixed models are taught with, and four that statsmodels carries.

Columns of groups are text, and numbers whose slopes differ by group are centred.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from statsmodels import datasets

FOLDER = Path(__file__).parents[2] / "tests/tables"


class Table(NamedTuple):
    """A table, and the model that both libraries are asked for."""

    formula: str
    family: str  # as ``tables`` calls it
    read: Callable[[], pd.DataFrame]
    trials: str | None = None  # the column of a binomial outcome's


def _file(name, *groups):
    """Return a table of the tests, columns of groups as text."""
    frame = pd.read_csv(FOLDER / f"{name}.csv")
    return frame.astype(dict.fromkeys(groups, str))


def _ticks():
    """Return ticks on grouse chicks: a row a chick, with chick, brood and place."""
    frame = _file("grouseticks", "INDEX", "BROOD", "LOCATION", "YEAR")
    return frame.assign(h=frame.HEIGHT - frame.HEIGHT.mean())


def _firms():
    """Return investments of eleven firms in twenty years, as centred logarithms."""
    frame = datasets.grunfeld.load_pandas().data
    logs = np.log(frame[["invest", "value", "capital"]])
    return (logs - logs.mean() * [0, 1, 1]).assign(firm=frame.firm)


def _cities():
    """Return counts of smokers among patients and others, four rows a city."""
    frame = datasets.china_smoking.load_pandas().data
    frame = frame.rename_axis("city").reset_index().melt("city", value_name="count")
    smoker = frame.variable.str.contains("smoking_yes").astype(float)
    cancer = frame.variable.str.contains("cancer_yes").astype(float)
    return frame.assign(smoker=smoker, cancer=cancer, both=smoker * cancer)


def _affairs():
    """Return 6366 answers to whether there was an affair, with both partners' occupations."""
    frame = datasets.fair.load_pandas().data
    jobs = frame[["occupation", "occupation_husb"]].astype(int).astype(str)
    return frame.assign(
        had=(frame.affairs > 0).astype(int), job=jobs.iloc[:, 0], his=jobs.iloc[:, 1]
    )


def _visits():
    """Return visits to a doctor, of every twentieth person, grouped by the number of diseases."""
    frame = datasets.randhie.load_pandas().data.iloc[::20].reset_index(drop=True)
    return frame.assign(mdvis=frame.mdvis.astype(int), disea=frame.disea.map("{:g}".format))


TABLES = {
    "sleepstudy": Table(
        "Reaction ~ Days + (Days || Subject)", "normal", lambda: _file("sleepstudy", "Subject")
    ),
    "Penicillin": Table(
        "diameter ~ 1 + (1 | plate) + (1 | sample)", "normal", lambda: _file("Penicillin")
    ),
    "grunfeld": Table("invest ~ value + capital + (value + capital || firm)", "normal", _firms),
    "cbpp": Table(
        "incidence ~ period + (1 | herd)",
        "binomial",
        lambda: _file("cbpp", "herd", "period"),
        "size",
    ),
    "fair": Table(
        "had ~ rate_marriage + age + yrs_married + religious + educ + (1 | job) + (1 | his)",
        "bernoulli",
        _affairs,
    ),
    "grouseticks": Table(
        "TICKS ~ YEAR + h + (1 | INDEX) + (1 | BROOD) + (1 | LOCATION)", "poisson", _ticks
    ),
    "china_smoking": Table(
        "count ~ smoker + cancer + both + (smoker + cancer + both || city)", "poisson", _cities
    ),
    "randhie": Table(
        "mdvis ~ lpi + fmde + physlm + hlthf + hlthp + (1 | disea)", "negative binomial", _visits
    ),
}
