"""The harness itself: right draws and the sampler pass it, wrong ones do not, and its exact values
are exact.
"""

from helpers import full_metric, hmc, mcmc, verify
from helpers.diagnostics import CHANCE

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from experiments.problems import exact_targets

TARGETS = {target.name: target for target in exact_targets.all_targets()}
TWO_MODES = TARGETS["two modes"]


def independent(seed, num_draws=1000):
    """Return independent draws of the two modes, [4 chains, draw]."""
    random = np.random.default_rng(seed)
    right = random.random((4, num_draws)) < 0.3
    return (np.where(right, 2.0, -2.0) + random.normal(size=right.shape)).astype(np.float32)


def quantities_of(draws):
    """Return mean, second moment and the weight of the right mode of each draw."""
    return np.stack([draws, draws**2, draws > 0], axis=-1)


def test_right_draws_pass_as_often_as_promised():
    """The difference and R-hat have ``chance`` each, shared by the quantities."""
    runs = (quantities_of(independent(seed)) for seed in range(50))
    failed = sum(
        not verify.compare_with_exact(run, TWO_MODES.exact, chance=0.1).passed.all() for run in runs
    )
    assert failed <= stats.binom.isf(1e-5, 50, 2 * 0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: x + 0.2,
        lambda x: 1.1 * x,
        # the right mode weighs too little
        lambda x: np.where((x > 0) & (np.arange(x.shape[1]) % 5 == 0), -x, x),
    ],
    ids=["shifted", "too wide", "wrong weights"],
)
def test_wrong_draws_fail(wrong):
    verdict = verify.compare_with_exact(wrong(independent(0, 2000)).astype(np.float32), TWO_MODES)
    assert verdict.enough.all() and not verdict.passed.all()


def test_quantities_and_exact_values_do_in_place_of_a_target():
    draws = independent(4)
    quantities = quantities_of(draws)
    found, expected = (
        verify.compare_with_exact(quantities, TWO_MODES.exact),
        verify.compare_with_exact(draws, TWO_MODES),
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    assert verify.compare_with_exact(quantities[..., 0], TWO_MODES.exact[0]).passed.shape == (1,)
    with pytest.raises(
        ValueError,
        match=r"draws, target: given quantities \(2,\) and exact values \(3,\), expected",
    ):
        verify.compare_with_exact(quantities[..., :2], TWO_MODES.exact)


def autoregressive(random, shape, correlation):
    """Return stationary standard normal chains [chain, draw, ...] of known autocorrelation."""
    steps = random.normal(size=shape)
    steps[:, 1:] *= np.sqrt(1 - correlation**2)
    for draw in range(1, shape[1]):
        steps[:, draw] += correlation * steps[:, draw - 1]
    return steps


@pytest.mark.parametrize("num_quantities, num_runs, chance", [(1, 200, 0.05), (20, 20, 0.1)])
def test_right_chains_fail_as_often_as_they_may(num_quantities, num_runs, chance):
    random = np.random.default_rng(1)
    runs = (autoregressive(random, (4, 1000, num_quantities), 0.5) for _ in range(num_runs))
    failed = sum(
        not verify.compare_with_exact(run, np.zeros(num_quantities), chance).passed.all()
        for run in runs
    )
    assert failed <= stats.binom.isf(1e-5, num_runs, 2 * chance)


# Of 2000 simulated runs, 4 x 1000 draws, those that were found with one of so many quantities off,
# by effective draws and by how many standard deviations its mean was off.
FOUND = {(1000, 0.2): {1: 1914, 20: 1733}, (4000, 0.1): {1: 1944, 20: 1762}}


@pytest.mark.parametrize("ess, off", FOUND)
@pytest.mark.parametrize("num_quantities", [1, 20])
def test_means_that_are_off_are_found_as_often_as_in_the_table(ess, off, num_quantities):
    random, time, num_runs = np.random.default_rng(2), 4000 / ess, 40
    runs = (autoregressive(random, (4, 1000), (time - 1) / (time + 1)) for _ in range(num_runs))
    chance = CHANCE / num_quantities  # one quantity's share
    found = sum(
        not verify.compare_with_exact(run, np.array(off), chance).passed.all() for run in runs
    )
    table = FOUND[ess, off][num_quantities]
    assert found >= stats.betabinom.ppf(1e-5, num_runs, table, 2000 - table)


def test_what_hardly_moves_gets_no_verdict():
    still = np.zeros((4, 500), np.float32)
    apart = still + np.array([-2.0, 2.0, -2.0, 2.0], np.float32)[:, None]  # each chain in one mode
    apart = apart + 0.1 * independent(1, 500)
    slow = np.repeat(independent(0, 50), 20, axis=1)
    for draws in (still, apart, slow):
        verdict = verify.compare_with_exact(draws, TWO_MODES)
        assert not verdict.enough.all() and not verdict.passed.all()


def test_differences_are_in_standard_deviations_of_the_quantity():
    draws = independent(3, 4000)
    verdict = verify.compare_with_exact(draws, TWO_MODES)
    assert verdict.difference[0] == pytest.approx(
        (draws.mean() - TWO_MODES.exact[0]) / draws.std(), abs=1e-5
    )
    assert verdict.error[0] == pytest.approx(1 / np.sqrt(16000), rel=0.2)


@pytest.mark.parametrize(
    "draws, message",
    [
        (np.zeros((1, 10), np.float32), "draws: given 1 chains of 10"),
        (np.zeros((2, 7), np.float32), "draws: given 2 chains of 7"),
        (np.full((2, 10), np.nan, np.float32), r"draws: given \d+ values that are not finite"),
    ],
)
def test_bad_draws_are_named(draws, message):
    with pytest.raises(ValueError, match=message):
        verify.compare_with_exact(draws, TWO_MODES)


@pytest.mark.parametrize("name", TARGETS)
def test_densities_and_gradients_are_finite_and_quantities_have_names(name):
    target = TARGETS[name]
    position = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.3, leaf.dtype), target.position)
    value, slope = jax.value_and_grad(target.log_density)(position)
    assert np.isfinite(value) and all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
    assert target.quantities(position).shape == target.exact.shape == (len(target.labels),)


@pytest.mark.parametrize(
    "name", ["correlated Gaussian", "linear regression", "funnel, non-centred", "two modes"]
)
def test_densities_integrate_to_the_exact_values(name):
    """By importance sampling from a normal approximation at the mode, wide enough for all modes."""
    target = TARGETS[name]
    flat, unravel = jax.flatten_util.ravel_pytree(
        jax.tree.map(lambda a: jnp.zeros(a.shape), target.position)
    )

    def density(vector):
        return target.log_density(unravel(vector))

    hessian = np.asarray(jax.jit(jax.hessian(density))(flat), np.float64)
    if name == "two modes":
        mean, covariance = np.zeros(1), np.array([[9.0]])
    else:
        mean = -np.linalg.solve(hessian, np.asarray(jax.jit(jax.grad(density))(flat)))
        covariance = -np.linalg.inv(hessian)
    draws = np.random.default_rng(7).multivariate_normal(mean, covariance, size=50_000)
    log_weight = np.asarray(jax.jit(jax.vmap(density))(jnp.asarray(draws, jnp.float32)), np.float64)
    log_weight -= stats.multivariate_normal(mean, covariance).logpdf(draws)
    weight = np.exp(log_weight - log_weight.max())
    values = np.asarray(
        jax.jit(jax.vmap(lambda v: target.quantities(unravel(v))))(jnp.asarray(draws, jnp.float32))
    )
    found = (weight[:, None] * values).sum(axis=0) / weight.sum()
    error = np.sqrt((weight[:, None] ** 2 * (values - found) ** 2).sum(axis=0)) / weight.sum()
    assert (np.abs(found - target.exact) < 5 * error + 1e-3).all()


def test_eight_schools_against_two_dimensional_sums():
    """The page's values come from one integral over tau; here the sum is over mu and tau, theta
    given both.
    """
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
    right, wrong = TARGETS["eight schools"], exact_targets.eight_schools(jacobian=False)
    assert float(right.log_density(position) - wrong.log_density(position)) == pytest.approx(
        0.7, abs=1e-4
    )


def test_ranks_count_the_draws_below():
    values = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    assert verify.ranks(values, np.array([2.5, 5.0])).tolist() == [2, 1]
    both = np.stack([values, values], axis=2)
    assert verify.ranks(both, np.array([[0.0, 9.0], [9.0, 0.0]])).tolist() == [[0, 3], [3, 0]]


@pytest.mark.parametrize(
    "values, truth, message",
    [
        (np.zeros((3, 5)), np.zeros(2), r"values, truth: given .*\(3, 5\) and \(2,\)"),
        (np.full((2, 5), np.inf), np.zeros(2), r"values: given \d+ values that are not finite"),
    ],
)
def test_bad_ranks_are_named(values, truth, message):
    with pytest.raises(ValueError, match=message):
        verify.ranks(values, truth)


KERNEL = "moved, info = kernel(key, state, flat_density, step_size, inverse_metric, (most,))\n"
INDENT = " " * 8
BROKEN = {
    "the metric learns from the draws": [
        (
            "state, adaptation = carry\n        tuning =",
            "(state, running), adaptation = carry\n        tuning =",
        ),
        (
            KERNEL,
            KERNEL.replace("inverse_metric,", "jnp.where(tuning, inverse_metric, running),")
            + f"{INDENT}wide = jnp.clip(jnp.abs(moved.position), 0.1, 1.0)\n"
            f"{INDENT}here = inverse_metric * wide * wide[:, None]\n"
            f"{INDENT}running = (running + here) / 2\n",
        ),
        ("return (moved, adaptation)", "return ((moved, running), adaptation)"),
        (
            "carry = state, going.adaptation",
            "carry = (state, going.inverse_metric), going.adaptation",
        ),
        ("(state, adaptation), drawn =", "((state, _), adaptation), drawn ="),
    ],
    "the length depends on the place": [
        (
            KERNEL,
            "drawn = lambda key: jax.random.randint(key, (), 1, 6)\n"
            f"{INDENT}length = lambda key, _: jnp.where(state.position[0] > 0, 1, drawn(key))\n"
            f"{INDENT}kernel = blackjax.dynamic_hmc.build_kernel(integration_steps_fn=length)\n"
            f"{INDENT}{KERNEL}",
        ),
    ],
    "the step size depends on the place": [
        (
            KERNEL,
            "near = jnp.clip(jnp.abs(state.position[0]), 0.1, 1.0)\n"
            f"{INDENT}step_size = jnp.where(tuning, step_size, near * step_size)\n{INDENT}{KERNEL}",
        ),
    ],
    "every proposal is accepted": [
        (
            KERNEL,
            f"{KERNEL}{INDENT}end = info.proposal._asdict()\n"
            f"{INDENT}both = {{name: end[name] for name in moved._fields if name in end}}\n"
            f"{INDENT}choose = lambda new, last: jnp.where(tuning, new, last)\n"
            f"{INDENT}moved = jax.tree.map(choose, moved, moved._replace(**both))\n",
        ),
    ],
}


def broken(changes):
    """Return the program of the draws with lines of its source changed."""
    source = inspect.getsource(hmc.turn) + inspect.getsource(hmc.stretch)
    for line, other in changes:
        assert source.count(line) == 1, f"no longer in hmc.turn or hmc.stretch, once: {line}"
        source = source.replace(line, other)
    names = dict(vars(hmc))
    exec(source, names)
    return names["stretch"]


def unit_normal(position, task):
    """The density of what is to be drawn, whatever the task."""
    return -0.5 * (position**2).sum()


UNIT_NORMAL = exact_targets.moments(
    "unit normal", unit_normal, jax.ShapeDtypeStruct((2,), jnp.float32), lambda x: x, 2
)


def three_verdicts():
    """Draw with keys of three tasks, all the same, with trajectories of one step, and judge
    each.
    """
    starts = mcmc.normal_starts(jax.random.key(0), UNIT_NORMAL.position, (3, 4))
    sizes = {"num_samples": 4000, "target_acceptance": 0.7, "max_tree_depth": 1}
    draws = mcmc.sample(
        jax.random.key(1), unit_normal, starts, tasks=np.zeros(3, np.float32), **sizes
    ).draws
    return [verify.compare_with_exact(task, UNIT_NORMAL) for task in draws]


def test_the_sampler_passes_where_its_broken_twins_fail():
    assert all(verdict.passed.all() for verdict in three_verdicts())


@pytest.mark.parametrize("changes", BROKEN.values(), ids=BROKEN)
def test_a_broken_twin_of_the_sampler_is_found(changes, monkeypatch):
    monkeypatch.setattr(hmc, "stretch", broken(changes))
    monkeypatch.setattr(full_metric, "MAX_PARAMETERS", 0)  # a diagonal, as of large networks
    for verdict in three_verdicts():
        assert (np.abs(verdict.difference) > 2 * verdict.allowed).any()


def test_uniform_ranks_stay_in_the_band_and_others_leave_it():
    band, found = verify.rank_band(300, 50, chance=0.05), np.random.default_rng(1)
    uniform = found.integers(0, 51, size=(300, 400))
    outside = (verify.rank_distance(uniform, 50) > band).sum()
    # The band is itself the quantile of 2000 simulated distances.
    low, high = stats.betabinom.ppf([5e-6, 1 - 5e-6], 400, 0.05 * 2000, 0.95 * 2000)
    assert low <= outside <= high
    narrow = np.round(50 * found.beta(2, 2, size=300)).astype(int)
    assert verify.rank_distance(narrow, 50) > band


def test_ranks_of_wrong_posteriors_lie_beyond_the_band():
    random = np.random.default_rng(0)
    values, truth = random.normal(size=(60, 20, 2)), random.normal(size=(60, 2))
    truth[:, 1] += 3  # above nearly all draws
    right, wrong = verify.rank_distance(verify.ranks(values, truth), 20)
    assert right < verify.rank_band(60, 20, 1e-3) < wrong
