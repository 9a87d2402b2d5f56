"""Streamed minibatches: the draws of data in memory, and memory that does not grow with the
data.
"""

import helpers  # noqa: F401, before BlackJAX
from helpers import sgmcmc

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

from experiments.methods import streamed
from experiments.pages.scaling_out import memory


def save(folder, num_data):
    """Data of a linear regression, in two files."""
    x = np.random.default_rng(3).normal(size=(num_data, 4)).astype(np.float32)
    data = {"x": x, "y": x @ np.arange(4, dtype=np.float32)}
    for name, values in data.items():
        np.save(folder / f"{name}.npy", values)
    return data


@pytest.fixture
def thousand(tmp_path):
    return tmp_path, save(tmp_path, 1000)


def sampler():
    def log_prior(w):
        return -(w**2).sum() / 2

    def log_likelihood(w, datum):
        return -((datum["y"] - datum["x"] @ w) ** 2) / 2

    return blackjax.sgld(blackjax.sgmcmc.gradients.grad_estimator(log_prior, log_likelihood, 1000))


@pytest.mark.parametrize("num_warmup", [0, 60])
def test_a_streamed_run_draws_what_data_in_memory_give(thousand, num_warmup):
    folder, data = thousand
    sizes = {
        "batch_size": 20,
        "step_size": 1e-4,
        "num_warmup": num_warmup,
        "num_samples": 8,
        "thin": 5,
    }
    starts, algorithm = jnp.arange(8.0).reshape(2, 4), sampler()
    expected = sgmcmc.sample(
        jax.random.key(1), algorithm, starts, jax.tree.map(jnp.asarray, data), **sizes
    )
    found = sgmcmc.sample(jax.random.key(1), algorithm, starts, streamed.rows(folder), **sizes)
    np.testing.assert_array_equal(found, expected)


def test_a_streamed_fit_finds_the_coefficients(thousand):
    folder, _ = thousand

    def model(batch):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([4]).to_event(1))
        with numpyro.handlers.scale(scale=1000 / 50), numpyro.plate("rows", 50):
            numpyro.sample("y", dist.Normal((batch["x"] @ w), 1.0), obs=batch["y"])

    svi = SVI(model, AutoNormal(model), optax.adam(0.05), Trace_ELBO())
    rows = streamed.rows(folder)
    state, losses = streamed.fit(jax.random.key(1), svi, rows, batch_size=50, num_steps=600)
    np.testing.assert_allclose(svi.get_params(state)["w_auto_loc"], np.arange(4.0), atol=0.2)
    assert losses.shape == (600,) and losses[-50:].mean() < losses[:50].mean()


def test_memory_does_not_grow_with_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "SETTINGS", memory.SETTINGS | {"steps": 600})
    found = {}
    for num_rows in (10_000, 5_000_000):
        memory.write(tmp_path, num_rows)
        found[num_rows] = [
            np.array(memory.measured(way, num_rows, tmp_path)) for way in ("SG-MCMC", "SVI")
        ]
    for small, large in zip(*found.values(), strict=True):
        own, most = large - small
        # 5 million rows are 100 MB, of which 60 000 are read, and a row may bring a megabyte with
        # it.
        assert own < 15 and most < 60


@pytest.mark.parametrize("lengths", [{}, {"x": 3, "y": 4}])
def test_files_that_are_no_data_are_named(tmp_path, lengths):
    for name, length in lengths.items():
        np.save(tmp_path / f"{name}.npy", np.zeros(length))
    with pytest.raises(ValueError, match="given leaves that begin"):
        streamed.files(tmp_path)


def test_steps_make_whole_stretches(thousand):
    with pytest.raises(ValueError, match="num_steps: given 150, expected a multiple of the 100"):
        rows = streamed.rows(thousand[0])
        streamed.fit(jax.random.key(1), None, rows, batch_size=50, num_steps=150)
