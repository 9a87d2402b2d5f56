"""The evidence of fixed scales by tempered SMC: against a formula, and its two parts against draws
of the prior.
"""

from helpers import densities, smc

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from experiments.methods import region_masses
from experiments.pages.what_the_gain_is_made_of import evidence
from experiments.problems import moons_redrawn

NUM_RUNS = 8
SCALES = (0.5, 1.0, 6.0)


def agrees(found, expected, error=0.0):
    """Whether the logarithm of the runs' mean is the expected one, within what their spread makes
    likely.
    """
    found = np.asarray(found, np.float64)
    both = np.hypot(error, np.std(found, ddof=1) / np.sqrt(len(found)))
    assert both < 0.1
    # The spread is known from few runs only.
    return abs(region_masses.log_mean(found) - expected) < stats.t.isf(5e-6, len(found) - 1) * both


def test_evidence_of_a_line_is_that_of_the_formula():
    random = np.random.default_rng(0)
    x, y, noise = random.normal(size=(20, 3)), random.normal(size=20), 0.5
    expected = stats.multivariate_normal(np.zeros(20), x @ x.T + noise**2 * np.eye(20)).logpdf(y)
    x, y = (jnp.asarray(a, jnp.float32) for a in (x, y))

    def log_likelihood(position):
        misses = (y - x @ position["w"]) / noise
        return -0.5 * jnp.square(misses).sum() - 20 * jnp.log(noise * jnp.sqrt(2 * jnp.pi))

    def one_run(key):
        key_start, key_run = jax.random.split(key)
        particles = {"w": jax.random.normal(key_start, (200, 3))}
        return evidence.last(smc.anneal(key_run, particles, evidence.log_prior, log_likelihood)[1])

    keys = jax.random.split(jax.random.key(1), NUM_RUNS)
    assert agrees(jax.jit(lambda keys: jax.lax.map(one_run, keys))(keys), expected)


def test_parts_of_the_evidence_are_those_of_prior_draws(monkeypatch):
    monkeypatch.setattr(evidence, "PARTS", (np.s_[:2], np.s_[2:]))
    tasks = moons_redrawn.drawn(0, num_tasks=1)
    of = densities.observe(tasks.x_train[0, :6], tasks.y_train[0, :6], SCALES)
    draws = evidence.mcmc.normal_starts(jax.random.key(2), evidence.SHAPES, (100_000,))
    first, both = (
        np.exp(np.asarray(jax.jit(jax.vmap(evidence.part_of(of, part)))(draws), np.float64))
        for part in (np.s_[:2], np.s_[:6])
    )
    one_run = jax.jit(
        lambda keys: jax.lax.map(lambda key: evidence.of_task(key, of, tasks.x_test[0, :5]), keys)
    )
    found = one_run(jax.random.split(jax.random.key(3), NUM_RUNS))
    assert (found["power"] == 1).all() and ((found["p"] > 0) & (found["p"] < 1)).all()
    by_part = np.asarray(found["log_evidence"], np.float64)
    for values, of_runs in ((first, by_part[:, 0]), (both, by_part.sum(axis=1))):
        assert agrees(
            of_runs, np.log(values.mean()), values.std() / values.mean() / np.sqrt(len(values))
        )
    # The draws weighted by all labels predict as the particles do.
    p = jax.vmap(
        lambda one: moons_redrawn.NETWORK.apply(
            evidence.scaled(one, of.prior_scales), tasks.x_test[0, :5]
        )
    )(draws)
    weights = both / both.sum()
    expected = weights @ np.asarray(jax.nn.sigmoid(p), np.float64)
    spread = np.std(found["p"], axis=0, ddof=1) / np.sqrt(NUM_RUNS)
    error = np.hypot(spread, np.sqrt(np.square(weights).sum()) / 2)
    assert (np.abs(np.mean(found["p"], axis=0) - expected) < 6 * error).all()


def test_errors_are_of_sums_over_tasks_of_means_over_runs():
    random = np.random.default_rng(4)
    values = random.normal(size=(3000, 4, 18))
    assert np.isclose(values.mean(axis=1).sum(axis=-1).std(), np.sqrt(18 / 4), rtol=0.1)
    assert np.isclose(evidence.spread(values).mean(), np.sqrt(18 / 4), rtol=0.05)
    same = evidence.parts_of_runs(np.full((2, 2, 3), -1.0), np.full((2, 2, 3), -1.5))
    assert (
        same["first"] == [-3.0, -3.0]
        and same["later"] == [-1.5, -1.5]
        and same["all"] == [-4.5, -4.5]
    )
    assert same["all_error"] == [0.0, 0.0]
