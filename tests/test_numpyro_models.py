"""A NumPyro model as a log density: NumPyro's own potential, its constrained scale, the caller's
precision in every thread.
"""

from helpers import mcmc, numpyro_models, sgfs, sgmcmc, tempering

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.stats
from numpyro.infer.util import initialize_model

KEY = jax.random.key(41)
NUM_ROWS = 12
pytestmark = pytest.mark.usefixtures("as_readers_run")


def model(data):
    """Positive numbers, shares, a Cholesky factor and an order beside a free number."""
    slope = numpyro.sample("slope", dist.Normal(0.5, 2.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1.5))
    share = numpyro.sample("share", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))
    factor = numpyro.sample("factor", dist.LKJCholesky(3, 2.0))
    order = dist.transforms.OrderedTransform()
    base = dist.Normal(0, 1).expand([2]).to_event(1)
    cut = numpyro.sample("cut", dist.TransformedDistribution(base, order))
    with numpyro.plate("three", 3):
        effect = numpyro.sample("effect", dist.Normal(0, noise))
    mean = slope * data["x"] + (share * effect).sum() + factor[1, 0] + cut[0]
    numpyro.deterministic("ratio", slope / noise)
    numpyro.factor("more", -0.1 * slope**2)
    numpyro.sample("y", dist.Normal(mean, noise), obs=data["y"])


def table():
    """Return the data."""
    random = np.random.default_rng(3)
    return {"x": random.normal(size=NUM_ROWS), "y": random.normal(size=NUM_ROWS)}


@pytest.fixture(scope="module")
def found():
    """The model, its data and ten random positions, leading axes [chain, draw]."""
    with jax.enable_x64(True):
        data = table()
        made = numpyro_models.of(model, data)
        return made, data, mcmc.normal_starts(KEY, made.shapes, (2, 5))


def test_the_density_is_numpyros_potential(found):
    made, data, positions = found
    with jax.enable_x64(True):
        potential = initialize_model(KEY, model, model_args=(data,)).potential_fn
        both = jax.vmap(jax.vmap(lambda one: (made.log_density(one, data), -potential(one))))
        np.testing.assert_allclose(*jax.jit(both)(positions), rtol=1e-12)


def test_the_density_has_the_jacobian_of_each_scale():
    def simple(data):
        noise = numpyro.sample("noise", dist.HalfNormal(2.0))
        slope = numpyro.sample("slope", dist.Normal(0.0, 3.0))
        numpyro.sample("y", dist.Normal(slope * data["x"], noise), obs=data["y"])

    with jax.enable_x64(True):
        data = table()
        made = numpyro_models.of(simple, data)
        at = {"noise": np.float64(-0.7), "slope": np.float64(0.4)}
        noise = np.exp(at["noise"])
        expected = (
            scipy.stats.halfnorm.logpdf(noise, scale=2) + at["noise"]
            + scipy.stats.norm.logpdf(at["slope"], scale=3)
            + scipy.stats.norm.logpdf(data["y"], at["slope"] * data["x"], noise).sum()
        )  # fmt: skip
        np.testing.assert_allclose(made.log_density(at, data), expected, rtol=1e-12)
        other = {"x": data["x"], "y": data["y"] + 1}  # the data are an argument, and no constant
        assert abs(made.log_density(at, other) - expected) > 0.1


def test_shapes_are_of_the_unconstrained_scale(found):
    made, *_ = found
    shapes = {name: leaf.shape for name, leaf in made.shapes.items()}
    assert shapes == {
        "slope": (), "noise": (), "share": (2,), "factor": (3,), "cut": (2,), "effect": (3,)
    }  # fmt: skip
    assert {leaf.dtype for leaf in made.shapes.values()} == {np.dtype("float64")}
    assert {leaf.dtype for leaf in numpyro_models.of(model, table()).shapes.values()} == {
        np.dtype("float32")
    }


def test_constrained_draws_lie_where_their_sites_do(found):
    made, data, positions = found
    with jax.enable_x64(True):
        draws = numpyro_models.constrained(made, positions, data)
    assert {"slope", "noise", "share", "factor", "cut", "effect", "ratio"} <= {*draws}
    assert all(type(draw) is np.ndarray and draw.shape[:2] == (2, 5) for draw in draws.values())
    np.testing.assert_array_equal(draws["slope"], positions["slope"])
    np.testing.assert_allclose(draws["noise"], np.exp(positions["noise"]))
    np.testing.assert_allclose(draws["share"].sum(axis=-1), 1)
    np.testing.assert_allclose((draws["factor"] ** 2).sum(axis=-1), 1)
    assert (draws["share"] > 0).all() and (np.diff(draws["cut"]) > 0).all()
    assert (np.triu(draws["factor"], 1) == 0).all()
    np.testing.assert_allclose(draws["ratio"], draws["slope"] / draws["noise"])
    with jax.enable_x64(True):
        kept = numpyro_models.constrained(made, positions, data, lambda name: name == "ratio")
    assert [*kept] == ["ratio"]


def discrete(data):
    """Return nothing; a latent of whole numbers."""
    numpyro.sample("number", dist.Poisson(2.0))
    numpyro.sample("slope", dist.Normal(0, 1))


def observed(data):
    """Return nothing; no latent."""
    numpyro.sample("y", dist.Normal(0, 1), obs=data["y"])


@pytest.mark.parametrize(
    ("wrong", "text"),
    [(discrete, "given the discrete latent 'number'"), (observed, "given no latent site")],
)
def test_models_without_a_density_of_positions_are_refused(wrong, text):
    with pytest.raises(ValueError, match=f"model: {text}, expected"):
        numpyro_models.of(wrong, table())


def test_draws_of_another_model_are_refused(found):
    made, data, positions = found
    fewer = {name: leaf for name, leaf in positions.items() if name != "cut"}
    for draws in (fewer, positions | {"more": positions["slope"]}, {}):
        with pytest.raises(ValueError, match=r"draws: given sites .*expected"):
            numpyro_models.constrained(made, draws, data)
    with pytest.raises(ValueError, match="draws: "):
        numpyro_models.constrained(made, positions | {"slope": positions["slope"][:, :3]}, data)


def round_density(position, data):
    """Return a standard normal density, seen through numbers that float32 does not have."""
    return -0.5 * ((position["x"] + data - data) ** 2).sum()


def test_the_sampler_computes_in_the_callers_precision():
    """In float32, 1e9 + x - 1e9 is a multiple of 64."""
    sizes = {"num_warmup": 60, "num_samples": 200, "progress": False}
    with jax.enable_x64(True):
        starts = mcmc.normal_starts(KEY, {"x": np.zeros(2)}, (4,))
        posterior = mcmc.sample(KEY, round_density, starts, data=np.float64(1e9), **sizes)
        posterior = mcmc.extend(posterior, round_density, 20, data=np.float64(1e9), progress=False)
    x = np.asarray(posterior.draws["x"])
    assert x.dtype == posterior.stats.log_density.dtype == np.float64
    np.testing.assert_allclose(posterior.stats.log_density, -0.5 * (x**2).sum(-1), atol=1e-5)
    assert (np.asarray(x, np.float32) != x).any() and 0.5 < x.std() < 1.5
    starts = mcmc.normal_starts(KEY, {"x": np.zeros(2)}, (2,))
    single = mcmc.sample(KEY, round_density, starts, data=np.float32(0), **sizes)
    assert single.draws["x"].dtype == np.float32


def test_other_samplers_run_in_double_precision():
    def log_likelihood(position, rows):
        return -0.5 * ((rows - position["x"]) ** 2).sum(axis=-1)

    def log_prior(position):
        return -0.5 * (position["x"] ** 2).sum()

    with jax.enable_x64(True):
        starts = mcmc.normal_starts(KEY, {"x": np.zeros(2)}, (2,))
        where = tempering.warmed_up(KEY, round_density, starts, np.float64(1e9), num_warmup=40)
        assert where["x"].dtype == np.float64
        algorithm = sgfs.sgfs(log_prior, log_likelihood, data_size=40)
        rows = np.random.default_rng(1).normal(size=(40, 2))
        lengths = {"batch_size": 10, "step_size": 1e-2, "num_warmup": 20, "num_samples": 20}
        draws = sgmcmc.sample(KEY, algorithm, starts, rows, progress=False, **lengths)
    assert draws["x"].dtype == np.float64 and np.isfinite(draws["x"]).all()
