"""The sampler draws from its target, and refuses what cannot work.

Another processor's rounding gives other draws, so bounds are 5 Monte Carlo standard errors of
quantities whose effective sample size is large.
"""

from helpers import common, diagnostics, hmc, mcmc, restarts

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
TASKS = {"mean": MEANS, "whiten": np.linalg.inv(FACTOR)[None] / SIZES[:, None, None]}
traces = []


def normal(position, task):
    """A correlated normal of three dimensions, its position in two leaves."""
    traces.append(1)
    z = task["whiten"] @ (jnp.concatenate([position["a"][None], position["b"]]) - task["mean"])
    return -0.5 * z @ z


def starts(num_chains=2):
    shapes = {"a": jnp.zeros(()), "b": jnp.zeros(2)}
    standard = mcmc.normal_starts(jax.random.key(1), shapes, (3, num_chains))
    return jax.tree.map(lambda leaf: leaf * SIZES.reshape(3, *(1,) * (leaf.ndim - 1)), standard)


def draw(seed=0):
    return mcmc.sample(jax.random.key(seed), normal, starts(), tasks=TASKS)


def drawn(posterior):
    """Return all arrays but the seconds, which no two runs share."""
    return jax.tree.leaves(posterior._replace(warmup=posterior.warmup._replace(seconds=None)))


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
    # [chain, draw, task, quantity], of mean 0
    values = np.moveaxis(np.concatenate([z, products], axis=-1), 0, 2)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        ess = jax.jit(effective_sample_size)(values)
    assert ess.shape == (3, 12) and ess.min() > 200
    assert (abs(values.mean(axis=(0, 1))) < 5 * values.std(axis=(0, 1)) / np.sqrt(ess)).all()


def test_statistics_are_those_of_the_draws(posterior):
    log_density = jax.vmap(jax.vmap(jax.vmap(normal, (0, None)), (0, None)))(posterior.draws, TASKS)
    stats = posterior.stats
    np.testing.assert_allclose(stats.log_density, log_density, rtol=1e-3, atol=1e-3)
    # Where a trajectory starts: half a chi-squared of 3 degrees above the potential energy of the
    # draw before.
    kinetic = np.asarray(stats.energy[..., 1:] + stats.log_density[..., :-1])
    assert (
        kinetic.min() > -1e-3 and (abs(kinetic.mean(axis=2) - 1.5) < 5 * np.sqrt(1.5 / 300)).all()
    )
    assert not stats.diverging.any()
    assert (
        stats.acceptance.min() >= 0
        and stats.acceptance.max() < 1.001
        and stats.acceptance.mean(axis=2).min() > 0.6
    )
    # each task has found its own step size
    assert (stats.integration_steps.mean(axis=(1, 2)) < 30).all()


def test_the_same_call_gives_the_same_draws_and_compiles_nothing(posterior):
    before = len(traces)
    again, other = draw(), draw(seed=1)
    assert len(traces) == before
    assert all((a == b).all() for a, b in zip(drawn(posterior), drawn(again), strict=True))
    assert (other.draws["b"] != posterior.draws["b"]).mean() > 0.9


SHORT = {"num_warmup": 40, "num_samples": 10}


def quartic(x):
    return -(x**4).sum()


def first_draws():
    """Return the first draws [task, chain, draw, 2] where every task is the first, and every start
    the same.
    """
    start = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf[:1, :1], (3, 2, *leaf.shape[2:])), starts()
    )
    tasks = jax.tree.map(lambda leaf: np.broadcast_to(leaf[:1], leaf.shape), TASKS)
    return mcmc.sample(
        jax.random.key(0), normal, start, num_warmup=20, num_samples=3, tasks=tasks
    ).draws["b"]


def test_equal_chains_of_equal_tasks_get_randomness_of_their_own():
    draws = np.asarray(first_draws()).reshape(6, -1)
    assert min(abs(a - b).max() for i, a in enumerate(draws) for b in draws[:i]) > 0.01


def test_the_number_of_cores_and_devices_changes_no_bit(posterior, monkeypatch):
    for cores in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        again = draw()
        assert all((a == b).all() for a, b in zip(drawn(posterior), drawn(again), strict=True))
    script = (
        "import jax; jax.config.update('jax_num_cpu_devices', {}); from helpers import mcmc; "
        "given = jax.random.key(0), lambda x: -(x**4).sum(), jax.numpy.ones((3, 2)); "
        "print(mcmc.sample(*given).draws.sum())"
    )
    found = {subprocess.check_output([sys.executable, "-c", script.format(n)]) for n in (1, 2)}
    assert len(found) == 1 and b"nan" not in found.pop()


def test_chains_of_one_posterior_share_the_range_of_their_trajectories():
    posterior = mcmc.sample(jax.random.key(0), quartic, jnp.ones((3, 31)), num_samples=400)
    steps = np.asarray(posterior.stats.integration_steps)
    assert (steps.min(axis=1) == 1).all() and (steps.max(axis=1) == steps.max()).all()
    # Every number of steps is as likely.
    assert np.abs(steps.mean(axis=1) - (1 + steps.max()) / 2).max() < 4 * steps.std() / 20


def test_tasks_do_not_share_what_warm_up_learnt():
    starts, scales = jnp.ones((2, 2, 3)), jnp.array([0.1, 10.0])
    posterior = mcmc.sample(
        jax.random.key(1),
        lambda x, scale: -((x / scale) ** 2).sum() / 2,
        starts,
        tasks=scales,
        num_samples=500,
    )
    np.testing.assert_allclose(posterior.draws.std(axis=(1, 2, 3)), scales, rtol=0.15)


def two_wells(x, well):
    """Wells at -30 and 30, out of each other's reach; ``well`` says how deep."""
    return well * jnp.logaddexp(
        -(((x + 30) / 0.5) ** 2).sum() / 2, -(((x - 30) / 0.5) ** 2).sum() / 2
    )


def test_only_chosen_chains_go_on():
    seen = []

    def rightmost(positions):
        seen.append(positions.shape)
        return np.argsort(-positions[..., 0], axis=-1)[:, :2]

    starts = (
        0.1 * jax.random.normal(jax.random.key(0), (3, 8, 1))
        + jnp.array([30.0, -30.0] * 4)[None, :, None]
    )
    depths = jnp.array([1.0, 2.0, 4.0])
    posterior = mcmc.sample(
        jax.random.key(1), two_wells, starts, tasks=depths, choose=rightmost, num_samples=500
    )
    assert seen == [(3, 8, 1)] and posterior.draws.shape == (3, 2, 500, 1)
    np.testing.assert_allclose(posterior.draws.mean(axis=(1, 2, 3)), 30.0, atol=0.1)
    # In a well of depth d the standard deviation is 0.5 / sqrt(d): every task kept its data.
    np.testing.assert_allclose(
        posterior.draws.std(axis=(1, 2, 3)), 0.5 / np.sqrt(depths), rtol=0.15
    )
    assert (posterior.warmup.chain % 2 == 0).all()  # those that started in the right well


def test_the_choice_of_all_chains_changes_nothing():
    given = jax.random.key(0), quartic, jnp.ones((3, 2))
    every = mcmc.sample(*given, **SHORT, choose=lambda positions: np.arange(len(positions)))
    np.testing.assert_array_equal(every.draws, mcmc.sample(*given, **SHORT).draws)


def test_what_was_chosen_is_recorded():
    found = mcmc.sample(
        jax.random.key(0), quartic, jnp.ones((3, 2)), **SHORT, choose=lambda _: np.array([2, 0])
    )
    assert found.warmup.chain.tolist() == [2, 0] and found.warmup.step_size.shape == (2,)


@pytest.mark.parametrize("kept", [[[0, 1]], [3], [-1], [0.0], [], 0, [1, 1], [0, 2, 0]])
def test_a_choice_of_chains_that_are_not_there_or_of_one_twice_is_refused(kept):
    with pytest.raises(
        ValueError, match=r"choose: gave .*, expected integers \['kept'\] from 0 to 2, none twice"
    ):
        mcmc.sample(jax.random.key(0), quartic, jnp.ones((3, 2)), **SHORT, choose=lambda _: kept)


def test_divergences_are_flagged_and_trajectories_are_limited():
    def cliff(x):
        return -1e5 * jnp.maximum(0.0, jnp.abs(x).max() - 1.0)

    stats = mcmc.sample(
        jax.random.key(0), cliff, jnp.zeros((3, 2)), num_samples=200, max_tree_depth=3
    ).stats
    assert stats.diverging.shape == (3, 200) and stats.diverging.sum() > 20
    assert stats.integration_steps.max() <= 2 * (2**3 - 1) - 1


def around(x, centre):
    """A unit normal around what all chains share."""
    return -0.5 * ((x - centre["at"]) ** 2).sum()


def test_what_all_chains_share_is_what_a_closure_holds():
    centre, starts = {"at": jnp.array([1.0, -2.0])}, jax.random.normal(jax.random.key(0), (3, 2))
    given = mcmc.sample(jax.random.key(1), around, starts, data=centre, **SHORT)
    closed = mcmc.sample(jax.random.key(1), lambda x: around(x, centre), starts, **SHORT)
    np.testing.assert_allclose(given.draws, closed.draws, rtol=1e-3, atol=1e-3)


def test_a_density_takes_its_task_before_what_all_share():
    def density(x, scale, centre):
        return around(x / scale, centre)

    centre, scales = {"at": jnp.array([1.0, -2.0])}, jnp.array([1.0, 100.0])
    starts = jax.random.normal(jax.random.key(0), (2, 3, 2))
    found = mcmc.sample(jax.random.key(1), density, starts, tasks=scales, data=centre, **SHORT)
    assert found.draws.shape == (2, 3, 10, 2)
    for task, scale in enumerate(scales):
        expected = -0.5 * ((found.draws[task] / scale - centre["at"].reshape(1, 1, 2)) ** 2).sum(
            axis=-1
        )
        np.testing.assert_allclose(found.stats.log_density[task], expected, rtol=1e-4, atol=1e-4)


def test_what_warm_up_learnt_has_the_shapes_and_values_of_the_posterior(posterior):
    """The full metric with the least Fisher divergence, of a normal its covariance (Seyboldt et
    al.).
    """
    found = posterior.warmup
    assert found.inverse_metric.shape == (3, 2, 3, 3)
    assert {leaf.shape for leaf in (*found[:1], *found[2:])} == {(3, 2)}
    assert found.chain.tolist() == [[0, 1]] * 3 and found.shared.all() and (found.seconds > 0).all()
    assert (found.inverse_metric[:, :1] == found.inverse_metric).all()
    covariance = FACTOR @ FACTOR.T
    for size, inverse_metric in zip(SIZES, found.inverse_metric[:, 0], strict=True):
        # 1 where the metric is the covariance, whatever that is
        ratios = np.linalg.eigvals(np.linalg.solve(size**2 * covariance, inverse_metric))
        np.testing.assert_allclose(ratios, 1.0, atol=0.05)
    most = np.asarray(posterior.stats.integration_steps).max(axis=2)
    assert (most == 2 * np.ceil(found.mean_steps) - 1).all() and (found.at_limit == 0).all()


def test_the_step_size_is_what_the_acceptance_asks_for():
    starts, scale = jax.random.normal(jax.random.key(0), (4, 10)), 100.0

    def wide(x):
        return -0.5 * ((x / scale) ** 2).sum()

    careful, bold = (
        mcmc.sample(
            jax.random.key(1), wide, scale * starts, target_acceptance=target, num_samples=300
        )
        for target in (0.95, 0.6)
    )
    assert careful.stats.acceptance.mean() > bold.stats.acceptance.mean()
    assert careful.warmup.step_size.max() < bold.warmup.step_size.min()


def test_trajectories_that_the_tree_depth_cuts_off_are_counted_and_said():
    def thin(x):
        """Long and thin, along the diagonal, where no scale of a coordinate helps."""
        return -0.5 * ((x.sum() / 100) ** 2 + (x[0] - x[1]) ** 2)

    starts = 10 * jax.random.normal(jax.random.key(0), (4, 2))
    sizes = {"num_warmup": 100, "num_samples": 50}
    short, long = (
        mcmc.sample(jax.random.key(1), thin, starts, max_tree_depth=depth, **sizes)
        for depth in (2, 10)
    )
    assert short.warmup.at_limit.mean() > 0.5 and long.warmup.at_limit.max() == 0
    said, nothing = (
        diagnostics.describe(diagnostics.check(run, run.draws)) for run in (short, long)
    )
    assert "of warm-up's trajectories at their limit" in said and "limit" not in nothing


def far_apart(x, other):
    """A unit normal, and another that its chains never reach."""
    return jnp.logaddexp(
        -0.5 * (x**2).sum(), -0.5 * (((x - other["at"]) / other["scale"]) ** 2).sum()
    )


@pytest.mark.parametrize("at, scale", [(30.0, 1e-3), (1e4, 1e3)], ids=["needle", "plain"])
def test_a_chain_that_is_stuck_elsewhere_does_not_spoil_the_others_metric(at, scale, monkeypatch):
    monkeypatch.setattr(restarts, "MOST_AGAIN", 0)
    other = {"at": jnp.float32(at), "scale": jnp.float32(scale)}
    starts = jax.random.normal(jax.random.key(0), (4, 2)).at[3].set(at)
    given = jax.random.key(1), far_apart, starts
    every = mcmc.sample(*given, data=other, num_samples=50)
    without = mcmc.sample(*given, data=other, num_samples=50, choose=lambda _: np.arange(3))
    assert every.warmup.shared.tolist() == [True, True, True, False] and without.warmup.shared.all()
    np.testing.assert_array_equal(every.warmup.inverse_metric[:3], without.warmup.inverse_metric)
    np.testing.assert_array_equal(every.draws[:3], without.draws)
    np.testing.assert_allclose(without.warmup.inverse_metric[0], np.eye(2), atol=0.1)
    assert (jnp.abs(every.draws[3] - at) < 10 * scale).all()  # it was where it was meant to be


def rugged(x, scale):
    """A normal whose gradient is not a number far on the right, so that a chain there learns
    nothing.
    """
    normal = -0.5 * ((x / scale) ** 2).sum()
    return normal + jnp.where(x[0] > 500, jnp.sqrt(jnp.maximum(500 - x[0], 0.0)), 0.0)


SCALES = jnp.array([1.0, 10.0])


def with_lost(*lost, **options):
    """Sample two tasks by four chains, of which some (task, chain) start on the right."""
    starts = np.array(jax.random.normal(jax.random.key(0), (2, 4, 2)))
    for place in lost:
        starts[place] = 1000.0
    return mcmc.sample(jax.random.key(1), rugged, starts, tasks=SCALES, **SHORT, **options)


def test_a_chain_whose_warm_up_is_not_finite_is_left_out_and_so_is_one_of_every_other_task(
    monkeypatch,
):
    monkeypatch.setattr(restarts, "MOST_AGAIN", 0)
    message = r"warm-up of chains \[\[1, 1\]\]: not finite; 3 of 4 chains go on"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        found = with_lost((1, 1))
    assert caught[0].filename == __file__
    assert found.warmup.chain.tolist() == [[0, 1, 2], [0, 2, 3]] and found.draws.shape == (
        2,
        3,
        10,
        2,
    )
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


def test_half_of_the_chains_may_be_lost_and_not_more(monkeypatch):
    monkeypatch.setattr(restarts, "MOST_AGAIN", 0)
    with pytest.warns(RuntimeWarning, match="2 of 4 chains go on"):
        assert with_lost((0, 0), (0, 3)).warmup.chain.tolist() == [[1, 2], [0, 1]]
    with pytest.raises(
        FloatingPointError, match=r"warm-up of chains \[\[0, 0\], \[0, 1\], \[0, 3\]\]: not finite"
    ):
        with_lost((0, 0), (0, 1), (0, 3))


def test_a_choice_passes_over_a_chain_that_is_not_finite_or_is_refused():
    chosen = np.array([[3, 0], [2, 3]])
    assert with_lost((1, 1), choose=lambda _: chosen).warmup.chain.tolist() == chosen.tolist()
    with pytest.raises(FloatingPointError, match=r"choose kept .*; not finite: \[\[1, 1\]\]"):
        with_lost((1, 1), choose=lambda _: np.array([[0, 1], [0, 1]]))


def test_starts_are_dispersed_and_leaves_independent():
    start = mcmc.normal_starts(
        jax.random.key(0), {"a": jnp.zeros(50), "b": jnp.zeros((50,))}, (4, 20), scale=3.0
    )
    a, b = np.asarray(start["a"]).ravel(), np.asarray(start["b"]).ravel()
    for values in (a, b):
        assert abs(values.mean()) < 4 * 3 / np.sqrt(4000) and abs(
            values.std() - 3
        ) < 4 * 3 / np.sqrt(8000)
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(4000)
    # entry by entry those of one row of a leaf's key, also in a caller's own program
    shapes = {"few": jnp.zeros((3, 2)), "many": jnp.zeros(1200)}
    draw = lambda key: mcmc.normal_starts(key, shapes, (4,), 0.5)  # noqa: E731
    found, compiled = draw(jax.random.key(1)), jax.jit(draw)(jax.random.key(1))
    for key, (name, leaf) in zip(jax.random.split(jax.random.key(1)), found.items(), strict=True):
        assert np.array_equal(leaf, compiled[name])
        assert np.array_equal(leaf.ravel(), 0.5 * jax.random.normal(key, (leaf.size,)))


def infinite_at_chain_1(start):
    return {**start, "a": start["a"].at[2, 1].set(jnp.inf)}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"num_samples": 0}, "num_samples: given 0, expected an integer of 1 or more"),
        ({"num_samples": 1.5}, "num_samples: given 1.5, expected an integer"),
        ({"num_warmup": 5}, "num_warmup: given 5, expected an integer of 20 or more"),
        ({"max_tree_depth": 0}, "max_tree_depth: given 0, expected an integer of 1 or more"),
        (
            {"target_acceptance": 1.0},
            "target_acceptance: given 1.0, expected a finite number between 0 and 1",
        ),
        (
            {"initial_positions": {}},
            r"initial_positions: given leaves that begin \[\], expected the same",
        ),
        (
            {"initial_positions": common.take(starts(), np.s_[:, :0])},
            r"initial_positions: given .*\(3, 0\).* none 0",
        ),
        (
            {"initial_positions": {**starts(), "b": starts(4)["b"]}},
            r"initial_positions: given .*\(3, 2\), \(3, 4\)",
        ),
        (
            {"initial_positions": jnp.zeros(3)},
            r"initial_positions: given .*\(3,\).* expected .*'task', 'chain'",
        ),
        (
            {"tasks": jax.tree.map(lambda a: a[:2], TASKS)},
            r"tasks: given leading axes \[\(2,\)\], expected \(3,\)",
        ),
        (
            {"initial_positions": infinite_at_chain_1(starts())},
            "initial_positions: given 1 values that are not finite, expected none",
        ),
    ],
)
def test_impossible_requests_are_refused_before_sampling(change, message, monkeypatch):
    monkeypatch.setattr(hmc, "warm_up", None)  # what would fail otherwise
    arguments = {"initial_positions": starts(), "tasks": TASKS, **change}
    with pytest.raises(ValueError, match=message):
        mcmc.sample(jax.random.key(0), normal, **arguments)


def same(one, other):
    """Whether all arrays but the seconds agree, bit for bit."""
    return [(np.asarray(a) == b).all() for a, b in zip(drawn(one), drawn(other), strict=True)]


def test_a_longer_run_is_the_run_extended_whatever_its_stretches(posterior, monkeypatch):
    given = jax.random.key(0), normal, starts()
    more = mcmc.extend(mcmc.sample(*given, tasks=TASKS, num_samples=333), normal, 1, tasks=TASKS)
    before = len(traces)
    assert all(same(posterior, mcmc.extend(more, normal, 666, tasks=TASKS)))
    assert len(traces) == before  # any number of draws is taken by the same programs
    ready = mcmc.warm_up(*given, tasks=TASKS)
    assert ready.draws["b"].shape == (3, 2, 0, 2) and ready.stats.energy.shape == (3, 2, 0)
    assert all(same(posterior, mcmc.extend(ready, normal, tasks=TASKS)))
    monkeypatch.setattr(hmc, "BLOCK", 7)
    assert all(same(posterior, draw()))
    # What does not go on where the chains are, or counts their turns anew, is found.
    step = more.going._replace(turn=more.going.turn - 1)
    for going in (mcmc.sample(*given, tasks=TASKS, **SHORT).going, step):
        other = mcmc.extend(more._replace(going=going), normal, 666, tasks=TASKS)
        assert (other.draws["b"] != posterior.draws["b"])[..., 334:, :].mean() > 0.9


def test_some_chains_or_one_task_or_every_third_draw_go_on(posterior):
    part = jax.tree.map(
        lambda leaf: leaf[1:2],
        mcmc.sample(jax.random.key(0), normal, starts(), tasks=TASKS, num_samples=990),
    )
    of_one = {name: leaf[1:2] for name, leaf in TASKS.items()}
    longer = mcmc.extend(part, normal, 10, tasks=of_one)
    np.testing.assert_array_equal(longer.draws["b"], posterior.draws["b"][1:2])
    alone = mcmc.extend(
        common.take(part, 0), lambda x, task: normal(x, task), 10, data=common.take(of_one, 0)
    )
    np.testing.assert_allclose(alone.draws["a"], posterior.draws["a"][1], rtol=1e-3)
    thin = {name: common.take(getattr(part, name), np.s_[:, :, ::3]) for name in ("draws", "stats")}
    after = mcmc.extend(part._replace(**thin), normal, 10, tasks=of_one).draws["b"]
    np.testing.assert_array_equal(after[:, :, 330:], posterior.draws["b"][1:2, :, 990:])


def test_a_turn_has_the_key_of_its_number_however_many_there_are():
    key = jax.random.key(5)
    folded = [jax.random.fold_in(key, i) for i in range(7)]
    for count in (7, 100):
        assert (jax.random.split(key, count)[:7] == jnp.stack(folded)).all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"num_samples": 0}, "num_samples: given 0, expected an integer of 1 or more"),
        ({"going": None}, "posterior: given one without ``going`` and ``warmup``, expected what"),
        ({"tasks": None}, r"posterior: given chains \[3, 2\], expected \['chain'\]"),
        (
            {"tasks": jax.tree.map(lambda a: a[:2], TASKS)},
            r"tasks: given leading axes \[\(2,\)\], expected \(3,\)",
        ),
        ({"stats": lambda run: common.take(run.stats, np.s_[:, :, :5])}, "given draws and statist"),
        ({"draws": lambda run: {**run.draws, "b": run.draws["a"]}}, "given draws and statistics"),
        ({"log_density": lambda x, task: 1.1 * normal(x, task)}, "log_density: given .* another d"),
        ({"tasks": {**TASKS, "mean": 2 * MEANS}}, "log_density: given .* of other data"),
    ],
)
def test_chains_that_cannot_go_on_are_refused(posterior, change, message, monkeypatch):
    monkeypatch.setattr(hmc, "stretch", None)  # what would fail otherwise
    given = {"log_density": normal, "num_samples": 10, "tasks": TASKS}
    fields = {name: change[name] for name in change if name not in given}
    run = posterior._replace(
        **{name: part(posterior) if callable(part) else part for name, part in fields.items()}
    )
    with pytest.raises(ValueError, match=message):
        mcmc.extend(run, **{**given, **{name: change[name] for name in change if name in given}})


def uneven(x):
    """A unit normal, and another that is 60 nats lower and out of its chains' reach."""
    return jnp.logaddexp(-0.5 * (x**2).sum(), -60.0 - 0.5 * ((x - 30.0) ** 2).sum())


def test_a_chain_in_a_mode_of_little_mass_begins_again_and_others_do_not(monkeypatch):
    starts = jax.random.normal(jax.random.key(0), (4, 2)).at[2].set(30.0)
    given = jax.random.key(3), uneven, starts
    found = mcmc.sample(*given, num_samples=50)
    begun = found.warmup.begun_again
    assert 1 <= begun[2] <= 3 and begun[jnp.array([0, 1, 3])].tolist() == [0, 0, 0]
    assert jnp.abs(found.draws).max() < 10 and found.warmup.shared.all()
    # A caller who chooses sees what there is; and a new chain that is no better is not kept.
    chosen = mcmc.sample(*given, num_samples=50, choose=lambda _: np.arange(4))
    assert chosen.draws[2].min() > 20 and (chosen.warmup.begun_again == 0).all()
    monkeypatch.setattr(restarts, "finite_starts", lambda *given: (np.asarray(starts), ~given[-1]))
    stuck = mcmc.sample(*given, num_samples=50)
    assert stuck.warmup.begun_again.tolist() == [0, 0, 3, 0] and stuck.draws[2].min() > 20


def test_a_chain_whose_warm_up_is_not_finite_begins_again():
    found = with_lost((1, 1))
    assert found.draws.shape == (2, 4, 10, 2) and found.warmup.begun_again[1, 1] > 0
    assert found.warmup.begun_again.sum() == found.warmup.begun_again[1, 1]


@pytest.mark.parametrize("num_parameters", [1, 100])
def test_a_chain_is_far_below_the_best_of_its_own_posterior(num_parameters):
    constant, times = restarts.ALLOWED
    allowed = constant + times * np.sqrt(num_parameters)
    guess = np.array([0.0, -allowed + 0.1, -allowed - 0.1, -np.inf, -500.0, -500.0, -500.0, -500.0])
    metric = np.zeros((8, num_parameters), np.float32)
    learnt = hmc.Learnt(*[guess] * 4, metric, *[guess] * 3)
    found = restarts.far(learnt, guess, (2, 4))
    assert found.tolist() == [False, False, True, True, *[False] * 4]
    # A metric of little volume alone is no reason.
    level = learnt._replace(mean_log_density=np.zeros(8))
    assert restarts.far(level, guess, (2, 4)).tolist() == [False, False, False, True, *[False] * 4]
    assert restarts.far(learnt, np.full(8, -np.inf), (8,)).all()


def test_the_mass_of_a_normal_is_guessed_up_to_what_chains_have_in_common():
    """Of normals with one height the mass is the volume; of one volume, the height."""
    metric = np.log(np.array([[1.0, 1.0], [4.0, 9.0], [1.0, 1.0], [np.nan, 1.0]], np.float32))
    height = np.array([0.0, 0.0, -3.0, 0.0], np.float32)
    learnt = hmc.Learnt(height, height, metric, height, metric, height, height, height)
    np.testing.assert_allclose(restarts.mass(learnt), [0, np.log(6), -3, -np.inf], rtol=1e-6)


def halved(x):
    """A unit normal where the first coordinate is below 1."""
    return jnp.where(x[0] < 1.0, -0.5 * (x**2).sum(), -jnp.inf)


def test_a_start_without_a_finite_density_is_drawn_again():
    starts = 3.0 * jax.random.normal(jax.random.key(0), (200, 2))
    starts, batch = np.asarray(starts), (200,)
    work = mcmc.chains.Work(None, None, halved, None)
    found = restarts.checked_starts(work, jax.random.key(1), starts, None, batch)
    bad = starts[:, 0] >= 1
    assert 50 < bad.sum() < 150 and (found[~bad] == starts[~bad]).all() and found[:, 0].max() < 1
    assert found.dtype == np.float32 and len(np.unique(found)) == found.size
    new = found[bad, 1]  # of which the density asks nothing
    error = 5 * starts[:, 1].std() / np.sqrt(bad.sum())
    assert abs(new.mean() - starts[:, 1].mean()) < error
    assert abs(new.std() - starts[:, 1].std()) < error / np.sqrt(2)
    posterior = mcmc.sample(jax.random.key(2), halved, starts[bad.argsort()][98:104], **SHORT)
    assert np.isfinite(posterior.stats.log_density).all()
    far_off = {"initial_positions": 5.0 + 0.1 * starts[:4]}
    with pytest.raises(
        ValueError, match=r"not finite at \[\[0\], .* smaller ``scale`` of ``normal"
    ):
        mcmc.sample(jax.random.key(2), halved, **far_off, **SHORT)
