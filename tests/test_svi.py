"""Guides against closed forms: a linear model with known noise has a normal posterior and a known
evidence.
"""

from helpers import densities, hierarchical, mcmc, networks, svi

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import (
    AutoIAFNormal,
    AutoLaplaceApproximation,
    AutoMultivariateNormal,
    AutoNormal,
)
from scipy import stats

from experiments.methods import autoguides
from experiments.pages.svi import equal_cost_fits, guides, moons
from experiments.problems import numpyro_models, spirals

NOISE = 0.5
MEAN_FIELD = partial(AutoNormal, init_scale=0.1)
FULL_RANK = partial(AutoMultivariateNormal, init_scale=0.1)
FLOW = partial(AutoIAFNormal, num_flows=1, hidden_dims=[6])
NARROW_FLOW = partial(autoguides.Flow, num_flows=1, hidden_dims=[6])
DECAYING = optax.adam(optax.exponential_decay(0.05, 2000, 1e-2))


def linear(x, y):
    """Weights N(0, 1), known noise."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
    with numpyro.plate("point", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ w, NOISE), obs=y)


@pytest.fixture(scope="module")
def problem():
    """Return points, and the exact posterior and log evidence."""
    random = np.random.default_rng(3)
    x = random.normal(size=(25, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.0], [0.0, 0.0, 1.0]])
    y = x @ random.normal(size=3) + NOISE * random.normal(size=25)
    precision = np.eye(3) + x.T @ x / NOISE**2
    mean = np.linalg.solve(precision, x.T @ y) / NOISE**2
    evidence = stats.multivariate_normal(np.zeros(25), NOISE**2 * np.eye(25) + x @ x.T).logpdf(y)
    return (jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)), mean, precision, evidence


draw = jax.jit(svi.draw, static_argnums=(1, 2, 5))
weigh = jax.jit(autoguides.log_weights, static_argnums=(1, 2, 5))


def fitted(guide, loss, args, num_steps=3000):
    """Fit, draw, and weigh."""
    result = svi.fit(
        jax.random.key(0), linear, guide, args, num_steps=num_steps, loss=loss, optimizer=DECAYING
    )
    key_draw, key_weigh = jax.random.split(jax.random.key(1))
    draws = draw(key_draw, linear, guide, result.params, args, 4000)["w"]
    if guide is AutoLaplaceApproximation:
        with pytest.raises(
            ValueError, match="guide: given AutoLaplaceApproximation, whose ELBO is that of a point"
        ):
            autoguides.log_weights(key_weigh, linear, guide, result.params, args, 1000)
        return result, np.asarray(draws), None
    log_weights = weigh(key_weigh, linear, guide, result.params, args, 1000)
    return result, np.asarray(draws), np.asarray(log_weights)


@pytest.mark.parametrize(
    "guide",
    [FULL_RANK, FLOW, NARROW_FLOW, AutoLaplaceApproximation],
    ids=["full rank", "flow", "narrow flow", "Laplace"],
)
def test_guides_with_correlations_find_the_exact_posterior(problem, guide):
    args, mean, precision, evidence = problem
    _, draws, log_weights = fitted(guide, Trace_ELBO(num_particles=10), args)
    covariance = np.linalg.inv(precision)
    sd = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1 * sd.min())
    np.testing.assert_allclose(
        np.cov(draws.T) / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=0.08
    )
    # where a guide is exact its weights are all alike: the evidence
    if guide is not AutoLaplaceApproximation:
        np.testing.assert_allclose(log_weights.mean(), evidence, atol=0.02)
        assert log_weights.std() < 0.2


def test_gauss_newton_is_the_mean_curvature_over_measurements_of_the_model():
    start = mcmc.normal_starts(jax.random.key(0), guides.SHAPES, (), 0.5)
    x = jnp.linspace(-1.0, 1.0, 8)[:, None]
    mean, noise = guides.NETWORK.apply(start["params"], x), jnp.exp(start["log_noise"])
    vector, unravel = ravel_pytree(start)

    def observed(y):
        return densities.Observed(x, y, jnp.ones(8), jnp.ones(2))

    def curvature(y):
        return -jax.hessian(lambda v: guides.LOG_DENSITY(unravel(v), observed(y)))(vector)

    y = mean[None] + noise * jax.random.normal(jax.random.key(1), (2000, 8))
    found = np.asarray(jax.jit(jax.vmap(curvature))(y), np.float64)
    error = found.std(axis=0) / np.sqrt(len(y))
    off = np.abs(found.mean(axis=0) - equal_cost_fits.gauss_newton(start, observed(mean)))
    assert (off <= 6 * error + 1e-4 * np.abs(found).max()).all()


def test_mean_field_is_too_narrow_by_a_known_amount(problem):
    args, mean, precision, evidence = problem
    result, draws, log_weights = fitted(MEAN_FIELD, svi.ELBO, args)
    narrow = 1 / np.sqrt(np.diag(precision))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1 * narrow.min())
    np.testing.assert_allclose(draws.std(axis=0), narrow, rtol=0.05)
    lost = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
    assert lost > 0.3
    np.testing.assert_allclose(evidence - log_weights.mean(), lost, atol=0.1)
    np.testing.assert_allclose(evidence + result.losses[-500:].mean(), lost, atol=0.1)


def test_runs_are_mapped_over_keys_and_data(problem):
    (x, y), *_ = problem
    many = jnp.stack([y, y + 1])
    runs = jax.jit(jax.vmap(lambda k, y: svi.run(k, linear, MEAN_FIELD, (x, y), num_steps=50)))
    result = runs(jax.random.split(jax.random.key(0), 2), many)
    assert result.losses.shape == (2, 50)
    alone = svi.fit(
        jax.random.split(jax.random.key(0), 2)[1], linear, MEAN_FIELD, (x, many[1]), num_steps=50
    )
    np.testing.assert_allclose(result.losses[1], alone.losses, rtol=1e-3)
    again = svi.fit(
        jax.random.split(jax.random.key(0), 2)[1], linear, MEAN_FIELD, (x, many[1]), num_steps=50
    )
    assert (alone.losses == again.losses).all()


@pytest.mark.parametrize("names", [("a", "z"), ("z", "a")])
def test_draws_of_a_correlated_guide_have_their_own_names_in_any_order(names):
    """Nothing is measured, so that the posterior is the prior: 3 and -1, far apart."""

    def apart():
        numpyro.sample(names[0], dist.Normal(3.0, 0.1))
        numpyro.sample(names[1], dist.Normal(-1.0, 0.5))

    fit = svi.fit(
        jax.random.key(0),
        apart,
        FULL_RANK,
        (),
        num_steps=2000,
        loss=Trace_ELBO(5),
        optimizer=DECAYING,
    )
    draws = svi.draw(jax.random.key(1), apart, FULL_RANK, fit.params, (), 1000)
    first, second = (np.asarray(draws[name]) for name in names)
    assert abs(first.mean() - 3.0) < 0.1 and first.std() < 0.2
    assert abs(second.mean() + 1.0) < 0.4 and second.std() > 0.3


def test_an_elbo_that_is_not_finite_is_an_error(problem):
    args, *_ = problem

    def breaks(x, y):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0))
        numpyro.factor("y", jnp.where(w > 3.0, jnp.nan, 100 * w))

    with pytest.raises(
        FloatingPointError, match=r"not finite from step \d+ on .*smaller step size"
    ):
        svi.fit(jax.random.key(0), breaks, MEAN_FIELD, args, num_steps=2000)


@pytest.mark.parametrize("num", [0, 2.5])
def test_impossible_counts_are_refused(problem, num):
    args, *_ = problem
    with pytest.raises(ValueError, match="num_steps: given"):
        svi.fit(jax.random.key(0), linear, MEAN_FIELD, args, num_steps=num)
    for function in (svi.draw, autoguides.log_weights):
        with pytest.raises(ValueError, match="num_draws: given"):
            function(jax.random.key(0), linear, MEAN_FIELD, {}, args, num)


def test_data_that_are_not_finite_are_refused(problem):
    (x, y), *_ = problem
    with pytest.raises(ValueError, match="args: given 1 values that are not finite"):
        svi.fit(jax.random.key(0), linear, MEAN_FIELD, (x, y.at[3].set(jnp.nan)))


@pytest.fixture(scope="module")
def labelled():
    """Return a network of three classes, its points, and some weights."""
    points = spirals.spiral(jax.random.key(0), 20)
    network = networks.MLP((7,), use_bias=True, num_outputs=3)
    observed = densities.observe(points.x, points.y, [1.0, 2.0], num_classes=3)
    return network, observed, network.init(jax.random.key(1), points.x)


def sites(params):
    """Name a network's parameters as NumPyro does."""
    layers = params["params"]
    return {
        f"net/{layer}.{leaf}": value for layer in layers for leaf, value in layers[layer].items()
    }


def test_numpyro_states_the_same_density_of_classes(labelled):
    network, observed, params = labelled
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        model = partial(numpyro_models.flat_model, network)
        theirs = jax.jit(lambda at: numpyro.infer.util.log_density(model, (observed,), {}, at)[0])(
            sites(params)
        )
    np.testing.assert_allclose(
        densities.flat_log_density(network)(params, observed), theirs, rtol=1e-5
    )
    again = svi.network_position(sites(params))
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), again, params))


def test_minibatches_estimate_the_density_without_bias(labelled):
    network, observed, params = labelled
    model = partial(numpyro_models.flat_model, network, batch_size=15)
    full = densities.flat_log_density(network)(params, observed)

    def one(key):
        seeded = numpyro.handlers.seed(model, key)
        return numpyro.infer.util.log_density(seeded, (observed,), {}, sites(params))[0]

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        values = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(2), 4000))
    assert values.std() > 1
    assert abs(values.mean() - full) < 4 * values.std() / np.sqrt(4000)


def test_the_group_model_has_the_density_of_the_hierarchical_network():
    random = np.random.default_rng(0)
    tasks = densities.observe(random.normal(size=(3, 12, 2)), random.integers(0, 2, size=(3, 12)))
    position = mcmc.normal_starts(jax.random.key(3), hierarchical.shapes(moons.NETWORK, 3, 2), ())
    named = {f"sd/{name}": jnp.exp(value) for name, value in position["log_sd"].items()}
    for part in ("mean", "offset"):
        named |= {
            f"{part}/{name}.{leaf}": v
            for name, layer in position[part].items()
            for leaf, v in layer.items()
        }
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-5), moons.group_position(named), position
    )
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        theirs = jax.jit(
            lambda at: numpyro.infer.util.log_density(moons.group_model, (tasks,), {}, at)[0]
        )(named)
    jacobian = sum(position["log_sd"].values())
    found = hierarchical.log_density(moons.NETWORK)(position, tasks)
    np.testing.assert_allclose(found, theirs + jacobian, rtol=1e-5)
