"""The models behind the question which layer differs between tasks, and what is read off their
first layers.
"""

from helpers import densities, hierarchical, mcmc
from helpers.common import take

import jax
import numpy as np
import pytest
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import angles
from experiments.pages.what_the_gain_is_made_of import attribution, masses_of_turns, turns
from experiments.problems import moons_redrawn, regions

NUM_TASKS = 3


@pytest.fixture
def tasks():
    """Three tasks of one redraw."""
    moons = moons_redrawn.drawn(0, num_tasks=NUM_TASKS)
    return densities.observe(moons.x_train, moons.y_train)


def one_position(special, means):
    """One position, N(0, 1/4)."""
    shapes = attribution.shapes(NUM_TASKS, special, means, per_weight=False)
    return take(mcmc.normal_starts(jax.random.key(1), shapes, (1,), scale=0.5), 0)


@pytest.mark.parametrize("special", [["Dense_0"], list(regions.LAYERS)])
def test_a_scale_of_one_for_the_means_is_the_sources_model(tasks, special):
    position = one_position(special, "learnt")
    at_one = position | {
        "log_sd": position["log_sd"] | dict.fromkeys(attribution.MEANS, np.float32(0.0))
    }
    sources = {**at_one, "log_sd": {layer: position["log_sd"][layer] for layer in special}}
    for name, prior in regions.HYPERPRIORS.items():
        expected = hierarchical.log_density(moons_redrawn.NETWORK, prior)(sources, tasks)
        # the scales of the means, where log 1 = 0 has the Jacobian 1
        expected += 3 * prior.log_prob(1.0)
        np.testing.assert_allclose(attribution.DENSITIES[name](at_one, tasks), expected, rtol=1e-5)
    np.testing.assert_allclose(
        attribution.logits(at_one, tasks.x), moons_redrawn.LOGITS(sources, tasks.x), rtol=1e-5
    )


def test_means_with_a_scale_are_means_from_a_wider_normal(tasks):
    position = one_position(["Dense_0"], "learnt")
    plain = attribution.plain(position)
    change = 0.0
    for name, layer in attribution.MEANS.items():
        sd = np.exp(position["log_sd"][name])
        kernel = plain["mean"][layer]["kernel"]
        np.testing.assert_allclose(kernel, sd * position["mean"][layer]["kernel"], rtol=1e-6)
        wide = tfd.Normal(0.0, sd).log_prob(kernel) + np.log(
            sd
        )  # a density of the weights, brought back to that of N(0, 1)
        change += (wide - tfd.Normal(0.0, 1.0).log_prob(position["mean"][layer]["kernel"])).sum()
    assert abs(change) < 1e-3


def test_without_means_there_are_none():
    position = one_position(list(regions.LAYERS), "0")
    assert position["mean"] == {} and not set(attribution.MEANS) & set(position["log_sd"])


def test_starts_are_from_both_ends():
    shapes = attribution.shapes(NUM_TASKS, list(regions.LAYERS), "learnt", per_weight=False)
    log_sd = attribution.from_both_ends(jax.random.key(2), shapes)["log_sd"]
    for name, part in log_sd.items():
        expected = attribution.STARTS["means" if name in attribution.MEANS else name]
        assert (np.abs(part - np.log(expected)) < 0.3 * 5).all()


@pytest.mark.parametrize("region", range(3))
def test_confined_draws_differ_most_in_their_layer_and_are_of_the_prior(region):
    prior = regions.HYPERPRIORS["HalfCauchy(1)"]
    drawn = masses_of_turns.confined(jax.random.key(region), prior, region, 2, 40_000)["log_sd"]
    assert (np.asarray(attribution.ratio(drawn)).argmax(axis=0) == region).all()
    names = [*regions.LAYERS, *attribution.MEANS]
    log_sd = np.stack([drawn[name] for name in names], axis=-1)
    plain = np.log(np.asarray(prior.sample((120_000, 6), seed=jax.random.key(9))))
    kept = plain[(plain[:, :3] - plain[:, 3:]).argmax(axis=-1) == region]
    error = np.sqrt(kept.var(axis=0) * (1 / len(kept) + 1 / len(log_sd)))
    assert (np.abs(log_sd.mean(axis=0) - kept.mean(axis=0)) < 5 * error).all()


@pytest.fixture
def turned():
    """True angles of eighteen tasks, and first layers of a fixed part and one that turns by
    them.
    """
    random = np.random.default_rng(3)
    true, fixed, turning = (
        random.uniform(-np.pi, np.pi, 18),
        random.normal(size=(2, 5)),
        random.normal(size=(2, 5)),
    )
    return true, fixed, fixed + angles.rotations(true) @ turning


def test_angles_come_out_of_layers_that_turn(turned):
    true, fixed, layers = turned
    assert angles.error_degrees(angles.best_angles(layers, with_fixed_part=True), true) < 1
    assert angles.error_degrees(angles.best_angles(layers - fixed), true) < 1e-3
    assert angles.error_degrees(angles.best_angles(layers[::-1], with_fixed_part=True), true) > 30
    assert angles.error_degrees(true + 0.3, true) < 1e-6


def test_descriptions_predict_a_task_left_out(turned):
    true, fixed, layers = turned
    found = turns.described(layers, true)
    assert found["part"] > 0.999 and found["waves"] > 0.999
    assert turns.described(layers - fixed, true)["whole"] > 0.999
    assert turns.described(layers, np.random.default_rng(4).permutation(true))["part"] < 0.5


def test_common_axes_undo_mixtures_of_units(turned):
    layers = turned[2]
    mixed = np.stack(
        [layers @ np.linalg.qr(np.random.default_rng(i).normal(size=(5, 5)))[0] for i in range(20)]
    )
    brought = angles.to_common_axes(mixed)
    np.testing.assert_allclose(brought, np.broadcast_to(brought[0], brought.shape), atol=1e-6)
    assert turns.described(brought.mean(axis=0), turned[0])["part"] > 0.999
    assert (mixed.mean(axis=0) ** 2).mean() < 0.5 * (brought.mean(axis=0) ** 2).mean()
