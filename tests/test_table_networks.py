"""A network in a model of a table: what differs by group, against sums by hand, and a short fit."""

from helpers import hmc, mcmc, networks, numpyro_models

import warnings

import jax
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from numpyro import handlers

import tables
from tables import fits, written
from tables.weights import layout
from tests.table_rows import NUM_ROWS, frame, somewhere

pytestmark = pytest.mark.usefixtures("as_readers_run")
WAYS = ("1", "head", "network", "separate")


def by_network(made, vector, inputs):
    """Return a network of one hidden layer for one row, in NumPy."""
    layers = jax.tree.map(np.asarray, layout(made).unravel(vector))["params"]
    hidden = np.tanh(inputs @ layers["Dense_0"]["kernel"] + layers["Dense_0"]["bias"])
    return hidden @ layers["Dense_1"]["kernel"] + layers["Dense_1"]["bias"]


@pytest.mark.parametrize(("family", "outcome"), [("normal", "number"), ("categorical", "kind")])
@pytest.mark.parametrize("way", ["1", "head", "network"])
def test_a_network_differs_by_group_only_where_it_may(way, family, outcome):
    f, net = frame(), networks.MLP(hidden=(3,), use_bias=True)
    with jax.enable_x64(True):
        made = tables.model(f"{outcome} ~ x + z + ({way} | g)", f, family=family, network=net)
        draw, _ = somewhere(made)
        values = written.values_of(made, draw, made.data)
        found = written.output(made, values, made.data)
        effect, at = draw["effect_g"], made.data["group"][0]
        inputs = f[["x", "z"]].to_numpy()
        inputs = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
        outputs = 1 if family == "normal" else 2
        expected = np.zeros((NUM_ROWS, outputs)) + draw["coefficient"].reshape(1, outputs)
        for row in range(NUM_ROWS):
            own = 0.0 if way == "1" else effect[at[row]]
            expected[row] += made.spread[1] * by_network(made, draw["network"] + own, inputs[row])
        if way == "1":
            expected += effect[at].reshape(NUM_ROWS, outputs)
        sizes = {"Dense_0": 3 * 2 + 3, "Dense_1": 3 * outputs + outputs}
        assert made.columns == ("Intercept",) and draw["network"].shape == (sum(sizes.values()),)
        if way != "1":
            assert effect.shape == (5, sum(sizes.values()))
            moved = (effect != 0).any(axis=0)
            assert moved[: sizes["Dense_0"]].all() == (way == "network") == moved.all()
            assert moved[sizes["Dense_0"] :].all()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("formula", ["both ~ 0 + x + (network | g)", "both ~ 0 + x"])
def test_a_network_needs_no_coefficient(formula):
    """Without an intercept a network without biases is odd about the columns' means."""
    f = frame()
    f = f.assign(both=f.x > f.x.median())
    made = tables.model(formula, f, family="bernoulli", network=networks.MLP(hidden=(3,)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two hundred draws are few
        fit = tables.fit(jax.random.key(1), made, num_warmup=100, num_samples=100, num_chains=2)
    assert "coefficient" not in fit.draws and made.columns == ()
    middle = f[:1].assign(x=f.x.mean())
    at_middle = tables.predict(jax.random.key(2), fit, middle).mean
    np.testing.assert_allclose(at_middle, 0.5, atol=1e-6)
    assert tables.prior_predictive(jax.random.key(3), made, 10).mean.shape == (1, 10, NUM_ROWS)


def test_networks_have_priors_by_leaf_and_a_gradient():
    f, net = frame(), networks.MLP(hidden=(3,), use_bias=True)
    with jax.enable_x64(True):
        made = tables.model("number ~ x + z + (head | g)", f, network=net)
        names = {name for name in made.priors if name.startswith("sd_g")}
        assert names == {"sd_g[Dense_1.bias]", "sd_g[Dense_1.kernel]"}
        found = numpyro_models.of(written.written(made), made.data)
        random = np.random.default_rng(2)
        at = {name: random.normal(size=leaf.shape) for name, leaf in found.shapes.items()}
        gradient = jax.grad(found.log_density)(at, made.data)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert all(np.any(leaf) for leaf in jax.tree.leaves(gradient))


def test_a_short_fit_learns_a_curve_and_predicts_a_new_group():
    """The curve's mean squared error is below a third of 0.40, what a line leaves."""
    random = np.random.default_rng(12)
    rows = pd.DataFrame({"x": random.uniform(-2, 2, 80), "g": np.arange(80) % 4})
    curve = np.sin(2 * rows.x)
    rows["y"] = curve + 0.3 * rows.g + random.normal(0, 0.2, 80)
    net = networks.MLP(hidden=(4,), use_bias=True)
    made = tables.model("y ~ x + (1 | g)", rows, network=net)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not to be used")
        fit = tables.fit(jax.random.key(3), made, num_samples=100, num_warmup=200, num_chains=2)
    found = tables.predict(jax.random.key(4), fit, rows)
    assert found.mean.shape == found.outcome.shape == (2, 100, 80)
    assert ((found.mean.mean(axis=(0, 1)) - curve - 0.3 * rows.g) ** 2).mean() < 0.4 / 3
    new = tables.predict(jax.random.key(4), fit, rows.head(1).assign(g="new"))
    assert new.mean.std() > found.mean[..., 0].std()
    assert {"sd_network[Dense_1.kernel]", "sd_g[Intercept]"} <= {*tables.summary(fit).index}


def test_separate_networks_share_nothing_but_the_scales_of_their_weights():
    f, net = frame(), networks.MLP(hidden=(3,), use_bias=True)
    with jax.enable_x64(True):
        made = tables.model("number ~ x + z + (separate | g)", f, network=net)
        draw, _ = somewhere(made)
        found = written.output(made, written.values_of(made, draw, made.data), made.data)
        own, inputs = draw["effect_g"][made.data["group"][0]], made.data["inputs"]
        by_hand = [by_network(made, *row)[0] for row in zip(own, inputs, strict=True)]
    assert "network" not in draw and not any("sd_network" in name for name in made.priors)
    assert {*made.priors} >= {f"sd_g[{leaf}]" for leaf in layout(made).leaves}
    np.testing.assert_allclose(
        found[:, 0], draw["coefficient"][0] + made.spread[1] * np.array(by_hand), rtol=1e-5
    )


@pytest.mark.parametrize("family", ["normal", "student t"])
def test_a_second_output_is_added_to_the_log_of_the_noise(family):
    f, net = frame(), networks.MLP(hidden=(3,), use_bias=True)
    with jax.enable_x64(True):
        made = tables.model("number ~ x + z", f, family=family, network=net, noise="network")
        draw, density = somewhere(made)
        found = written.outcomes(made, draw, made.data)
        both = [by_network(made, draw["network"], row) for row in made.data["inputs"]]
        first, second = np.array(both).T
        log_likelihood = found.log_prob(f.number.to_numpy()).sum()
    np.testing.assert_allclose(
        found.loc, draw["coefficient"][0] + made.spread[1] * first, rtol=1e-5
    )
    np.testing.assert_allclose(found.scale, draw["noise"] * np.exp(second), rtol=1e-5)
    np.testing.assert_allclose(log_likelihood, density, rtol=1e-5)
    assert second.std() > 0


def test_weights_have_the_standard_deviation_of_their_leaf():
    """By 4000 draws of the prior; a standard deviation of as many is 1.1 % off, one in 10^5 5 %."""
    f, net = frame(), networks.MLP(hidden=(3,), use_bias=True)
    sds = {"Dense_0.kernel": 3.0, "Dense_0.bias": 0.5, "Dense_1.kernel": 2.0, "noise": 0.25}
    fixed = {f"sd_network[{name}]": dist.Delta(sd) for name, sd in sds.items()}
    with jax.enable_x64(True):
        made = tables.model("number ~ x + z", f, network=net, noise="network", priors=fixed)

        def network(key):
            trace = handlers.trace(handlers.seed(written.written(made), key)).get_trace(made.data)
            return trace["network"]["value"]

        found = jax.vmap(network)(jax.random.split(jax.random.key(5), 4000)).std(axis=0)
    layers = layout(made).unravel(np.float32(found))["params"]
    roots = {"Dense_0.kernel": 2**0.5, "Dense_0.bias": 1, "Dense_1.kernel": 3**0.5}
    for name, root in roots.items():
        layer, kind = name.split(".")
        one = layers[layer][kind] if layer == "Dense_0" else layers[layer][kind][:, 0]
        np.testing.assert_allclose(one, sds[name] / root, rtol=0.06)
    np.testing.assert_allclose(layers["Dense_1"]["kernel"][:, 1], 0.25 / 3**0.5, rtol=0.06)
    # beside an intercept and a noise of its own no last bias
    np.testing.assert_allclose(layers["Dense_1"]["bias"], [0, 0.25], rtol=0.06)


def packed(made):
    """Return a fit of random positions, which nothing was sampled for: four chains of twenty."""
    with jax.enable_x64(True):
        found = numpyro_models.of(written.written(made), made.data)
        random = np.random.default_rng(9)
        places = {
            name: random.normal(0, 0.3, (4, 20, *leaf.shape)) for name, leaf in found.shapes.items()
        }
        stats = hmc.Stats(*[random.random((4, 20)) for _ in hmc.Stats._fields])
        posterior = mcmc.Posterior(places, stats)
        draws = fits.kept(made, found, posterior)
        if made.exact:
            draws |= fits.effects(jax.random.key(1), made, draws.pop("exact"))
        run = {"num_warmup": 20, "target_acceptance": 0.9, "max_tree_depth": 10}
        return fits.Fitted(made, fits._inference_data(made, draws, posterior, run), None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", ["normal", "categorical"])
@pytest.mark.parametrize("fixes", [False, True])
def test_every_model_can_be_kept_summarised_and_asked(family, way, fixes, tmp_path):
    outcome = {"normal": "number", "categorical": "kind"}[family]
    call = {"family": family, "network": networks.MLP(hidden=(3,), use_bias=True)}
    call |= {"noise": "network"} if family == "normal" else {}
    formula = f"{outcome} ~ x + z + ({way} | g)"
    usual = tables.model(formula, frame(), **call)
    sds = [name for name in usual.priors if "Dense" in name] if fixes else []
    made = tables.model(formula, frame(), **call, priors=dict.fromkeys(sds, dist.Delta(0.5)))
    fit = kept_and_asked(made, frame(), "g", tmp_path)
    assert not {*tables.summary(fit).index} & {*sds}
    if way == "separate":
        with pytest.raises(ValueError, match="separate networks have no mean"):
            tables.predict(jax.random.key(2), fit, frame().head(3), groups=False)


def kept_and_asked(made, f, group, folder):
    """Return a fit that was kept and read again, and foretells the same."""
    fit = packed(made)
    fit.data.to_netcdf(str(folder / "fit.nc"))
    again = tables.load(folder / "fit.nc", made)
    rows = f.head(3).assign(**{group: ["1", "1", "new"]})
    one, other = (tables.predict(jax.random.key(2), each, rows) for each in (fit, again))
    np.testing.assert_array_equal(one.outcome, other.outcome)
    assert one.log_density.shape == (4, 20, 3) and np.isfinite(one.log_density).all()
    assert tables.prior_predictive(jax.random.key(3), made, 5).outcome.shape == (1, 5, NUM_ROWS)
    return fit


@pytest.mark.parametrize(
    ("group", "outcome", "call"),
    [
        ("noise", "number", {"family": "normal", "noise": "network"}),
        ("network", "number", {"family": "normal", "noise": "network"}),
        ("network", "kind", {"family": "categorical"}),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_a_group_is_not_called_as_what_a_fit_keeps(way, group, outcome, call):
    f, net = frame().rename(columns={"g": group}), networks.MLP(hidden=(3,), use_bias=True)
    with pytest.raises(ValueError, match=f"groups called '{group}'.*rename the column"):
        tables.model(f"{outcome} ~ x + z + ({way} | {group})", f, network=net, **call)


@pytest.mark.parametrize(("group", "way"), [*[("noise", way) for way in WAYS], ("network", "1")])
def test_a_group_may_be_called_as_what_this_fit_does_not_keep(group, way, tmp_path):
    f = frame().rename(columns={"g": group})
    net = {} if group == "network" else {"network": networks.MLP(hidden=(3,), use_bias=True)}
    made = tables.model(f"kind ~ x + z + ({way} | {group})", f, family="categorical", **net)
    kept_and_asked(made, f, group, tmp_path)


def test_a_model_of_which_all_is_fixed_has_an_empty_summary():
    names = ["noise", "sd_network[Dense_1.kernel]"]
    net, ones = networks.MLP(hidden=(3,)), dict.fromkeys(names, dist.Delta(1.0))
    made = tables.model("number ~ 0 + x", frame(), network=net, priors=ones)
    assert not len(tables.summary(packed(made)))
