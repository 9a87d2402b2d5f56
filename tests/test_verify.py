"""The harness itself: right draws pass it, wrong ones do not, and its exact values are exact."""

from helpers import targets, verify

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

TARGETS = {target.name: target for target in targets.all_targets()}
TWO_MODES = TARGETS["two modes"]


def independent(seed, num_draws=1000):
    """Return independent draws of the two modes, [4 chains, draw]."""
    random = np.random.default_rng(seed)
    right = random.random((4, num_draws)) < 0.3
    return (np.where(right, 2.0, -2.0) + random.normal(size=right.shape)).astype(np.float32)


def test_right_draws_pass_as_often_as_promised():
    failed = sum(not verify.judge(independent(seed), TWO_MODES, chance=0.1).passed.all() for seed in range(100))
    assert failed <= stats.binom.isf(1e-4, 100, 0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x + 0.2,
        lambda x: 1.1 * x,
        lambda x: np.where((x > 0) & (np.arange(x.shape[1]) % 5 == 0), -x, x),  # the right mode weighs too little
    ],
    ids=["shifted", "too wide", "wrong weights"],
)
def test_wrong_draws_fail(wrong):
    verdict = verify.judge(wrong(independent(0, 2000)).astype(np.float32), TWO_MODES)
    assert verdict.enough.all() and not verdict.passed.all()


def test_what_hardly_moves_gets_no_verdict():
    still = np.zeros((4, 500), np.float32)
    apart = still + np.array([-2.0, 2.0, -2.0, 2.0], np.float32)[:, None]  # each chain in one mode
    apart = apart + 0.1 * independent(1, 500)
    slow = np.repeat(independent(0, 50), 20, axis=1)
    for draws in (still, apart, slow):
        verdict = verify.judge(draws, TWO_MODES)
        assert not verdict.enough.all() and not verdict.passed.all()


def test_differences_are_in_standard_deviations_of_the_quantity():
    draws = independent(3, 4000)
    verdict = verify.judge(draws, TWO_MODES)
    assert verdict.difference[0] == pytest.approx((draws.mean() - TWO_MODES.exact[0]) / draws.std(), abs=1e-5)
    assert verdict.error[0] == pytest.approx(1 / np.sqrt(16000), rel=0.2)


@pytest.mark.parametrize(
    "draws, message",
    [
        (np.zeros((1, 10), np.float32), r"draws: given leaves that begin \[\(1, 10\)\]"),
        (np.zeros((2, 7), np.float32), r"draws: given leaves that begin \[\(2, 7\)\]"),
        (np.full((2, 10), np.nan, np.float32), "draws: given some that are not finite"),
    ],
)
def test_bad_draws_are_named(draws, message):
    with pytest.raises(ValueError, match=message):
        verify.judge(draws, TWO_MODES)


@pytest.mark.parametrize("name", TARGETS)
def test_densities_and_gradients_are_finite_and_quantities_have_names(name):
    target = TARGETS[name]
    position = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.3, leaf.dtype), target.position)
    value, slope = jax.value_and_grad(target.log_density)(position)
    assert np.isfinite(value) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
    assert target.quantities(position).shape == target.exact.shape == (len(target.labels),)


@pytest.mark.parametrize("name", ["correlated Gaussian", "linear regression", "funnel, non-centred", "two modes"])
def test_densities_integrate_to_the_exact_values(name):
    """By importance sampling from a normal approximation at the mode, wide enough for all modes."""
    target = TARGETS[name]
    flat, unravel = jax.flatten_util.ravel_pytree(jax.tree.map(lambda a: jnp.zeros(a.shape), target.position))

    def density(vector):
        return target.log_density(unravel(vector))

    hessian = np.asarray(jax.hessian(density)(flat), np.float64)
    if name == "two modes":
        mean, covariance = np.zeros(1), np.array([[9.0]])
    else:
        mean = -np.linalg.solve(hessian, np.asarray(jax.grad(density)(flat)))
        covariance = -np.linalg.inv(hessian)
    draws = np.random.default_rng(7).multivariate_normal(mean, covariance, size=100_000)
    log_weight = np.asarray(jax.jit(jax.vmap(density))(jnp.asarray(draws, jnp.float32)), np.float64)
    log_weight -= stats.multivariate_normal(mean, covariance).logpdf(draws)
    weight = np.exp(log_weight - log_weight.max())
    values = np.asarray(jax.jit(jax.vmap(lambda v: target.quantities(unravel(v))))(jnp.asarray(draws, jnp.float32)))
    found = (weight[:, None] * values).sum(axis=0) / weight.sum()
    error = np.sqrt((weight[:, None] ** 2 * (values - found) ** 2).sum(axis=0)) / weight.sum()
    assert (np.abs(found - target.exact) < 5 * error + 1e-3).all()


def test_eight_schools_against_two_dimensional_sums():
    """The page's values come from one integral over tau; here the sum is over mu and tau, theta given both."""
    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    sd = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    mu, log_tau = np.linspace(-25, 30, 400)[:, None], np.linspace(-9, 7, 1200)[None]
    tau = np.exp(log_tau)
    log_weight = stats.norm(0, 5).logpdf(mu) + stats.halfcauchy(scale=5).logpdf(tau) + log_tau
    for value, width in zip(y, sd, strict=True):
        log_weight = log_weight + stats.norm(mu, np.sqrt(width**2 + tau**2)).logpdf(value)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    exact = dict(zip(TARGETS["eight schools"].labels, TARGETS["eight schools"].exact, strict=True))
    assert exact["mu"] == pytest.approx((weight * mu).sum(), abs=0.01)
    assert exact["log tau"] == pytest.approx((weight * log_tau).sum(), abs=0.01)
    assert exact["P(tau < 5)"] == pytest.approx((weight * (tau < 5)).sum(), abs=0.005)
    school_a = (y[0] * tau**2 + mu * sd[0] ** 2) / (tau**2 + sd[0] ** 2)
    assert exact["school A"] == pytest.approx((weight * school_a).sum(), abs=0.01)


def test_without_the_jacobian_the_density_differs_by_it():
    position = {"mu": jnp.float32(1.0), "log_tau": jnp.float32(0.7), "offset": jnp.zeros(8)}
    right, wrong = TARGETS["eight schools"], targets.eight_schools(jacobian=False)
    assert float(right.log_density(position) - wrong.log_density(position)) == pytest.approx(0.7, abs=1e-4)


def test_ranks_count_the_draws_below():
    values = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    assert verify.ranks(values, np.array([2.5, 5.0])).tolist() == [2, 1]
    both = np.stack([values, values], axis=2)
    assert verify.ranks(both, np.array([[0.0, 9.0], [9.0, 0.0]])).tolist() == [[0, 3], [3, 0]]


@pytest.mark.parametrize(
    "values, truth, message",
    [
        (np.zeros((3, 5)), np.zeros(2), r"given shapes \(3, 5\) and \(2,\)"),
        (np.full((2, 5), np.inf), np.zeros(2), "given some that are not finite"),
    ],
)
def test_bad_ranks_are_named(values, truth, message):
    with pytest.raises(ValueError, match=message):
        verify.ranks(values, truth)


def test_uniform_ranks_stay_in_the_band_and_others_leave_it():
    band = verify.rank_band(300, 50, chance=0.05)
    random = np.random.default_rng(1)
    uniform = random.integers(0, 51, size=(300, 400))
    outside = (verify.rank_distance(uniform, 50) > band).mean()
    assert 0.02 < outside < 0.09
    narrow = np.round(50 * random.beta(2, 2, size=300)).astype(int)
    assert verify.rank_distance(narrow, 50) > band
