"""Streamed minibatches: the draws of data in memory, and memory that does not grow with the data."""

import helpers  # noqa: F401, before BlackJAX
from helpers import sgmcmc

import json
import os
import subprocess
import sys

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
import pytest
from chapters import ROOT
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

from experiments.scaling_out import streamed

MEASURED = """
import json, resource, sys
from experiments.scaling_out import streamed
import blackjax, jax, jax.numpy as jnp, numpy as np
gradient = blackjax.sgmcmc.gradients.grad_estimator(
    lambda w: -(w**2).sum() / 2, lambda w, datum: -(datum["y"] - datum["x"] @ w)**2 / 2, 1000
)
arguments = jax.random.key(1), blackjax.sgld(gradient), jnp.zeros((1, 4)), sys.argv[1]
sizes = {"batch_size": 100, "step_size": 1e-4, "num_warmup": 0, "thin": 20}
streamed.sample(*arguments, num_samples=5, **sizes)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
streamed.sample(*arguments, num_samples=200, **sizes)
print(json.dumps([before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def save(folder, num_data):
    """Data of a linear regression, in two files."""
    random = np.random.default_rng(3)
    folder.mkdir(exist_ok=True)
    x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (num_data, 4))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float32, (num_data,))
    for start in range(0, num_data, 100_000):
        part = random.normal(size=x[start : start + 100_000].shape).astype(np.float32)
        x[start : start + 100_000], y[start : start + 100_000] = part, part @ np.arange(4, dtype=np.float32)
    return {"x": x, "y": y}


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
    sizes = {"batch_size": 20, "step_size": 1e-4, "num_warmup": num_warmup, "num_samples": 8, "thin": 5}
    starts, algorithm = jnp.arange(8.0).reshape(2, 4), sampler()
    expected = sgmcmc.sample(jax.random.key(1), algorithm, starts, jax.tree.map(jnp.asarray, data), **sizes)
    found = streamed.sample(jax.random.key(1), algorithm, starts, folder, **sizes)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_streamed_fit_finds_the_coefficients(thousand):
    folder, _ = thousand

    def model(batch):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([4]).to_event(1))
        with numpyro.plate("rows", 1000, subsample_size=50):
            numpyro.sample("y", dist.Normal((batch["x"] @ w), 1.0), obs=batch["y"])

    svi = SVI(model, AutoNormal(model), optax.adam(0.05), Trace_ELBO())
    state, losses = streamed.fit(jax.random.key(1), svi, folder, batch_size=50, num_steps=600)
    np.testing.assert_allclose(svi.get_params(state)["w_auto_loc"], np.arange(4.0), atol=0.2)
    assert losses.shape == (600,) and losses[-50:].mean() < losses[:50].mean()


def test_memory_does_not_grow_with_the_data(tmp_path):
    grown = {}
    for num_data in (10_000, 5_000_000):
        save(tmp_path, num_data)
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", MEASURED, str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        before, after = json.loads(done.stdout)
        grown[num_data] = (after - before) / 1024
    # 5 million rows are 100 MB, and four hundred thousand of them are read, each from a page of 4 kB.
    assert grown[5_000_000] < grown[10_000] + 20


@pytest.mark.parametrize("lengths", [{}, {"x": 3, "y": 4}])
def test_files_that_are_no_data_are_named(tmp_path, lengths):
    for name, length in lengths.items():
        np.save(tmp_path / f"{name}.npy", np.zeros(length))
    with pytest.raises(ValueError, match="given leaves that begin"):
        streamed.files(tmp_path)


def test_steps_make_whole_stretches(thousand):
    with pytest.raises(ValueError, match="num_steps: given 150, expected a multiple of the 100"):
        streamed.fit(jax.random.key(1), None, thousand[0], batch_size=50, num_steps=150)
