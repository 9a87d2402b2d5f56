"""The code that the pages of short answers offer runs as it stands, and what it says of this
project is so.
"""

import re

import book_identity
import jax
import numpy as np
import numpyro
import pytest
from chapters import ROOT
from sources import PROJECT, WHEEL

TEXT = (ROOT / "book/short-answers.md").read_text()
OF_FITS = (ROOT / "book/your-fit.md").read_text()
ROBUST, NOISE, SAVED, SCALES, PARTS = re.findall(
    r"^```python\n(.*?)^```$", TEXT + OF_FITS, flags=re.S | re.M
)
RANDOM = np.random.default_rng(1)


@pytest.fixture(autouse=True)
def as_readers_have_it():
    """Types and ranks are promoted outside of these tests."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def test_fat_tails_ignore_an_outlier():
    space = {}
    exec(ROBUST, space)
    x = RANDOM.normal(size=40)
    y = 0.8 * x + 0.1 * RANDOM.normal(size=40)
    y[np.argmax(x)] = -30.0
    kernel = numpyro.infer.NUTS(space["robust"])
    sampler = numpyro.infer.MCMC(kernel, num_warmup=300, num_samples=300, progress_bar=False)
    sampler.run(jax.random.key(1), x, y)
    assert abs(sampler.get_samples()["slope"].mean() - 0.8) < 0.2
    assert abs(np.polyfit(x, y, 1)[0] - 0.8) > 0.5  # normal noise would follow it


def test_a_second_output_is_the_noise():
    space = {}
    exec(NOISE, space)
    x = np.linspace(-1, 1, 7)[:, None].astype(np.float32)
    w = space["network"].init(jax.random.key(1), x)
    mean, spread = np.moveaxis(np.asarray(space["network"].apply(w, x)), -1, 0)
    sd = 0.05 + np.log1p(np.exp(spread))
    y = np.zeros(7, np.float32)
    expected = -(((y - mean) / sd) ** 2 / 2 + np.log(sd) + np.log(2 * np.pi) / 2).sum()
    assert float(space["log_likelihood"](w, x, y)) == pytest.approx(expected, rel=1e-4)


def test_scales_are_chosen_by_folds_and_doubt_has_two_parts():
    """On two values of the three; the second part of a yes or no is the mean of p (1 - p)."""
    space = {}
    exec(SCALES.replace("(0.5, 2.0, 8.0)", "(0.5, 2.0)"), space)
    assert set(eval(SCALES.splitlines()[-1], space).index) == {"0.5", "2.0"}
    exec(PARTS, space)
    given = jax.random.key(2), space["by_sd"]["2.0"], space["students"]
    of_model, stays = space["two_parts"](*given)
    p = space["tables"].predict(*given).mean
    np.testing.assert_allclose(of_model, p.var(axis=(0, 1)))
    np.testing.assert_allclose(stays, (p * (1 - p)).mean(axis=(0, 1)), atol=0.04)


def test_draws_come_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {}
    exec(SAVED, space)
    assert space["again"].shape == (4, 1000, 3) and (tmp_path / "posterior.nc").exists()


def test_the_version_and_the_wheel_are_those_of_the_project():
    """The words stand in `tools/book_identity.py`; the page asks for them."""
    assert "{{ bibtex }}" in TEXT and "{{ pip_install }}" in TEXT
    assert PROJECT["version"] in WHEEL and PROJECT["version"] in book_identity.bibtex("")
