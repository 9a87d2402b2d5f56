"""Dropout of a network of columns: its masks, training, scores, and what a choice sees."""

from helpers import common, training

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from experiments.methods import column_dropout, dropout_splits
from experiments.methods.column_dropout import HIDDEN, Grid
from experiments.problems import usual_tables

GRID = Grid((0.01, 0.1), (0.5, 2.0), (0.3,), (1e-3,))


def table(rows=90, seed=1):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 3))
    return np.column_stack([x, 5 + 3 * x[:, 0] + random.normal(size=rows)])


def parameters(rates=2, decays=3):
    params = column_dropout.starts(jax.random.key(3), 4, (rates, decays))
    random = np.random.default_rng(4)
    return {
        name: np.asarray(part) + 0.1 * random.normal(size=part.shape).astype(np.float32)
        for name, part in params.items()
    }


def test_masks_drop_inputs_and_hidden_units_row_by_row():
    params, rates = parameters(), np.array([0.25, 0.6])
    x = np.random.default_rng(5).normal(size=(7, 4)).astype(np.float32)
    bits = np.asarray(column_dropout.random_bits(jax.random.key(6), 7, 4))
    found = column_dropout.outputs(params, x, np.float32(rates), bits)
    assert found.shape == (2, 3, 7)
    for r, rate in enumerate(rates):
        kept = (bits >= round(rate * 2**16)) / (1 - rate)
        assert 0 < (kept == 0).mean() < 1 and (kept.std(axis=0) > 0).any()
        for d in range(3):
            hidden = (x * kept[:, :4]) @ params["kernel"][r, :, d] + params["bias"][r, d]
            hidden = np.maximum(hidden, 0) * kept[:, 4:]
            expected = hidden @ params["last_kernel"][r, d] + params["last_bias"][r, d]
            np.testing.assert_allclose(found[r, d], expected, rtol=1e-4, atol=1e-4)


def test_rates_of_masks():
    bits = np.asarray(column_dropout.random_bits(jax.random.key(7), 2000, 10))
    for rate in (0.002, 0.1):
        dropped, size = (bits < round(rate * 2**16)).mean(), bits.size
        assert abs(dropped - rate) < 5 * np.sqrt(rate / size) + 2**-17


def test_rate_0_is_plain_training():
    rows = usual_tables.standardized(table(), table())
    key, decay = jax.random.key(8), 1e-3
    found = column_dropout.fit(key, rows.x_train, rows.y_train, [0.0], [[0.0, decay]], 60)
    start = column_dropout.starts(jax.random.split(key)[0], 3, (1, 2))
    for d, of_decay in enumerate((0.0, decay)):

        def loss(weights, of_decay=of_decay):
            kernel, bias, last, last_bias = weights
            hidden = jnp.maximum(np.float32(rows.x_train) @ kernel + bias[None], 0)
            squares = (kernel**2).sum() + (last**2).sum()
            out = hidden @ last + last_bias
            return ((out - np.float32(rows.y_train)) ** 2).mean() + of_decay * squares

        def picked(params, d=d):
            return (
                params["kernel"][0, :, d],
                params["bias"][0, d],
                params["last_kernel"][0, d],
                params["last_bias"][0, d],
            )

        first, adam = picked(start), optax.adam(1e-3, eps=1e-7)
        with common.mixed_types():
            plain = training.train(loss, first, adam, 60)[0]
        assert max(np.abs(a - b).max() for a, b in zip(plain, first, strict=True)) > 0.02
        for ours, theirs in zip(picked(found), plain, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_every_row_is_seen_in_an_epoch():
    # 130 rows are two batches, the second of 2 rows: alone, they move the last bias
    x, y = np.zeros((130, 2), np.float32), np.ones(130, np.float32)
    params = column_dropout.fit(jax.random.key(9), x, y, [0.0], [[0.0]], 1)
    assert params["last_bias"][0, 0] == pytest.approx(2e-3, rel=0.02)  # Adam's first two steps


def test_log_density_is_that_of_a_mixture():
    random = np.random.default_rng(10)
    means, y, tau = random.normal(size=(6, 2, 3, 5)), random.normal(size=5), np.ones((2, 3)) * 2.5
    tau[1, 2] = 40.0
    found = column_dropout.log_density(np.float32(means), np.float32(y), np.float32(tau))
    densities = stats.norm.pdf(y, means, tau[..., None] ** -0.5)
    np.testing.assert_allclose(found, np.log(densities.mean(axis=0)).mean(axis=-1), rtol=1e-4)


def test_decays_follow_from_rates_and_precisions():
    found = column_dropout.decays_of(GRID, np.array([0.1, 0.3]), 200)
    assert found.shape == (2, 3)
    assert found[0, 1] == pytest.approx(0.01**2 * 0.9 / (2 * 200 * 2.0))
    assert found[1, 2] == 1e-3


def test_a_choice_sees_no_row_that_tests():
    train, key = table(), jax.random.key(11)
    means, choices, scores = column_dropout.repeated(key, train, table(20, 2), GRID, 3, 8)
    others = column_dropout.repeated(key, train, 9 - 4 * table(20, 3), GRID, 3, 8)
    assert choices == others[1] and means.shape == (8, 2, 20) and (means != others[0]).any()
    for name in ("log_density", "rmse"):
        assert scores[name].shape == (2, 2) and (scores[name] == others[2][name]).all()
    first, second = choices
    assert first.log_density == scores["log_density"].max()
    assert (first.rate, first.tau) == (GRID.rates[first.place[0]], GRID.taus[first.place[1]])
    assert second.log_density > first.log_density - 1e-3
    train[-18:, -1] += 1.0
    moved = column_dropout.repeated(key, train, table(20, 2), GRID, 3, 8)[2]
    assert (moved["log_density"] != scores["log_density"]).all()


def test_scores_are_in_the_outcomes_unit():
    rows, random = usual_tables.split("yacht", 3), np.random.default_rng(12)
    means = random.normal(size=(2, 40, rows.y_test.size))
    chosen = {"rate": [0.1, 0.2], "decay": [1e-7, 1e-5], "tau": [0.5, 0.02]}
    drawn = {
        "mean": means,
        "chosen": chosen | {"log_density": [-3.0, -4.0]},
        "of_grid": {"log_density": np.zeros((2, 2)), "rmse": np.ones((2, 2))},
        "seconds": np.array(1.5),
    }
    found = dropout_splits.score(drawn, "yacht", 3, 1)
    y, centres = rows.mean + rows.sd * rows.y_test, rows.mean + rows.sd * means
    for k, arm in enumerate(column_dropout.ARMS):
        tau = chosen["tau"][k]
        direct = np.log(stats.norm.pdf(y, centres[k], tau**-0.5).mean(axis=0)).mean()
        assert found[arm]["log_density"] == pytest.approx(direct)
        rmse = np.sqrt(((centres[k].mean(axis=0) - y) ** 2).mean())
        assert found[arm]["rmse"] == pytest.approx(rmse) and found[arm]["tau"] == tau
    first, second = dropout_splits.rows({"split 0": found, "split 1": found})
    assert [first["name"], second["name"]] == list(column_dropout.ARMS)
    assert first["validation"] == [-3.0, -3.0] and second["rate"] == [0.2, 0.2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rates": [1.0]}, "expected rates of 0 or more"),
        ({"rates": [-0.1]}, "expected rates of 0 or more"),
        ({"decays": [[-1.0]]}, "decays of 0 or more"),
        ({"epochs": 0}, "1 epoch or more"),
        ({"decays": [0.0]}, "given shapes"),
        ({"rates": [0.1, 0.2]}, "given shapes"),
        ({"y": np.zeros(4)}, "given shapes"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"x": np.zeros((5, 2)), "y": np.zeros(5), "rates": [0.1], "decays": [[0.0]]}
    with pytest.raises(ValueError, match=message):
        column_dropout.fit(jax.random.key(0), **(given | {"epochs": 1} | change))


def test_networks_are_of_the_published_size():
    shapes = {name: part.shape for name, part in parameters(1, 1).items()}
    assert HIDDEN == 50 and shapes["kernel"] == (1, 4, 1, 50)
