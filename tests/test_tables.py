"""A table in, a model of its groups, a fit: against answers that are known, and coefficients that
rows were drawn with.

Answers are of restricted or plain maximum likelihood, as R's lme4 gives them. Posterior means of
standard deviations of few groups lie above those, by less than a posterior standard deviation.
"""

import jax
import numpy as np
import pandas as pd
import pytest
from chapters import ROOT

import tables

KEY = jax.random.key(11)
pytestmark = pytest.mark.usefixtures("as_readers_run")


def read(name):
    """Return one of lme4's tables."""
    return pd.read_csv(ROOT / f"tests/tables/{name}.csv")


def fitted(formula, frame, num_samples=1000, **settings):
    """Return a fit that may be used."""
    fit = tables.fit(KEY, tables.model(formula, frame, **settings), num_samples=num_samples)
    assert fit.check.ok, fit.check.reasons
    return fit


def compare(fit, coefficients, sds):
    """Compare posterior means with answers: of coefficients within 0.2 posterior standard
    deviations, of standard deviations within 0.7, to which five Monte Carlo errors come.
    """
    found = tables.summary(fit)
    error = 5 * found["sd"] / np.sqrt(found["ESS"])
    for answers, most in ((coefficients, 0.2), (sds, 0.7)):
        for name, answer in answers.items():
            apart = found["mean"][name] - answer
            assert abs(apart) < most * found["sd"][name] + error[name], (name, apart)
    assert {*coefficients, *sds} <= {*found.index}
    assert (found["2.5 %"] < found["mean"]).all() and (found["mean"] < found["97.5 %"]).all()


@pytest.fixture(scope="module")
def sleep():
    """The fit of reaction times after days without sleep, each subject with a slope."""
    return fitted("Reaction ~ Days + (Days | Subject)", read("sleepstudy"))


def test_reaction_times_have_lme4s_answers(sleep):
    # standard errors 6.8 and 1.55; a Student posterior of 17 degrees is a little wider
    compare(sleep, {"Intercept": 251.4, "Days": 10.47}, {"noise": 25.6})
    compare(sleep, {}, {"sd_Subject[Intercept]": 24.7, "sd_Subject[Days]": 5.92})
    assert sleep.model.exact


def spreads(fit, days):
    """Return the standard deviation of a new subject's outcome, under each draw."""
    posterior = fit.data.posterior
    sd, noise = posterior["sd_Subject"].values, posterior["noise"].values
    both = posterior["correlation_Subject"].values[..., 0, 1] * sd.prod(axis=-1)
    variance = sd[..., 0] ** 2 + 2 * days * both + days**2 * sd[..., 1] ** 2 + noise**2
    return np.sqrt(variance)


@pytest.mark.parametrize(("days", "answer"), [(0, 36), (4, 44), (9, 65)])
def test_a_new_subject_is_as_far_from_others_as_they_are(sleep, days, answer):
    """Medians within a tenth of restricted maximum likelihood: 36.9, 46.0 and 69.5, with an error
    of 0.3; a model whose level is that of the mean day has 57, 50 and 58.
    """
    median = np.median(spreads(sleep, days))
    assert 0.95 * answer < median < 1.1 * answer


def test_infections_of_herds_have_lme4s_answers():
    fit = fitted(
        "incidence ~ period + (1 | herd)",
        read("cbpp").astype({"period": str}),
        family="binomial",
        trials="size",
    )
    answers = {
        "Intercept": -1.40, "period[T.2]": -0.99, "period[T.3]": -1.13, "period[T.4]": -1.58
    }  # fmt: skip
    compare(fit, answers, {"sd_herd[Intercept]": 0.64})


def test_factors_that_cross_have_lme4s_answers():
    fit = fitted("diameter ~ 1 + (1 | plate) + (1 | sample)", read("Penicillin"))
    sds = {"sd_plate[Intercept]": 0.847, "sd_sample[Intercept]": 1.93, "noise": 0.550}
    compare(fit, {"Intercept": 22.97}, sds)
    assert fit.model.exact


def test_counts_in_three_levels_have_lme4s_answers():
    fit = fitted(
        "TICKS ~ YEAR + cHEIGHT + (1 | BROOD) + (1 | INDEX) + (1 | LOCATION)",
        read("grouseticks").astype({"YEAR": str}),
        num_samples=2000,  # of a thousand draws, 330 to 480 of a location's sd are independent
        family="poisson",
    )
    sds = {"INDEX": 0.54, "BROOD": 0.75, "LOCATION": 0.53}
    compare(
        fit,
        {"YEAR[T.96]": 1.18, "YEAR[T.97]": -0.98, "cHEIGHT": -0.024},
        {f"sd_{name}[Intercept]": sd for name, sd in sds.items()},
    )


def rows(seed, count=300):
    """Return rows of two features and eight groups."""
    random = np.random.default_rng(seed)
    f = pd.DataFrame({"x": random.normal(2, 1, count), "z": random.random(count) < 0.5})
    return random, f.assign(g=np.arange(count) % 8, time=random.uniform(1, 3, count))


def counts():
    """Return counts about rates over a time, their settings, and the truth."""
    random, f = rows(1)
    rate = f.time * np.exp(0.5 + 0.4 * f.x - 0.7 * f.z)
    f["y"] = random.poisson(rate * random.gamma(1 / 0.3, 0.3, len(f)))
    truth = {"Intercept": 0.5, "x": 0.4, "z": -0.7, "dispersion": 0.3}
    return "y ~ x + z", f, {"family": "negative binomial", "exposure": "time"}, truth


def grades():
    """Return ordered classes, their settings, and the truth."""
    random, f = rows(2)
    latent = (0.9 * f.x - 0.6 * f.z + random.logistic(size=len(f))).to_numpy()
    grade = np.array(["bad", "fair", "good"])[(latent[:, None] > [1.0, 2.0]).sum(axis=1)]
    f["y"] = pd.Categorical(grade, ["bad", "fair", "good"], ordered=True)
    truth = {"x": 0.9, "z": -0.6, "cutpoint[0]": 1.0, "cutpoint[1]": 2.0}
    return "y ~ x + z", f, {"family": "ordinal"}, truth


def bounds():
    """Return numbers whose noise grows with x, none above 4 told, and the truth."""
    random, f = rows(3)
    noise = np.exp(-1.0 + 0.3 * f.x)
    y = 1.0 + 0.8 * f.x + 0.5 * f.z + noise * random.normal(size=len(f))
    f["y"], f["more"] = np.minimum(y, 4.0), (y > 4).astype(int)
    truth = {"Intercept": 1.0, "x": 0.8, "z": 0.5, "noise[Intercept]": -1.0, "noise[x]": 0.3}
    return "y ~ x + z", f, {"censored": "more", "noise": "x"}, truth


def millions():
    """Return counts of about a million in twelve groups, and the truth."""
    random, f = rows(4, 120)
    f["g"] = np.arange(120) % 12
    level = random.normal(0, 0.5, 12)[f.g]
    f["y"] = random.poisson(np.exp(13.8 + 0.2 * f.x + level))
    return "y ~ x + (1 | g)", f, {"family": "poisson"}, {"x": 0.2}


@pytest.mark.parametrize("made", [counts, grades, bounds, millions])
def test_what_rows_were_drawn_with_comes_back(made):
    """Within five posterior standard deviations."""
    formula, frame, settings, truth = made()
    found = tables.summary(fitted(formula, frame, **settings))
    named = {name.replace("[T.True]", ""): name for name in found.index}
    for name, value in truth.items():
        row = found.loc[named[name]]
        assert abs(row["mean"] - value) < 5 * row["sd"], (name, row["mean"], row["sd"])


def test_a_fit_says_when_it_cannot_be_used():
    _, f = rows(5, 60)
    made = tables.model("time ~ x + (x | g)", f)
    with pytest.warns(UserWarning, match="not to be used: "):
        fit = tables.fit(KEY, made, num_warmup=20, num_samples=100)
    assert not fit.check.ok and fit.check.reasons
    assert fit.data.posterior.sizes["draw"] == 100
    for wrong in ({"num_chains": 1}, {"num_samples": 99}, {"num_warmup": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            tables.fit(KEY, made, **wrong)


def test_a_cost_is_a_range_that_grows_with_the_draws():
    _, f = rows(5, 60)
    made = tables.model("time ~ x + (x | g)", f, family="student t")
    one, two = (tables.cost(made, num_draws=n) for n in (1000, 2000))
    for low, high in (*one.values(), *two.values()):
        assert 0 < low < high < np.inf
    np.testing.assert_allclose(two["megabytes"], 2 * np.array(one["megabytes"]))
    with pytest.raises(ValueError, match="num_draws"):
        tables.cost(made, num_draws=0)
