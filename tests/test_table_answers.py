"""What is asked of a fit: next rows, other models, a column's part, a file; against sums by hand
over the same draws.
"""

import warnings
from types import SimpleNamespace

import arviz
import jax
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import scipy.stats
from chapters import ROOT
from scipy.special import logsumexp

import tables
from tables import comparisons

KEY = jax.random.key(21)
pytestmark = pytest.mark.usefixtures("as_readers_run")


@pytest.fixture(scope="module")
def frame():
    """Nine subjects of reaction times."""
    every = pd.read_csv(ROOT / "tests/tables/sleepstudy.csv")
    kept = [330, 331, 333, 334, 349, 351, 352, 369, 371]
    return every[every.Subject.isin(kept)].reset_index(drop=True)


@pytest.fixture(scope="module")
def slopes(frame):
    """The fit with a slope a subject."""
    return tables.fit(KEY, tables.model("Reaction ~ Days + (Days | Subject)", frame))


@pytest.fixture(scope="module")
def levels(frame):
    """The fit with a level a subject."""
    return tables.fit(KEY, tables.model("Reaction ~ Days + (1 | Subject)", frame))


class Draws:
    """Coefficients, covariance of effects and noise of a fit with slopes, leading axis [draw]."""

    def __init__(self, fit):
        posterior = fit.data.posterior
        self.mean = posterior["coefficient"].values.reshape(-1, 2)
        sd = posterior["sd_Subject"].values.reshape(-1, 2)
        correlation = posterior["correlation_Subject"].values.reshape(-1, 2, 2)
        self.covariance = sd[:, :, None] * correlation * sd[:, None]
        self.noise = posterior["noise"].values.ravel()

    def rows(self, days):
        """Return mean and covariance of a new subject's outcomes, [draw, row] and [.., row]."""
        z = np.stack([np.ones(len(days)), days], axis=1)
        noise = self.noise[:, None, None] ** 2 * np.eye(len(days))
        return self.mean @ z.T, z @ self.covariance @ z.T + noise


def log_normal(y, mean, covariance):
    """Return the log density of normal rows under each draw."""
    apart = y - mean
    squares = (apart * np.linalg.solve(covariance, apart[..., None])[..., 0]).sum(axis=1)
    return -0.5 * (squares + np.linalg.slogdet(covariance)[1] + len(y) * np.log(2 * np.pi))


def test_a_known_group_has_its_own_line(slopes, frame):
    found = tables.predict(jax.random.key(2), slopes, frame)
    posterior = slopes.data.posterior
    of = posterior["coefficient"] + posterior["effect_Subject"].rename(Subject_column="column")
    at = of.sel(Subject=frame.Subject.astype(str).to_numpy()).transpose("chain", "draw", ...)
    by_hand = (at.sel(column="Intercept") + at.sel(column="Days") * frame.Days.to_numpy()).values
    np.testing.assert_allclose(found.mean, by_hand, rtol=1e-9)
    apart = (found.outcome - found.mean) / posterior["noise"].values[..., None]
    assert abs(apart.std() - 1) < 5 * np.sqrt(0.5 / apart.size) and found.pareto_k is None
    assert abs(apart.mean()) < 5 / np.sqrt(apart.size)
    nobody = frame.drop(columns="Subject")
    average = tables.predict(jax.random.key(2), slopes, nobody, groups=False)
    line = posterior["coefficient"].values @ np.stack([np.ones(len(frame)), frame.Days])
    np.testing.assert_allclose(average.mean, line, rtol=1e-9)


def test_a_new_group_is_named(slopes, frame, capsys):
    tables.predict(jax.random.key(2), slopes, frame)
    assert not capsys.readouterr().out
    tables.predict(jax.random.key(2), slopes, frame[:2].assign(Subject=["330 ", "371"]))
    assert capsys.readouterr().out == "Subject: ['330 '] new, with effects drawn for them\n"
    tables.predict(jax.random.key(2), slopes, frame[:2].assign(Subject="330 "), groups=False)
    assert not capsys.readouterr().out  # no effect is drawn for them


def test_a_new_group_is_drawn_anew_in_every_draw(slopes):
    """Outcomes have the covariance of a new subject, draw by draw; two subjects are independent."""
    new = pd.DataFrame({"Days": [0.0, 9, 0, 9], "Subject": ["a", "a", "b", "b"]})
    found = tables.predict(jax.random.key(3), slopes, new)
    mean, covariance = Draws(slopes).rows([0.0, 9.0])
    apart = found.outcome.reshape(-1, 2, 2) - mean[:, None]
    factor = np.linalg.cholesky(covariance)
    unit = np.linalg.solve(factor[:, None], apart[..., None])[..., 0].reshape(-1, 4)
    error = 1 / np.sqrt(len(unit))
    assert (np.abs(unit.mean(axis=0)) < 5 * error).all()
    assert (np.abs(np.cov(unit.T) - np.eye(4)) < 5 * np.sqrt(2) * error).all()
    again = tables.predict(jax.random.key(3), slopes, new.assign(Subject=["x", "x", "y", "y"]))
    np.testing.assert_array_equal(again.outcome, found.outcome)


def test_rows_that_are_given_weigh_the_draws(slopes):
    """Against the exact conditional normal of each draw, weighted by the rows' density under it;
    effects are chosen among 200, which moves a mean by less than a twentieth of its spread.
    """
    days, y = np.array([0.0, 1, 2]), np.array([300.0, 310, 330])
    given = pd.DataFrame({"Days": days, "Subject": "new", "Reaction": y})
    asked = pd.DataFrame({"Days": [9.0, 9.0], "Subject": ["new", "other"]})
    found = tables.predict(jax.random.key(4), slopes, asked, given=given)
    assert found.mean.shape == found.outcome.shape == (4, 1000, 2) and found.pareto_k < 0.7
    draws = Draws(slopes)
    mean, covariance = draws.rows([*days, 9.0])
    log_weight = log_normal(y, mean[:, :3], covariance[:, :3, :3])
    weight = np.exp(log_weight - logsumexp(log_weight))
    along = np.linalg.solve(covariance[:, :3, :3], covariance[:, :3, 3:])[..., 0]
    center = mean[:, 3] + (along * (y - mean[:, :3])).sum(axis=1)
    spread = covariance[:, 3, 3] - (along * covariance[:, :3, 3]).sum(axis=1)
    expected = (weight * center).sum()
    sd = np.sqrt((weight * (spread + center**2)).sum() - expected**2)
    error = sd * np.sqrt((weight**2).sum())
    assert abs(found.outcome[..., 0].mean() - expected) < 5 * error + 0.05 * sd
    assert abs(found.outcome[..., 0].std() / sd - 1) < 5 * np.sqrt((weight**2).sum()) + 0.05
    other = (weight * mean[:, 3]).sum()
    spread = np.sqrt((weight * covariance[:, 3, 3]).sum())
    assert abs(found.outcome[..., 1].mean() - other) < 5 * spread * np.sqrt((weight**2).sum())
    known = given.assign(Subject="330", Reaction=[322.0, 300, 284])  # needs no candidates
    again = tables.predict(jax.random.key(5), slopes, asked, given=known)
    assert again.outcome.shape == (4, 1000, 2) and again.pareto_k < 0.7


def test_models_are_compared_by_row(slopes, levels, frame):
    found = tables.compare({"levels": levels, "slopes": slopes})
    at = tables.predict(KEY, slopes, frame)
    noise = slopes.data.posterior["noise"].values[..., None]
    each = scipy.stats.norm.logpdf(frame.Reaction.to_numpy(), at.mean, noise)
    data = arviz.from_dict({"none": each[..., 0]}, log_likelihood={"y": each})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        expected = arviz.loo(data, pointwise=True)
    np.testing.assert_allclose(found.elpd_loo["slopes"], expected.elpd_loo, rtol=1e-8)
    np.testing.assert_allclose(found.k["slopes"], expected.pareto_k.max(), rtol=1e-6)
    best, other = found.index
    assert {best, other} == {"slopes", "levels"} and found.elpd_diff[best] == 0
    apart = found.elpd_loo[best] - found.elpd_loo[other]
    np.testing.assert_allclose(found.elpd_diff[other], apart, rtol=1e-8)
    assert apart > 0 and found.dse[other] > 0


def test_models_are_compared_by_parts_of_rows(slopes, levels, capsys):
    found = tables.compare({"slopes": slopes, "levels": levels}, parts=2)
    out = capsys.readouterr().out
    assert "slopes, parts of rows left out: predictions" in out and "levels, parts of" in out
    assert {*found.index} == {"slopes", "levels"} and "k" not in found
    assert found.elpd_diff.iloc[0] == 0 < found.dse.iloc[1] and (found.se > 0).all()


def test_left_out_rows_are_not_seen(levels, frame):
    """Their densities are those by a fit to the other rows alone."""
    part = (np.arange(len(frame)) % 5 == 0).astype(int)
    found = comparisons.left_out(jax.random.key(7), levels, part)
    assert found.by_chain.shape == (4, len(frame)) and found.check.ok
    seen, rows = frame[part == 0], frame[part == 1]
    other = tables.fit(KEY, tables.model(levels.model.formula, seen, priors=levels.model.priors))
    at, noise = tables.predict(KEY, other, rows), other.draws["noise"][..., None]
    each = scipy.stats.norm.logpdf(rows.Reaction.to_numpy(), at.mean, noise)
    by_chain = logsumexp(each, axis=1) - np.log(each.shape[1])
    together = logsumexp(by_chain, axis=0) - np.log(4)
    errors = [of.sum(axis=1).std(ddof=1) for of in (by_chain, found.by_chain[:, part == 1])]
    assert abs(found.density[part == 1].sum() - together.sum()) < 5 * max(errors) + 0.2


def test_refused_fits_without_a_part_are_run_once_more(levels, monkeypatch):
    seen = []

    def refitted(key, fit, part, **lengths):
        seen.append((jax.random.key_data(key).tolist(), lengths))
        return comparisons.LeftOut(np.zeros((4, len(part))), SimpleNamespace(ok=len(seen) > 1))

    monkeypatch.setattr(comparisons, "_refitted", refitted)
    part = np.zeros(len(levels.model.rows), int)
    assert comparisons.left_out(KEY, levels, part).check.ok
    (first_key, first), (other_key, longer) = seen
    assert first_key != other_key and first["target_acceptance"] == 0.9
    assert longer["num_samples"] == 2 * first["num_samples"] == 2000
    assert longer["num_warmup"] == 600 and longer["target_acceptance"] == 0.99


def test_models_are_compared_by_group(slopes, levels, frame):
    """Each subject is left out by itself; against its rows' densities as a new one's, draws of all
    rows weighted by one over the density of the subject's, which lets it be left out.
    """
    found = tables.compare({"slopes": slopes, "levels": levels}, by="Subject")
    draws, total, whole = Draws(slopes), 0.0, 0.0
    for _, rows in frame.groupby("Subject"):
        y = rows.Reaction.to_numpy()
        mean, covariance = draws.rows(rows.Days.to_numpy(float))
        log_weight = -log_normal(y, mean, covariance)
        sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        each = scipy.stats.norm.logpdf(y, mean, sd)
        weighted = each + (log_weight - logsumexp(log_weight))[:, None]
        total += logsumexp(weighted, axis=0).sum()
        whole += (logsumexp(each, axis=0) - np.log(len(each))).sum()
    assert abs(found.elpd_loo["slopes"] - total) < 0.2 * abs(whole - total)
    assert {*found.index} == {"slopes", "levels"} and "k" not in found
    assert (found.se > 0).all()


def test_fits_of_other_rows_are_not_compared(slopes, levels, frame):
    with pytest.raises(ValueError, match=r"found: given .*one fit, expected two fits"):
        tables.compare({"slopes": slopes})
    with pytest.raises(ValueError, match="parts: given 1, expected"):
        tables.compare({"slopes": slopes, "levels": levels}, parts=1)
    with pytest.raises(ValueError, match="by: given 'Days', expected one of"):
        tables.compare({"slopes": slopes, "levels": levels}, by="Days")


def test_a_line_has_its_coefficient_for_an_average(levels, slopes):
    found = tables.average(levels, "Days", [0, 2, 5])
    coefficient = levels.data.posterior["coefficient"].values[..., 1]
    for value in (2, 5):
        row, difference = found.loc[value, "difference"], value * coefficient
        quantiles = np.quantile(difference, [0.025, 0.975])
        np.testing.assert_allclose(row["mean"], difference.mean(), rtol=1e-8)
        np.testing.assert_allclose(row[["2.5 %", "97.5 %"]].astype(float), quantiles, rtol=1e-8)
    # with slopes that differ: the mean slope of those who are in the table
    posterior = slopes.data.posterior
    slope = posterior["coefficient"].values[..., 1] + posterior["effect_Subject"].values[
        ..., 1
    ].mean(-1)
    row = tables.average(slopes, "Days", [0, 5]).loc[5, "difference"]
    np.testing.assert_allclose(row["mean"], 5 * slope.mean(), rtol=1e-8)
    by_default = tables.average(levels, "Days").index.get_level_values("Days").unique()
    np.testing.assert_allclose([*by_default], [0.9, 4.5, 8.1])
    for wrong in ("Reaction", "nope"):
        with pytest.raises(ValueError, match=f"column: given '{wrong}', expected one of"):
            tables.average(levels, wrong)


def test_a_summary_is_of_the_draws(slopes):
    found, posterior = tables.summary(slopes), slopes.data.posterior
    np.testing.assert_allclose(
        found["mean"]["Days"], posterior["coefficient"].values[..., 1].mean()
    )
    np.testing.assert_allclose(
        found["sd"]["noise"], posterior["noise"].values.std(ddof=1), rtol=1e-3
    )
    low = np.quantile(posterior["sd_Subject"].values[..., 0], 0.025)
    np.testing.assert_allclose(found["2.5 %"]["sd_Subject[Intercept]"], low)
    effects = tables.summary(slopes, "Subject")
    assert len(effects) == 18 and "330, Days" in effects.index
    with pytest.raises(ValueError, match=r"term: given 'nope', expected one of \['Subject'\]"):
        tables.summary(slopes, "nope")


def test_a_fit_comes_back_from_its_file(slopes, levels, tmp_path):
    path = tmp_path / "fit.nc"
    slopes.data.to_netcdf(str(path))
    again = tables.load(path, slopes.model)
    pd.testing.assert_frame_equal(tables.summary(again), tables.summary(slopes))
    one, two = (tables.predict(KEY, fit, slopes.model.rows) for fit in (again, slopes))
    np.testing.assert_array_equal(one.outcome, two.outcome)
    assert again.check.ok == slopes.check.ok and again.check.reasons == slopes.check.reasons
    whole = path.read_bytes()
    with pytest.raises(ValueError, match=r"path: given formula .*Days"):
        tables.load(path, levels.model)
    other = tables.model(slopes.model.formula, slopes.model.rows.assign(Reaction=range(90)))
    with pytest.raises(ValueError, match="other rows"):
        tables.load(path, other)
    for content in (None, b"", b"no netcdf", whole[: len(whole) // 2]):
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(ValueError, match=f"path: given {path}, expected a fit of"):
            tables.load(path, slopes.model)


def test_priors_expect_what_they_say():
    """Means and variances of 4000 draws within five errors of what the priors give by hand; of a
    variance the error is at most that of a kurtosis of 9.
    """
    random = np.random.default_rng(3)
    f = pd.DataFrame({"x": random.normal(size=20), "g": np.arange(20) % 4})
    f["y"] = random.normal(5, 2, 20)
    own = {
        "Intercept": dist.Normal(3.0, 0.5), "x": dist.Normal(-1.0, 0.7),
        "noise": dist.HalfNormal(0.4), "sd_g[Intercept]": dist.HalfNormal(0.6),
    }  # fmt: skip
    made = tables.model("y ~ x + (1 | g)", f, priors=own)
    found = tables.prior_predictive(jax.random.key(6), made, 4000)
    assert found.outcome.shape == (1, 4000, 20)
    apart = (f.x - f.x.mean()).to_numpy()
    mean, variance = 3 - apart, 0.5**2 + (0.7 * apart) ** 2 + 0.4**2 + 0.6**2
    assert (np.abs(found.outcome[0].mean(axis=0) - mean) < 5 * np.sqrt(variance / 4000)).all()
    error = variance * np.sqrt(8 / 4000)
    assert (np.abs(found.outcome[0].var(axis=0) - variance) < 5 * error).all()
    within = np.corrcoef(found.mean[0].T)[0, 4] - np.corrcoef(found.mean[0].T)[0, 1]
    assert within > 0.1  # rows 0 and 4 are of one group
    with pytest.raises(ValueError, match="num_draws"):
        tables.prior_predictive(KEY, made, 0)


def test_priors_are_printed_in_the_tables_units():
    f = pd.DataFrame({"x": [1.0, 2, 3, 4] * 5, "y": np.arange(20.0), "g": [0, 1, 2, 3, 4] * 4})
    made = tables.model("y ~ x + (1 | g)", f, priors={"x": dist.StudentT(3.0, 0.0, 2.0)})
    found = tables.priors(made)
    sd = f.y.std(ddof=0)
    assert found["Intercept"] == f"Normal(9.5, {2.5 * sd:.4g})"
    assert found["noise"] == found["sd_g[Intercept]"] == f"HalfNormal({sd:.4g})"
    assert found["x"] == "StudentT(3, 0, 2)"
    plain = tables.priors(tables.model("y ~ x", f))
    assert plain["x"] == f"Normal(0, {2.5 * sd / f.x.std(ddof=0):.4g})"


@pytest.mark.parametrize("family", ["categorical", "ordinal"])
def test_means_of_classes_are_their_probabilities(family):
    frame = pd.DataFrame({"x": np.linspace(-1, 1, 60), "y": np.tile([0, 1, 2], 20)})
    before = tables.prior_predictive(
        jax.random.key(8), tables.model("y ~ x", frame, family=family), 20
    )
    assert before.mean.shape == (1, 20, 60, 3)
    np.testing.assert_allclose(before.mean.sum(axis=-1), 1)


def test_a_forecast_has_the_log_density_of_outcomes_that_are_there():
    """Of training rows it is their log likelihood; a gap, or no column, leaves the forecast."""
    random = np.random.default_rng(8)
    rows = pd.DataFrame({"x": random.normal(size=30), "y": random.normal(size=30)})
    fit = tables.fit(jax.random.key(1), tables.model("y ~ x", rows), num_samples=100)
    told = tables.predict(jax.random.key(2), fit, rows)
    with jax.enable_x64(True):
        expected = comparisons.log_likelihood(fit.model, fit.draws)
    np.testing.assert_allclose(told.log_density, expected, rtol=1e-10)
    for frame in (rows.drop(columns="y"), rows.assign(y=rows.y.where(rows.index > 0))):
        other = tables.predict(jax.random.key(2), fit, frame)
        assert other.log_density is None
        np.testing.assert_array_equal(other.outcome, told.outcome)
    with_given = tables.predict(jax.random.key(2), fit, rows[3:], given=rows[:3])
    assert with_given.log_density.shape == (*told.mean.shape[:2], 27)
