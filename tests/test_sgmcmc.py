"""Minibatch samplers on posteriors known exactly: right ones pass the harness, broken ones do
not.
"""

from helpers import mcmc, sgfs, sgmcmc, verify

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.sgmcmc import gradients

from experiments.methods import psgld, schedules
from experiments.problems import minibatch_targets

NUM_DATA, BATCH = 500, 50
KEY = jax.random.key(71)


def fisher(known, **options):
    """Return SGFS on a target of 500 data."""
    return sgfs.sgfs(known.log_prior, known.log_likelihood, NUM_DATA, **options)


def slope(known):
    """Return BlackJAX's estimate of the gradient."""
    return gradients.grad_estimator(known.log_prior, known.log_likelihood, NUM_DATA)


def run(known, algorithm, step_size, thin=5, num_samples=1500, **options):
    """Draw four chains from dispersed starts."""
    key_start, key_chains = jax.random.split(KEY)
    starts = mcmc.normal_starts(key_start, known.target.position, (4,), 0.05)
    sizes = {
        "num_warmup": 1000,
        "num_samples": num_samples,
        "thin": thin,
        "batch_size": BATCH,
        **options,
    }
    return sgmcmc.sample(key_chains, algorithm, starts, known.data, step_size=step_size, **sizes)


def variance_ratio(known, draws):
    """Variance of the draws about the exact mean, over that of the posterior, averaged over
    coordinates.
    """
    values = np.asarray(jax.vmap(jax.vmap(known.target.quantities))(draws), np.float64)
    return values[..., values.shape[-1] // 2 :].mean()


def judged(known, draws, variance=1.0):
    """Return the verdict on draws of a normal that is so many times as wide as the posterior, in
    variance.
    """
    exact = np.repeat([0.0, variance], known.target.exact.size // 2)
    return verify.compare_with_exact(draws, known.target._replace(exact=exact))


@pytest.mark.parametrize("size", [1, 10])
@pytest.mark.parametrize("preconditioner", [None, "proportional"])
def test_sgfs_is_exact_for_a_gaussian_at_any_step_size(size, preconditioner):
    known = minibatch_targets.gaussian_mean(size, prior_precision=100.0)
    algorithm = fisher(known, preconditioner=preconditioner)
    for step_size in (0.01, 0.1, np.inf):
        assert verify.compare_with_exact(
            run(known, algorithm, step_size), known.target
        ).passed.all()


def test_without_replacement_another_gamma_is_exact():
    known = minibatch_targets.gaussian_mean(prior_precision=100.0, ddof=1)
    for step_size in (0.01, np.inf):
        draws = run(known, fisher(known, replace=False), step_size, replace=False, num_samples=500)
        assert verify.compare_with_exact(draws, known.target).passed.all()


def test_a_matrix_as_preconditioner_is_exact_too():
    known = minibatch_targets.gaussian_mean(2)
    draws = run(known, fisher(known, preconditioner=np.array([[2.0, 0.9], [0.9, 1.0]])), 0.02)
    assert verify.compare_with_exact(draws, known.target).passed.all()


@pytest.mark.parametrize(
    "batch, num_samples", [(100, 1500), (250, 400)], ids=["a fifth of the data", "half of it"]
)
def test_the_gamma_of_the_other_way_to_draw_fails_by_its_closed_form(batch, num_samples):
    """Stationary ratio V / (gamma N - N) at infinite step size, V = N^2 / n - N without
    replacement.
    """
    known = minibatch_targets.gaussian_mean(ddof=1)
    options = {"replace": False, "batch_size": batch, "num_samples": num_samples}
    others = NUM_DATA / batch + 1
    wrong = run(known, fisher(known, replace=False, gamma=others), np.inf, **options)
    assert judged(known, wrong, (NUM_DATA / batch - 1) / (NUM_DATA / batch)).passed.all()
    assert not judged(known, wrong).passed.all()


@pytest.mark.parametrize("step_size", [0.01, 0.1])
def test_the_sources_gamma_inflates_the_variance_by_its_closed_form(step_size):
    """Elevenfold and 54-fold."""
    gamma, noise = (BATCH + NUM_DATA) / NUM_DATA, 4 * 1.1 / step_size
    known = minibatch_targets.gaussian_mean()
    wrong = run(known, fisher(known, gamma=gamma, preconditioner=[[1.1]]), step_size, thin=20)
    ratio = (NUM_DATA**2 / BATCH + noise) / (gamma * NUM_DATA - NUM_DATA + noise)
    assert judged(known, wrong, ratio).passed.all()
    assert not judged(known, wrong).passed.all()


def test_the_sources_gamma_is_unstable_below_its_threshold():
    """The factor of a step is 1 - 2 N / (1.1 j N + 44) at step size 0.1: below -1 for j < 0.829."""
    threshold = (NUM_DATA - 44) / (1.1 * NUM_DATA)
    spread = {}
    for variance in (threshold - 0.03, threshold + 0.03):
        known = minibatch_targets.gaussian_mean(variance=variance)
        algorithm = fisher(known, gamma=1.1, preconditioner=[[1.1]])
        try:
            spread[variance] = variance_ratio(known, run(known, algorithm, 0.1, num_samples=300))
        except FloatingPointError:
            spread[variance] = np.inf
    unstable, stable = spread.values()
    assert unstable > 1e6 and stable < 1000


def test_a_bracket_without_the_priors_precision_fails():
    known = minibatch_targets.gaussian_mean(prior_precision=2000.0)
    algorithm = fisher(known)

    def forgetful(position, rng_key=None):
        state = algorithm.init(position)
        return state._replace(prior_precision=jnp.zeros_like(state.prior_precision))

    assert verify.compare_with_exact(run(known, algorithm, np.inf), known.target).passed.all()
    without = run(known, algorithm._replace(init=forgetful), np.inf)
    assert not verify.compare_with_exact(without, known.target).passed.all()


@pytest.mark.parametrize(
    "make", [minibatch_targets.linear_regression, minibatch_targets.logistic_regression]
)
def test_regressions_within_a_stated_bias(make):
    known = make()
    algorithm = fisher(known)
    for step_size in (0.01, np.inf):
        assert verify.compare_with_exact(
            run(known, algorithm, step_size, num_samples=1000), known.target, bias=0.03
        ).passed.all()


def test_the_plain_mean_remembers_a_far_start():
    known = minibatch_targets.linear_regression()
    verdict = verify.compare_with_exact(
        run(known, fisher(known, forget=0.0), np.inf), known.target, bias=0.03
    )
    too_narrow = verdict.difference < -verdict.allowed
    assert too_narrow[known.target.exact == 1].any()


def test_logistic_regression_against_nuts():
    known = minibatch_targets.logistic_regression()
    starts = mcmc.normal_starts(KEY, known.target.position, (4,))
    exact = mcmc.sample(
        KEY, known.target.log_density, starts, num_samples=500, max_tree_depth=4
    ).draws
    assert verify.compare_with_exact(exact, known.target).passed.all()


def test_langevin_has_the_bias_of_its_closed_form():
    """Stationary ratio (e V + 2) / (2 - e A), A = 500 and V = N^2 / n; with exact control variates
    V = 0.
    """
    known = minibatch_targets.gaussian_mean(10)
    draws = run(known, blackjax.sgld(slope(known)), 1e-4, thin=20)
    assert judged(known, draws, 2.5 / 1.95).passed.all() and not judged(known, draws).passed.all()
    centred = gradients.control_variates(slope(known), jnp.full(10, 0.02), known.data)
    draws = run(known, blackjax.sgld(centred), 1e-4, thin=20)
    assert judged(known, draws, 2 / 1.95).passed.all()


@pytest.mark.parametrize("name", ["sgnht", "psgld"])
def test_others_of_the_family_within_a_stated_bias(name):
    known = minibatch_targets.gaussian_mean(10)
    made = {"sgnht": blackjax.sgnht(slope(known), alpha=1.0), "psgld": psgld.psgld(slope(known))}[
        name
    ]
    draws = run(known, made, 1e-3, thin=100)
    assert verify.compare_with_exact(draws, known.target, bias=0.1).passed.all()


def test_psgld_scales_each_coordinates_step():
    """One step without noise in the gradient, from the recursion written out."""
    algorithm = psgld.psgld(lambda position, _: -position, memory=0.5, damping=2.0)
    start = jnp.array([4.0, 0.01])
    state = algorithm.init(start)
    moved = jax.jit(jax.vmap(lambda key: algorithm.step(key, state, None, 1e-2).position))(
        jax.random.split(KEY, 4000)
    )
    rate = 1e-2 / (2.0 + jnp.sqrt(0.5 * start**2))
    np.testing.assert_allclose(np.mean(moved, axis=0), start - rate * start, atol=0.01)
    np.testing.assert_allclose(np.var(moved, axis=0), 2 * rate, rtol=0.1)


def test_any_pytree_is_a_position():
    known = minibatch_targets.gaussian_mean(3)
    split = lambda p: jnp.concatenate([p["a"][None], p["b"]])  # noqa: E731
    algorithm = sgfs.sgfs(
        lambda p: known.log_prior(split(p)),
        lambda p, d: known.log_likelihood(split(p), d),
        NUM_DATA,
    )
    sizes = {"batch_size": BATCH, "step_size": 0.1, "num_warmup": 5, "num_samples": 7}
    trees = sgmcmc.sample(
        KEY, algorithm, {"a": jnp.zeros(2), "b": jnp.zeros((2, 2))}, known.data, **sizes
    )
    vectors = sgmcmc.sample(KEY, fisher(known), jnp.zeros((2, 3)), known.data, **sizes)
    assert trees["a"].shape == (2, 7) and trees["b"].shape == (2, 7, 2)
    np.testing.assert_allclose(jax.vmap(jax.vmap(split))(trees), vectors, rtol=1e-4, atol=1e-6)


class Counter:
    """A kernel that only counts: its position is the sum of the step sizes it was given."""

    init = staticmethod(lambda position, rng_key=None: position)
    step = staticmethod(lambda key, state, minibatch, step_size: state + step_size)


def test_warm_up_thinning_and_cycles_take_the_steps_they_should():
    sizes = {"batch_size": 2, "num_warmup": 3, "num_samples": 2, "thin": 4, "num_cycles": 2}
    draws = sgmcmc.sample(KEY, Counter, jnp.zeros(1), jnp.zeros(9), step_size=1.0, **sizes)
    assert np.asarray(draws).tolist() == [[7, 11, 18, 22]]
    sizes |= {"num_warmup": 120, "num_samples": 1, "thin": 1, "num_cycles": 1}
    index = sgmcmc.sample(
        KEY, Counter, jnp.zeros(1), jnp.zeros(9), step_size=lambda t: t + 1, **sizes
    )
    assert float(index[0, 0]) == 121 * 122 / 2


def test_minibatches_are_drawn_from_all_data_and_without_replacement_hold_none_twice():
    class Repeated(Counter):
        @staticmethod
        def step(key, state, minibatch, step_size):
            return jnp.stack(
                [
                    state[0] + (jnp.diff(jnp.sort(minibatch)) == 0).sum().astype(jnp.float32),
                    minibatch[0],
                ]
            )

    sizes = {"batch_size": 5, "num_warmup": 0, "num_samples": 500, "step_size": 1.0}
    data = jnp.arange(10.0)
    with_them, without = (
        np.asarray(sgmcmc.sample(KEY, Repeated, jnp.zeros((1, 2)), data, replace=replace, **sizes))[
            0
        ]
        for replace in (True, False)
    )
    assert with_them[-1, 0] > 100 and without[-1, 0] == 0
    for draws in (with_them, without):
        assert np.bincount(draws[:, 1].astype(int), minlength=10).min() > 20


def test_schedules():
    steps = np.arange(100_000)
    falling = np.asarray(schedules.decaying(0.1, offset=10.0, power=0.6)(steps))
    assert falling[0] == 0.1 and (np.diff(falling) < 0).all()
    cycle = np.asarray(schedules.cyclical(0.2, 100)(steps))
    assert cycle[0] == cycle[100] == pytest.approx(0.2) and 0 < cycle[99] < 1e-4
    for power in (0.5, 1.1):
        with pytest.raises(ValueError, match=f"power: given {power}"):
            schedules.decaying(0.1, power=power)


def test_one_and_two_chains_draw_the_same_bits():
    known = minibatch_targets.gaussian_mean(2)
    sizes = {"batch_size": BATCH, "step_size": 0.1, "num_warmup": 60, "num_samples": 5}
    algorithm = fisher(known)
    first, second = (
        sgmcmc.sample(KEY, algorithm, jnp.zeros((3, 2)), known.data, **sizes) for _ in range(2)
    )
    assert (first == second).all() and not (first[0] == first[1]).any()


KNOWN = minibatch_targets.gaussian_mean(2)
SIZES = {"batch_size": BATCH, "step_size": 0.1, "num_warmup": 0, "num_samples": 1}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"batch_size": 501}, "batch_size: given 501, expected at most 500"),
        ({"batch_size": 0}, "batch_size: given 0"),
        ({"num_samples": 0}, "num_samples: given 0"),
        ({"num_warmup": -1}, "num_warmup: given -1"),
        ({"thin": 0}, "thin: given 0"),
        ({"num_cycles": 1.5}, "num_cycles: given 1.5"),
        ({"step_size": 0.0}, "step_size: given 0.0 at step 0"),
        ({"step_size": lambda t: 2.0 - t, "num_samples": 4}, "step_size: given 0.0 at step 2"),
        ({"step_size": np.nan}, "step_size: given nan at step 0"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        sgmcmc.sample(KEY, fisher(KNOWN), jnp.zeros((2, 2)), KNOWN.data, **(SIZES | options))


@pytest.mark.parametrize(
    "positions, data, message",
    [
        (
            jnp.zeros((2, 2)),
            (jnp.zeros(3), jnp.zeros(4)),
            r"data: given leaves that begin \[\(3,\), \(4,\)\]",
        ),
        (
            jnp.zeros((0, 2)),
            jnp.zeros((60, 2)),
            r"initial_positions: given leaves that begin \[\(0,\)\]",
        ),
        (jnp.zeros((2, 2)), jnp.zeros(()), r"data: given leaves that begin \[\(\)\]"),
    ],
)
def test_bad_arrays_are_named(positions, data, message):
    with pytest.raises(ValueError, match=message):
        sgmcmc.sample(KEY, fisher(KNOWN), positions, data, **SIZES)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"preconditioner": np.array([[1.0, 2.0], [0.0, 1.0]])}, "one that is not symmetric"),
        ({"preconditioner": np.array([[1.0, 2.0], [2.0, 1.0]])}, "one with smallest eigenvalue -1"),
        ({"preconditioner": np.full((2, 2), np.nan)}, "not symmetric and finite"),
        ({"preconditioner": np.ones(3)}, r"given shape \(3,\)"),
        ({"preconditioner": "diagonal"}, "given 'diagonal'"),
        ({"gamma": 0.0}, "gamma: given 0.0"),
        ({"forget": -1.0}, "forget: given -1.0"),
    ],
)
def test_bad_options_of_sgfs_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        fisher(KNOWN, **options)


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match=r"given shape \(3, 3\), expected \(2, 2\)"):
        fisher(KNOWN, preconditioner=np.eye(3)).init(jnp.zeros(2))
    algorithm = fisher(KNOWN)
    for size in (1, 501):
        with pytest.raises(
            ValueError, match=f"minibatch: given {size} data, expected 2 to data_size = 500"
        ):
            algorithm.step(KEY, algorithm.init(jnp.zeros(2)), jnp.zeros((size, 2)), 0.1)
    with pytest.raises(ValueError, match=r"position: given \d+ values that are not finite"):
        fisher(KNOWN._replace(log_prior=lambda p: jnp.log(p).sum())).init(jnp.zeros(2))
    with pytest.raises(ValueError, match="has eigenvalue -2"):
        fisher(KNOWN._replace(log_prior=lambda p: (p**2).sum())).init(jnp.zeros(2))
    for size in (1, 2.5):
        with pytest.raises(ValueError, match=f"data_size: given {size}"):
            sgfs.sgfs(KNOWN.log_prior, KNOWN.log_likelihood, size)
    for options, message in (
        ({"memory": 1.0}, "memory: given 1.0"),
        ({"damping": 0.0}, "damping: given 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            psgld.psgld(slope(KNOWN), **options)
    with pytest.raises(ValueError, match="bias: given -1"):
        verify.compare_with_exact(jnp.zeros((2, 4, 2)), KNOWN.target, bias=-1)


def test_a_chain_that_leaves_the_numbers_is_named():
    sizes = SIZES | {"num_warmup": 0, "num_samples": 50, "step_size": 1.0}
    starts = jnp.array([[0.0, 0.0], [1e30, 0.0]])
    with pytest.raises(
        FloatingPointError, match=r"is not finite, first in \{.*1: \d+.*chain: draw"
    ):
        sgmcmc.sample(KEY, blackjax.sgld(slope(KNOWN)), starts, KNOWN.data, **sizes)


@pytest.mark.parametrize("made, words", [((50, True), "data_size=50"), ((10, False), "replace")])
def test_an_algorithm_for_other_data_or_other_minibatches_is_refused(made, words):
    size, replace = made
    algorithm = sgfs.sgfs(
        lambda w: -0.5 * w**2, lambda w, x: -0.5 * (w - x) ** 2, size, replace=replace
    )
    settings = {"batch_size": 5, "step_size": 0.1, "num_warmup": 0, "num_samples": 1}
    with pytest.raises(ValueError, match=f"algorithm: given one made with .*{words}"):
        sgmcmc.sample(jax.random.key(1), algorithm, jnp.zeros(1), jnp.zeros(10), **settings)
