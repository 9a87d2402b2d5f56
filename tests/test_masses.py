"""Evidence of the regions of a small hierarchical posterior, against the mean of the likelihood
over prior draws.
"""

from helpers import hierarchical

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from experiments.methods import region_masses
from experiments.pages.hierarchical_bnn import masses
from experiments.problems import regions

POWER, NUM_RUNS = 0.05, 8


@pytest.fixture(scope="module")
def few():
    """Points of two tasks, with the likelihood at a power at which prior draws still cover the
    posterior.
    """
    return regions.observed(0, 2, POWER)


@pytest.mark.parametrize("region", range(3))
def test_confined_draws_are_of_the_prior_in_its_region(region):
    prior = regions.HYPERPRIORS["HalfCauchy(1)"]
    drawn = region_masses.confined(jax.random.key(region), prior, region, 2, 40_000)["log_sd"]
    log_sd = np.stack([drawn[layer] for layer in regions.LAYERS], axis=-1)
    assert (log_sd.argmax(axis=-1) == region).all()
    plain = np.log(np.asarray(prior.sample((120_000, 3), seed=jax.random.key(9))))
    kept = plain[plain.argmax(axis=-1) == region]
    error = np.sqrt(kept.var(axis=0) * (1 / len(kept) + 1 / len(log_sd)))
    assert (np.abs(log_sd.mean(axis=0) - kept.mean(axis=0)) < 5 * error).all()


def test_evidence_is_that_of_prior_draws(few):
    prior, region = regions.HYPERPRIORS["HalfNormal(1)"], 2
    particles = region_masses.confined(jax.random.key(1), prior, region, 2, 20_000)
    log_likelihood = jax.jit(
        jax.vmap(lambda one: region_masses.TOTAL(hierarchical.task_weights(one, 2), few))
    )(particles)
    exact = np.exp(np.asarray(log_likelihood, np.float64))
    keys = jax.random.split(jax.random.key(2), NUM_RUNS)
    found = [masses.annealed(key, few, "HalfNormal(1)", region) for key in keys]
    each = [float(one["log_evidence"][np.isfinite(one["powers"])][-1]) for one in found]
    expected = np.log(exact.mean())
    of_runs = np.std(each, ddof=1) / np.sqrt(NUM_RUNS)
    error = np.hypot(exact.std() / exact.mean() / np.sqrt(len(exact)), of_runs)
    assert error < 0.05
    # The runs' spread is known from eight of them only.
    assert (
        abs(logsumexp(each) - np.log(NUM_RUNS) - expected) < stats.t.isf(5e-6, NUM_RUNS - 1) * error
    )


def test_a_run_that_does_not_arrive_is_refused():
    powers, log_evidence = np.array([0.5, 0.9, np.inf]), np.array([-1.0, -2.0, np.inf])
    with pytest.raises(ValueError, match=r"powers: given \[0.5, 0.9\], expected to end with 1"):
        region_masses.on_grid(powers, log_evidence)
    with pytest.raises(ValueError, match=r"log_evidence: given .*nan.*, expected finite numbers"):
        region_masses.on_grid(np.array([0.5, 1.0]), np.array([np.nan, -2.0]))
