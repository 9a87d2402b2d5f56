"""The hierarchical network's density equals formulas and plain differentiation, for any choice of
layers.
"""

from helpers import densities, hierarchical, mcmc
from helpers.networks import MLP

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.stats
from numpyro.infer.util import log_density as numpyro_log_density
from tensorflow_probability.substrates.jax import distributions as tfd

NUM_TASKS = 3
random = np.random.default_rng(0)
X = random.normal(size=(NUM_TASKS, 12, 2)).astype(np.float32)
Y = random.integers(0, 2, size=(NUM_TASKS, 12)).astype(np.int32)
WEIGHT = np.linspace(0, 1, Y.size, dtype=np.float32).reshape(Y.shape)
INPUT, HIDDEN, OUTPUT = "Dense_0", "Dense_1", "Dense_2"
ARMS = {
    "every layer": {},
    "means 0": {"means": ()},
    "output layer shared": {"special": (INPUT, HIDDEN)},
    "one layer special, no mean": {"means": (INPUT, HIDDEN), "special": (OUTPUT,)},
    "a scale per weight": {"sd_per_weight": True},
}
assert_same = partial(jax.tree.map, partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4))


def size(shapes):
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


@pytest.fixture(scope="module", params=[False, True], ids=["without biases", "with biases"])
def network(request):
    return MLP(use_bias=request.param)


@pytest.fixture(scope="module", params=ARMS.values(), ids=ARMS)
def position(request, network):
    return mcmc.normal_starts(
        jax.random.key(1),
        hierarchical.shapes(network, NUM_TASKS, 2, **request.param),
        (),
        scale=0.7,
    )


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, 763),
        ({"special": (INPUT, HIDDEN)}, 672),
        ({"means": ()}, 723),
        ({"sd_per_weight": True}, 800),
    ],
)
def test_number_of_parameters(settings, expected):
    assert size(hierarchical.shapes(MLP(), 18, 2, **settings)) == expected


def test_weights_by_hand():
    position = {
        "mean": {"a": {"kernel": jnp.array([1.0, 2.0])}, "shared": {"kernel": jnp.array([7.0])}},
        "log_sd": {"a": jnp.log(3.0), "b": {"kernel": jnp.log(jnp.array([1.0, 10.0]))}},
        "offset": {
            "a": {"kernel": jnp.array([[0.0, 1.0], [-1.0, 2.0]])},
            "b": {"kernel": jnp.array([[1.0, 1.0], [2.0, 3.0]])},
        },
    }
    expected = {
        "a": {"kernel": np.array([[1.0, 5.0], [-2.0, 8.0]])},
        "b": {"kernel": np.array([[1.0, 10.0], [2.0, 30.0]])},  # no mean, a scale per weight
        "shared": {"kernel": np.array([[7.0], [7.0]])},
    }
    assert_same(hierarchical.task_weights(position, 2), {"params": expected})


def in_words(network, position, labelled, log_hyperprior):
    """The log posterior by numpy and scipy, one weight array after the other."""
    mean, log_sd, offset = (position[name] for name in ("mean", "log_sd", "offset"))
    normals = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves((mean, offset))])
    log_sds = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(log_sd)]).astype(
        np.float64
    )
    total = (
        scipy.stats.norm.logpdf(normals).sum() + (log_hyperprior(np.exp(log_sds)) + log_sds).sum()
    )
    for task in range(NUM_TASKS):
        params = {}
        for layer in sorted({*mean, *offset}):
            of_all, special = mean.get(layer), offset.get(layer)
            params[layer] = {}
            for name in of_all or special:
                weights = np.zeros(()) if of_all is None else np.asarray(of_all[name])
                if special is not None:
                    scale = (
                        log_sd[layer][name] if isinstance(log_sd[layer], dict) else log_sd[layer]
                    )
                    weights = weights + np.exp(np.asarray(scale)) * np.asarray(special[name])[task]
                params[layer][name] = jnp.asarray(weights, jnp.float32)
        logits = np.asarray(network.apply({"params": params}, labelled.x[task]), np.float64)
        signs = 2 * np.asarray(labelled.y)[task] - 1
        total -= (np.asarray(labelled.weight)[task] * np.logaddexp(0, -signs * logits)).sum()
    return total


def test_posterior_is_priors_times_likelihood(network, position):
    labelled = densities.observe(X, Y, weight=WEIGHT)
    found = hierarchical.log_density(network)(position, labelled)
    expected = in_words(network, position, labelled, scipy.stats.halfnorm.logpdf)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "hyperprior, log_hyperprior",
    [
        (tfd.HalfNormal(5.0), scipy.stats.halfnorm(scale=5).logpdf),
        (tfd.HalfCauchy(0.0, 2.0), scipy.stats.halfcauchy(scale=2).logpdf),
    ],
)
def test_standard_deviations_take_another_prior(network, position, hyperprior, log_hyperprior):
    labelled = densities.observe(X, Y)
    found = hierarchical.log_density(network, hyperprior)(position, labelled)
    np.testing.assert_allclose(
        found, in_words(network, position, labelled, log_hyperprior), rtol=1e-5
    )


def test_gradient_is_that_of_plain_differentiation(network, position):
    labelled = densities.observe(X, Y, weight=WEIGHT)

    def plain(position):
        log_likelihood = densities.bernoulli_log_likelihood(
            hierarchical.logits(network)(position, labelled.x), Y
        )
        return (
            hierarchical.log_prior(position, tfd.HalfNormal(1.0))
            + (labelled.weight * log_likelihood).sum()
        )

    ours = jax.jit(jax.value_and_grad(lambda p: hierarchical.log_density(network)(p, labelled)))
    assert_same(ours(position), jax.jit(jax.value_and_grad(plain))(position))


def test_sum_over_tasks_and_its_gradient():
    a, b = jnp.array([1.0, 2.0, 3.0]), jnp.array([5.0, 7.0, 11.0])
    value, gradient = jax.value_and_grad(
        lambda a: 2.0 * hierarchical.sum_over_tasks(lambda w, t: w**2 * t)(a, b)
    )(a)
    np.testing.assert_allclose(value, 2 * (5 + 28 + 99))
    np.testing.assert_allclose(gradient, 4 * a * b)


def test_weights_hold_points_out_and_temper_them(network, position):
    def value(y, weight):
        return hierarchical.log_density(network)(position, densities.observe(X, y, weight=weight))

    hidden = np.arange(12)[None] >= np.array([[3], [12], [0]])
    kept = np.where(hidden, 0.0, 1.0)
    np.testing.assert_allclose(value(np.where(hidden, 1 - Y, Y), kept), value(Y, kept), rtol=1e-6)
    prior, full = value(Y, 0.0), value(Y, 1.0)
    np.testing.assert_allclose(
        prior, hierarchical.log_prior(position, tfd.HalfNormal(1.0)), rtol=1e-6
    )
    np.testing.assert_allclose(value(Y, 0.5), (prior + full) / 2, rtol=1e-5)


def symmetric_copy(part, order, signs):
    """Permute the first hidden layer's units and flip some signs, in one set of weights or in all
    tasks'.
    """
    into = {
        name: leaf[..., order] * jnp.broadcast_to(signs, leaf.shape)
        for name, leaf in part[INPUT].items()
    }
    kernel = part[HIDDEN]["kernel"][..., order, :]
    out = {**part[HIDDEN], "kernel": kernel * jnp.broadcast_to(signs[:, None], kernel.shape)}
    return {**part, INPUT: into, HIDDEN: out}


def test_copies_of_all_networks_together_have_the_same_density(network):
    position = mcmc.normal_starts(jax.random.key(2), hierarchical.shapes(network, NUM_TASKS, 2), ())
    copy = partial(
        symmetric_copy,
        order=jnp.array([3, 0, 4, 1, 2]),
        signs=jnp.array([1.0, -1.0, -1.0, 1.0, -1.0]),
    )
    labelled = densities.observe(X, Y)

    def value(**parts):
        return float(hierarchical.log_density(network)({**position, **parts}, labelled))

    mean, offset = copy(position["mean"]), copy(position["offset"])
    assert value(mean=mean, offset=offset) == pytest.approx(value(), rel=1e-5)
    assert abs(value(offset=offset) - value()) > 0.1  # of the deviations alone: no symmetry


@pytest.mark.parametrize(
    "x, y, weight, message",
    [
        (X, Y + 1, 1.0, r"y: given labels \[1, 2\], expected 0 and 1"),
        (
            X,
            Y,
            np.ones(12),
            r"weight: given shape \(12,\), expected \[3, 12\]",
        ),
        (X, Y, -0.5, "weight: given numbers from -0.5 to -0.5, expected 0 to 1"),
        (X, Y, 2 * WEIGHT, "weight: given numbers from 0.0 to 2.0, expected 0 to 1"),
        (X, Y, np.nan, "weight: given 1 values that are not finite"),
    ],
)
def test_impossible_data_are_refused(x, y, weight, message):
    with pytest.raises(ValueError, match=message):
        densities.observe(x, y, weight=weight)


@pytest.mark.parametrize(
    "num_tasks, settings, message",
    [
        (0, {}, "num_tasks: given 0, expected an integer of 1 or more"),
        (2.5, {}, "num_tasks: given 2.5"),
        (
            2,
            {"special": ("Dense_3",)},
            r"means, special: given .*'Dense_3'\], expected to cover .* and no other",
        ),
        (
            2,
            {"means": (), "special": (INPUT, HIDDEN)},
            r"means, special: given \[\] and .* expected to cover",
        ),
    ],
)
def test_impossible_models_are_refused(num_tasks, settings, message):
    with pytest.raises(ValueError, match=message):
        hierarchical.shapes(MLP(), num_tasks, 2, **settings)


def test_independent_posteriors_are_sampled_together():
    network = MLP(hidden=(2,))
    data = [densities.observe(X[:2, 2 * i : 2 * i + 5], Y[:2, 2 * i : 2 * i + 5]) for i in range(2)]
    starts = mcmc.normal_starts(jax.random.key(3), hierarchical.shapes(network, 2, 2), (2, 2))
    posterior = mcmc.sample(
        jax.random.key(4),
        hierarchical.log_density(network),
        starts,
        num_warmup=20,
        num_samples=5,
        max_tree_depth=4,
        tasks=jax.tree.map(lambda *leaves: jnp.stack(leaves), *data),
    )
    assert posterior.stats.log_density.shape == (2, 2, 5)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(posterior))


def numpyro_model(network, tasks):
    """State the model in NumPyro: every layer special, every label seen."""
    shapes = hierarchical.shapes(network, NUM_TASKS, tasks.x.shape[-1])

    def normals(part):
        return {
            name: {
                leaf: numpyro.sample(
                    f"{part}/{name}.{leaf}", dist.Normal(0.0, 1.0).expand(shape.shape).to_event()
                )
                for leaf, shape in layer.items()
            }
            for name, layer in shapes[part].items()
        }

    sd = {name: numpyro.sample(f"sd/{name}", dist.HalfNormal(1.0)) for name in shapes["log_sd"]}
    weights, offset = normals("mean"), normals("offset")
    for name, layer in weights.items():
        weights[name] = {leaf: mean + sd[name] * offset[name][leaf] for leaf, mean in layer.items()}
    of_tasks = jax.vmap(network.apply)({"params": weights}, tasks.x)
    numpyro.sample("y", dist.BernoulliLogits(of_tasks).to_event(2), obs=tasks.y)


def test_density_equals_numpyros(network):
    position = mcmc.normal_starts(
        jax.random.key(3), hierarchical.shapes(network, NUM_TASKS, 2), (), scale=0.7
    )
    tasks = densities.observe(X, Y)
    sites = {f"sd/{name}": jnp.exp(value) for name, value in position["log_sd"].items()}
    for part in ("mean", "offset"):
        sites |= {
            f"{part}/{name}.{leaf}": v
            for name, layer in position[part].items()
            for leaf, v in layer.items()
        }
    model = partial(numpyro_model, network)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        theirs = jax.jit(lambda at: numpyro_log_density(model, (tasks,), {}, at)[0])(sites)
    jacobian = sum(position["log_sd"].values())
    np.testing.assert_allclose(
        hierarchical.log_density(network)(position, tasks), theirs + jacobian, rtol=1e-5
    )


def test_points_without_a_task_axis_are_refused():
    network, three = MLP(), slice(3)  # as many points as tasks, which would fit
    position = mcmc.normal_starts(jax.random.key(0), hierarchical.shapes(network, 3, 2), ())
    with pytest.raises(
        ValueError, match=r"observed: given y of shape \(3,\), expected \[task, point\]"
    ):
        hierarchical.log_density(network)(position, densities.observe(X[0, three], Y[0, three]))
