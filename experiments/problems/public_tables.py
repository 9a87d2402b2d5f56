"""Six tables that come with statsmodels or with lme4, each with the models it is asked for.

Numbers keep their units, columns of groups are text.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from statsmodels import datasets

FOLDER = Path(__file__).parents[2] / "tests/tables"
YEARS = [str(year) for year in range(1960, 2012, 10)]


class Table(NamedTuple):
    """A table, and what a model of it is made of."""

    outcome: str
    plain: tuple[str, ...]  # columns of a straight line alone
    curved: tuple[str, ...]  # columns that splines may bend
    slopes: str  # what a group may have of its own; "" for a level alone
    group: str
    read: Callable[[], pd.DataFrame]
    family: str = "normal"
    others: str = ""  # levels beside those of the group
    trials: str | None = None  # the column of a binomial outcome's
    is_new: bool = True  # whether a new group is a question of the table


def sleep():
    """Return reaction times of 18 people over ten days of little sleep (Belenky et al. 2003)."""
    return pd.read_csv(FOLDER / "sleepstudy.csv").astype({"Subject": str})


def ticks():
    """Return ticks on 403 grouse chicks in broods and places (Elston et al. 2001)."""
    groups = ("INDEX", "BROOD", "LOCATION", "YEAR")
    return pd.read_csv(FOLDER / "grouseticks.csv").astype(dict.fromkeys(groups, str))


def firms():
    """Return log investments of eleven firms in twenty years (Grunfeld 1958)."""
    frame = datasets.grunfeld.load_pandas().data
    return frame.assign(**np.log(frame[["invest", "value", "capital"]]))


def births():
    """Return log births a woman, every tenth year, of every fifth country (World Bank); the table
    counts regions among them, here two of 39.
    """
    frame = datasets.fertility.load_pandas().data.dropna(subset=YEARS).iloc[::5]
    frame = frame.rename(columns={"Country Code": "country"})
    frame = frame.melt("country", value_vars=YEARS, var_name="year", value_name="births")
    return frame.assign(year=frame.year.astype(float), births=np.log(frame.births))


def affairs():
    """Return whether 637 women, every tenth of those asked, had an affair (Fair 1978)."""
    frame = datasets.fair.load_pandas().data.iloc[::10].reset_index(drop=True)
    return frame.assign(had=frame.affairs > 0, job=frame.occupation.astype(int).astype(str))


def schools():
    """Return pupils above the national median in 303 districts of California (Gill 2000)."""
    frame = datasets.star98.load_pandas().data
    district = [f"district {i}" for i in range(len(frame))]
    return frame.assign(pupils=frame.NABOVE + frame.NBELOW, district=district)


ASKED = ("rate_marriage", "age", "yrs_married", "religious", "educ")
OF_SCHOOLS = (
    "LOWINC", "PERASIAN", "PERBLACK", "PERHISP", "PERMINTE", "AVYRSEXP", "AVSALK", "PERSPENK",
    "PTRATIO", "PCTAF", "PCTCHRT", "PCTYRRND",
)  # fmt: skip
TABLES = {
    "sleepstudy": Table("Reaction", (), ("Days",), "Days", "Subject", sleep),
    "grunfeld": Table(
        "invest", (), ("value", "capital"), "value + capital", "firm", firms
    ),
    "fertility": Table("births", (), ("year",), "year", "country", births),
    "grouseticks": Table(
        "TICKS", ("YEAR",), ("HEIGHT",), "YEAR", "LOCATION", ticks, "negative binomial",
        others=" + (1 | BROOD)", is_new=False,
    ),
    "fair": Table("had", (), ASKED, " + ".join(ASKED), "job", affairs, "bernoulli", is_new=False),
    "star98": Table(
        "NABOVE", (), OF_SCHOOLS, "", "district", schools, "binomial",
        trials="pupils", is_new=False,
    ),
}  # fmt: skip
