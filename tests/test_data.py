"""Two-moons data: scaled by the training part alone, turned, and repeatable."""

from helpers import data

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from sklearn.datasets import make_moons

from experiments.problems import source_moons, spirals, waves

KEY = jax.random.key(0)
# one compilation in place of a hundred
rotated_moons = jax.jit(data.rotated_moons, static_argnums=(1, 2, 3, 4))


@pytest.fixture(scope="module")
def tasks():
    return rotated_moons(KEY, 6, 50, 20)


def turned_back(x, angles):
    """Undo counter-clockwise rotations, by complex numbers."""
    z = (np.asarray(x[..., 0]) + 1j * np.asarray(x[..., 1])) * np.exp(-1j * np.asarray(angles))[
        :, None
    ]
    return np.stack([z.real, z.imag], axis=-1)


def close_to(values, expected):
    """Whether the mean of independent values is within 4 of their standard errors."""
    values = np.asarray(values, np.float64)
    return abs(values.mean() - expected) < 4 * values.std() / np.sqrt(values.size)


def test_shapes_and_types(tasks):
    shapes = [(6, 50, 2), (6, 50), (6, 20, 2), (6, 20), (6,), (6, 2), (6, 2)]
    assert [a.shape for a in tasks] == shapes
    assert [a.dtype.kind for a in tasks] == ["f", "i", "f", "i", "f", "f", "f"]
    assert set(np.unique(tasks.y_train)) == set(np.unique(tasks.y_test)) == {0, 1}
    assert [a.shape for a in jax.eval_shape(data.rotated_moons, KEY)][:3] == [
        (18, 50, 2),
        (18, 50),
        (18, 50, 2),
    ]


def test_one_key_one_data_set(tasks):
    same, other = (rotated_moons(jax.random.key(i), 6, 50, 20) for i in (0, 1))
    assert all((a == b).all() for a, b in zip(tasks, same, strict=True))
    assert not any((a == b).all() for a, b in zip(tasks, other, strict=True))


def test_tasks_are_independent(tasks):
    raw = np.asarray(data.to_raw(tasks, tasks.x_train))
    assert np.unique(raw.round(4).reshape(-1, 2), axis=0).shape[0] == 6 * 50
    assert np.unique(tasks.angles).size == 6


def test_training_part_alone_is_standardised(tasks):
    train, test = (turned_back(x, tasks.angles) for x in (tasks.x_train, tasks.x_test))
    np.testing.assert_allclose(train.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(train.std(axis=1), 1, atol=1e-5)
    assert (abs(test.mean(axis=1)).max(axis=1) > 0.05).all()


def test_test_points_do_not_reach_the_training_part(monkeypatch, tasks):
    original = data.two_moons

    def test_points_far_away(key, num_points, noise):
        x, y = original(key, num_points, noise)
        return data.Points(x.at[50:].add(100), y)

    monkeypatch.setattr(data, "two_moons", test_points_far_away)
    moved = jax.jit(lambda key: data.rotated_moons(key, 6, 50, 20))(KEY)
    for name in ("x_train", "location", "scale"):
        np.testing.assert_allclose(getattr(moved, name), getattr(tasks, name), atol=1e-5)
    assert (jnp.abs(moved.x_test - tasks.x_test).max(axis=2) > 50).all()


def test_tasks_without_noise_lie_on_two_half_circles():
    tasks = rotated_moons(KEY, 6, 50, 20, 0.0)
    for x, y in ((tasks.x_train, tasks.y_train), (tasks.x_test, tasks.y_test)):
        scale, location = np.asarray(tasks.scale)[:, None], np.asarray(tasks.location)[:, None]
        raw = turned_back(x, tasks.angles) * scale + location
        np.testing.assert_allclose(data.to_raw(tasks, x), raw, atol=1e-5)
        arm = raw - np.where(y[..., None] == 1, [1.0, 0.5], 0.0)
        np.testing.assert_allclose(np.hypot(*arm.T), 1, atol=1e-5)
        assert (arm[..., 1] * (1 - 2 * np.asarray(y)) > -1e-5).all()


def test_angles_are_normal_with_sd_of_90_degrees():
    angles = np.asarray(rotated_moons(KEY, 4000, 2, 1).angles)
    assert close_to(angles, 0) and close_to(angles**2, (np.pi / 2) ** 2)
    assert scipy.stats.kstest(angles, scipy.stats.norm(0, np.pi / 2).cdf).pvalue > 1e-3


def test_two_moons_have_the_moments_of_noisy_half_circles():
    x, y = (np.asarray(a, np.float64) for a in data.two_moons(KEY, 40_000, noise=0.3))
    assert close_to(y, 0.5)
    for label, mean in ((0, [0, 2 / np.pi]), (1, [1, 0.5 - 2 / np.pi])):
        deviations = x[y == label] - mean
        assert all(close_to(column, 0) for column in deviations.T)
        for column, variance in zip(
            deviations.T, [0.5 + 0.3**2, 0.5 - 4 / np.pi**2 + 0.3**2], strict=True
        ):
            assert close_to(column**2, variance)


def test_source_moons_follow_the_steps_of_the_source():
    random = np.random.RandomState(31)
    tasks = data.source_moons()
    for task in range(18):
        x, y = make_moons(n_samples=100, noise=0.3, random_state=random)
        theta = np.radians(random.randn() * 90.0)
        right = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
        x = ((x - x.mean(axis=0)) / x.std(axis=0)) @ right
        found = np.concatenate([tasks.x_train[task], tasks.x_test[task]])
        np.testing.assert_allclose(found, x, atol=2e-6)
        assert (np.concatenate([tasks.y_train[task], tasks.y_test[task]]) == y).all()
    assert tasks.x_train.shape == tasks.x_test.shape == (18, 50, 2)


def test_redrawn_test_points_leave_the_rest(tasks):
    redrawn = data.redraw_test(KEY, tasks, 70)
    same = [name for name in data.Tasks._fields if getattr(redrawn, name) is getattr(tasks, name)]
    assert same == ["x_train", "y_train", "angles", "location", "scale"]
    assert redrawn.x_test.shape == (6, 70, 2) and redrawn.y_test.shape == (6, 70)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: data.two_moons(KEY, 0), "num_points: given 0, expected an integer of 1 or more"),
        (
            lambda: data.two_moons(KEY, 2.5),
            "num_points: given 2.5, expected an integer of 1 or more",
        ),
        (
            lambda: data.two_moons(KEY, 10, -0.1),
            "noise: given -0.1, expected a finite number above 0 or equal",
        ),
        (
            lambda: data.rotated_moons(KEY, noise=float("nan")),
            "noise: given nan, expected a finite number",
        ),
        (
            lambda: data.rotated_moons(KEY, 0),
            "num_tasks: given 0, expected an integer of 1 or more",
        ),
        (
            lambda: data.rotated_moons(KEY, 1, 1),
            "num_train: given 1, expected an integer of 2 or more",
        ),
        (
            lambda: data.rotated_moons(KEY, 1, 2, 0),
            "num_test: given 0, expected an integer of 1 or more",
        ),
        (
            lambda: data.redraw_test(KEY, data.source_moons(), -1),
            "num_test: given -1, expected an integer of 1",
        ),
        (
            lambda: data.moons_log_density(jnp.ones((1, 2)), 0.01),
            "noise: given 0.01, expected a .* above 0.05",
        ),
        (
            lambda: data.moons_probability(jnp.ones((1, 2)), jnp.inf),
            "noise: given inf, expected a finite number",
        ),
    ],
)
def test_impossible_requests_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("gap", [None, (-0.2, 0.5)], ids=["whole", "gap"])
def test_wave_lies_where_it_says_and_follows_its_curve(gap):
    found = waves.wave(KEY, 3000, 0.1, num_test=2000, gap=gap)
    regions = 2 if gap is None else 3
    shapes = [(3000, 1), (3000,), (regions, 2000, 1), (regions, 2000), (200, 1)]
    assert [a.shape for a in found] == shapes and {a.dtype.name for a in found} == {"float32"}
    assert (np.diff(found.x_train[:, 0]) >= 0).all() and waves.REGIONS == (
        "inside",
        "outside",
        "gap",
    )
    train, test, grid = (
        np.asarray(a[..., 0], np.float64) for a in (found.x_train, found.x_test, found.grid)
    )
    low, high = gap or (1, 1)
    lengths = {"left": low + 1, "right": 1 - high}  # both parts are filled, each in proportion
    for x in (train, test[0]):
        assert ((x > -1) & (x < 1) & ((x < low) | (x > high))).all()
        assert (
            close_to(x < low, lengths["left"] / (lengths["left"] + lengths["right"])) or gap is None
        )
        assert close_to(x, (low**2 - 1 + 1 - high**2) / 2 / (lengths["left"] + lengths["right"]))
    assert ((abs(test[1]) > 1) & (abs(test[1]) < 1.5)).all() and close_to(test[1] > 0, 0.5)
    assert gap is None or ((test[2] > low) & (test[2] < high)).all()
    assert (grid[0], grid[-1]) == (-1.5, 1.5)
    for x, y in ((train, found.y_train), *zip(test, found.y_test, strict=True)):
        residual = np.asarray(y) - x * np.sin(5 * x)
        assert close_to(residual, 0) and close_to(residual**2, 0.1**2)
    np.testing.assert_allclose(
        waves.wave_mean(found.x_train[:, 0]), train * np.sin(5 * train), atol=1e-6
    )


def test_wave_is_a_function_of_its_key():
    same, again, other = (waves.wave(jax.random.key(i)) for i in (0, 0, 1))
    assert all((a == b).all() for a, b in zip(same, again, strict=True))
    assert not (same.x_train == other.x_train).any() and same.x_train.shape == (40, 1)
    without = waves.wave(KEY, noise=0.0)
    np.testing.assert_array_equal(without.y_test, waves.wave_mean(without.x_test[..., 0]))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_train": 0}, "num_train: given 0, expected an integer of 1 or more"),
        ({"num_test": 0}, "num_test: given 0"),
        ({"noise": -0.1}, "noise: given -0.1, expected a finite number above 0 or equal"),
        (
            {"gap": (0.5, -0.2)},
            r"gap: given \(0.5, -0.2\), expected two increasing numbers between -1 and 1",
        ),
        ({"gap": (-1, 0.5)}, r"gap: given \(-1, 0.5\)"),
        ({"gap": (0.5, float("nan"))}, "gap: given"),
    ],
)
def test_impossible_waves_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        waves.wave(KEY, **arguments)


def test_a_spiral_has_even_radii_and_normal_angles():
    points = spirals.spiral(KEY, 4000, noise=0.2)
    x, y = np.asarray(points.x, np.float64), np.asarray(points.y)
    assert (np.bincount(y) == 4000).all()
    radius = np.hypot(*x.T)
    np.testing.assert_allclose(
        radius.reshape(3, -1), np.broadcast_to(np.linspace(0, 0.5, 4000), (3, 4000)), atol=1e-6
    )
    inner = radius > 0.01
    turned = (np.arctan2(x[:, 0], x[:, 1]) - 4 * y - 8 * radius + np.pi) % (2 * np.pi) - np.pi
    assert close_to(turned[inner], 0)
    assert close_to(turned[inner] ** 2, 0.04)
    assert (spirals.spiral(KEY, 5).x == spirals.spiral(KEY, 5).x).all()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"points_per_class": 0}, "points_per_class: given 0"),
        ({"noise": -1.0}, "noise: given -1.0"),
        ({"num_classes": 1.5}, "num_classes: given 1.5"),
    ],
)
def test_impossible_spirals_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        spirals.spiral(KEY, **settings)


def test_fisher_source_moons_are_the_sources_points_in_another_split():
    first, second = (source_moons.fisher_source_moons(jax.random.key(seed)) for seed in (0, 1))
    assert first.x_train.shape == first.x_test.shape == (1, 500, 2)
    np.testing.assert_allclose(first.x_train[0].mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(first.x_train[0].std(axis=0), 1.0, atol=1e-5)
    expected = np.sort(make_moons(n_samples=1000, noise=0.2, random_state=0)[0][:, 0])
    for tasks in (first, second):
        raw = np.concatenate([data.to_raw(tasks, x)[0] for x in (tasks.x_train, tasks.x_test)])
        np.testing.assert_allclose(np.sort(raw[:, 0]), expected, atol=1e-5)
    assert not np.array_equal(first.x_train, second.x_train)
