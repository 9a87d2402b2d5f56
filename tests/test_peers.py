"""Posteriors that others have answered are those that they are said to be.

Each log density is compared, in float64, with one that SciPy's distributions make of its
quantities; the Jacobian between the two is automatic.
"""

from helpers import mcmc

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.problems import peers, posteriordb_models


def of_regression(design, y, of_sigma=lambda sigma: 0.0, of_weights=lambda weights: 0.0):
    """Return the log density of weights and sigma."""

    def log_density(found):
        weights, sigma = found[:-1], found[-1]
        likelihood = stats.norm(design @ weights, sigma).logpdf(y).sum()
        return likelihood + of_sigma(sigma) + of_weights(weights)

    return log_density


def with_ones(data, *names):
    """Return rows of a one and of the named columns."""
    rows = zip(*(data[name] for name in names), strict=True)
    return np.array([[1.0, *row] for row in rows])


def half_cauchy(sigma):
    return stats.halfcauchy(scale=2.5).logpdf(sigma)


def of_weights(weights):
    return stats.norm(0, 10).logpdf(weights).sum()


def kidscore_interaction(data):
    rows = with_ones(data, "mom_hs", "mom_iq")
    return of_regression(np.c_[rows, rows[:, 1] * rows[:, 2]], data["kid_score"], half_cauchy)


def mesquite(data):
    names = "diam1", "diam2", "canopy_height", "total_height", "density", "group"
    return of_regression(with_ones(data, *names), data["weight"])


def autoregression(data):
    y = data["y"]
    rows = np.array([[1.0, *(y[t - k] for k in range(1, 6))] for t in range(5, len(y))])
    return of_regression(rows, y[5:], half_cauchy, of_weights)


def garch(data):
    def log_density(found):
        mu, alpha0, alpha1, beta1 = found
        variance, total, y = data["sigma1"] ** 2, 0.0, data["y"]
        for t in range(len(y)):
            if t:
                variance = alpha0 + alpha1 * (y[t - 1] - mu) ** 2 + beta1 * variance
            total += stats.norm(mu, np.sqrt(variance)).logpdf(y[t])
        return total

    return log_density


def gauss_mix(data):
    def log_density(found):
        *pairs, theta = found
        (mu1, mu2), (sigma1, sigma2) = np.reshape(pairs, (2, 2))
        first = theta * stats.norm(mu1, sigma1).pdf(data["y"])
        second = (1 - theta) * stats.norm(mu2, sigma2).pdf(data["y"])
        prior = stats.norm(0, 2).logpdf([mu1, mu2]).sum() + stats.beta(5, 5).logpdf(theta)
        prior += stats.halfnorm(0, 2).logpdf([sigma1, sigma2]).sum()
        return np.log(first + second).sum() + prior

    return log_density


def gp_regression(data):
    def log_density(found):
        rho, alpha, sigma = found
        x = np.array(data["x"])
        kernel = alpha**2 * np.exp(-((x[:, None] - x) ** 2) / 2 / rho**2) + sigma * np.eye(len(x))
        prior = stats.gamma(25, scale=1 / 4).logpdf(rho) + stats.halfnorm(0, 2).logpdf(alpha)
        prior += stats.halfnorm(0, 1).logpdf(sigma)
        return stats.multivariate_normal(np.zeros(len(x)), kernel).logpdf(data["y"]) + prior

    return log_density


def schools(data):
    def log_density(found):
        theta, mu, tau = found[:-2], found[-2], found[-1]
        likelihood = stats.norm(theta, data["sigma"]).logpdf(data["y"]).sum()
        prior = stats.norm(0, 5).logpdf(mu) + stats.halfcauchy(0, 5).logpdf(tau)
        return likelihood + stats.norm(mu, tau).logpdf(theta).sum() + prior

    return log_density


def hmm_drive(data):
    """The forward algorithm, one time after the other, in shares that sum to 1."""

    def log_density(found):
        stay, back, phi1, phi2, lambda1, lambda2 = found  # of theta: [1, 1] and [2, 1]
        theta = np.array([[stay, 1 - stay], [back, 1 - back]])
        prior = sum(stats.dirichlet(data["alpha"][k]).logpdf(theta[k]) for k in range(2))
        prior += stats.norm([0, 3], 1).logpdf([phi1, phi2]).sum()
        prior += stats.norm([0, 3], 1).logpdf([lambda1, lambda2]).sum()
        seen = [
            stats.expon(scale=1 / np.array(rates)).logpdf(np.array(data[name])[:, None])
            for name, rates in (("u", [phi1, phi2]), ("v", [lambda1, lambda2]))
        ]
        state, total = np.array([0.5, 0.5]), 0.0
        for t, emitted in enumerate(sum(seen)):
            state = (state @ theta if t else state) * np.exp(emitted - emitted.max())
            total += emitted.max() + np.log(state.sum())
            state = state / state.sum()
        return total + prior

    return log_density


INDEPENDENT = {
    "kidiq-kidscore_interaction": kidscore_interaction,
    "kidiq-kidscore_momiq": lambda data: of_regression(
        with_ones(data, "mom_iq"), data["kid_score"], half_cauchy
    ),
    "earnings-earn_height": lambda data: of_regression(with_ones(data, "height"), data["earn"]),
    "mesquite-mesquite": mesquite,
    "sblri-blr": lambda data: of_regression(
        np.array(data["X"]), data["y"], stats.halfnorm(0, 10).logpdf, of_weights
    ),
    "arK-arK": autoregression,
    "garch-garch11": garch,
    "low_dim_gauss_mix-low_dim_gauss_mix": gauss_mix,
    "gp_pois_regr-gp_regr": gp_regression,
    "eight_schools-eight_schools_noncentered": schools,
    "eight_schools-eight_schools_centered": schools,
    "bball_drive_event_0-hmm_drive_0": hmm_drive,
}
FREE = {"bball_drive_event_0-hmm_drive_0": [0, 2, 4, 5, 6, 7]}  # the others follow from these


def positions(peer, count=4):
    """Return positions in float64; a regression's near the answers, where squares are small."""
    random, answers = np.random.default_rng(3), peer.answers
    for _ in range(count):
        draw = jax.tree.map(lambda leaf: 0.7 * random.normal(size=leaf.shape), peer.position)
        if "weights" in draw:
            draw["weights"] = answers.mean[:-1] + answers.sd[:-1] * draw["weights"]
            draw["log_sigma"] = np.log(answers.mean[-1]) + draw["log_sigma"]
        yield draw


def constant(log_density, peer, independent):
    """Return log densities less those of SciPy at some positions: one number, if both are right."""
    free = FREE.get(peer.name, list(range(len(peer.labels))))

    @jax.jit
    def of_vector(vector):
        def quantities(vector):
            return peer.quantities(unravel(vector))[jnp.array(free)]

        slope = jnp.linalg.slogdet(jax.jacfwd(quantities)(vector))[1]
        return log_density(unravel(vector)) - slope, quantities(vector)

    differences = []
    with jax.enable_x64(True):
        for position in positions(peer):
            vector, unravel = jax.flatten_util.ravel_pytree(position)
            value, found = of_vector(vector)
            differences.append(float(value) - independent(np.asarray(found)))
    return np.array(differences)


@pytest.mark.parametrize("name", INDEPENDENT)
def test_a_density_is_that_of_its_description(name):
    peer = peers.load(name)
    file = "eight_schools-eight_schools_noncentered" if name.startswith("eight") else name
    independent = INDEPENDENT[name](peers.stored_posterior(file)["data"])
    found = constant(peer.log_density, peer, independent)
    np.testing.assert_allclose(found, found[0], rtol=0, atol=1e-6)


def test_a_density_without_its_jacobian_is_found():
    peer = peers.load("garch-garch11")
    data = peers.stored_posterior(peer.name)["data"]

    def wrong(position):
        return peer.log_density(position) - position["log_alpha0"]

    assert np.ptp(constant(wrong, peer, garch(data))) > 0.1


@pytest.mark.parametrize("name", peers.names())
def test_a_density_and_its_slope_are_finite_in_float32(name):
    peer = peers.load(name)
    starts = mcmc.normal_starts(jax.random.key(0), peer.position, (20,))
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(starts))
    both = jax.value_and_grad(peer.log_density)
    value, slope = jax.jit(lambda starts: jax.lax.map(both, starts))(starts)
    assert np.isfinite(value).all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
    assert {len(column) for column in peer.answers} == {len(peer.labels)}
    assert (peer.answers.q05 < peer.answers.q50).all() and (peer.answers.sd > 0).all()


def test_a_name_that_is_not_there_is_said():
    with pytest.raises(ValueError, match="name: given 'eighth school', expected one of"):
        peers.load("eighth school")


def test_a_chain_of_hidden_states_is_summed_over_all_paths():
    random = np.random.default_rng(6)
    theta, seen = random.dirichlet([1, 1], size=2), random.normal(size=(6, 2))
    paths = np.stack(np.meshgrid(*[range(2)] * 6), axis=-1).reshape(-1, 6)
    each = [
        sum(seen[t, k] for t, k in enumerate(path))
        + sum(np.log(theta[a, b]) for a, b in pairwise(path))
        for path in paths
    ]
    found = posteriordb_models.log_forward(jnp.float32(theta), jnp.float32(seen))
    assert float(found) == pytest.approx(np.logaddexp.reduce(each), abs=1e-5)
