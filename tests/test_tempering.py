"""Stages at a lower power end where they say, and compile nothing of their own."""

from helpers import (
    densities,
    mcmc,
    networks,
    tempering,
)

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats


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
    found = tempering.tempered_starts(
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
    ends = tempering.warmed_up(jax.random.key(1), log_density, starts, np.float32(25.0), **sizes)
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
        tempering.warmed_up(jax.random.key(1), log_density, first, np.float32(np.nan), **sizes)


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

    monkeypatch.setattr(tempering, "warmed_up", stage)
    observed = densities.observe(np.ones((4, 1)), np.ones(4), [1.0], num_classes=None)
    ends, number = tempering.agreed_starts(
        jax.random.key(0), None, {}, observed, 0.5, max_tree_depth=6
    )
    assert number == expected == len(asked) and len({str(key) for key, *_ in asked}) == number
    assert all(
        (weight == 0.5).all() and settings == {"max_tree_depth": 6} for _, weight, settings in asked
    )
    np.testing.assert_allclose(ends["log_sd"]["b"], np.log(3.0))


def test_stages_end_where_chains_never_agree(monkeypatch):
    apart = {"log_sd": dict(zip("ab", np.log(STAGES["another layer"]), strict=True))}
    monkeypatch.setattr(tempering, "warmed_up", lambda *_, **__: apart)
    observed = densities.observe(np.ones((4, 1)), np.ones(4), [1.0], num_classes=None)
    assert tempering.agreed_starts(jax.random.key(0), None, {}, observed, most=7)[1] == 7
