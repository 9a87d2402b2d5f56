"""What a model of a table says of its rows, against sums by hand: every family, and effects that
are integrated out.
"""

from helpers import numpyro_models

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from scipy.special import expit, log_softmax

import tables
from tables import exact, families, models, written
from tests.table_rows import NUM_ROWS, behind_by_hand, frame, somewhere

pytestmark = pytest.mark.usefixtures("as_readers_run")


def mixed(y, zero, log_count):
    """Return the log mass of counts that are 0 with probability ``zero``, or as they were."""
    return np.log(zero * (y == 0) + (1 - zero) * np.exp(log_count))


def negative_binomial(y, mean, dispersion):
    """Return its log mass, whose variance is ``mean + dispersion * mean ** 2``."""
    size = 1 / dispersion
    return scipy.stats.nbinom.logpmf(y, size, size / (size + mean))


def of_classes(y, cut, behind):
    """Return the log mass of ordered classes."""
    beyond = expit(np.concatenate([[-np.inf], cut, [np.inf]]) - behind[:, None])
    return np.log(np.diff(beyond, axis=1)[np.arange(len(y)), y.astype(int)])


def gamma(behind, dispersion):
    """Return the distribution of mean ``exp(behind)``."""
    return scipy.stats.gamma(a=1 / dispersion, scale=dispersion * np.exp(behind))


BY_HAND = {  # outcome, and its log density, of what is behind the link, a draw and the rows
    "normal": ("number", lambda y, e, d, f: scipy.stats.norm.logpdf(y, e, d["noise"])),
    "student t": (
        "number", lambda y, e, d, f: scipy.stats.t.logpdf(y, d["degrees"], e, d["noise"]),
    ),
    "bernoulli": ("flag", lambda y, e, d, f: scipy.stats.bernoulli.logpmf(y, expit(e))),
    "binomial": ("count", lambda y, e, d, f: scipy.stats.binom.logpmf(y, f.of, expit(e))),
    "categorical": (
        "kind",
        lambda y, e, d, f: log_softmax(np.pad(e, ((0, 0), (1, 0))), axis=1)[
            np.arange(len(y)), y.astype(int)
        ],
    ),
    "ordinal": ("kind", lambda y, e, d, f: of_classes(y, d["cutpoint"], e)),
    "poisson": ("count", lambda y, e, d, f: scipy.stats.poisson.logpmf(y, np.exp(e))),
    "negative binomial": (
        "count", lambda y, e, d, f: negative_binomial(y, np.exp(e), d["dispersion"]),
    ),
    "zero-inflated poisson": (
        "count",
        lambda y, e, d, f: mixed(y, d["inflation"], scipy.stats.poisson.logpmf(y, np.exp(e))),
    ),
    "zero-inflated negative binomial": (
        "count",
        lambda y, e, d, f: mixed(
            y, d["inflation"], negative_binomial(y, np.exp(e), d["dispersion"])
        ),
    ),
    "gamma": ("positive", lambda y, e, d, f: gamma(e, d["dispersion"]).logpdf(y)),
    "beta": (
        "share",
        lambda y, e, d, f: scipy.stats.beta.logpdf(
            y, expit(e) / d["dispersion"], (1 - expit(e)) / d["dispersion"]
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("drawn", ["offset", "effect", "level"])
@pytest.mark.parametrize("family", families.FAMILIES)
def test_a_familys_density_is_scipys(family, drawn):
    """However effects are drawn, and though the sampler has other units than the draws."""
    f, (outcome, by_hand) = frame(), BY_HAND[family]
    options = {"trials": "of"} if family == "binomial" else {}
    with jax.enable_x64(True):
        made = tables.model(f"{outcome} ~ x + z + (x | g)", f, family=family, **options)
        made = made._replace(parts=(made.parts[0]._replace(drawn=drawn),))
        draw, log_likelihood = somewhere(made)
        rows = written.outcomes(made, draw, made.data)
        each = families.log_likelihood(rows, made.data["y"], made.data)
    y, behind = made.data["y"], behind_by_hand(made, draw, f)
    expected = by_hand(y, behind, draw, f)
    assert made.columns == (("Intercept",) if family != "ordinal" else ()) + ("x", "z")
    np.testing.assert_allclose(each, expected, rtol=1e-6)
    np.testing.assert_allclose(log_likelihood, expected.sum(), rtol=1e-6)


@pytest.mark.parametrize("drawn", ["effect", "level"])
@pytest.mark.parametrize("terms", ["(0 + x | g)", "(x || g)", "(x | g) + (z | h)", "(1 | g)"])
def test_effects_of_any_columns_are_in_the_tables_units(terms, drawn):
    f = frame()
    with jax.enable_x64(True):
        made = tables.model(f"number ~ x + z + {terms}", f)
        first = made.parts[0]._replace(drawn=drawn)
        draw, log_likelihood = somewhere(made._replace(parts=(first, *made.parts[1:])))
    each = scipy.stats.norm.logpdf(f.number, behind_by_hand(made, draw, f), draw["noise"])
    np.testing.assert_allclose(log_likelihood, each.sum(), rtol=1e-8)


def test_every_family_is_tried():
    assert {*BY_HAND} == {*families.FAMILIES}


@pytest.mark.parametrize("family", families.CENSORED)
def test_a_bound_counts_for_what_lies_beyond_it(family):
    outcome, f = ("positive" if family == "gamma" else "number"), frame()
    with jax.enable_x64(True):
        made = tables.model(f"{outcome} ~ x", f, family=family, censored="bound")
        draw, log_likelihood = somewhere(made)
    behind = behind_by_hand(made, draw, f)
    found = {
        "normal": lambda: scipy.stats.norm(behind, draw["noise"]),
        "student t": lambda: scipy.stats.t(draw["degrees"], behind, draw["noise"]),
        "gamma": lambda: gamma(behind, draw["dispersion"]),
    }[family]()
    y, bound = f[outcome].to_numpy(), f.bound.to_numpy()
    each = np.where(
        bound > 0, found.logsf(y), np.where(bound < 0, found.logcdf(y), found.logpdf(y))
    )
    np.testing.assert_allclose(log_likelihood, each.sum(), rtol=1e-6)


@pytest.mark.parametrize("family", ["normal", "student t"])
def test_noise_weights_and_offset_of_a_row(family):
    f = frame()
    options = {"noise": "z + x", "weights": "weight", "offset": "time"}
    with jax.enable_x64(True):
        made = tables.model("number ~ x + (1 | h)", f, family=family, **options)
        draw, log_likelihood = somewhere(made)
    one = draw["noise"]
    noise = np.exp(one[0] + f.z * one[1] + f.x * one[2])
    each = BY_HAND[family][1](
        f.number, behind_by_hand(made, draw, f, f.time), {**draw, "noise": noise}, f
    )
    assert [*made.noise.column_names] == ["Intercept", "z", "x"] and not made.exact
    np.testing.assert_allclose(log_likelihood, (f.weight * each).sum(), rtol=1e-6)


def test_an_exposure_multiplies_a_rate():
    f = frame()
    with jax.enable_x64(True):
        made = tables.model("count ~ x", f, family="poisson", exposure="time", offset="z")
        draw, log_likelihood = somewhere(made)
    rate = f.time * np.exp(behind_by_hand(made, draw, f, f.z))
    np.testing.assert_allclose(log_likelihood, scipy.stats.poisson.logpmf(f["count"], rate).sum())


EXACT = [
    "number ~ x + z + (x | g)",  # in blocks, entry by entry
    "number ~ x + (x + z + weight + time | g)",  # in blocks, five columns
    "number ~ x + (1 | g) + (0 + z | g)",  # two terms of one group
    "number ~ x + (x | g) + (z || h)",  # factors that cross, in one matrix
]


def dense(made, mean, noise, lowers):
    """Return the mean of the outcome, the columns of all effects, their covariance."""
    z, blocks = [], []
    for part, columns, group, lower in zip(
        made.parts, made.data["z"], made.data["group"], lowers, strict=True
    ):
        one = np.eye(len(part.levels))[group][:, :, None] * (columns - part.center)[:, None]
        z.append(one.reshape(NUM_ROWS, -1))
        blocks += [lower @ lower.T] * len(part.levels)
    x = made.data["x"] - made.center
    return made.data["offset"] + x @ mean[:, 0], np.hstack(z), scipy.linalg.block_diag(*blocks)


def parameters(made, random):
    """Return random parameters, as ``exact.log_density`` takes them."""
    lowers = [np.tril(random.normal(size=(len(p.columns),) * 2)) for p in made.parts]
    lowers = [lower + 2 * np.eye(len(lower)) * (lower > 0) for lower in lowers]
    for lower in lowers:
        lower[np.diag_indices(len(lower))] = np.abs(np.diag(lower)) + 0.2
    return random.normal(size=(len(made.columns), 1)), random.uniform(0.3, 3), lowers


@pytest.mark.parametrize("formula", EXACT)
def test_effects_are_integrated_out_exactly(formula):
    random = np.random.default_rng(5)
    with jax.enable_x64(True):
        made = tables.model(formula, frame(), offset="time")
        assert made.exact
        apart = []
        for _ in range(6):
            mean, noise, lowers = parameters(made, random)
            found = exact.log_density(made, made.data["exact"], mean, noise, lowers)
            center, z, covariance = dense(made, mean, noise, lowers)
            covariance = z @ covariance @ z.T + noise**2 * np.eye(NUM_ROWS)
            normal = scipy.stats.multivariate_normal(center, covariance)
            apart.append(float(found) - normal.logpdf(made.data["y"]))
    np.testing.assert_allclose(apart, apart[0], rtol=1e-9)


@pytest.mark.parametrize("formula", EXACT)
def test_effects_are_drawn_from_what_they_are_given_the_rows(formula):
    """Of N draws, means and covariances lie within six of their standard errors."""
    random, num_draws = np.random.default_rng(6), 20_000
    with jax.enable_x64(True):
        made = tables.model(formula, frame())
        given = parameters(made, random)
        keys = jax.random.split(jax.random.key(8), num_draws)
        draw = jax.jit(jax.vmap(lambda key: exact.draw(key, made, made.data["exact"], *given)))
        parts = [np.asarray(part).reshape(num_draws, -1) for part in draw(keys)]
    if not exact.crossed(made) and len(parts) > 1:  # one term after the other
        assert all(part.shape[1] == 5 for part in parts)
    drawn = np.hstack(parts)
    center, z, prior = dense(made, *given)
    covariance = np.linalg.inv(np.linalg.inv(prior) + z.T @ z / given[1] ** 2)
    mean = covariance @ z.T @ (made.data["y"] - center) / given[1] ** 2
    variance = np.diag(covariance)
    error = np.sqrt(variance / num_draws)
    assert (np.abs(drawn.mean(axis=0) - mean) < 6 * error).all()
    errors = np.sqrt((np.multiply.outer(variance, variance) + covariance**2) / num_draws)
    assert (np.abs(np.cov(drawn.T) - covariance) < 6 * errors).all()


def test_a_prior_of_ones_own_is_taken_in_the_tables_units():
    """The log density changes by the two priors at the draw; both have the same Jacobian."""
    f = frame()
    own = {"x": dist.Normal(2.0, 0.5), "z": dist.Laplace(0.0, 1.0), "noise": dist.Gamma(3.0, 2.0)}
    with jax.enable_x64(True):
        made = tables.model("number ~ x + z", f, priors=own)
        assert made.priors["x"] is own["x"]
        draws = [somewhere(made, seed)[0] for seed in range(3)]
        found = numpyro_models.of(written.written(made), made.data)
        densities = []
        for seed in range(3):
            random = np.random.default_rng(seed)
            at = {n: random.normal(0, 0.4, leaf.shape) for n, leaf in found.shapes.items()}
            densities.append(float(found.log_density(at, made.data)))
    expected = []
    for draw in draws:
        level = draw["coefficient"][0] + f.x.mean() * draw["coefficient"][1]
        level += f.z.mean() * draw["coefficient"][2]
        expected.append(
            made.priors["Intercept"].log_prob(level)
            + sum(own[n].log_prob(v) for n, v in zip("xz", draw["coefficient"][1:], strict=True))
            + own["noise"].log_prob(draw["noise"]) + jnp.log(draw["noise"])
            + scipy.stats.norm.logpdf(f.number, behind_by_hand(made, draw, f), draw["noise"]).sum()
        )  # fmt: skip
    np.testing.assert_allclose(np.diff(densities), np.diff(expected), rtol=1e-5)


def test_rows_are_encoded_as_training_rows_taught():
    f = frame()
    made = tables.model("number ~ x + h + (x | g)", f)
    later = models.encode(made, f.iloc[[3]].drop(columns="number").assign(g=77, h="a"))
    np.testing.assert_allclose(later["x"], [[1.0, f.x[3], 0.0, 0.0]])
    assert later["group"][0].tolist() == [5] and "y" not in later
