"""What experiments share does what it says: against loops, closed forms and simulation."""

from helpers import densities, diagnostics, mcmc, metrics, networks

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from experiments import shared

random = np.random.default_rng(0)
DRAWS = {
    "a": jnp.asarray(random.normal(size=(3, 4, 50)), jnp.float32),
    "b": jnp.asarray(random.normal(size=(3, 4, 50, 2)), jnp.float32),
}
FIRST = jax.tree.map(lambda leaf: leaf[0], DRAWS)


def test_a_key_is_its_names_in_their_order():
    def same(one, other):
        return (jax.random.key_data(one) == jax.random.key_data(other)).all()

    found = shared.key(1, "data", 2)
    assert same(found, shared.key(1, "data", 2)) and same(found, shared.key(1, "data", "2"))
    for other in (
        shared.key(2, "data", 2),
        shared.key(1, "data", 3),
        shared.key(1, 2, "data"),
        shared.key(1, "data"),
    ):
        assert not same(found, other)
    assert jax.random.key_data(shared.key(3001, "data", 0)).tolist() == [
        2393788613,
        46360979,
    ]  # stored results rest on it


def test_training_follows_the_closed_form_of_gradient_descent():
    """On a parabola each step shrinks the distance by one factor."""
    start, rate = {"x": jnp.array([3.0, -1.0])}, 0.1
    run = partial(shared.train, lambda p: ((p["x"] - 2) ** 2).sum() / 2, start, optax.sgd(rate), 20)
    last, kept = jax.jit(partial(run, lambda p: p["x"]))()
    expected = 2 + (1 - rate) ** np.arange(1, 21)[:, None] * np.array([[1.0, -3.0]])
    np.testing.assert_allclose(kept, expected, rtol=1e-5)
    np.testing.assert_allclose(last["x"], expected[-1], rtol=1e-5)
    assert run()[1] is None
    last, kept = jax.jit(partial(run, lambda p: p["x"], every=5))()
    np.testing.assert_allclose(kept, expected[4::5], rtol=1e-5)
    np.testing.assert_allclose(last["x"], expected[-1], rtol=1e-5)


def position(one):
    """Two functions of a draw."""
    return {"sum": one["a"] + one["b"].sum(), "product": one["b"] * one["a"]}


@pytest.mark.parametrize(
    "draws, num_axes", [(FIRST, 2), (DRAWS, 3)], ids=["chain, draw", "task, chain, draw"]
)
def test_functions_of_draws_and_their_means_are_those_of_a_loop(draws, num_axes):
    every = shared.of_draws(position, draws, num_axes)
    means = shared.chain_means(position, draws, num_axes)
    expected = {
        "sum": draws["a"] + draws["b"].sum(axis=-1),
        "product": draws["b"] * jnp.expand_dims(draws["a"], -1),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(every[name], values, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            means[name], values.mean(axis=num_axes - 1), rtol=1e-4, atol=1e-5
        )


def test_tempered_starts_are_draws_of_the_tempered_posterior():
    """Of one weight times 1 with unit prior and measurements: its mean and variance are known at
    any power.
    """
    network, size, power = networks.MLP(()), 40, 0.1
    observed = densities.observe(np.ones((size, 1)), np.full(size, 3.0), [1.0], num_classes=None)

    def log_density(params, observed):
        misses = network.apply(params, observed.x) - observed.y
        return (
            densities.log_prior(params, observed.prior_scales)
            - 0.5 * (observed.weight * misses**2).sum()
        )

    shapes = networks.parameter_shapes(network, 1)
    sizes = {"num_warmup": 100, "num_samples": 50}
    found = shared.tempered_starts(
        jax.random.key(0), log_density, shapes, observed, power, 100, **sizes
    )
    w = np.asarray(found["params"]["Dense_0"]["kernel"])
    assert w.shape == (100, 1, 1)
    precision = 1 + power * size
    z = (w.ravel() - power * 3.0 * size / precision) * np.sqrt(precision)
    assert abs(z.mean()) < stats.norm.isf(2.5e-6) / np.sqrt(100)
    assert stats.chi2.isf(1 - 2.5e-6, 100) < (z**2).sum() < stats.chi2.isf(2.5e-6, 100)


def counted():
    """Return a normal density, and a list that grows by an entry each time it is traced."""
    traces = []

    def log_density(position, precision):
        traces.append(None)
        return (
            -0.5 * precision * (position["w"] ** 2).sum() - 0.5 * ((position["v"] - 3.0) ** 2).sum()
        )

    return log_density, traces


def test_a_stage_before_a_run_ends_in_its_density_and_traces_nothing_that_the_run_would_not():
    starts = mcmc.normal_starts(jax.random.key(0), {"v": jnp.zeros(()), "w": jnp.zeros(2)}, (60,))
    sizes, (log_density, traces) = {"num_warmup": 100, "max_tree_depth": 5}, counted()
    ends = shared.warmed_up(jax.random.key(1), log_density, starts, np.float32(25.0), **sizes)
    of_stage, first = len(traces), jax.tree.map(lambda leaf: leaf[:2], ends)
    mcmc.sample(
        jax.random.key(2), log_density, first, data=np.float32(1.0), num_samples=20, **sizes
    )
    alone, of_alone = counted()
    mcmc.sample(jax.random.key(2), alone, first, data=np.float32(1.0), num_samples=20, **sizes)
    assert of_stage > 0 and len(traces) == len(of_alone)
    z = np.concatenate([5 * ends["w"].ravel(), ends["v"] - 3])
    assert abs(z.mean()) < stats.norm.isf(2.5e-6) / np.sqrt(z.size)
    assert stats.chi2.isf(1 - 2.5e-6, z.size) < (z**2).sum() < stats.chi2.isf(2.5e-6, z.size)
    with pytest.raises(FloatingPointError, match=r"warm-up of chains \[0, 1\]: not finite"):
        shared.warmed_up(jax.random.key(1), log_density, first, np.float32(np.nan), **sizes)


STAGES = {  # standard deviations [layer, chain] after each stage
    "another layer": [[1.0, 9.0], [9.0, 1.0]],
    "one on its way": [[0.5, 0.1], [0.9, 3.0]],
    "agreed": [[0.1, 0.02], [3.0, 3.0]],
}


@pytest.mark.parametrize(
    "names, expected",
    [
        (["agreed"] * 5, 3),
        (["agreed", "agreed", "another layer", "one on its way", "agreed"], 5),
        (["agreed"], 3),
    ],
)
def test_stages_follow_each_other_until_all_chains_agree_on_a_layer(monkeypatch, names, expected):
    asked = []

    def stage(key, log_density, starts, data, **settings):
        asked.append((jax.random.key_data(key).tolist(), data.weight, settings))
        sd = np.array(STAGES[names[min(len(asked), len(names)) - 1]])
        return {"log_sd": {"a": np.log(sd[0]), "b": np.log(sd[1])}}

    monkeypatch.setattr(shared, "warmed_up", stage)
    observed = densities.observe(np.ones((4, 1)), np.ones(4), [1.0], num_classes=None)
    ends, number = shared.agreed_starts(
        jax.random.key(0), None, {}, observed, 0.5, max_tree_depth=6
    )
    assert number == expected == len(asked) and len({str(key) for key, *_ in asked}) == number
    assert all(
        (weight == 0.5).all() and settings == {"max_tree_depth": 6} for _, weight, settings in asked
    )
    np.testing.assert_allclose(ends["log_sd"]["b"], np.log(3.0))


def test_stages_end_where_chains_never_agree(monkeypatch):
    apart = {"log_sd": dict(zip("ab", np.log(STAGES["another layer"]), strict=True))}
    monkeypatch.setattr(shared, "warmed_up", lambda *_, **__: apart)
    observed = densities.observe(np.ones((4, 1)), np.ones(4), [1.0], num_classes=None)
    assert shared.agreed_starts(jax.random.key(0), None, {}, observed, most=7)[1] == 7


@pytest.fixture(scope="module")
def run():
    """Return a made-up run of one chain length, and its predictions."""
    shape = 4, 500
    energy, density = (jnp.asarray(random.normal(size=shape), jnp.float32) for _ in range(2))
    diverging = jnp.zeros(shape, bool).at[2, 7].set(True)
    found = mcmc.Stats(density, diverging, jnp.ones(shape), energy, jnp.full(shape, 7))
    return mcmc.Posterior(None, found), random.normal(size=(*shape, 3))


def test_a_row_of_diagnostics_is_the_check_by_kind(run):
    posterior, p = run
    row, check = (
        shared.diagnosed(posterior, p, log_sd=p[..., 0]),
        diagnostics.check(posterior, p, log_sd=p[..., 0]),
    )
    for name in ("rhat", "rhat_bound", "ess"):
        assert list(row[name]) == ["predictions", "log density", "log sd"]
        assert list(row[name].values()) == getattr(check, name).tolist()
    assert (row["chains"], row["divergences"], row["at_limit"]) == (4, 1, 0.0)
    assert row["integration_steps"] == pytest.approx(7.0)
    assert row["mixed"] is True
    stuck = p + np.array([0.0, 0.0, 0.0, 9.0]).reshape(4, 1, 1)
    assert shared.diagnosed(posterior, stuck)["mixed"] is False
    few = posterior._replace(stats=jax.tree.map(lambda a: a[:, :50], posterior.stats))
    # no R-hat is above its bound, but draws are too few to tell
    row = shared.diagnosed(few, p[:, :50])
    assert row["mixed"] is False and all(
        row["rhat"][kind] < row["rhat_bound"][kind] for kind in row["rhat"]
    )


def test_a_run_comes_back_from_what_is_kept_of_it(run):
    learnt = mcmc.Warmup(**{name: np.arange(4.0) for name in mcmc.Warmup._fields})
    kept = shared.kept_of(run[0]._replace(warmup=learnt))
    again = shared.run_of(kept | {"p": 1}, draws={"a": 2})
    assert again.draws == {"a": 2} and shared.run_of(kept).draws is None
    assert jax.tree.all(
        jax.tree.map(lambda a, b: bool((a == b).all()), again[1:], (run[0].stats, learnt))
    )


def test_the_jackknife_finds_the_error_of_a_mean_and_of_a_spread():
    values = random.normal(size=4000)
    found = shared.jackknife(lambda part: np.array([part.mean(), part.std()]), values)
    # An error of 19 degrees of freedom, two of them: each is wrong by chance at most 1e-5.
    low, high = np.sqrt(stats.chi2.ppf([2.5e-6, 1 - 2.5e-6], 19) / 19)
    ratio = found / np.array([1.0, np.sqrt(0.5)]) * np.sqrt(4000)
    assert ((low < ratio) & (ratio < high)).all()
    difference = shared.jackknife(lambda one, other: one.mean() - other.mean(), values, values)
    assert difference == 0.0


def test_the_error_of_an_accuracy_is_never_below_one_point():
    y = np.array([0, 1, 1, 0])
    sure = np.broadcast_to([0.1, 0.9, 0.8, 0.7], (4, 80, 4))
    assert shared.percent_right(sure, y) == (75.0, 25.0)
    moved = sure.copy()
    # chains that disagree about the last point: right in half of the 32 stretches
    moved[2:, :, 3] = 0.2
    value, error = shared.percent_right(moved, y)
    assert value == 100.0
    np.testing.assert_allclose(
        error, 100 * np.hypot(1 / 4, np.std([0, 0.25] * 16, ddof=1) / np.sqrt(32))
    )


def test_the_error_of_a_mixtures_nll_is_the_spread_over_repeated_draws():
    y = jnp.linspace(-1, 1, 5)
    f, noise = random.normal(size=(600, 4, 100, 5)), np.exp(0.2 * random.normal(size=(600, 4, 100)))
    nll = [metrics.mixture_nll(*one, y) for one in zip(f, noise, strict=True)]
    errors = [shared.mixture_nll_error(*one, y) for one in zip(f[:60], noise[:60], strict=True)]
    # The spread of 600 is known to 3 % and normal; what is left allows for the first order.
    assert abs(np.mean(errors) / np.std(nll) - 1) < 0.2
    flat = shared.mixture_nll_error(f[0].reshape(400, 5), noise[0].reshape(400), y)
    np.testing.assert_allclose(flat, errors[0], rtol=1e-6)


def test_a_row_of_ranks_holds_ranks_distances_and_the_band():
    values, truth = random.normal(size=(60, 20, 2)), random.normal(size=(60, 2))
    truth[:, 1] += 3  # above nearly all draws
    row = shared.rank_row(values, truth, ["right", "wrong"], chance=1e-3)
    assert row["num_draws"] == 20 and list(row["ranks"]) == ["right", "wrong"]
    assert row["ranks"]["right"] == (values[..., 0] < truth[:, :1]).sum(axis=1).tolist()
    assert row["band"] == shared.rank_band(60, 20, 1e-3)
    assert row["distance"]["right"] < row["band"] < row["distance"]["wrong"]


def test_uniform_ranks_stay_in_the_band_and_others_leave_it():
    band, found = shared.rank_band(300, 50, chance=0.05), np.random.default_rng(1)
    uniform = found.integers(0, 51, size=(300, 400))
    outside = (shared.rank_distance(uniform, 50) > band).sum()
    # The band is itself the quantile of 2000 simulated distances.
    low, high = stats.betabinom.ppf([5e-6, 1 - 5e-6], 400, 0.05 * 2000, 0.95 * 2000)
    assert low <= outside <= high
    narrow = np.round(50 * found.beta(2, 2, size=300)).astype(int)
    assert shared.rank_distance(narrow, 50) > band
