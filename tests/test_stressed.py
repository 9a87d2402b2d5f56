"""Densities that strain a sampler, and their exact answers, against draws without a chain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from experiments.methods import peer_scores
from experiments.problems import peers


def of_years(found):
    """The same data as the density's, its prior flat in the logarithm of sigma."""
    year = np.arange(1900.0, 2021.0)
    y = 0.02 * (year - 1960) + 0.5 * np.random.default_rng(19).normal(size=len(year))
    design = np.c_[np.ones(len(year)), year]
    weights, sigma = found[:-1], found[-1]
    return stats.norm(design @ weights, sigma).logpdf(y).sum() - np.log(sigma)


def of_spike(x):
    wide, narrow = stats.norm(0, 1).logpdf(x).sum(), stats.norm(0, 1e-3).logpdf(x).sum()
    return np.logaddexp(wide, narrow)


def of_modes(x):
    parts = np.log([0.7, 0.3]) + stats.norm([-10, 10], 1).logpdf(x[0])
    return np.logaddexp(*parts) + stats.norm.logpdf(x[1:]).sum()


def of_funnel(position):
    v, x = position["v"], position["x"]
    return stats.norm(0, 3).logpdf(v) + stats.norm(0, np.exp(v / 2)).logpdf(x).sum()


SAME = 0.001 * np.eye(50) + 0.999
STRESSED = {
    "years": lambda at: of_years(np.append(at["weights"], np.exp(at["log_sigma"]))),
    "alike": stats.multivariate_normal(np.zeros(50), SAME).logpdf,
    "scales": lambda x: stats.norm(0, np.logspace(-6, 6, 20)).logpdf(x).sum(),
    "funnel": of_funnel,
    "spike": of_spike,
    "far modes": of_modes,
}


@pytest.mark.parametrize("name", STRESSED)
def test_a_density_that_strains_is_that_of_its_description(name):
    peer, random, found = peers.load(name), np.random.default_rng(4), []
    for scale in (1e-4, 0.1, 0.3, 1.0):
        position = jax.tree.map(
            lambda leaf: np.asarray(scale * random.normal(size=leaf.shape)), peer.position
        )
        with jax.enable_x64(True):
            value = float(peer.log_density(jax.tree.map(jnp.asarray, position)))
        expected = STRESSED[name](position)
        if name == "years":
            expected += position["log_sigma"]
        found.append((value, float(expected)))
    value, expected = np.array(found).T
    np.testing.assert_allclose(value - value[0], expected - expected[0], rtol=1e-9, atol=1e-6)


def exact_draws(name, size=40_000):
    """Draw positions of a density without a chain, [draw], by how it is made."""
    random = np.random.default_rng(5)
    z = random.normal(size=(size, 50))
    if name == "alike":
        return np.sqrt(0.001) * z + np.sqrt(0.999) * random.normal(size=(size, 1))
    if name == "scales":
        return z[:, :20] * np.logspace(-6, 6, 20)
    if name == "funnel":
        v = 3 * z[:, 0]
        return {"v": v, "x": z[:, 1:10] * np.exp(v / 2)[:, None]}
    first = random.uniform(size=(size, 1)) < (0.5 if name == "spike" else 0.7)
    if name == "spike":
        return z[:, :10] * np.where(first, 1.0, 1e-3)
    if name == "far modes":
        return z[:, :5] + np.where(first, -10.0, 10.0) * np.eye(5)[0]
    raise ValueError(name)


@pytest.mark.parametrize("name", [name for name in STRESSED if name != "years"])
def test_exact_answers_are_those_of_draws_without_a_chain(name):
    peer = peers.load(name)
    with jax.enable_x64(True):
        draws = jax.tree.map(lambda a: a.reshape(4, -1, *a.shape[1:]), exact_draws(name))
        values = np.asarray(peers.of_draws(peer.quantities, draws))
    far = peer_scores.distances(values, peer)
    assert max(far.mean, far.sd, far.quantiles) < 6


def test_the_exact_answers_of_years_are_integrals():
    """Over log sigma, weights integrated out: normal given sigma, so that t mixes over sigma."""
    answers = peers.load("years").answers
    year = np.arange(1900.0, 2021.0)
    y = 0.02 * (year - 1960) + 0.5 * np.random.default_rng(19).normal(size=len(year))
    slope, intercept = np.polyfit(year - year.mean(), y, 1)
    squares = ((y - intercept - slope * (year - year.mean())) ** 2).sum()
    moments = [
        integrate.quad(
            lambda t: np.exp(power * t - 119 * t - squares * np.exp(-2 * t) / 2), -3, 2, epsabs=0
        )[0]
        for power in (0, 1, 2)
    ]
    _, sigma, square = np.array(moments) / moments[0]
    assert answers.mean[2] == pytest.approx(sigma, rel=1e-6)
    assert answers.sd[2] == pytest.approx(np.sqrt(square - sigma**2), rel=1e-4)
    spread = np.sum((year - year.mean()) ** 2)
    assert answers.mean[1] == pytest.approx(slope, rel=1e-6)
    assert answers.sd[1] == pytest.approx(np.sqrt(square / spread), rel=1e-6)
    assert answers.mean[0] == pytest.approx(intercept - slope * year.mean(), rel=1e-6)
    of_intercept = square * (1 / 121 + year.mean() ** 2 / spread)
    assert answers.sd[0] == pytest.approx(np.sqrt(of_intercept), rel=1e-6)
