"""The regression density equals formulas, NumPyro's model and, for a linear network, the exact
posterior.
"""

from helpers import densities, mcmc, verify
from helpers.networks import MLP

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.special
import scipy.stats
from numpyro.infer.util import potential_energy
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import evidence_estimates
from experiments.problems import numpyro_models, waves

WAVE = waves.wave(jax.random.key(0), 12)
SCALES = (2.0, 0.5)
NETWORK = MLP((3,), nn.tanh, use_bias=True)
MEASURED = densities.observe(WAVE.x_train, WAVE.y_train, SCALES, num_classes=None)


def position_of(network, key):
    """A random position of a network for the wave."""
    shapes = jax.eval_shape(network.init, jax.random.key(0), WAVE.x_train)
    return mcmc.normal_starts(
        key, {"params": shapes, "log_noise": jax.ShapeDtypeStruct((), jnp.float32)}, ()
    )


POSITION = position_of(NETWORK, jax.random.key(1))


def formula(position, prior, noise_scale=0.5):
    """The log density by SciPy, in double precision; ``prior`` is a frozen distribution."""
    noise = np.exp(np.float64(position["log_noise"]))
    total = scipy.stats.halfcauchy(scale=noise_scale).logpdf(noise) + np.log(noise)
    for i, scale in enumerate(SCALES):
        for leaf in position["params"]["params"][f"Dense_{i}"].values():
            total += (prior.logpdf(np.float64(leaf) / scale) - np.log(scale)).sum()
    mean = NETWORK.apply(position["params"], WAVE.x_train)
    return total + scipy.stats.norm(mean, noise).logpdf(WAVE.y_train).sum()


@pytest.mark.parametrize(
    "prior, reference",
    [
        (tfd.Normal(0.0, 1.0), scipy.stats.norm()),
        (dist.Normal(0.0, 1.0), scipy.stats.norm()),
        (tfd.StudentT(3.0, 0.0, 1.0), scipy.stats.t(3)),
        ({"Dense_0": tfd.Cauchy(0.0, 1.0), "Dense_1": tfd.Cauchy(0.0, 1.0)}, scipy.stats.cauchy()),
    ],
    ids=["normal", "NumPyro's", "Student", "by layer"],
)
def test_density_is_prior_times_likelihood_with_the_jacobian(prior, reference):
    for noise_scale in (0.5, 2.0):
        found = densities.regression_log_density(NETWORK, prior, noise_scale)(POSITION, MEASURED)
        np.testing.assert_allclose(found, formula(POSITION, reference, noise_scale), rtol=1e-5)


def test_scale_in_the_data_is_the_scale_of_the_prior():
    wide = densities.regression_log_density(NETWORK, tfd.StudentT(3.0, 0.0, 2.0))
    unit = densities.regression_log_density(NETWORK, tfd.StudentT(3.0, 0.0, 1.0))
    scaled = MEASURED._replace(prior_scales=2 * MEASURED.prior_scales)
    np.testing.assert_allclose(unit(POSITION, scaled), wide(POSITION, MEASURED), rtol=1e-5)


def test_density_equals_numpyros():
    log_density = densities.regression_log_density(NETWORK, tfd.Normal(0.0, 1.0))

    def ours(position):
        return -log_density(position, MEASURED)

    def theirs(position):
        layers = position["params"]["params"]
        sites = {
            f"net/{layer}.{name}": leaf
            for layer, part in layers.items()
            for name, leaf in part.items()
        }
        # unconstrained: NumPyro takes the exponential and its Jacobian
        sites["noise"] = position["log_noise"]
        return potential_energy(numpyro_models.regression_model, (NETWORK, MEASURED), {}, sites)

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        expected = jax.jit(jax.value_and_grad(theirs))(POSITION)
    found = jax.jit(jax.value_and_grad(ours))(POSITION)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4), found, expected)


def test_linear_network_has_the_exact_posterior_and_evidence():
    """Bishop (2006), section 3.3 and 3.5: p(w, y) = N(w | posterior) N(y | 0, noise^2 + features
    prior features^T).
    """
    network = MLP((), use_bias=True)
    measured = densities.observe(WAVE.x_train, WAVE.y_train, (1.5,), num_classes=None)
    log_density = densities.regression_log_density(network, tfd.Normal(0.0, 1.0))
    features = np.hstack([np.float64(WAVE.x_train), np.ones((12, 1))])
    y = np.float64(WAVE.y_train)
    for key, noise in zip(jax.random.split(jax.random.key(2), 3), (0.1, 0.5, 2.0), strict=True):
        position = {**position_of(network, key), "log_noise": jnp.log(jnp.float32(noise))}
        layer = position["params"]["params"]["Dense_0"]
        w = np.array([layer["kernel"][0, 0], layer["bias"][0]])
        covariance = np.linalg.inv(np.eye(2) / 1.5**2 + features.T @ features / noise**2)
        expected = scipy.stats.multivariate_normal(
            covariance @ features.T @ y / noise**2, covariance
        ).logpdf(w)
        evidence_covariance = noise**2 * np.eye(12) + 1.5**2 * features @ features.T
        expected += scipy.stats.multivariate_normal(np.zeros(12), evidence_covariance).logpdf(y)
        expected += scipy.stats.halfcauchy(scale=0.5).logpdf(noise) + np.log(noise)
        np.testing.assert_allclose(log_density(position, measured), expected, rtol=2e-4, atol=2e-3)


def test_tempered_draws_of_a_linear_network_give_its_exact_evidence_and_predictions():
    """The noise is integrated on a grid, all else in closed form."""
    network, powers = MLP((), use_bias=True), np.linspace(0, 1, 6, dtype=np.float32) ** 3
    log_prior = densities.regression_log_prior(tfd.Normal(0.0, 1.0))
    log_likelihood = densities.regression_log_likelihood(network)
    repeated = densities.observe(WAVE.x_train, WAVE.y_train, np.full((6, 1), 1.5), num_classes=None)
    start = position_of(network, jax.random.key(3))
    starts = mcmc.normal_starts(jax.random.key(4), start, (6, 4))

    def tempered(position, task):
        measured, power = task
        return log_prior(position, measured) + power * log_likelihood(position, measured).sum()

    draws = mcmc.sample(
        jax.random.key(5), tempered, starts, tasks=(repeated, powers), num_samples=500
    ).draws
    first = jax.tree.map(lambda a: a[0], repeated)
    values = jax.jit(jax.vmap(jax.vmap(jax.vmap(lambda p: log_likelihood(p, first).sum()))))(draws)
    found, error = (
        evidence_estimates.log_evidence(values.reshape(6, -1), powers),
        evidence_estimates.log_evidence_error(values, powers),
    )

    features = np.hstack([np.float64(WAVE.x_train), np.ones((12, 1))])
    log_noise = np.linspace(np.log(0.02), np.log(20), 400)
    covariances = np.exp(2 * log_noise)[:, None, None] * np.eye(12) + 1.5**2 * features @ features.T
    y = np.float64(WAVE.y_train)
    marginal = [scipy.stats.multivariate_normal(np.zeros(12), c).logpdf(y) for c in covariances]
    joint = marginal + scipy.stats.halfcauchy(scale=0.5).logpdf(np.exp(log_noise)) + log_noise
    exact = scipy.special.logsumexp(joint) + np.log(log_noise[1] - log_noise[0])
    assert abs(found - exact) < 6 * error and error < 0.3

    at = np.array([[-1.0, 1.0], [1.0, 1.0]])  # features of the points -1 and 1
    weighed = [1.5**2 * at @ features.T @ np.linalg.solve(c, y) for c in covariances]
    expected = scipy.special.softmax(joint) @ np.array(weighed)
    last = jax.tree.map(lambda a: np.asarray(a[-1]), draws["params"]["params"]["Dense_0"])
    assert verify.compare_with_exact(
        last["kernel"][..., 0] * at[:, 0] + last["bias"], expected
    ).passed.all()


def test_points_are_repeated_for_each_row_of_scales_and_scales_for_each_task():
    x, y = np.asarray(WAVE.x_train), np.asarray(WAVE.y_train)
    several_priors = densities.observe(
        x, y, [(1.0, 1.0), (0.1, 0.1), (10.0, 10.0)], num_classes=None
    )
    several_tasks = densities.observe(
        np.stack([x, 2 * x]), np.stack([y, 2 * y]), (1.0, 2.0), num_classes=None
    )
    assert [a.shape for a in several_priors[:4]] == [(3, 12, 1), (3, 12), (3, 12), (3, 2)]
    assert [a.shape for a in several_tasks[:4]] == [(2, 12, 1), (2, 12), (2, 12), (2, 2)]
    assert [a.shape for a in MEASURED[:4]] == [(12, 1), (12,), (12,), (2,)]
    assert (several_priors.x == x[None]).all() and (
        several_tasks.prior_scales == jnp.array([[1.0, 2.0]] * 2)
    ).all()


@pytest.mark.parametrize(
    "x, y, scales, message",
    [
        (
            WAVE.x_train,
            WAVE.y_train[:3],
            SCALES,
            r"x, y: given shapes \(12, 1\) and \(3,\), expected",
        ),
        (WAVE.x_train[:, 0], WAVE.y_train, SCALES, r"x, y: given shapes \(12,\) and \(12,\)"),
        (WAVE.x_train[:0], WAVE.y_train[:0], SCALES, "expected .* none 0"),
        (
            WAVE.x_train * np.nan,
            WAVE.y_train,
            SCALES,
            "x: given 12 values that are not finite, expected none",
        ),
        (
            WAVE.x_train,
            WAVE.y_train * np.inf,
            SCALES,
            "y: given 12 values that are not finite, expected none",
        ),
        (
            WAVE.x_train,
            WAVE.y_train,
            (1.0, -1.0),
            r"prior_scales: given \[1.0, -1.0\], expected one positive number",
        ),
        (WAVE.x_train, WAVE.y_train, 1.0, "prior_scales: given 1.0"),
        (
            WAVE.x_train[None],
            WAVE.y_train[None],
            np.ones((2, 2)),
            "prior_scales: given 2 rows, expected .* 1 tasks",
        ),
    ],
)
def test_impossible_measurements_are_refused(x, y, scales, message):
    with pytest.raises(ValueError, match=message):
        densities.observe(x, y, scales, num_classes=None)


@pytest.mark.parametrize(
    "prior, noise_scale, message",
    [
        (
            tfd.Normal(0.0, -1.0),
            0.5,
            "prior: given log density nan at 0.5, expected a finite number",
        ),
        (
            {"Dense_0": tfd.Normal(0.0, 1.0), "Dense_1": tfd.Normal(0.0, -1.0)},
            0.5,
            "prior: given log dens",
        ),
        (tfd.Uniform(1.0, 2.0), 0.5, "prior: given log density -inf"),
        (tfd.Normal(0.0, 1.0), 0.0, "noise_scale: given 0.0, expected a finite number above 0"),
        (tfd.Normal(0.0, 1.0), np.nan, "noise_scale: given nan"),
    ],
)
def test_impossible_priors_are_refused(prior, noise_scale, message):
    with pytest.raises(ValueError, match=message):
        densities.regression_log_density(NETWORK, prior, noise_scale)


def test_scales_of_another_number_of_layers_are_refused():
    three = MEASURED._replace(prior_scales=jnp.ones(3))
    with pytest.raises(
        ValueError, match=r"scales: given shape \(3,\), expected one for each of the 2 layers"
    ):
        densities.regression_log_density(NETWORK, tfd.Normal(0.0, 1.0))(POSITION, three)
