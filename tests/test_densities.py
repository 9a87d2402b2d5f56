"""The flat network's log density equals formulas and NumPyro's, in value and gradient, and has its
symmetries.
"""

from helpers import densities, mcmc
from helpers.common import take
from helpers.networks import MLP

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from numpyro.infer.util import log_density as numpyro_log_density

from experiments.problems import numpyro_models

random = np.random.default_rng(0)
X, Y = (
    random.normal(size=(3, 12, 2)).astype(np.float32),
    random.integers(0, 2, size=(3, 12)).astype(np.int32),
)
SCALES = (0.5, 2.0, 6.0)


@pytest.fixture(scope="module", params=[False, True], ids=["without biases", "with biases"])
def flat(request):
    """Return a network, its data and a random position of the size that the prior makes."""
    network = MLP(use_bias=request.param)
    shapes = jax.eval_shape(network.init, jax.random.key(0), X[0])
    start = mcmc.normal_starts(jax.random.key(1), shapes, ())
    params = {
        f"Dense_{i}": jax.tree.map(lambda a, s=s: s * a, start["params"][f"Dense_{i}"])
        for i, s in enumerate(SCALES)
    }
    return network, densities.observe(X[0], Y[0], SCALES), {"params": params}


def assert_same(found, expected):
    """Compare values and gradients."""
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4), found, expected)


def test_prior_is_normal_with_a_scale_per_layer(flat):
    _, _, params = flat
    leaves = {i: jax.tree.leaves(params["params"][f"Dense_{i}"]) for i in range(3)}
    expected = sum(
        scipy.stats.norm(0, SCALES[i]).logpdf(leaf).sum() for i in leaves for leaf in leaves[i]
    )
    np.testing.assert_allclose(densities.log_prior(params, jnp.array(SCALES)), expected, rtol=1e-5)


def test_likelihood_is_bernoulli_and_stable_far_out():
    logits = np.array([-80.0, -2.0, 0.0, 3.0, 80.0], np.float32)
    for label in (0, 1):
        expected = -np.logaddexp(0, (1 - 2 * label) * logits.astype(np.float64))
        found = densities.bernoulli_log_likelihood(jnp.asarray(logits), jnp.full(5, label))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-30)


def test_flat_posterior_is_prior_times_likelihood(flat):
    network, observed, params = flat
    logits = np.asarray(network.apply(params, observed.x), np.float64)
    expected = -np.logaddexp(0, (1 - 2 * np.asarray(observed.y)) * logits).sum()
    expected += densities.log_prior(params, observed.prior_scales)
    np.testing.assert_allclose(
        densities.flat_log_density(network)(params, observed), expected, rtol=1e-5
    )


def test_flat_posterior_equals_numpyros(flat):
    network, observed, params = flat
    sites = {
        f"net/{layer}.{name}": leaf
        for layer, part in params["params"].items()
        for name, leaf in part.items()
    }

    def ours(sites):
        named = [(*name.removeprefix("net/").split("."), leaf) for name, leaf in sites.items()]
        nested = {
            layer: {name: leaf for of, name, leaf in named if of == layer} for layer, _, _ in named
        }
        return densities.flat_log_density(network)({"params": nested}, observed)

    def theirs(sites):
        return numpyro_log_density(numpyro_models.flat_model, (network, observed), {}, sites)[0]

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        expected = jax.jit(jax.value_and_grad(theirs))(sites)
    assert_same(jax.jit(jax.value_and_grad(ours))(sites), expected)


def symmetric_copy(params, hidden_layer, order, signs):
    """Permute the units of a hidden layer and flip the signs of some: incoming and outgoing weights
    together.
    """
    layers = {name: dict(part) for name, part in params["params"].items()}
    into, out = layers[f"Dense_{hidden_layer}"], layers[f"Dense_{hidden_layer + 1}"]
    for name, leaf in into.items():
        into[name] = leaf[..., order] * signs.reshape((1,) * (leaf.ndim - 1) + (-1,))
    out["kernel"] = out["kernel"][order] * signs[:, None]
    return {"params": layers}


@pytest.mark.parametrize("hidden_layer", [0, 1])
def test_copies_of_a_network_have_the_same_density(flat, hidden_layer):
    network, observed, params = flat
    log_density = densities.flat_log_density(network)
    order, signs = jnp.array([3, 0, 4, 1, 2]), jnp.array([1.0, -1.0, -1.0, 1.0, -1.0])
    copy = symmetric_copy(params, hidden_layer, order, signs)
    np.testing.assert_allclose(
        log_density(copy, observed), log_density(params, observed), rtol=1e-5
    )
    kernel = f"Dense_{hidden_layer}"
    # incoming weights alone: no symmetry
    half = {"params": {**params["params"], kernel: copy["params"][kernel]}}
    assert abs(log_density(half, observed) - log_density(params, observed)) > 0.1


def test_observed_gives_every_task_the_scales():
    observed = densities.observe(X, Y, SCALES)
    assert [a.shape for a in observed[:4]] == [(3, 12, 2), (3, 12), (3, 12), (3, 3)]
    assert [a.dtype.name for a in observed[:4]] == ["float32", "int32", "float32", "float32"]
    assert (observed.prior_scales == jnp.array([SCALES] * 3)).all() and (observed.weight == 1).all()


@pytest.mark.parametrize(
    "x, y, scales, message",
    [
        (X[0], Y, SCALES, r"x, y: given shapes \(12, 2\) and \(3, 12\), expected"),
        (X[:, :, 0][0], Y[0, 0], SCALES, r"x, y: given shapes \(12,\) and \(\), expected"),
        (
            X[:0],
            Y[:0],
            SCALES,
            r"x, y: given shapes \(0, 12, 2\) and \(0, 12\), expected .* none 0",
        ),
        (X[:, :0], Y[:, :0], SCALES, r"x, y: given shapes \(3, 0, 2\)"),
        (
            np.where(X > 1, np.nan, X),
            Y,
            SCALES,
            r"x: given \d+ values that are not finite, expected none",
        ),
        (X, Y + 1, SCALES, r"y: given labels \[1, 2\], expected 0 and 1"),
        (X, np.where(Y == 1, np.nan, 0), SCALES, r"y: given labels \[0.0, nan\], expected 0 and 1"),
        (
            X,
            Y,
            (1.0, 0.0, 1.0),
            r"prior_scales: given \[1.0, 0.0, 1.0\], expected one positive number a layer",
        ),
        (X, Y, (1.0, np.inf), r"prior_scales: given \[1.0, inf\]"),
        (X, Y, 1.0, "prior_scales: given 1.0"),
    ],
)
def test_impossible_data_are_refused(x, y, scales, message):
    with pytest.raises(ValueError, match=message):
        densities.observe(x, y, scales)


def test_scales_of_another_number_of_layers_are_refused(flat):
    _, _, params = flat
    with pytest.raises(
        ValueError, match=r"scales: given shape \(2,\), expected one for each of the 3 layers"
    ):
        densities.log_prior(params, jnp.ones(2))


@pytest.mark.parametrize("num_classes, num_outputs", [(3, 1), (2, 3), (4, 3)])
def test_labels_of_other_classes_than_the_networks_are_refused(num_classes, num_outputs):
    network = MLP((3,), num_outputs=num_outputs)
    x = np.ones((4, 2), np.float32)
    observed = densities.observe(x, [0, 1, 0, 1], [1.0, 1.0], num_classes=num_classes)
    params = network.init(jax.random.key(1), x)
    density = densities.flat_log_density(network)
    words = f"given labels of {num_classes} classes, expected those of {max(2, num_outputs)}"
    for function in (density, jax.jit(density), jax.grad(density)):
        with pytest.raises(ValueError, match=words):
            function(params, observed)


def test_measurements_are_no_labels():
    network, x = MLP((3,)), np.ones((2, 2), np.float32)
    observed = densities.observe(x, [0.0, 1.0], [1.0, 1.0], num_classes=None)
    with pytest.raises(ValueError, match="given y of float32, expected labels"):
        densities.flat_log_density(network)(network.init(jax.random.key(1), x), observed)


def test_what_labels_are_survives_what_is_done_to_arrays():
    observed = densities.observe(np.ones((3, 4, 2)), np.ones((3, 4), int), num_classes=3)
    for changed in (
        take(observed, 1),
        jax.jit(lambda a: a)(observed),
        jax.vmap(lambda a: a)(observed),
        jax.tree.map(np.asarray, observed),
    ):
        assert changed.classes == densities.Classes(3)
    assert len(jax.tree.leaves(observed)) == 3
