"""Formulas and columns of every kind: what is taken, as what, and what is refused, by its name."""

import datetime

import numpy as np
import pandas as pd
import pytest

import tables
from tables import models

NUM_ROWS = 24
pytestmark = pytest.mark.usefixtures("as_readers_run")


def frame(**changes):
    """Return rows of features, groups and an outcome, with other columns."""
    random = np.random.default_rng(1)
    rows = pd.DataFrame(
        {
            "y": random.normal(size=NUM_ROWS),
            "x": random.normal(size=NUM_ROWS),
            "z": random.uniform(1, 2, NUM_ROWS),
            "g": np.repeat([*"abcd"], 6),
            "h": np.tile([*"uvw"], 8),
            "n": random.integers(0, 4, NUM_ROWS),
        }
    )
    return rows.assign(**changes)


CYCLE = np.tile(np.arange(4), 6)
NAMES = [f"p{one}" for one in CYCLE]
ORDER = ["p3", "p1", "p2", "p0"]
KINDS = {
    "float": pd.Series(CYCLE * 1.0),
    "int": pd.Series(CYCLE),
    "uint8": pd.Series(CYCLE, dtype="uint8"),
    "Int64": pd.Series(CYCLE, dtype="Int64"),
    "objects of np.int64": pd.Series([np.int64(one) for one in CYCLE], dtype=object),
    "bool": pd.Series(CYCLE > 1),
    "boolean": pd.Series(CYCLE > 1, dtype="boolean"),
    "objects of bool": pd.Series([*(CYCLE > 1)], dtype=object),
    "text": pd.Series(NAMES),
    "objects of text": pd.Series(NAMES, dtype=object),
    "string": pd.Series(NAMES, dtype="string"),
    "a level called missing": pd.Series(["missing" if one == "p0" else one for one in NAMES]),
    "Categorical": pd.Series(pd.Categorical(NAMES)),
    "ordered Categorical": pd.Series(pd.Categorical(NAMES, ORDER, ordered=True)),
    "Categorical of ints": pd.Series(pd.Categorical(CYCLE)),
    "dates": pd.Series(pd.to_datetime("2020-01-01") + pd.to_timedelta(CYCLE, "D")),
    "objects of dates": pd.Series([datetime.date(2020, 1, 1 + one) for one in CYCLE]),
    "time": pd.Series(pd.to_timedelta(CYCLE, "D")),
    "text and ints": pd.Series([one or "none" for one in CYCLE.tolist()], dtype=object),
    "lists": pd.Series([[one] for one in CYCLE]),
    "complex": pd.Series(CYCLE + 0j),
    "infinite": pd.Series(np.where(np.arange(NUM_ROWS) == 5, np.inf, CYCLE)),
    "blank or 1": pd.Series(np.where(CYCLE > 1, 1.0, np.nan)),
    "one number": pd.Series(np.ones(NUM_ROWS)),
    "one text": pd.Series(["one"] * NUM_ROWS),
}
NUMBERS = ["float", "int", "uint8", "Int64", "objects of np.int64"]
FLAGS = ["bool", "boolean", "objects of bool"]
TEXTS = [name for name in KINDS if "text" in name and name not in ("text and ints", "one text")]
TEXTS += ["string", "a level called missing", "Categorical", "ordered Categorical"]
TEXTS += ["Categorical of ints"]
REFUSED = ["dates", "objects of dates", "time", "text and ints", "lists", "complex", "infinite"]
REFUSED += ["blank or 1"]
ROLES = {
    "feature": lambda f, **more: tables.model("y ~ c", f, **more),
    "group": lambda f, **more: tables.model("y ~ x + (1 | c)", f, **more),
    "outcome": lambda f, **more: tables.model("c ~ x", f, **more),
    "class": lambda f, **more: tables.model("c ~ x", f, family="categorical", **more),
    "weight": lambda f, **more: tables.model("y ~ x", f, weights="c", **more),
}


def label(one):
    """Return what a group or a class is called."""
    return str(int(one)) if isinstance(one, float) else str(one)


def expected(kind, role):
    """Return what a column of some kind is in a role, or None where it is refused."""
    levels = [*dict.fromkeys(sorted(KINDS[kind].astype(str)))] if kind not in REFUSED else []
    if kind == "ordered Categorical" and role in ("feature", "class"):
        levels = ORDER
    numeric = kind in NUMBERS or (kind in FLAGS and role in ("feature", "weight"))
    numeric = numeric or (kind == "one number" and role in ("outcome", "weight"))
    if role in ("group", "class") and kind in NUMBERS:
        levels = ["0", "1", "2", "3"]
    if kind in REFUSED or (len(levels) < 2 and not numeric):
        return None
    if role in ("group", "class"):
        return None if role == "class" and len(levels) < 3 and kind not in NUMBERS else levels
    if kind == "one number" or numeric:
        return None if role == "outcome" and kind == "one number" else KINDS[kind].to_numpy(float)
    return levels if role == "feature" and kind not in FLAGS else None


CASES = [(kind, role) for kind in KINDS for role in ROLES]


@pytest.mark.parametrize(("kind", "role"), CASES)
def test_a_column_is_what_it_says_or_is_refused_by_name(kind, role):
    right = expected(kind, role)
    f = frame(c=KINDS[kind])
    if right is None:
        with pytest.raises(ValueError, match=r"^c\b.*: given .*expected|^c: given"):
            ROLES[role](f)
        return
    made = ROLES[role](f)
    if role == "feature" and isinstance(right, list):
        assert made.columns == ("Intercept", *(f"c[T.{level}]" for level in right[1:]))
        names = KINDS[kind].astype(str).to_numpy()
        indicators = names[:, None] == np.array(right[1:])
        np.testing.assert_array_equal(made.data["x"][:, 1:], indicators)
    elif role == "feature":
        np.testing.assert_array_equal(made.data["x"][:, 1], right)
    elif role == "group":
        names = [label(one) for one in KINDS[kind]]
        assert made.parts[0].levels == right
        assert [right[i] for i in made.data["group"][0]] == [*names]
    elif role == "class":
        names = [label(one) for one in KINDS[kind]]
        assert [made.classes[int(i)] for i in made.data["y"]] == [*names]
        assert made.classes == right
    else:
        np.testing.assert_array_equal(made.data["y" if role == "outcome" else "weights"], right)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", ["float", "Int64", "boolean", "text", "Categorical", "dates"])
def test_a_gap_is_refused_with_its_row_and_a_remedy(kind, role):
    column = KINDS[kind].copy()
    column[7] = None
    f = frame(c=column).set_axis([f"row {i}" for i in range(NUM_ROWS)])
    with pytest.raises(ValueError, match=r"c: given nothing in 1 rows, .*'row 7', .*dropna\(.*'c'"):
        ROLES[role](f)


@pytest.mark.parametrize(
    "kind",
    [
        *("float", "Int64", "boolean", "text"),
        "ordered Categorical",
        "Categorical of ints",
        "objects of bool",
    ],
)
def test_a_gap_is_filled_if_that_is_asked_for(kind):
    """By the median of numbers, or what is most frequent; later rows by what training rows had."""
    column = KINDS[kind].copy()
    column[7] = None  # of 3 or p3
    made = tables.model("y ~ c", frame(c=column), missing="median")
    whole = KINDS[kind].copy()
    whole[7] = {
        "float": 1.0,
        "Int64": 1,
        "Categorical of ints": 0,
        "text": "p0",
        "ordered Categorical": "p1",  # the first of three in its order
    }.get(kind, False)
    by_hand = tables.model("y ~ c", frame(c=whole))
    assert made.columns == by_hand.columns
    np.testing.assert_array_equal(made.data["x"], by_hand.data["x"])
    later = models.encode(made, frame(c=column).iloc[[7]])
    np.testing.assert_array_equal(later["x"], made.data["x"][[7]])


@pytest.mark.parametrize("kind", ["dates", "time", "objects of dates", "absent"])
def test_what_cannot_be_filled_is_refused_by_name(kind):
    f = frame() if kind == "absent" else frame(c=KINDS[kind])
    with pytest.raises(ValueError, match=r"\bc\b"):
        tables.model("y ~ c", f, missing="median")


def test_flags_of_every_dtype_make_the_same_model():
    one, *others = (tables.model("y ~ c + (1 | g)", frame(c=KINDS[kind])) for kind in FLAGS)
    for other in others:
        assert other.columns == one.columns and other.parts[0].levels == one.parts[0].levels
        np.testing.assert_array_equal(other.data["x"], one.data["x"])
        pd.testing.assert_series_equal(tables.priors(other), tables.priors(one))


@pytest.mark.parametrize("ids", [[1, 2, 3, 10], [1000001, 1000002, 1000003, 2000000]])
def test_groups_have_the_same_labels_as_ints_floats_and_text(ids):
    of = np.repeat(ids, 6)
    labels = [str(one) for one in ids]
    made = tables.model("y ~ x + (1 | g)", frame(g=of))
    assert made.parts[0].levels == labels
    for later in (of.astype(float), of.astype(str), pd.Series(of, dtype="Int64")):
        np.testing.assert_array_equal(
            models.encode(made, frame(g=later))["group"][0], made.data["group"][0]
        )
    new = np.where(np.arange(NUM_ROWS) < 6, 77, of)
    assert models.encode(made, frame(g=new))["group"][0][[0, 6]].tolist() == [4, 1]


def test_the_last_class_of_an_order_is_predicted():
    said = pd.Categorical(
        np.where(np.arange(NUM_ROWS) % 3, "no", "yes"), ["yes", "no"], ordered=True
    )
    made = tables.model("c ~ x", frame(c=said), family="bernoulli")
    assert made.classes == ["yes", "no"]
    np.testing.assert_array_equal(made.data["y"], np.arange(NUM_ROWS) % 3 > 0)
    again = models.encode(made, frame(c=np.asarray(said)).iloc[:3])
    np.testing.assert_array_equal(again["y"], [0, 1, 1])
    with pytest.raises(ValueError, match=r"c: given 'perhaps', expected \['yes', 'no'\]"):
        models.encode(made, frame(c="perhaps"))


def test_columns_of_noise_do_not_change_another_columns_prior():
    random = np.random.default_rng(4)
    more = {f"noise{i}": random.normal(size=NUM_ROWS) for i in range(24)}
    few = tables.priors(tables.model("y ~ x + (1 | g)", frame()))
    many = tables.model("y ~ x + " + " + ".join(more) + " + (1 | g)", frame(**more))
    assert len(many.columns) == 26
    pd.testing.assert_series_equal(tables.priors(many)[few.index], few)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (lambda f: f.to_dict("list"), r"frame: given dict, expected a pandas.DataFrame"),
        (lambda f: None, r"frame: given NoneType, .*frame.to_pandas\(\)"),
        (lambda f: f.iloc[:0], "frame: given no rows"),
        (lambda f: pd.concat([f, f[["x"]]], axis=1), "expected the column 'x' in it once"),
        (lambda f: f.drop(columns="x"), "expected the column 'x'"),
    ],
)
def test_a_frame_that_is_none_is_refused(given, text):
    made = tables.model("y ~ x", frame())
    for call in (lambda f: tables.model("y ~ x", f), lambda f: models.encode(made, f)):
        with pytest.raises(ValueError, match=text):
            call(given(frame()))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"family": "gaussian"}, "family: given 'gaussian', expected one of"),
        ({"missing": "mean"}, "missing: given 'mean', expected 'refuse' or 'median'"),
        ({"network": 3}, "network: given 3, expected a networks.MLP"),
        ({"wieghts": "z"}, r"options: given \['wieghts'\], expected"),
        ({"weights": "nope"}, "expected the column 'nope'"),
        ({"weights": "y"}, "y: given .*expected weights: numbers of 0 or more"),
        ({"censored": "n"}, "n: given .*expected censored: 0, 1 or -1"),
        ({"exposure": "z"}, r"options: given \['exposure'\]"),
        ({"trials": "n"}, r"options: given \['trials'\]"),
        ({"noise": "nope"}, "expected the column 'nope'"),
        ({"noise": "network"}, "noise: given 'network', expected network="),
        ({"priors": {"X": 1}}, r"priors: given \['X'\], expected NumPyro distributions by names"),
        ({"family": "binomial"}, "trials: given none"),
        ({"family": "poisson", "noise": "x"}, "noise: given 'x', expected None"),
        ({"family": "poisson"}, "y: given .* in row 0, expected whole numbers"),
        ({"family": "gamma"}, "y: given .* in row .*, expected numbers above 0"),
        ({"family": "beta"}, "y: given .* in row .*, expected numbers between 0 and 1"),
        ({"family": "ordinal"}, "y: given the classes"),
        ({"family": "binomial", "trials": "one"}, "y: given 3 in row 0, expected at most one, 1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, text):
    y = {"ordinal": frame().g.eq("a"), "binomial": frame().n}.get(settings.get("family"), frame().y)
    with pytest.raises(ValueError, match=text):
        tables.model("y ~ x", frame(y=y, one=1), **settings)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"h": "new"}, "given levels that are new, .*new"),
        ({"x": np.nan}, "x: given nothing in 24 rows, first in row 0"),
        ({"x": -np.inf}, "x: given an infinite number in row 0"),
        pytest.param({"z": 0.0}, r"log\(z\)", id="zero"),
        pytest.param({"x": "old"}, "x: given", id="text"),
        pytest.param({"h": 1.5}, "h: given", id="number"),
    ],
)
def test_later_rows_that_do_not_fit_are_refused(changes, text):
    made = tables.model("y ~ x + h + log(z) + (1 | g)", frame())
    with pytest.raises(ValueError, match=text):
        models.encode(made, frame(**changes))
