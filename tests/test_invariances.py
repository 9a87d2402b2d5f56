"""What must not matter does not: order of points, tasks and draws, names and signs of hidden
units.
"""

from helpers import densities, hierarchical, metrics, networks, predict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

settings.register_profile("book", max_examples=25, deadline=None, derandomize=True)
settings.load_profile("book")

TASKS, POINTS, UNITS = 3, 6, 5
NETWORK = networks.MLP()
SEEDS = some.integers(0, 2**32 - 1)
ORDER = some.permutations
FLAT = jax.jit(densities.flat_log_density(NETWORK))
HIERARCHICAL = jax.jit(hierarchical.log_density(NETWORK))
LOGITS = jax.jit(hierarchical.logits(NETWORK))


def points(seed):
    """Return inputs [task, point, 2] and labels."""
    random = np.random.default_rng(seed)
    return random.normal(size=(TASKS, POINTS, 2)).astype(np.float32), random.integers(
        0, 2, size=(TASKS, POINTS)
    )


def position(seed):
    """Return a position of the hierarchical network."""
    random = np.random.default_rng(seed)
    shapes = hierarchical.shapes(NETWORK, TASKS, 2)
    return jax.tree.map(lambda leaf: random.normal(size=leaf.shape).astype(np.float32), shapes)


def flat_weights(seed):
    """Return weights of one network."""
    random = np.random.default_rng(seed)
    sizes = {"Dense_0": (2, UNITS), "Dense_1": (UNITS, UNITS), "Dense_2": (UNITS, 1)}
    return {
        "params": {
            k: {"kernel": random.normal(size=v).astype(np.float32)} for k, v in sizes.items()
        }
    }


def relabel(layers, order, signs):
    """Give the first hidden layer's units other places and signs; the function stays the same, as
    tanh is odd.
    """
    first, second = layers["Dense_0"]["kernel"], layers["Dense_1"]["kernel"]
    order, signs = np.array(order), np.array(signs, np.float32)
    moved = (
        {"kernel": first[..., order] * signs},
        {"kernel": second[..., order, :] * signs[:, None]},
    )
    return {**layers, "Dense_0": moved[0], "Dense_1": moved[1]}


def close(one, other):
    """Assert equality up to rounding."""
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


@given(SEEDS, ORDER(range(POINTS)))
def test_the_order_of_points_does_not_matter(seed, order):
    (x, y), weights, order = points(seed), flat_weights(seed), np.array(order)
    before = FLAT(weights, densities.observe(x[0], y[0], jnp.ones(3)))
    close(before, FLAT(weights, densities.observe(x[0][order], y[0][order], jnp.ones(3))))
    before = HIERARCHICAL(position(seed), densities.observe(x, y))
    close(before, HIERARCHICAL(position(seed), densities.observe(x[:, order], y[:, order])))


@given(SEEDS, ORDER(range(TASKS)))
def test_the_order_of_tasks_does_not_matter(seed, order):
    (x, y), before, order = points(seed), position(seed), np.array(order)
    after = {**before, "offset": jax.tree.map(lambda leaf: leaf[order], before["offset"])}
    close(
        HIERARCHICAL(before, densities.observe(x, y)),
        HIERARCHICAL(after, densities.observe(x[order], y[order])),
    )
    close(np.asarray(LOGITS(before, x))[order], LOGITS(after, x[order]))


SIGNS = some.lists(some.sampled_from([-1.0, 1.0]), min_size=UNITS, max_size=UNITS)


@given(SEEDS, ORDER(range(UNITS)), SIGNS)
def test_hidden_units_have_no_names_and_no_signs(seed, order, signs):
    (x, y), weights = points(seed), flat_weights(seed)
    observed = densities.observe(x[0], y[0], jnp.array([0.5, 1.0, 6.0]))
    close(
        FLAT(weights, observed),
        FLAT({"params": relabel(weights["params"], order, signs)}, observed),
    )


@given(SEEDS, ORDER(range(UNITS)), SIGNS)
def test_in_the_hierarchical_network_means_and_offsets_are_renamed_together(seed, order, signs):
    (x, y), before = points(seed), position(seed)
    after = {**before, **{part: relabel(before[part], order, signs) for part in ("mean", "offset")}}
    labelled = densities.observe(x, y)
    close(HIERARCHICAL(before, labelled), HIERARCHICAL(after, labelled))
    close(LOGITS(before, x), LOGITS(after, x))


def test_an_order_that_does_matter_is_noticed():
    """Labels moved without their points: the tests above can fail."""
    x, y = points(1)
    order = np.roll(np.arange(POINTS), 1)
    before = HIERARCHICAL(position(1), densities.observe(x, y))
    assert abs(before - HIERARCHICAL(position(1), densities.observe(x, y[:, order]))) > 0.1


PROBABILITIES = some.lists(
    some.integers(1, 999).map(lambda thousandths: thousandths / 1000), min_size=12, max_size=12
)
LABELS = some.lists(some.integers(0, 1), min_size=12, max_size=12)


@given(PROBABILITIES, LABELS, ORDER(range(12)))
def test_scores_are_scikit_learns_whatever_the_order(p, y, order):
    p, y, order = np.array(p, np.float32), np.array(y), np.array(order)
    found = metrics.scores(jnp.asarray(p), jnp.asarray(y))
    assert found["accuracy %"] == pytest.approx(100 * accuracy_score(y, p > 0.5), abs=1e-3)
    assert found["NLL"] == pytest.approx(
        log_loss(y, p.astype(np.float64), labels=[0, 1]), rel=1e-3, abs=1e-5
    )
    assert found["Brier"] == pytest.approx(brier_score_loss(y, p.astype(np.float64)), abs=1e-5)
    again = metrics.scores(jnp.asarray(p[order]), jnp.asarray(y[order]))
    for name in ("accuracy %", "NLL", "Brier"):  # bins may part equal probabilities elsewhere
        assert again[name] == pytest.approx(found[name], rel=1e-4, abs=1e-5)
    assert 0 <= found["Brier"] <= 1 and 0 <= found["calibration error"] <= 1 and found["NLL"] >= 0


@given(SEEDS, some.floats(0.01, 30), ORDER(range(20)))
def test_splits_of_uncertainty_add_up_within_bounds_whatever_the_order_of_draws(seed, scale, order):
    logit = np.random.default_rng(seed).normal(size=(2, 20, 4)) * scale
    p = jnp.asarray(1 / (1 + np.exp(-logit)), jnp.float32)
    for split, most in ((predict.variance_split, 0.25), (predict.entropy_split, 1.0)):
        total, aleatoric, epistemic = (np.asarray(part) for part in split(p))
        np.testing.assert_allclose(total, aleatoric + epistemic, atol=1e-5)
        assert aleatoric.min() >= -1e-6 and epistemic.min() >= 0 and total.max() <= most + 1e-5
        for one, other in zip(split(p), split(p[::-1, np.array(order)]), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
