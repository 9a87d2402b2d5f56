"""A table in, a model of its groups, predictions and a file: against sums by hand, and with what
does not fit.
"""

from helpers import mcmc, networks

import json
import subprocess
import sys
from types import SimpleNamespace

import arviz
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from tensorflow_probability.substrates.jax import distributions as tfd

from tables import files, frames, multilevel

KEY = jax.random.key(11)
GROUPS = {"site": "network", "doctor": "head", "family": "intercept"}
FEATURES = ["age", "sex", "smokes"]


def frame(num_rows=200, seed=1):
    """Rows of unequal groups, one of each kind of outcome; strings, bools and numbers."""
    random = np.random.default_rng(seed)
    site = random.choice(["a", "b", "c"], num_rows, p=[0.7, 0.25, 0.05])
    age = random.normal(40, 10, num_rows)
    return pd.DataFrame(
        {
            "site": site,
            "doctor": random.integers(10, 14, num_rows),
            "family": random.integers(0, 60, num_rows),
            "age": age,
            "sex": random.choice(["f", "m"], num_rows),
            "smokes": random.random(num_rows) < 0.3,
            "ill": random.random(num_rows) < 0.4,
            "kind": random.choice(["x", "y", "z"], num_rows),
            "weight": 60 + 0.3 * age + random.normal(0, 5, num_rows),
            "visits": random.poisson(2.0, num_rows),
        }
    )


OUTCOMES = {
    "bernoulli": "ill",
    "categorical": "kind",
    "normal": "weight",
    "poisson": "visits",
    "negative binomial": "visits",
}


def made(kind="bernoulli", hidden=(3,), **changes):
    """Recipe, table, network, density, and one position of it."""
    rows = frame()
    settings = {"kind": kind, "fan_in": changes.get("fan_in", True)}
    recipe = frames.learn(rows, OUTCOMES[kind], FEATURES, changes.get("groups", GROUPS), **settings)
    network = networks.MLP(hidden=hidden, use_bias=True, num_outputs=len(recipe.baseline))
    starts = mcmc.normal_starts(KEY, multilevel.shapes(network, recipe), (2, 3), scale=0.5)
    at = jax.tree.map(lambda leaf: leaf[0, 0], starts)
    return (
        rows,
        recipe,
        frames.encode(recipe, rows),
        network,
        multilevel.log_density(network, recipe),
        at,
        starts,
    )


def by_hand(rows, recipe, hidden, at):
    """Log likelihood of every row, in NumPy, one row after the other."""
    at, found = jax.tree.map(lambda leaf: np.asarray(leaf, float), at), []
    indicators = [rows.sex == "m", rows.smokes]
    features = np.stack(
        [(rows.age - rows.age.mean()) / rows.age.std(ddof=0), *indicators], axis=1
    ).astype(float)
    last = f"Dense_{len(hidden)}"
    for x, (_, row) in zip(features, rows.iterrows(), strict=True):
        level = {name: recipe.levels[name].index(row[name]) for name in recipe.groups}
        for layer, mean in at["mean"].items():
            weights = {name: value.copy() for name, value in mean.items()}
            for group in ("site", "doctor") if layer == last else ("site",):
                for name in weights:
                    sd = np.exp(at["log_sd"][group][layer][name])
                    weights[name] += sd * at["offset"][group][layer][name][level[group]]
            x = x @ weights["kernel"] / np.sqrt(len(x) if recipe.fan_in else 1) + weights["bias"]
            x = x if layer == last else np.tanh(x)
        x = (
            x
            + recipe.baseline
            + np.exp(at["log_sd"]["family"]) * at["offset"]["family"][level["family"]]
        )
        y, dispersion = row[recipe.outcome], np.exp(at.get("log_dispersion", 0.0))
        if recipe.kind == "bernoulli":
            found.append(-np.log1p(np.exp(-x[0] if y else x[0])))
        elif recipe.kind == "categorical":
            found.append(x[recipe.classes.index(y)] - np.log(np.exp(x).sum()))
        elif recipe.kind == "normal":
            mean, sd = recipe.classes
            found.append(scipy.stats.norm.logpdf((y - mean) / sd, x[0], dispersion))
        elif recipe.kind == "poisson":
            found.append(scipy.stats.poisson.logpmf(y, np.exp(x[0])))
        else:
            size = 1 / dispersion
            found.append(scipy.stats.nbinom.logpmf(y, size, size / (size + np.exp(x[0]))))
    return np.array(found)


@pytest.mark.parametrize("fan_in", [True, False])
@pytest.mark.parametrize("kind", frames.KINDS)
@pytest.mark.parametrize("hidden", [(), (3,)])
def test_the_density_is_the_prior_and_the_likelihood_of_every_row(kind, hidden, fan_in):
    rows, recipe, table, _, density, at, _ = made(kind, hidden, fan_in=fan_in)
    expected = by_hand(rows, recipe, hidden, at).sum()
    for leaf in jax.tree.leaves((at["mean"], at["offset"])):
        expected += scipy.stats.norm.logpdf(np.asarray(leaf)).sum()
    for leaf in jax.tree.leaves((at["log_sd"], at.get("log_dispersion", ()))):
        expected += scipy.stats.halfnorm.logpdf(np.exp(leaf)) + float(leaf)
    np.testing.assert_allclose(density(at, table), expected, rtol=2e-5)


@pytest.mark.parametrize("kind", frames.KINDS)
def test_the_gradient_is_right_for_whatever_is_learnt(kind):
    *_, table, _, density, at, _ = made(kind)
    density = jax.jit(density)
    gradient = jax.grad(density)(at, table)
    direction = mcmc.normal_starts(jax.random.key(5), at, ())
    for name in at:  # each part alone: a part without a gradient cannot hide
        step = {
            part: jax.tree.map(
                lambda leaf, on=part == name: jnp.float32(on) * leaf, direction[part]
            )
            for part in at
        }
        ahead, back = (
            jax.tree.map(lambda a, b, e=e: a + jnp.float32(e) * b, at, step) for e in (1e-2, -1e-2)
        )
        slope = (density(ahead, table) - density(back, table)) / 2e-2
        pairs = zip(jax.tree.leaves(gradient), jax.tree.leaves(step), strict=True)
        np.testing.assert_allclose(
            slope, sum((a * b).sum() for a, b in pairs), rtol=2e-2, atol=0.05
        )
        assert abs(slope) > 0.1, name


def test_order_of_rows_and_size_of_blocks_change_nothing(monkeypatch):
    rows, recipe, table, network, density, at, starts = made()
    shuffled = rows.sample(frac=1, random_state=3)
    monkeypatch.setattr(frames, "BLOCK", 7)
    other = frames.encode(recipe, shuffled)
    assert other.x.shape[1] == 7 < table.x.shape[1] == 32
    np.testing.assert_allclose(density(at, other), density(at, table), rtol=1e-5)
    one, two = (multilevel.predict(KEY, network, recipe, starts, t).mean() for t in (table, other))
    np.testing.assert_allclose(two, one[:, :, shuffled.index.to_numpy()], atol=1e-6)


@pytest.mark.parametrize("kind", frames.KINDS)
def test_a_prediction_is_the_outcomes_distribution_row_by_row(kind):
    rows, recipe, table, network, _, at, starts = made(kind)
    y = rows[recipe.outcome]
    values = y.map(recipe.classes.index) if kind in ("bernoulli", "categorical") else y
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        found = multilevel.predict(KEY, network, recipe, starts, table).log_prob(
            jnp.asarray(values.to_numpy(), float)
        )
    expected = by_hand(rows, recipe, (3,), at) - (
        np.log(recipe.classes[1]) if kind == "normal" else 0.0
    )
    assert found.shape == (2, 3, 200)
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-3, atol=1e-4)


def test_a_new_group_is_drawn_from_the_groups_own_distribution():
    rows, recipe, _, network, _, at, _ = made(hidden=(), groups={"family": "intercept"})
    many = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (4, 2000, *leaf.shape)), at)
    new = rows.head(3).assign(family=[999, 999, 1000])
    p = multilevel.predict(KEY, network, recipe, many, frames.encode(recipe, new)).probs_parameter()
    logit = np.asarray(jnp.log(p / (1 - p)))
    sd = float(jnp.exp(at["log_sd"]["family"]))
    np.testing.assert_allclose(logit.std(axis=(0, 1)), sd, rtol=0.06)
    first, second, other = np.moveaxis(logit, -1, 0).reshape(3, -1)
    assert np.corrcoef(first, second)[0, 1] > 0.999 and abs(np.corrcoef(first, other)[0, 1]) < 0.06


def test_a_table_with_an_unknown_group_trains_nothing():
    rows, recipe, _, _, density, at, _ = made()
    stranger = frames.encode(
        recipe, rows.assign(family=np.where(rows.index == 3, 999, rows.family))
    )
    assert np.isnan(density(at, stranger))
    starts = jax.tree.map(lambda leaf: leaf[None], at)
    with pytest.raises(ValueError, match="the log density is not finite"):
        mcmc.sample(KEY, density, starts, data=stranger, num_warmup=100, num_samples=100)


def test_draws_of_another_model_are_refused(tmp_path):
    _, recipe, table, network, _, _, starts = made()
    wider, poisson = networks.MLP(hidden=(4,), use_bias=True), made("negative binomial")[-1]
    for other, draws in [(wider, starts), (network, poisson), (network, {**starts, "offset": {}})]:
        with pytest.raises(ValueError, match="draws: given shapes"):
            multilevel.predict(KEY, other, recipe, draws, table)
        with pytest.raises(ValueError, match="draws: given shapes"):
            files.save(tmp_path / "none.nc", other, recipe, SimpleNamespace(draws=draws))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "hidden"), [("normal", ()), ("bernoulli", (3,)), ("categorical", (3,))]
)
def test_the_weights_of_a_group_predict_its_rows(kind, hidden):
    rows, recipe, _, network, _, _, starts = made(kind, hidden)
    row = rows.iloc[[7]]
    levels = {name: row[name].item() for name in GROUPS}
    weights, shift = multilevel.of_group(network, recipe, starts, levels)
    (x,) = np.asarray(frames.encode(recipe, row).x[0])
    x = np.broadcast_to(x, (2, 3, len(x)))
    for i in range(len(weights)):
        layer = weights[f"Dense_{i}"]
        x = np.einsum("cdi,cdio->cdo", x, layer["kernel"]) + layer["bias"]
        x = x if i == len(weights) - 1 else np.tanh(x)
    x = x + shift
    found = multilevel.predict(KEY, network, recipe, starts, frames.encode(recipe, row))
    if kind == "normal":
        np.testing.assert_allclose(
            found.mean(), recipe.classes[0] + recipe.classes[1] * x, rtol=1e-5
        )
    else:
        logits = found.logits_parameter()
        np.testing.assert_allclose(logits.reshape(x.shape), x, rtol=1e-4, atol=1e-5)


def test_weights_of_a_group_that_is_not_named_are_the_average_ones():
    _, recipe, _, network, _, _, starts = made("normal", ())
    weights, shift = multilevel.of_group(network, recipe, starts, {})
    expected = np.asarray(starts["mean"]["Dense_0"]["kernel"]) / np.sqrt(3)
    np.testing.assert_allclose(weights["Dense_0"]["kernel"], expected, rtol=1e-5)
    assert not np.any(shift)
    for levels in ({"city": "a"}, {"site": "d"}):
        with pytest.raises(ValueError, match=r"given .*expected one of"):
            multilevel.of_group(network, recipe, starts, levels)


def test_a_few_rows_of_a_new_group_weigh_the_draws():
    random = np.random.default_rng(2)
    log_likelihood = scipy.stats.norm.logpdf(0.8, random.normal(size=(4, 1000)), 1.0)[..., None]
    weights, pareto_k = multilevel.weigh(jnp.asarray(log_likelihood, jnp.float32))
    raw = np.exp(log_likelihood[..., 0])
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-4)
    np.testing.assert_allclose(weights, raw / raw.sum(), rtol=0.2)
    assert pareto_k < 0.5
    for wrong in (np.full((2, 200, 3), np.nan), np.zeros((2, 200)), np.zeros((2, 200, 0))):
        with pytest.raises(ValueError, match="log_likelihood: given"):
            multilevel.weigh(wrong)
    far = scipy.stats.norm.logpdf(8.0, random.normal(size=(4, 1000)), 0.2)[..., None]
    assert multilevel.weigh(jnp.asarray(far, jnp.float32))[1] > 0.7


@pytest.mark.parametrize("name", GROUPS)
def test_leaving_a_group_out_is_the_table_without_its_rows(name):
    rows, recipe, table, _, density, at, _ = made("normal")
    weights = multilevel.leave_out(recipe, table, name)
    assert len(weights) == len(recipe.levels[name])
    for level, weight in zip(recipe.levels[name][:3], weights, strict=False):
        without = frames.encode(recipe, rows[rows[name] != level])
        np.testing.assert_allclose(
            density(at, table._replace(weight=weight)), density(at, without), rtol=1e-5
        )
    with pytest.raises(ValueError, match="name: given 'age', expected one of"):
        multilevel.leave_out(recipe, table, "age")


def test_a_row_without_outcome_counts_for_nothing():
    rows, recipe, table, _, density, at, _ = made("poisson")
    blank = pd.concat([rows, rows.head(4).assign(visits=np.nan)])
    np.testing.assert_allclose(
        density(at, frames.encode(recipe, blank)), density(at, table), rtol=1e-6
    )
    assert frames.encode(recipe, rows.drop(columns="visits")).weight.sum() == 0


def test_what_training_rows_taught_is_all_that_later_rows_get():
    rows = frame()
    rows.loc[[0, 5], "age"] = np.nan
    rows.loc[3, "sex"] = None
    recipe = frames.learn(rows, "ill", FEATURES, {"site": "network"}, missing="median")
    # the features in order: age, its hole, sex, smokes
    table = frames.encode(recipe, rows.iloc[:1])
    fill = rows.age.median()
    mean, sd, *_ = recipe.numbers["age"]
    expected = [(fill - mean) / sd, 1.0, rows.sex[0] == "m", 0.0, rows.smokes[0]]
    np.testing.assert_allclose(table.x[0, 0], np.float32(expected), rtol=1e-5)
    assert recipe.categories == {"sex": ["f", "m", "missing"], "smokes": ["False", "True"]}
    whole = frames.learn(frame(), "ill", FEATURES, {"site": "network"}, missing="median")
    later = frame().iloc[:1].assign(age=np.nan)
    np.testing.assert_allclose(
        frames.encode(whole, later).x[0, 0, 0], whole_median(whole), rtol=1e-4
    )


def whole_median(recipe):
    """What a missing age becomes."""
    mean, sd, fill, _ = recipe.numbers["age"]
    return (fill - mean) / sd


def test_a_model_without_biases():
    rows = frame()
    recipe = frames.learn(rows, "ill", ["age"], {"site": "intercept", "doctor": "network"})
    network = networks.MLP(hidden=(2,))
    starts = mcmc.normal_starts(KEY, multilevel.shapes(network, recipe), (2,))
    at = jax.tree.map(lambda leaf: leaf[0], starts)
    assert np.isfinite(multilevel.log_density(network, recipe)(at, frames.encode(recipe, rows)))


def test_another_hyperprior_is_the_sds_alone():
    _, recipe, table, network, density, at, _ = made()
    wide = multilevel.log_density(network, recipe, tfd.HalfNormal(5.0))
    sds = [np.exp(leaf) for leaf in jax.tree.leaves(at["log_sd"])]
    expected = sum(
        scipy.stats.halfnorm(scale=5).logpdf(sd) - scipy.stats.halfnorm.logpdf(sd) for sd in sds
    )
    np.testing.assert_allclose(wide(at, table) - density(at, table), expected, atol=2e-3)


def test_a_posterior_is_saved_and_predicts_in_another_process(tmp_path):
    rows, recipe, table, network, _, _, starts = made("normal")
    stats = SimpleNamespace(log_density=np.zeros((2, 3)), diverging=np.zeros((2, 3), bool))
    path = tmp_path / "posterior.nc"
    files.save(path, network, recipe, SimpleNamespace(draws=starts, stats=stats))
    expected = multilevel.predict(KEY, network, recipe, starts, table).mean()
    rows.to_csv(tmp_path / "rows.csv")
    code = f"""
from tables import files, frames, multilevel
import jax, json, pandas as pd
network, recipe, draws = files.load({str(path)!r})
table = frames.encode(recipe, pd.read_csv({str(tmp_path / "rows.csv")!r}))
found = multilevel.predict(jax.random.key(11), network, recipe, draws, table)
print(json.dumps(found.mean().tolist()))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(json.loads(run.stdout), expected, rtol=1e-4)
    assert arviz.from_netcdf(str(path)).posterior["mean.Dense_0.kernel"].shape[:2] == (2, 3)
    with pytest.raises(
        ValueError, match=r"activation: given <lambda>, expected a function of flax.linen"
    ):
        files.save(path, networks.MLP(activation=lambda x: nn.tanh(x)), recipe, None)


def test_a_table_of_another_recipe_is_refused():
    """Columns in another order, too: arrays of the same shapes, and another answer."""
    rows, recipe, table, network, density, at, starts = made()
    two = {"age": recipe.numbers["age"], "height": recipe.numbers["age"]}
    one, other = (
        recipe._replace(numbers=dict(order)) for order in (two.items(), reversed(two.items()))
    )
    assert one == other and frames.made_by(one) != frames.made_by(other)
    changed = table._replace(made=frames.made_by(other))
    for call in (
        lambda: density(at, changed),
        lambda: jax.jit(density)(at, changed),
        lambda: multilevel.predict(KEY, network, recipe, starts, changed),
        lambda: multilevel.leave_out(recipe, changed, next(iter(recipe.groups))),
    ):
        with pytest.raises(ValueError, match="table: given one that another recipe made"):
            call()
    again = frames.Recipe(**json.loads(json.dumps(recipe._asdict())))
    assert frames.encode(again, rows).made == table.made


def test_a_broken_file_is_named(tmp_path):
    """Not there, no NetCDF, cut off, of another kind, and with a draw that is no number."""
    _, recipe, _, network, _, _, starts = made("normal")
    stats = SimpleNamespace(log_density=np.zeros((2, 3)), diverging=np.zeros((2, 3), bool))
    path, other = tmp_path / "posterior.nc", tmp_path / "other.nc"
    files.save(path, network, recipe, SimpleNamespace(draws=starts, stats=stats))
    assert [file.name for file in tmp_path.iterdir()] == ["posterior.nc"]
    whole = path.read_bytes()
    arviz.from_dict({"a": np.zeros((2, 3))}).to_netcdf(str(other))
    for content in (None, b"", b"no netcdf", whole[: len(whole) // 2], other.read_bytes()):
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(ValueError, match=f"path: given {path}, expected a file of files.save"):
            files.load(path)
    odd = jax.tree.map(lambda leaf: jnp.full(leaf.shape, jnp.nan), starts)
    files.save(path, network, recipe, SimpleNamespace(draws=odd, stats=stats))
    with pytest.raises(ValueError, match="values that are not finite"):
        files.load(path)


def test_the_cost_grows_with_the_draws():
    *_, table, _, density, _, starts = made()
    starts = jax.tree.map(lambda leaf: leaf[0], starts)
    one, ten = (multilevel.cost(density, starts, table, num_draws=n) for n in (100, 1000))
    np.testing.assert_allclose(ten["megabytes"], 10 * one["megabytes"])
    assert one["seconds"] > 0


@pytest.mark.parametrize(
    ("change", "settings", "text"),
    [
        (lambda f: f.iloc[:0], {}, "given 0 rows"),
        (
            lambda f: f.drop(columns="age"),
            {},
            r"no columns \['age'\], .*expected rows, features, and each of",
        ),
        (lambda f: f.assign(age=1.0), {}, "age: given 1.0 in all 200 rows"),
        (lambda f: f.assign(ill=True), {}, "ill: given True in all 200 rows"),
        (
            lambda f: f.assign(age=np.where(f.index == 3, np.nan, f.age)),
            {},
            "missing values: given {'age': 1}",
        ),
        (
            lambda f: f.assign(site=f.site.where(f.index > 1)),
            {"missing": "median"},
            "given {'site': 2}",
        ),
        (
            lambda f: f.assign(age=np.where(f.index == 3, np.inf, f.age)),
            {},
            "age: given 1 values that are not finite",
        ),
        (lambda f: f.assign(ill=f.kind), {}, "ill: given .*expected two classes"),
        (lambda f: f.assign(ill=f.age), {"kind": "poisson"}, "expected values that are poisson"),
        (
            lambda f: f.assign(ill=2**24 + f.visits),
            {"kind": "poisson"},
            "given .*expected .*0 to 16777215",
        ),
        (lambda f: f.assign(ill=f.kind), {"kind": "normal"}, "ill: given str, .*expected numbers"),
        (
            lambda f: f.assign(ill=-f.visits),
            {"kind": "negative binomial"},
            "expected values that are negative",
        ),
        (lambda f: f, {"kind": "gamma"}, "kind: given 'gamma', expected one of"),
        (lambda f: f, {"missing": "mean"}, "missing: given 'mean', expected one of"),
        (lambda f: f, {"groups": {"site": "slope"}}, "groups: given 'slope', expected one of"),
        (
            lambda f: f,
            {"groups": ["site"]},
            r"groups, features: given \['site'\] .*expected a dict and a list",
        ),
        (lambda f: f, {"features": "age"}, "groups, features: .*'age', expected a dict and a list"),
        (lambda f: f, {"features": ["age", "age"]}, r"twice \['age'\]"),
        (lambda f: f, {"features": ["age", "site"]}, r"twice \['site'\]"),
        (lambda f: pd.concat([f, f.age], axis=1), {}, r"twice \['age'\]"),
        (lambda f: f, {"features": []}, r"features \[\]"),
        (
            lambda f: f.assign(age=f.age.astype(str)),
            {},
            "age: given text of 200 levels, expected few",
        ),
        (lambda f: f.assign(site="a"), {}, r"site: given \['a'\], expected two or more"),
        (
            lambda f: f.assign(site=f.site.where(f.index > 1, 5)),
            {},
            "site: given .*expected .*text alone or numbers alone",
        ),
        (
            lambda f: f.assign(site=pd.to_datetime("2001-01-01") + pd.to_timedelta(f.visits, "D")),
            {},
            "site: .*Timestamp",
        ),
    ],
)
def test_training_rows_that_do_not_fit(change, settings, text):
    rows, settings = change(frame()), {"groups": GROUPS, "features": FEATURES} | settings
    with pytest.raises(ValueError, match=text):
        frames.learn(rows, "ill", settings.pop("features"), settings.pop("groups"), **settings)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda f: f.iloc[:0], "given 0 rows"),
        (lambda f: f.drop(columns="family"), "expected .*family"),
        (lambda f: f.assign(age=np.nan), "missing values: given {'age': 200}"),
        (lambda f: f.assign(sex="d"), r"sex: given \['d'\], expected one of \['f', 'm'\]"),
        (lambda f: f.assign(ill="perhaps"), "ill: given .*perhaps"),
        (lambda f: f.assign(age=np.inf), "age: given 200 values that are not finite"),
        (lambda f: f.assign(site=range(200)), "site: given .*expected groups like 'a'"),
        (
            lambda f: f.assign(doctor=f.doctor.astype(str)),
            r"doctor: given \['1\d'.*expected groups like 10",
        ),
        (lambda f: f.assign(age="old"), "age: given str, .*expected numbers"),
    ],
)
def test_later_rows_that_do_not_fit(change, text):
    recipe = frames.learn(frame(), "ill", FEATURES, GROUPS)
    with pytest.raises(ValueError, match=text):
        frames.encode(recipe, change(frame()))


def test_counts_to_come_are_counts():
    recipe = frames.learn(frame(), "visits", FEATURES, GROUPS, kind="poisson")
    with pytest.raises(ValueError, match=r"visits: given .*expected values that are poisson"):
        frames.encode(recipe, frame().assign(visits=0.5))


def test_a_network_has_the_outputs_of_its_outcome():
    recipe = frames.learn(frame(), "kind", FEATURES, GROUPS, kind="categorical")
    with pytest.raises(ValueError, match="network: given 1 outputs, expected 3"):
        multilevel.shapes(networks.MLP(), recipe)
