"""What predictions are worth: the measures by hand, the cold density, and a method computed
again.
"""

from helpers import common, densities
from helpers.common import read_result, take

import itertools

import jax
import numpy as np
import pytest
from scipy import stats

from experiments.engine import compare
from experiments.pages.comparing_inference import cold, left_out, uses, worth
from experiments.problems import moons_redrawn, six_tasks


@pytest.fixture
def draws():
    return np.array([[0.9, 0.2, 0.6], [0.3, 0.25, 0.1]], np.float32)


def test_joint_probabilities_are_means_of_products(draws):
    found = uses.of_draws(draws)
    np.testing.assert_allclose(found["mean"], draws.mean(axis=0), rtol=1e-6)
    # the last pair is of the last and the first point
    one, two = draws[:, 2].astype(float), draws[:, 0].astype(float)
    by_hand = (one**4 * (1 - one) * two**2 * (1 - two) ** 3).mean()
    assert found["joint"].shape == (3, 6, 6) and found["joint"][2, 4, 2] == pytest.approx(
        by_hand, rel=1e-5
    )


def test_measures_are_expectations_over_labels(draws):
    q, found = np.array([0.8, 0.1, 0.5]), uses.of_draws(draws)
    scores, p = uses.measured(found["mean"], found["joint"], q), draws.mean(axis=0).astype(float)
    nll = np.mean(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)))
    assert scores["nll"] == pytest.approx(nll, rel=1e-5)
    joint = 0.0
    # of the pair of points 0 and 1
    for labels in itertools.product((0, 1), repeat=2 * uses.REPEATS):
        first, second = np.array(labels[: uses.REPEATS]), np.array(labels[uses.REPEATS :])
        predicted = np.prod(
            [bernoulli(draws[:, at], y) for at, ys in ((0, first), (1, second)) for y in ys], axis=0
        ).mean()
        best = np.prod([bernoulli(q[at], y) for at, ys in ((0, first), (1, second)) for y in ys])
        joint += best * np.log(best / predicted) / (2 * uses.REPEATS)
    of_pair = uses.measured(found["mean"], found["joint"][:1].repeat(3, axis=0), q[[0, 1, 0]])
    assert np.isfinite(of_pair["joint"])
    pair = {"mean": found["mean"][:2], "joint": np.stack([found["joint"][0], found["joint"][0].T])}
    assert uses.measured(pair["mean"], pair["joint"], q[:2])["joint"] == pytest.approx(
        joint, rel=1e-4
    )
    # First to ask costs least at every point; then to say 1, to say 0, and to ask. Costs are
    # counted under q.
    costs = [[0.4, 0.4, 0.4], [1 - q[0], 5 * q[1], 0.4]]
    assert uses.cost(np.array([0.5, 0.3, 0.55]), q) == pytest.approx(np.mean(costs[0]))
    assert uses.cost(np.array([0.7, 0.05, 0.55]), q) == pytest.approx(np.mean(costs[1]))
    assert uses.risk(
        np.array([0.1, 0.4, 0.6, 0.5]), np.array([0.3, 0.4, 0.5, 0.9])
    ) == pytest.approx(0.35)


def bernoulli(p, y):
    return np.where(y == 1, np.asarray(p, float), 1 - np.asarray(p, float))


def test_the_known_probabilities_lose_nothing_and_one_network_loses_the_same_of_labels_together():
    q = np.array([0.7, 0.2, 0.55])
    scores = uses.measured(
        **jax.tree.map(np.asarray, uses.of_draws(q[None].astype(np.float32))), q=q
    )
    for name, value in scores.items():
        assert value == pytest.approx(0, abs=1e-6), name
    one = uses.of_draws(np.array([[0.5, 0.3, 0.9]], np.float32))
    scores = uses.measured(np.asarray(one["mean"]), np.asarray(one["joint"]), q)
    assert scores["joint"] == pytest.approx(float(scores["nll"]), rel=1e-4)


def test_permuting_draws_changes_labels_together_alone():
    p = np.asarray(stats.beta.rvs(0.4, 0.4, size=(2000, 4), random_state=5), np.float32)
    p = np.repeat(p[:, :1], 4, axis=1)  # whatever a network says, it says everywhere
    permuted = jax.random.permutation(jax.random.key(6), p, axis=0, independent=True)
    q = np.full(4, 0.9)
    kept, lost = (
        uses.measured(**jax.tree.map(np.asarray, uses.of_draws(one)), q=q) for one in (p, permuted)
    )
    assert kept["nll"] == pytest.approx(float(lost["nll"]), rel=1e-4) and kept[
        "cost"
    ] == pytest.approx(lost["cost"])
    assert kept["joint"] < lost["joint"] - 0.05


def test_tasks_are_new_and_far_points_are_the_near_ones_stretched():
    found, ladder = uses.problem(), six_tasks.tasks("ladder")
    assert (
        found.x.shape == (uses.NUM_TASKS, 2, uses.NUM_TEST, 2)
        and found.q.shape == found.x.shape[:3]
    )
    assert not np.isin(np.asarray(found.tasks.x_train), np.asarray(ladder.x_train)).any()
    np.testing.assert_allclose(found.x[:, 1], uses.STRETCH * found.x[:, 0])
    assert ((found.q >= 0) & (found.q <= 1)).all()


def test_a_cold_density_is_the_densities_divided():
    tasks = uses.problem().tasks
    task = take(densities.observe(tasks.x_train, tasks.y_train, np.full(3, 2.0)), 0)
    params = six_tasks.params_of(jax.random.normal(common.key(1, "vector"), (six_tasks.SIZE,)))
    assert cold.tempered(params, (task, 0.25)) == pytest.approx(
        4 * float(moons_redrawn.FLAT(params, task)), rel=1e-6
    )


def test_a_method_computed_again():
    stored = read_result("comparing_inference/worth")["check"]
    assert stored["setting"] == worth.SMALL
    found = worth.score(worth.unit(**worth.SMALL), **worth.SMALL)
    compared, _, wrong = compare.compare(stored["scored"], found)
    assert compared and not wrong


def test_importance_weights_find_what_leaving_out_a_point_says():
    """A coin of unknown bias: the probability of a label given all others is known."""
    y = np.repeat([1, 0], (7, 3))
    p = stats.beta.rvs(1 + y.sum(), 1 + (1 - y).sum(), size=(4, 5000, 1), random_state=3)
    log_p = left_out.log_of(np.repeat(p[..., None], len(y), axis=-1), y)
    estimate, k_hat = left_out.by_point(log_p)
    ones = np.where(y == 1, y.sum(), (1 - y).sum())  # (1 + others like it) / (2 + others)
    np.testing.assert_allclose(estimate[0], np.log(ones / 11), atol=0.02)
    assert k_hat.max() < left_out.MOST_K


def test_every_task_is_left_out_once():
    np.testing.assert_array_equal(left_out.others(np.arange(3)), [[1, 2], [0, 2], [0, 1]])
