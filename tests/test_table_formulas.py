"""A formula, as lme4 writes it: its columns and terms, and what cannot be read."""

from helpers import networks

import warnings

import jax
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest

import tables
from tables import formulas, models
from tests.test_table_inputs import frame

pytestmark = pytest.mark.usefixtures("as_readers_run")


def shape(formula, **settings):
    """Return the columns of a model, and name, factors, columns and correlation of its terms."""
    made = tables.model(formula, frame(), **settings)
    terms = [(p.term.name, p.term.factors, p.columns, p.term.correlated) for p in made.parts]
    return made.columns, terms


ONE = ("Intercept",)
TWO = ("Intercept", "x")


@pytest.mark.parametrize(
    ("formula", "columns", "terms"),
    [
        ("y ~ 1", ONE, []),
        ("y~x+(1|g)", TWO, [("g", ("g",), ONE, True)]),
        ("y ~ (x | g)", ONE, [("g", ("g",), TWO, True)]),
        (
            "y ~ x + (x || g)", TWO,
            [("g", ("g",), ONE, False), ("g: x", ("g",), ("x",), False)],
        ),
        ("y ~ 0 + x + (0 + x | g)", ("x",), [("g", ("g",), ("x",), True)]),
        ("y ~ x + (1 | g:h)", TWO, [("g:h", ("g", "h"), ONE, True)]),
        (
            "y ~ x + (1 | g/h)", TWO,
            [("g", ("g",), ONE, True), ("g:h", ("g", "h"), ONE, True)],
        ),
        (
            "y ~ x + (1 | g) + (0 + x | g)", TWO,
            [("g: 1", ("g",), ONE, True), ("g: 0 + x", ("g",), ("x",), True)],
        ),
        ("y ~ x + (1 | g) + (1 | h)", TWO, [("g", ("g",), ONE, True), ("h", ("h",), ONE, True)]),
        (
            "y ~ log(z) + (log(z) | g)", ("Intercept", "log(z)"),
            [("g", ("g",), ("Intercept", "log(z)"), True)],
        ),
        ("y ~ (x + z)", ("Intercept", "x", "z"), []),
        ("y ~ x * (z + h)", (*TWO, "z", "h[T.v]", "h[T.w]", "x:z", "x:h[T.v]", "x:h[T.w]"), []),
        ("y ~ x + I(x**2) - 1", ("x", "I(x ** 2)"), []),
    ],
)  # fmt: skip
def test_a_formula_is_lme4s(formula, columns, terms):
    assert shape(formula) == (columns, terms)


def test_a_correlation_is_what_one_bar_has_and_two_have_not():
    one, two, apart = (
        tables.model(f"y ~ x + {terms}", frame())
        for terms in ("(x | g)", "(x || g)", "(1 | g) + (0 + x | g)")
    )
    assert "correlation_g" in one.priors
    for made in (two, apart):
        assert not any(name.startswith("correlation") for name in made.priors)
    sds = [sorted(tables.priors(made).filter(like="sd_g")) for made in (one, two, apart)]
    assert sds[0] == sds[1] == sds[2] and len(sds[0]) == 2
    assert {"sd_g[Intercept]", "sd_g: x"} <= {*two.priors}


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (None, "formula: given None, expected 'outcome"),
        ("y", "formula: given 'y', expected 'outcome"),
        ("y ~ x ~ z", "formula: given"),
        ("~ x", "expected an outcome"),
        ("y ~ x + (1 | g", "closed parentheses"),
        ("y ~ x)", "closed parentheses"),
        ("y ~ x + (1 | g) + (1 | g)", "each term of a group once"),
        ("y ~ x + (1 | )", "expected the column"),
        ("y ~ nope", "expected the column 'nope'"),
        ("nope ~ x", "expected the column 'nope'"),
        ("y ~ x + (1 | nope)", "expected the column 'nope'"),
        ("y ~ x + (nope | g)", "expected the column 'nope'"),
        ("y ~ x | g", "formula: given"),
        ("y ~ x +* z", "formula: given"),
        ("y ~ log(x)", r"formula: given .*log\(x\)"),
        ("y ~ x + (head | g)", r"formula: given \(head"),
        ("y ~ x + (network | g)", "expected network="),
        ("y ~ x + (separate | g)", "expected network="),
    ],
)
def test_a_formula_that_cannot_be_read_is_refused(formula, text):
    with pytest.raises(ValueError, match=text):
        tables.model(formula, frame())


def test_separate_networks_have_no_common_one():
    with pytest.raises(ValueError, match="expected 'separate' alone"):
        tables.model("y ~ x + (separate | g) + (head | h)", frame(), network=networks.MLP((3,)))


def test_a_correlation_cannot_be_fixed():
    with pytest.raises(ValueError, match="given a Delta for correlation_g"):
        tables.model("y ~ x + (x | g)", frame(), priors={"correlation_g": dist.Delta(1.0)})


@pytest.mark.parametrize(
    ("formula", "same"),
    [
        ("y ~ .", "y ~ x + z + g + h + n"),
        ("y ~ . - h + (1 | g)", "y ~ x + z + n + (1 | g)"),
        ("y ~ 0 + . + (1 | h)", "y ~ 0 + x + z + g + n + (1 | h)"),
        ("y ~ x + {0.5 * z}", "y ~ x + {0.5 * z}"),
    ],
)
def test_a_dot_is_every_other_column(formula, same):
    one, other = (tables.model(text, frame()) for text in (formula, same))
    assert {*one.columns} == {*other.columns} and one.formula == formula
    later = frame().head(3).drop(columns="y")
    assert models.encode(one, later)["x"].shape == models.encode(other, later)["x"].shape


@pytest.mark.parametrize("name", [0, 1])
def test_a_column_that_formulaic_takes_for_an_intercept_is_refused(name):
    odd = frame().rename(columns={"x": name})
    with pytest.raises(ValueError, match="intercept: rename the column"):
        tables.model(f"y ~ z + `{name}`", odd)


@pytest.mark.parametrize("name", [7, "a b"])
def test_a_columns_name_may_be_a_number_or_have_spaces(name):
    odd = frame().rename(columns={"x": name})
    made = tables.model(f"y ~ z + `{name}` + (`{name}` | g)", odd)
    assert made.columns == ("Intercept", "z", str(name))
    assert made.parts[0].columns == ("Intercept", str(name))
    np.testing.assert_array_equal(made.data["x"][:, 2], odd[name])


@pytest.mark.parametrize(("was", "formula"), [("y", "`a b` ~ x"), ("g", "y ~ x + (1 | `a b`)")])
def test_an_outcome_and_a_group_may_have_spaces(was, formula):
    made = tables.model(formula, frame().rename(columns={was: "a b"}))
    assert len(made.data["y"]) == 24


@pytest.mark.parametrize("term", ["poly(x, 2)", "scale(x)", "center(x)", "bs(x, df=4)"])
def test_functions_that_learn_from_training_rows(term):
    made = tables.model(f"y ~ {term}", frame())
    assert len(made.columns) > 1


def test_parts_of_a_formula_are_told_apart():
    outcome, right, terms = formulas.parse("y ~ log(x) + (log(x) + z || a:b) + w")
    assert (outcome, right) == ("y", "log(x) + w")
    assert {(term.factors, term.correlated) for term in terms} == {(("a", "b"), False)}
    assert [term.inner for term in terms] == ["1", "0 + log(x)", "0 + z"]


def test_a_dot_refuses_what_it_would_lose():
    for name in (0, 1):
        with pytest.raises(ValueError, match="intercept: rename the column"):
            tables.model("y ~ .", frame().rename(columns={"x": name}))
    with pytest.raises(ValueError, match="expected other columns for the dot"):
        tables.model("y ~ . + (1 | g)", frame()[["y", "g"]])
    for call in ({"formula": "y ~ x + (. | g)"}, {"formula": "y ~ x", "noise": "."}):
        with pytest.raises(ValueError, match="given a dot in"):
            tables.model(frame=frame(), **call)


def test_a_column_that_is_taken_away_is_not_needed():
    dates = frame(when=pd.Timestamp("2020-01-01"), gap=np.nan).rename(columns={"z": "a.b"})
    made = tables.model("y ~ . - when - gap", dates)
    assert "a.b" in made.columns and not {"when", "gap"} & {*made.rows}
    assert models.encode(made, dates[["x", "a.b", "g", "h", "n"]])["x"].shape == (24, 9)


@pytest.mark.parametrize(
    ("name", "value"),
    [("noise", -1.0), ("sd_g[Intercept]", 0.0), ("x", np.nan), ("noise", np.ones(2))],
)
def test_a_delta_is_where_its_parameter_may_be(name, value):
    with pytest.raises(ValueError, match="expected one number that"):
        tables.model("y ~ x + (1 | g)", frame(), priors={name: dist.Delta(value)})


def test_a_file_is_of_the_columns_that_a_dot_stood_for(tmp_path):
    made = tables.model("y ~ .", frame()[["x", "z", "y"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a hundred draws are few
        fit = tables.fit(jax.random.key(1), made, num_warmup=50, num_samples=100, num_chains=2)
    fit.data.to_netcdf(str(tmp_path / "fit.nc"))
    assert tables.load(tmp_path / "fit.nc", made).draws.keys() == fit.draws.keys()
    with pytest.raises(ValueError, match="path: given"):
        tables.load(tmp_path / "fit.nc", tables.model("y ~ .", frame()[["z", "x", "y"]]))
