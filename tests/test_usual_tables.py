"""The field's tables, their published splits, and scores of chains that need not have mixed."""

from helpers import common, mcmc

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.methods import column_chains, column_networks, column_rivals, column_scores
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables

# SHA-256 of the rows that test, all twenty splits one after the other, as little-endian int32.
# Those of yacht, energy and concrete were compared with the index files of the public experiments,
# splits 0, 1 and 19.
CHECKSUMS = {
    308: "6d7a8deadacb78eeeedc030eb59ece8dd35865edc569535c8f77f88071601857",
    768: "b202fbdb561c531e53303f9e01baef3d5aba66bde06ae5df975e80cd87c01c6e",
    1030: "31cf1390af90218324a27fe4a4d24bdb3ccd128f5f2d916156bac0a022ec63c9",
    1599: "0f65c2f551071e0fa3d0907f3e5b0cc30e05c3f95148542a401ddb5e60e50de3",
    1503: "a5b4d57fda63072e6b90c052292aa81e4f907a077aeaf98b8bba58aac4ae5f6c",
}
SIZES = {"yacht": (308, 6), "energy": (768, 8), "concrete": (1030, 8)}
SIZES |= {"wine": (1599, 11), "airfoil": (1503, 5)}


@pytest.mark.parametrize("name", usual_tables.NAMES)
def test_the_splits_are_the_published_ones(name):
    num_rows, num_columns = SIZES[name]
    frame = usual_tables.read(name)
    assert frame.shape == (num_rows, num_columns + 1) and np.isfinite(frame.to_numpy()).all()
    splits = usual_tables.published(num_rows)
    test = np.concatenate([out for _, out in splits]).astype("<i4")
    assert hashlib.sha256(test.tobytes()).hexdigest() == CHECKSUMS[num_rows]
    for seen, out in splits:
        assert sorted([*seen, *out]) == list(range(num_rows))


def test_the_rule_is_that_of_the_published_script():
    random = np.random.RandomState(1)
    for seen, out in usual_tables.published(308):
        order = random.choice(range(308), 308, replace=False)
        assert np.array_equal(order[:277], seen) and np.array_equal(order[277:], out)


def test_rows_are_in_units_of_those_that_train():
    rows = usual_tables.split("yacht", 3)
    assert np.allclose(rows.x_train.mean(axis=0), 0) and np.allclose(rows.x_train.std(axis=0), 1)
    _, out = usual_tables.published(308)[3]
    outcome = usual_tables.read("yacht").to_numpy()[out, -1]
    assert np.allclose(rows.y_test * rows.sd + rows.mean, outcome)


@pytest.mark.parametrize(("name", "number"), [("boston", 0), ("yacht", 20), ("yacht", -1)])
def test_what_is_no_split_is_refused(name, number):
    with pytest.raises(ValueError, match="given"):
        usual_tables.split(name, number)


def mixture(seed=0, chains=4, draws=10, rows=7):
    """Return a prediction and outcomes that agree with nothing."""
    random = np.random.default_rng(seed)
    mean, log_noise = random.normal(size=(2, chains, draws, rows))
    return Predicted(mean, 0.3 * log_noise), random.normal(size=rows)


def test_scores_are_those_of_the_mixture_in_the_unit_of_the_outcome():
    (predicted, y), sd = mixture(), 3.0
    found = column_scores.scored(predicted, y, sd, seed=0)
    density = stats.norm.pdf(3 * y, 3 * predicted.mean, 3 * np.exp(predicted.log_noise))
    assert found["log_density"] == pytest.approx(np.log(density.mean(axis=(0, 1))).mean())
    error = 3 * (predicted.mean.mean(axis=(0, 1)) - y)
    assert found["rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    below = stats.norm.cdf(y, predicted.mean, np.exp(predicted.log_noise)).mean(axis=(0, 1))
    inside = (below > 0.25) & (below < 0.75)
    assert found["coverage"][0] == pytest.approx(inside.mean())
    assert sum(found["below"]) == y.size


def test_more_chains_are_averaged_as_densities():
    predicted, y = mixture(chains=4, draws=8)
    each = column_scores.log_densities(predicted, y)
    table = column_scores.by_chains(each, 2.0, (0.5, 1.0))
    assert np.shape(table) == (3, 2)
    whole = np.log(np.exp(each).mean(axis=(0, 1))).mean() - np.log(2.0)
    assert table[-1][-1] == pytest.approx(whole)
    first = np.log(np.exp(each[:, :4]).mean(axis=1)).mean() - np.log(2.0)
    assert table[0][0] == pytest.approx(first)
    # the log of a mean is no less than the mean of logs
    assert table[0][1] <= table[1][1] <= table[2][1]


def test_a_chain_far_below_the_median_chain_is_far():
    values = np.array([[-10.0, -12.0], [-61.5, -61.7], [-11.0, -11.0], [-59.0, -60.0]])
    assert column_scores.near(values).tolist() == [True, True, True, True]
    values[1] -= 50
    assert column_scores.near(values).tolist() == [True, False, True, True]


def numbers(made, seed=0):
    """Return a position of a model."""
    return jax.tree.map(lambda a: a[0], mcmc.normal_starts(jax.random.key(seed), made.shapes, (1,)))


@pytest.mark.parametrize("arm", column_chains.ARMS)
def test_the_density_is_that_of_the_stated_model(arm):
    made, rows = (
        column_chains.model("yacht", **column_chains.ARMS[arm]),
        usual_tables.split("yacht", 0),
    )
    at = jax.tree.map(np.asarray, numbers(made))
    x, y = (np.asarray(part, np.float64)[:20] for part in (rows.x_train, rows.y_train))
    with common.mixed_types():
        found = float(made.log_density(at, column_networks.observed(x, y)))
    first, last = (at["params"]["params"][f"Dense_{i}"] for i in range(2))
    scales = np.exp(at["log_scales"]) if "log_scales" in at else np.ones(2)
    change = np.exp(at["log_change"]) if "log_change" in at else None
    hidden = np.tanh(scales[0] * (x @ first["kernel"] / np.sqrt(6) + first["bias"]))
    out = hidden @ np.asarray(last["kernel"]) / np.sqrt(50) + last["bias"]
    noise = np.exp(float(at["log_noise"])) * (1 if change is None else np.exp(change * out[:, 1]))
    expected = stats.norm.logpdf(y, scales[1] * out[:, 0], noise).sum()
    weights = [*first.values(), *last.values()]
    expected += sum(-0.5 * (leaf**2).sum() for leaf in weights)
    expected += stats.halfnorm.logpdf(np.exp(float(at["log_noise"]))) + float(at["log_noise"])
    if "log_scales" in at:
        expected += (stats.halfnorm.logpdf(scales, scale=2) + np.log(scales)).sum()
    if change is not None:
        expected += stats.halfnorm.logpdf(change) + np.log(change)
    assert found == pytest.approx(float(expected), rel=1e-4)


def test_folds_leave_every_row_out_once():
    weight = column_rivals.folds(23)
    assert (weight == 0).sum(axis=0).tolist() == [1] * 23


def test_evidence_of_a_linear_network_is_that_of_its_normal():
    """Without a hidden layer Laplace's method is exact: outcomes are normal."""
    random = np.random.default_rng(1)
    x, y = random.normal(size=(12, 3)), random.normal(size=12)
    best = np.linalg.solve(x.T @ x / 0.25 + np.eye(3), x.T @ y / 0.25)

    class Line:
        size = 3

    def slopes(vector, scale, x):
        return jnp.asarray(x)

    def outputs(of, vector, scale, x):
        return x @ vector

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_rivals, "outputs", outputs)
        patch.setattr(column_rivals, "NOISES", np.array([0.5]))
        value, noise = column_rivals.evidence(Line, slopes, best, None, (x, y))
    expected = stats.multivariate_normal.logpdf(y, np.zeros(12), x @ x.T + 0.25 * np.eye(12))
    assert noise == 0.5
    assert value == pytest.approx(expected + 6 * np.log(2 * np.pi))
