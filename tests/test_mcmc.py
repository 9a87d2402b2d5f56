"""The sampler draws from its target, and refuses what cannot work.

Another processor's rounding gives other draws, so bounds are 5 Monte Carlo standard errors of
quantities whose effective sample size is large.
"""

from helpers import mcmc

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.diagnostics import effective_sample_size

SIZES = np.array([1.0, 1000.0, 0.001], np.float32)  # of three tasks
MEANS = SIZES[:, None] * np.array([[1.0, 2.0, 3.0], [0.0, 0.0, -2.0], [0.5, 0.0, 0.0]], np.float32)
FACTOR = np.array([[1.0, 0.0, 0.0], [0.9, 0.5, 0.0], [0.0, -0.5, 1.0]], np.float32)
DATA = {"mean": MEANS, "whiten": np.linalg.inv(FACTOR)[None] / SIZES[:, None, None]}
traces = []


def normal(position, data):
    """A correlated normal of three dimensions, its position in two leaves."""
    traces.append(1)
    z = data["whiten"] @ (jnp.concatenate([position["a"][None], position["b"]]) - data["mean"])
    return -0.5 * z @ z


def starts(num_chains=2):
    shapes = {"a": jnp.zeros(()), "b": jnp.zeros(2)}
    standard = mcmc.normal_starts(jax.random.key(1), shapes, (3, num_chains))
    return jax.tree.map(lambda leaf: leaf * SIZES.reshape(3, *(1,) * (leaf.ndim - 1)), standard)


def draw(seed=0):
    return mcmc.sample(jax.random.key(seed), normal, starts(), data=DATA)


@pytest.fixture(scope="module")
def posterior():
    return draw()


def test_leaves_are_chains_of_draws_like_one_position(posterior):
    assert jax.tree.map(jnp.shape, posterior.draws) == {"a": (3, 2, 1000), "b": (3, 2, 1000, 2)}
    assert {leaf.shape for leaf in posterior.stats} == {(3, 2, 1000)}
    assert [leaf.dtype.kind for leaf in posterior.stats] == ["f", "b", "f", "f", "i"]


def test_every_task_has_the_right_mean_and_covariance(posterior):
    draws = np.concatenate([posterior.draws["a"][..., None], posterior.draws["b"]], axis=-1)
    z = (draws - MEANS[:, None, None]) / SIZES[:, None, None, None]
    products = (z[..., :, None] * z[..., None, :] - FACTOR @ FACTOR.T).reshape(*z.shape[:3], 9)
    values = np.moveaxis(np.concatenate([z, products], axis=-1), 0, 2)  # [chain, draw, task, quantity], of mean 0
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        ess = jax.jit(effective_sample_size)(values)
    assert ess.shape == (3, 12) and ess.min() > 200
    assert (abs(values.mean(axis=(0, 1))) < 5 * values.std(axis=(0, 1)) / np.sqrt(ess)).all()


def test_statistics_are_those_of_the_draws(posterior):
    log_density = jax.vmap(jax.vmap(jax.vmap(normal, (0, None)), (0, None)))(posterior.draws, DATA)
    stats = posterior.stats
    np.testing.assert_allclose(stats.log_density, log_density, rtol=1e-3, atol=1e-3)
    # Where a trajectory starts: half a chi-squared of 3 degrees above the potential energy of the draw before.
    kinetic = np.asarray(stats.energy[..., 1:] + stats.log_density[..., :-1])
    assert kinetic.min() > -1e-3 and (abs(kinetic.mean(axis=2) - 1.5) < 5 * np.sqrt(1.5 / 300)).all()
    assert not stats.diverging.any()
    assert stats.acceptance.min() >= 0 and stats.acceptance.max() < 1.001 and stats.acceptance.mean(axis=2).min() > 0.6
    assert (stats.integration_steps.mean(axis=(1, 2)) < 30).all()  # each task has found its own step size


def test_the_same_call_gives_the_same_draws_and_compiles_nothing(posterior):
    before = len(traces)
    again, other = draw(), draw(seed=1)
    assert len(traces) == before
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(posterior), jax.tree.leaves(again), strict=True))
    assert (other.draws["b"] != posterior.draws["b"]).mean() > 0.9


def first_draws():
    """Return the first draws [task, chain, draw, 2] where every task is the first, and every start the same."""
    start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1, :1], (3, 2, *leaf.shape[2:])), starts())
    data = jax.tree.map(lambda leaf: np.broadcast_to(leaf[:1], leaf.shape), DATA)
    return mcmc.sample(jax.random.key(0), normal, start, num_warmup=20, num_samples=3, data=data).draws["b"]


def test_equal_chains_of_equal_tasks_get_randomness_of_their_own():
    draws = np.asarray(first_draws()).reshape(6, -1)
    assert min(abs(a - b).max() for i, a in enumerate(draws) for b in draws[:i]) > 0.01


def test_the_number_of_cores_and_devices_changes_no_bit(posterior, monkeypatch):
    for cores in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        again = draw()
        assert all((a == b).all() for a, b in zip(jax.tree.leaves(posterior), jax.tree.leaves(again), strict=True))
    script = "import jax; jax.config.update('jax_num_cpu_devices', {}); from helpers import mcmc; " + (
        "print(mcmc.sample(jax.random.key(0), lambda x: -(x**4).sum(), jax.numpy.ones((3, 2))).draws.sum())"
    )
    found = {subprocess.check_output([sys.executable, "-c", script.format(n)]) for n in (1, 2)}
    assert len(found) == 1 and b"nan" not in found.pop()


def test_chains_of_one_posterior_share_the_range_of_their_trajectories():
    posterior = mcmc.sample(jax.random.key(0), lambda x: -(x**4).sum(), jnp.ones((3, 2)), num_samples=400)
    steps = np.asarray(posterior.stats.integration_steps)
    assert (steps.min(axis=1) == 1).all() and (steps.max(axis=1) == steps.max()).all()
    # Every number of steps is as likely.
    assert np.abs(steps.mean(axis=1) - (1 + steps.max()) / 2).max() < 4 * steps.std() / 20


def test_tasks_do_not_share_what_warm_up_learnt():
    starts, scales = jnp.ones((2, 2, 3)), jnp.array([0.1, 10.0])
    posterior = mcmc.sample(
        jax.random.key(1), lambda x, scale: -((x / scale) ** 2).sum() / 2, starts, data=scales, num_samples=500
    )
    np.testing.assert_allclose(posterior.draws.std(axis=(1, 2, 3)), scales, rtol=0.15)


def two_wells(x, well):
    """Wells at -30 and 30, out of each other's reach; ``well`` says how deep."""
    return well * jnp.logaddexp(-(((x + 30) / 0.5) ** 2).sum() / 2, -(((x - 30) / 0.5) ** 2).sum() / 2)


def test_only_chosen_chains_go_on():
    seen = []

    def rightmost(positions):
        seen.append(positions.shape)
        return np.argsort(-positions[..., 0], axis=-1)[:, :2]

    starts = 0.1 * jax.random.normal(jax.random.key(0), (3, 8, 1)) + jnp.array([30.0, -30.0] * 4)[None, :, None]
    depths = jnp.array([1.0, 2.0, 4.0])
    posterior = mcmc.sample(jax.random.key(1), two_wells, starts, data=depths, choose=rightmost, num_samples=500)
    assert seen == [(3, 8, 1)] and posterior.draws.shape == (3, 2, 500, 1)
    np.testing.assert_allclose(posterior.draws.mean(axis=(1, 2, 3)), 30.0, atol=0.1)
    # In a well of depth d the standard deviation is 0.5 / sqrt(d): every task kept its data.
    np.testing.assert_allclose(posterior.draws.std(axis=(1, 2, 3)), 0.5 / np.sqrt(depths), rtol=0.15)


def test_the_choice_of_all_chains_changes_nothing():
    given = jax.random.key(0), lambda x: -(x**4).sum(), jnp.ones((3, 2))
    every = mcmc.sample(*given, num_samples=50, choose=lambda positions: np.arange(len(positions)))
    np.testing.assert_array_equal(every.draws, mcmc.sample(*given, num_samples=50).draws)


@pytest.mark.parametrize("kept", [[[0, 1]], [3], [-1], [0.0], [], 0])
def test_a_choice_of_chains_that_are_not_there_is_refused(kept):
    with pytest.raises(ValueError, match=r"choose: gave .*, expected integers \['kept'\] from 0 to 2"):
        mcmc.sample(jax.random.key(0), lambda x: -(x**4).sum(), jnp.ones((3, 2)), choose=lambda _: kept)


def test_divergences_are_flagged_and_trajectories_are_limited():
    def cliff(x):
        return -1e5 * jnp.maximum(0.0, jnp.abs(x).max() - 1.0)

    stats = mcmc.sample(jax.random.key(0), cliff, jnp.zeros((3, 2)), num_samples=200, max_tree_depth=3).stats
    assert stats.diverging.shape == (3, 200) and stats.diverging.sum() > 20
    assert stats.integration_steps.max() <= 2 * (2**3 - 1) - 1


def test_starts_are_dispersed_and_leaves_independent():
    start = mcmc.normal_starts(jax.random.key(0), {"a": jnp.zeros(50), "b": jnp.zeros((50,))}, (4, 20), scale=3.0)
    a, b = np.asarray(start["a"]).ravel(), np.asarray(start["b"]).ravel()
    for values in (a, b):
        assert abs(values.mean()) < 4 * 3 / np.sqrt(4000) and abs(values.std() - 3) < 4 * 3 / np.sqrt(8000)
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(4000)


def test_an_improper_density_is_no_silent_infinity():
    with pytest.raises(FloatingPointError, match=r"warm-up of chains \[\[0\], \[1\]\]: not finite"):
        mcmc.sample(jax.random.key(0), lambda x: x.sum(), jnp.zeros((2, 1)), num_samples=10)


def infinite_at_chain_1(start):
    return {**start, "a": start["a"].at[2, 1].set(jnp.inf)}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"num_samples": 0}, "num_samples: given 0, expected an integer of 1 or more"),
        ({"num_samples": 1.5}, "num_samples: given 1.5, expected an integer"),
        ({"num_warmup": 5}, "num_warmup: given 5, expected an integer of 20 or more"),
        ({"max_tree_depth": 0}, "max_tree_depth: given 0, expected an integer of 1 or more"),
        ({"target_acceptance": 1.0}, "target_acceptance: given 1.0, expected a number between 0 and 1"),
        ({"initial_positions": {}}, r"initial_positions: given leaves that begin \[\], expected the same"),
        ({"initial_positions": starts(0)}, r"initial_positions: given .*\(3, 0\).* none 0"),
        ({"initial_positions": {**starts(), "b": starts(4)["b"]}}, r"initial_positions: given .*\(3, 2\), \(3, 4\)"),
        ({"initial_positions": jnp.zeros(3)}, r"initial_positions: given .*\(3,\).* expected .*'task', 'chain'"),
        ({"data": jax.tree.map(lambda a: a[:2], DATA)}, r"data: given leading axes \[\(2,\)\], expected \(3,\)"),
        ({"initial_positions": infinite_at_chain_1(starts())}, r"not finite at \[\[2, 1\]\], expected a finite start"),
    ],
)
def test_impossible_requests_are_refused_before_sampling(change, message, monkeypatch):
    monkeypatch.setattr(mcmc, "_warm_up", None)  # what would fail otherwise
    arguments = {"initial_positions": starts(), "data": DATA, **change}
    with pytest.raises(ValueError, match=message):
        mcmc.sample(jax.random.key(0), normal, **arguments)
