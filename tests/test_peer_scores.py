"""Samplers give the answers that are known, and a verdict that is wrong is found."""

from helpers import mcmc

import jax
import numpy as np
import pytest

from experiments.methods import peer_samplers, peer_scores
from experiments.problems import peers, stressed


@pytest.mark.parametrize(
    "name",
    [
        "sblri-blr",
        "garch-garch11",
        "low_dim_gauss_mix-low_dim_gauss_mix",
        "gp_pois_regr-gp_regr",
        "eight_schools-eight_schools_noncentered",
    ],
)
def test_the_books_sampler_gives_the_answers(name):
    peer = peers.load(name)
    starts = mcmc.normal_starts(jax.random.key(1), peer.position, (4,))
    run = peer_samplers.ours(jax.random.key(2), peer.log_density, starts)
    values = peers.of_draws(peer.quantities, run.posterior.draws)
    score = peer_scores.score(run.posterior, np.asarray(values, np.float64), peer)
    assert score.accepted and not score.fault
    assert max(score.distances.mean, score.distances.sd, score.distances.quantiles) < 6


@pytest.mark.parametrize("sampler", ["NumPyro", "BlackJAX"])
def test_the_other_samplers_give_the_answers(sampler):
    peer = peers.load("sblri-blr")
    starts = mcmc.normal_starts(jax.random.key(1), peer.position, (4,))
    run = peer_samplers.SAMPLERS[sampler](jax.random.key(2), peer.log_density, starts)
    values = peers.of_draws(peer.quantities, run.posterior.draws)
    far = peer_scores.score(run.posterior, np.asarray(values, np.float64), peer).distances
    assert max(far.mean, far.sd, far.quantiles) < 6
    assert run.posterior.stats.log_density.shape == (4, 1000) and run.warmup_gradients > 4000


def test_distances_find_what_is_off():
    peer = peers.load("alike")._replace(name="normal", answers=stressed.alike(size=2)[1])
    values = np.random.default_rng(7).normal(size=(4, 1000, 2))
    right = peer_scores.distances(values, peer)
    assert max(right.mean, right.sd, right.quantiles) < 6
    shifted = peer_scores.distances(values + np.array([0.0, 0.4]), peer)
    assert shifted.mean > 6 and shifted.mean_in_sds == pytest.approx(0.4, abs=0.1)
    assert peer_scores.distances(1.3 * values, peer).sd > 6
    skewed = np.exp(values)
    skewed = (skewed - np.exp(0.5)) / np.sqrt(np.e * (np.e - 1))
    assert peer_scores.distances(skewed, peer).quantiles > 6
    never_moved = peer_scores.distances(np.ones((4, 1000, 2)), peer)
    assert all(np.isfinite(never_moved)) and never_moved.mean > 6


RIGHT, WRONG = peer_scores.Distances(1, 1, 1, 0.1), peer_scores.Distances(2, 1, 1, 0.5)


@pytest.mark.parametrize(
    ("accepted", "far", "asked", "fault"),
    [
        (True, RIGHT, peers.EASY, ""),
        (True, WRONG, peers.EASY, "accepted, and wrong"),
        (True, WRONG, peers.HARD, "accepted, and wrong"),
        (True, peer_scores.Distances(7, 1, 1, 0.1), peers.HARD, "accepted, and wrong"),
        (True, WRONG, peers.BEYOND, ""),
        (False, RIGHT, peers.EASY, "refused, and easy"),
        (False, WRONG, peers.HARD, ""),
    ],
)
def test_a_verdict_that_is_wrong_is_found(accepted, far, asked, fault):
    assert peer_scores.fault(accepted, far, asked) == fault
