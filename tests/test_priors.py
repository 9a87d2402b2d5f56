"""Learnt priors: copies of a network are the same function, and every fit is the distribution it
says it is.
"""

from helpers import copies, densities, hierarchical, mcmc, networks
from helpers.networks import MLP

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats
from jax.flatten_util import ravel_pytree
from tensorflow_probability.substrates.jax import bijectors as tfb
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import fitted_priors

random = np.random.default_rng(0)
X = random.normal(size=(3, 12, 2)).astype(np.float32)
Y = random.integers(0, 2, size=(3, 12)).astype(np.int32)
NETWORKS = {
    "two layers": MLP(),
    "biases": MLP((4, 3), use_bias=True),
    "three layers": MLP((3, 4, 2)),
    "one layer, classes": MLP((6,), use_bias=True, num_outputs=3),
}


def weights(network, seed, batch=()):
    shapes = jax.eval_shape(network.init, jax.random.key(0), X[0])
    return mcmc.normal_starts(jax.random.key(seed), shapes, batch)["params"]


def some_copy(network, seed):
    rng = np.random.default_rng(seed)
    return [rng.permutation(n) for n in network.hidden], [
        rng.choice([-1.0, 1.0], n) for n in network.hidden
    ]


@pytest.fixture(params=NETWORKS.values(), ids=NETWORKS)
def network(request):
    return request.param


@pytest.fixture(scope="module")
def draws():
    """Positions of the hierarchical network, [chain, draw]."""
    return mcmc.normal_starts(jax.random.key(3), hierarchical.shapes(MLP(), 3, 2), (2, 5))


def test_a_copy_is_the_same_function(network):
    for seed in range(5):
        layers = weights(network, seed)
        copy = copies.relabel(layers, *some_copy(network, seed))
        assert not np.allclose(ravel_pytree(copy)[0], ravel_pytree(layers)[0])
        same, expected = (network.apply({"params": one}, X[0]) for one in (copy, layers))
        np.testing.assert_allclose(same, expected, atol=1e-5)


def test_a_sign_on_one_side_alone_is_another_function():
    layers = weights(MLP(), 0)
    other = {**layers, "Dense_0": {"kernel": -layers["Dense_0"]["kernel"]}}
    assert not np.allclose(
        MLP().apply({"params": other}, X[0]), MLP().apply({"params": layers}, X[0])
    )


def test_the_nearest_copy_undoes_a_relabelling(network):
    for seed in range(10):
        reference = weights(network, seed, (4,))
        moved = copies.relabel(reference, *some_copy(network, seed))
        back = copies.relabel(moved, *copies.nearest_copy(moved, reference))
        jax.tree.map(np.testing.assert_array_equal, back, jax.tree.map(np.asarray, reference))


def test_the_nearest_copy_undoes_it_under_noise():
    for seed in range(10):
        reference = weights(MLP(), seed, (4,))
        near = jax.tree.map(
            lambda a: a + 0.2 * random.normal(size=a.shape).astype(np.float32), reference
        )
        moved = copies.relabel(near, *some_copy(MLP(), seed))
        back = copies.relabel(moved, *copies.nearest_copy(moved, reference))
        jax.tree.map(np.testing.assert_array_equal, back, jax.tree.map(np.asarray, near))


def test_equal_units_come_to_an_end():
    layers = jax.tree.map(jnp.ones_like, weights(MLP(), 0))
    copy = copies.relabel(layers, *copies.nearest_copy(layers, layers))
    jax.tree.map(np.testing.assert_array_equal, copy, jax.tree.map(np.asarray, layers))


def test_nearest_copy_refuses_other_shapes():
    with pytest.raises(
        ValueError, match=r"layers: given kernels .* expected those of the reference"
    ):
        copies.nearest_copy(weights(MLP((4, 4)), 0), weights(MLP(), 0))


def test_alignment_changes_no_prediction(draws):
    reference = jax.tree.map(lambda a: a[1, 2], draws)
    aligned = copies.align(draws, reference)
    logits, density = jax.jit(hierarchical.logits(MLP())), jax.jit(hierarchical.log_density(MLP()))
    observed = densities.observe(X, Y)
    for chain, draw in np.ndindex(2, 5):
        one, other = (jax.tree.map(lambda a: a[chain, draw], tree) for tree in (draws, aligned))
        np.testing.assert_allclose(logits(other, X), logits(one, X), atol=1e-4)
        np.testing.assert_allclose(density(other, observed), density(one, observed), rtol=1e-4)
    assert not np.allclose(aligned["mean"]["Dense_1"]["kernel"], draws["mean"]["Dense_1"]["kernel"])


def test_alignment_acts_on_means_and_offsets_together(draws):
    """All copies of one draw become that draw."""
    one = jax.tree.map(lambda a: a[0, 0], draws)
    moved = []
    for seed in range(4):
        copy = some_copy(MLP(), seed)
        moved.append(
            {
                **one,
                "mean": copies.relabel(one["mean"], *copy),
                "offset": copies.relabel(one["offset"], *copy),
            }
        )
    stacked = jax.tree.map(
        lambda *leaves: jnp.stack([jnp.asarray(a) for a in leaves])[None], *moved
    )
    aligned = copies.align(stacked, one)
    for i in range(4):
        jax.tree.map(
            np.testing.assert_array_equal, jax.tree.map(lambda a, i=i: a[0, i], aligned), one
        )


def test_a_common_reference_brings_scattered_draws_together(draws):
    one = jax.tree.map(lambda a: np.asarray(a[0, 0]), draws)
    scattered = []
    for seed in range(12):
        copy = some_copy(MLP(), seed)
        near = jax.tree.map(
            lambda a: a + 0.05 * random.normal(size=a.shape).astype(np.float32), one
        )
        scattered.append(
            {**near, **{part: copies.relabel(near[part], *copy) for part in ("mean", "offset")}}
        )
    stacked = jax.tree.map(
        lambda *leaves: jnp.asarray(np.stack(leaves).reshape(2, 6, *leaves[0].shape)), *scattered
    )
    reference = copies.common_reference(stacked, num_starts=2)
    aligned = copies.align(stacked, reference)
    for name in ("Dense_0", "Dense_1", "Dense_2"):
        before, after = (
            np.asarray(tree["mean"][name]["kernel"]).std(axis=(0, 1)) for tree in (stacked, aligned)
        )
        assert before.mean() > 0.4 and after.max() < 0.12
        np.testing.assert_allclose(
            reference["mean"][name]["kernel"],
            aligned["mean"][name]["kernel"].mean((0, 1)),
            atol=1e-5,
        )


def test_group_predictive_has_the_groups_mean_and_sd():
    shapes = hierarchical.shapes(MLP(), 3, 2)
    one = mcmc.normal_starts(jax.random.key(5), shapes, ())
    many = jax.tree.map(lambda a: jnp.broadcast_to(a, (2, 10_000, *a.shape)), one)
    w = np.asarray(fitted_priors.group_predictive(jax.random.key(6), many))
    sd = ravel_pytree(
        {
            name: jax.tree.map(
                lambda a, n=name: jnp.full(a.shape, jnp.exp(one["log_sd"][n])), layer
            )
            for name, layer in one["mean"].items()
        }
    )[0]
    assert w.shape == (2, 10_000, 40)
    error = np.asarray(sd) / np.sqrt(20_000)
    assert (
        np.abs(w.mean(axis=(0, 1)) - np.asarray(ravel_pytree(one["mean"])[0])) < 5 * error
    ).all()
    np.testing.assert_allclose(w.std(axis=(0, 1)), sd, rtol=0.05)
    assert np.abs(np.corrcoef(w[0, :, 0], w[1, :, 0])[0, 1]) < 0.05  # no number is used twice


def test_weights_are_numbered_by_layer():
    layer = fitted_priors.layer_of_weight(weights(MLP((4, 3), use_bias=True), 0))
    assert np.bincount(layer).tolist() == [2 * 4 + 4, 4 * 3 + 3, 3 + 1]
    assert (np.diff(layer) >= 0).all()


LAYER = np.array([0, 0, 1, 1])
COVARIANCE = np.cov(random.normal(size=(4, 9)))
W = random.multivariate_normal([1.0, -1.0, 0.0, 3.0], COVARIANCE, size=4000)


def log_prob(distribution, w):
    """Of every draw; TFP's mixtures broadcast against the strict rules of the tests."""
    with jax.numpy_rank_promotion("allow"):
        return jax.vmap(distribution.log_prob)(jnp.asarray(w, jnp.float32))


def test_a_normal_has_the_draws_moments():
    expected = scipy.stats.multivariate_normal(W.mean(axis=0), np.cov(W.T)).logpdf(W[:50])
    np.testing.assert_allclose(
        log_prob(fitted_priors.fit_normal(W), W[:50]), expected, rtol=1e-3, atol=1e-3
    )


def test_a_normal_a_layer_has_no_correlation_between_layers():
    parts = [
        scipy.stats.multivariate_normal(W[:, i == LAYER].mean(axis=0), np.cov(W[:, i == LAYER].T))
        for i in (0, 1)
    ]
    expected = sum(part.logpdf(W[:50, i == LAYER]) for i, part in enumerate(parts))
    fitted = fitted_priors.fit_layers(W, LAYER)
    np.testing.assert_allclose(log_prob(fitted, W[:50]), expected, rtol=1e-3, atol=1e-3)


def test_scales_have_mean_zero_and_one_value_a_layer():
    fitted = fitted_priors.fit_scales(W, LAYER)
    expected = np.sqrt([np.mean(W[:, :2] ** 2), np.mean(W[:, 2:] ** 2)])[LAYER]
    np.testing.assert_allclose(fitted.stddev(), expected, rtol=1e-5)
    np.testing.assert_array_equal(fitted.mean(), 0)


@pytest.mark.parametrize("df", [4.0, 12.0])
def test_a_student_t_is_recovered(df):
    location, shape = np.array([1.0, -1.0, 0.0, 3.0]), COVARIANCE
    draws = scipy.stats.multivariate_t(location, shape, df=df, seed=1).rvs(20_000)
    fitted = fitted_priors.fit_student_t(draws)
    assert 0.85 * df < float(fitted.df) < 1.2 * df
    np.testing.assert_allclose(fitted.loc, location, atol=0.05)
    np.testing.assert_allclose(fitted.scale_tril @ fitted.scale_tril.T, shape, rtol=0.15, atol=0.1)
    expected = scipy.stats.multivariate_t(location, shape, df=df).logpdf(draws[:500]).mean()
    assert abs(float(log_prob(fitted, draws[:500]).mean()) - expected) < 0.02


def test_a_mixture_finds_its_parts():
    shift = np.array([6.0, 0.0, -6.0, 0.0])
    both = np.concatenate([W, W[:2000] + shift])
    fitted = fitted_priors.fit_mixture(both, 2)
    share = np.sort(np.asarray(fitted.mixture_distribution.probs_parameter()))
    np.testing.assert_allclose(share, [1 / 3, 2 / 3], atol=0.02)
    centres = np.asarray(fitted.components_distribution.mean())
    gap = centres[1] - centres[0]
    np.testing.assert_allclose(gap * np.sign(gap[0]), shift, atol=0.2)
    alone = log_prob(fitted_priors.fit_normal(both), both).mean()
    assert log_prob(fitted, both).mean() > alone + 0.5


@pytest.mark.parametrize(
    "w, message",
    [
        (W[:4], "given 4 draws, expected at least 5"),
        (W[0], r"given shape \(4,\)"),
        (np.where(np.arange(4) == 1, np.nan, W), "all finite: False"),
        (np.concatenate([W[:, :3], W[:, :1]], axis=1), "expected all positive"),
    ],
    ids=["few draws", "no draws", "not finite", "singular"],
)
@pytest.mark.parametrize(
    "fit", [fitted_priors.fit_normal, fitted_priors.fit_student_t, fitted_priors.whiten]
)
def test_a_fit_refuses(fit, w, message):
    with pytest.raises(ValueError, match=message):
        fit(w)


def test_fits_by_layer_and_mixtures_refuse_too():
    with pytest.raises(ValueError, match="given 4 draws, expected at least 5"):
        fitted_priors.fit_layers(W[:4], LAYER)
    with pytest.raises(ValueError, match="given 7 draws, expected at least 8"):
        fitted_priors.fit_mixture(W[:7], 2)


def test_whitening_has_the_draws_moments():
    white = fitted_priors.whiten(W)
    z = np.asarray(jax.vmap(white.inverse)(jnp.asarray(W, jnp.float32)))
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-2)
    np.testing.assert_allclose(np.cov(z.T), np.eye(4), atol=2e-2)


IDENTITY = tfb.Scale(1.0)


def task(weight):
    return jax.tree.map(lambda a: a[0], densities.observe(X, Y, weight=weight))


def test_an_informed_density_generalises_the_flat_one():
    network, scales = MLP(), jnp.array([0.5, 1.0, 6.0])
    unravel, size = networks.weights_of(network, 2)
    sd = scales[fitted_priors.layer_of_weight(unravel(jnp.zeros(size))["params"])]
    flat, observed = densities.flat_log_density(network), densities.observe(X[0], Y[0], scales)
    vector = jax.random.normal(jax.random.key(1), (size,))
    expected, slope = jax.jit(jax.value_and_grad(lambda v: flat(unravel(v), observed)))(vector)
    for prior in (
        tfd.MultivariateNormalDiag(jnp.zeros(size), sd),
        dist.Normal(jnp.zeros(size), sd).to_event(1),
    ):
        informed = densities.informed_log_density(network, prior, IDENTITY, 2)
        found, gradient = jax.jit(jax.value_and_grad(informed))(vector, task(1.0))
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(gradient, slope, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(informed(vector, task(0.0)), prior.log_prob(vector), rtol=1e-5)


def test_whitening_changes_the_coordinates_and_not_the_posterior():
    """The density of the position is that of the weights times the Jacobian's constant."""
    network = MLP((2,), num_outputs=3, use_bias=True)
    unravel, size = networks.weights_of(network, 2)
    w = random.normal(size=(200, size)) @ np.triu(np.ones((size, size)))
    prior, white = fitted_priors.fit_normal(w), fitted_priors.whiten(w)
    labels = densities.observe(X, Y, num_classes=3)
    one = jax.tree.map(lambda a: a[0], labels)
    plain, whitened = (
        densities.informed_log_density(network, prior, map_, 2) for map_ in (IDENTITY, white)
    )
    z = jax.random.normal(jax.random.key(2), (2, size))
    by_position, by_weights = (
        [density(a, one) for a in at]
        for density, at in ((whitened, z), (plain, jax.vmap(white.forward)(z)))
    )
    np.testing.assert_allclose(
        by_position[0] - by_position[1], by_weights[0] - by_weights[1], rtol=1e-3, atol=1e-2
    )
    np.testing.assert_allclose(ravel_pytree(unravel(z[0]))[0], z[0])


def test_an_informed_density_refuses_a_prior_of_another_network():
    with pytest.raises(
        ValueError, match=r"prior: given one of event shape \(4,\), expected \(40,\)"
    ):
        densities.informed_log_density(MLP(), fitted_priors.fit_normal(W), IDENTITY, 2)
