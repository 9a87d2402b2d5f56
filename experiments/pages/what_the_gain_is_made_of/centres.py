"""What does it cost that fifty points do not tell a task's centre, and does sharing mend that?

The book's network has no biases, so that it is odd about the origin, and a task's origin is the
mean of its training points. The moons are symmetric too, about a centre that this mean misses by a
seventh of a standard deviation. Arms differ in what is known of it:

    as now    points are centred and scaled by training points; the sources' by all their points
    exact     by the generator's own mean and standard deviation, which nobody has outside a book
    shift     as now, and each task has a shift of its own before the first layer, N(0, 0.15^2)
              where scales are chosen, else under a scale that all tasks learn
    biases    as now, with a bias in each layer under a scale of its own

    chosen               each task alone, under the scales (0.125, 2, 24) that folds of the
                         sources' tasks chose
    shared               the hierarchical network under N+(0, 1)
    input layer alone    the same, whose other layers are common to all tasks

Data sets are those of ``arms``, and its arms as now are fitted again, since shared fits are longer
here: with the centre known, chains of its length did not mix. Of the sources' recipe
(``make_moons``: classes of one size, evenly spaced along their arcs) there are as many, with test
points drawn as everywhere.

Fixed before any run: asked is whether sharing gains less where the centre is known, the difference
of two paired differences; below 0.005 in NLL it is called none, a difference of levels below 0.006.
"""

from helpers import common, data, densities, hierarchical, mcmc, networks

from collections.abc import Sequence
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import make_moons

from experiments.methods import network_fits, scoring
from experiments.problems import moons_redrawn

SETTINGS = {
    "seed": 3042,
    "num_redraws": 24,
    "num_redraws_of_biases": 3,
    "alone": {"num_warmup": 300, "num_samples": 800, "max_tree_depth": 8},  # as in ``arms``
    "shared": {"num_warmup": 500, "num_samples": 1500},
    "scales": {
        "as now": [0.125, 2.0, 24.0],
        "exact": [0.125, 2.0, 24.0],
        "shift": [0.15, 0.125, 2.0, 24.0],
        "biases": [0.125, 0.02, 2.0, 0.1, 24.0, 0.5],  # a layer's weights, then its biases
    },
    "threshold_nll": 0.005,
    "threshold_level": 0.006,
}
CENTRE = np.array([0.5, 0.25], np.float32)  # of the raw moons, by symmetry
NOISE = 0.3
SPREAD = np.sqrt(np.array([3 / 4, 5 / 8 - 1 / np.pi - 1 / 16], np.float32) + NOISE**2)
STEPS = {"shift": ("shift", 5, 5, 1), "biases": (5, "shift", 5, "shift", 1, "shift")}
ARMS = {
    "rotated": {
        "chosen": ("as now", "exact", "shift"),
        "shared": ("as now", "exact", "shift"),
        "input layer alone": ("as now", "exact"),
    },
    "sources": {"chosen": ("as now", "exact"), "shared": ("as now", "exact")},
}


def summed(x, kernel, dimension_numbers, precision=None):
    """Multiply points by a small kernel as a plain sum, points last, which XLA fuses."""
    points = x.reshape(-1, x.shape[-1]).T[:, None]
    return (points * kernel[..., None]).sum(axis=0).T.reshape(*x.shape[:-1], -1)


class Shift(nn.Module):
    """Moves points."""

    @nn.compact
    def __call__(self, x):
        return x + self.param("shift", nn.initializers.zeros, x.shape[-1:])


class Steps(nn.Module):
    """The book's network with shifts as layers of their own, each under a scale of its own."""

    steps: Sequence[int | str]
    num_outputs: int = 1

    @nn.compact
    def __call__(self, x):
        for i, step in enumerate(self.steps):
            if step == "shift":
                x = Shift(name=f"Dense_{i}")(x)
                continue
            if any(before != "shift" for before in self.steps[:i]):
                x = nn.tanh(x)
            x = nn.Dense(step, use_bias=False, name=f"Dense_{i}", dot_general=summed)(x)
        return x[..., 0]


NETWORKS = {what: Steps(steps) for what, steps in STEPS.items()}
FLAT = {what: densities.flat_log_density(network) for what, network in NETWORKS.items()}
SHARED = {what: hierarchical.log_density(network) for what, network in NETWORKS.items()}


def units():
    """A fit each, data set by data set, so that what is finished is whole."""
    wanted = [
        (generator, arm, known, redraw)
        for redraw in range(SETTINGS["num_redraws"])
        for generator, arms in ARMS.items()
        for arm, knows in arms.items()
        for known in knows
    ]
    biases = range(SETTINGS["num_redraws_of_biases"])
    wanted += [("rotated", "chosen", "biases", redraw) for redraw in biases]
    return {", ".join(map(str, names)): setting(*names) for names in wanted}


def setting(generator, arm, known, redraw, num_tasks=18, **sizes):
    """Return a unit's setting, of the usual lengths unless others are given."""
    sizes = sizes or SETTINGS["alone" if arm == "chosen" else "shared"]
    names = {"generator": generator, "arm": arm, "known": known, "redraw": redraw}
    return {**names, "num_tasks": num_tasks, **sizes}


SHORT = {"num_tasks": 6, "num_warmup": 200, "num_samples": 300}
SMALL = [
    setting("rotated", "chosen", "shift", 0, **SHORT),
    setting("rotated", "shared", "shift", 1, **SHORT),
    setting("sources", "input layer alone", "exact", 2, **SHORT),
]


def drawn(generator, known, redraw, num_tasks):
    """Return a data set as an arm sees it."""
    tasks = moons_redrawn.drawn(redraw) if generator == "rotated" else of_sources(redraw)
    tasks = jax.tree.map(lambda leaf: leaf[:num_tasks], tasks)
    return centred(tasks) if known == "exact" else tasks


def of_sources(redraw):
    """Draw 18 tasks as the sources did, with other test points: 50 of 100 points of each train,
    and all 100 set the scale.
    """
    random = np.random.RandomState(SETTINGS["seed"] + redraw)
    raw, y = zip(
        *(make_moons(n_samples=100, noise=NOISE, random_state=random) for _ in range(18)),
        strict=True,
    )
    raw, y = np.stack(raw).astype(np.float32), np.stack(y).astype(np.int32)
    angles = jnp.asarray(-np.radians(random.randn(18) * 90.0), jnp.float32)
    location, scale = jnp.asarray(raw.mean(axis=1)), jnp.asarray(raw.std(axis=1))
    x = jax.vmap(data.to_task)(jnp.asarray(raw), angles, location, scale)
    tasks = data.Tasks(
        x[:, :50], jnp.asarray(y[:, :50]), x[:, 50:], y[:, 50:], angles, location, scale
    )
    key = common.key(SETTINGS["seed"], "test points", redraw)
    return data.redraw_test(key, tasks, moons_redrawn.NUM_TEST, NOISE)


def centred(tasks):
    """Return the same tasks about the generator's own centre, in its own standard deviations."""
    location, scale = (jnp.tile(jnp.asarray(a), (len(tasks.angles), 1)) for a in (CENTRE, SPREAD))

    def moved(x):
        raw = data.to_raw(tasks, x)
        return jax.vmap(data.to_task)(raw, tasks.angles, location, scale)

    return tasks._replace(
        x_train=moved(tasks.x_train),
        x_test=moved(tasks.x_test),
        location=location,
        scale=scale,
    )


def unit(generator, arm, known, redraw, num_tasks, **sizes):
    """Fit one arm to one data set."""
    tasks = drawn(generator, known, redraw, num_tasks)
    key = common.key(SETTINGS["seed"], generator, arm, known, redraw)
    if arm == "chosen":
        scales = np.array(SETTINGS["scales"][known])
        observed = densities.observe(tasks.x_train, tasks.y_train, scales)
        key_start, key_chains = jax.random.split(key)
        shapes = networks.parameter_shapes(network_of(known), 2)
        starts = mcmc.normal_starts(key_start, shapes, (num_tasks, network_fits.NUM_CHAINS))
        density = FLAT.get(known, moons_redrawn.FLAT)
        return network_fits.thinned_run(
            mcmc.sample(key_chains, density, starts, tasks=observed, **sizes)
        )
    observed = densities.observe(tasks.x_train, tasks.y_train)
    names = [f"Dense_{i}" for i in range(len(STEPS.get(known, (5, 5, 1))))]
    shapes = hierarchical.shapes(
        network_of(known),
        num_tasks,
        2,
        means=names[1:] if known == "shift" else None,
        special=names[:1] if arm == "input layer alone" else None,
    )
    density = SHARED.get(known, moons_redrawn.HIERARCHICAL)
    return network_fits.thinned_run(
        network_fits.fit_hierarchical(key, density, shapes, observed, **sizes)
    )


def network_of(known):
    """Return an arm's network."""
    return NETWORKS.get(known, moons_redrawn.NETWORK)


def score(drawn_, generator, arm, known, redraw, num_tasks, **_):
    """Scores on the test points with the check of the run; of shifts how well they are known."""
    tasks = drawn(generator, known, redraw, num_tasks)
    y, network = np.asarray(tasks.y_test), network_of(known)
    if arm == "chosen":
        p = np.asarray(flat_probabilities(network, drawn_["draws"], tasks.x_test))
        found = scoring.scored(p, y) | {"check": scoring.check_of_run(drawn_, p)}
    else:
        draws = {"mean": {}, **drawn_["draws"]}
        p = network_fits.probabilities(hierarchical.logits(network), draws, tasks.x_test)
        found = scoring.with_sampler(drawn_, np.asarray(p), y)
    optimum = np.asarray(data.bayes_optimum(tasks, tasks.x_test))
    found |= {"optimum": scoring.score_of(optimum, y)["nll"]}
    if known == "shift":
        found |= {"more": of_shift(drawn_["draws"], arm, tasks)}
    return found


@partial(jax.jit, static_argnums=0)
def flat_probabilities(network, draws, x):
    """Return p [chain, draw, task, point] of draws [task, chain, draw] at x [task, point, 2]."""

    def of_task(pair):
        draws, x = pair
        return jax.nn.sigmoid(jax.vmap(jax.vmap(lambda w: network.apply(w, x)))(draws))

    return jnp.moveaxis(jax.lax.map(of_task, (draws, x)), 0, 2)


def of_shift(draws, arm, tasks):
    """Return how wide a task's shift is known, and the correlation of its mean with the truth."""
    if arm == "chosen":
        shift = np.asarray(draws["params"]["Dense_0"]["shift"])
        shift = np.moveaxis(shift, 0, 2)
    else:
        sd = np.exp(np.asarray(draws["log_sd"]["Dense_0"]))[..., None, None]
        shift = sd * np.asarray(draws["offset"]["Dense_0"]["shift"])
    true = jax.vmap(data.to_task)(
        jnp.tile(jnp.asarray(CENTRE), (len(tasks.angles), 1, 1)), tasks.angles, tasks.location,
        tasks.scale,
    )  # fmt: skip
    mean, true = shift.mean(axis=(0, 1)).ravel(), -np.asarray(true)[:, 0].ravel()
    return {
        "posterior_sd": float(shift.std(axis=(0, 1)).mean()),
        "true_sd": float(true.std()),
        "correlation": float(np.corrcoef(mean, true)[0, 1]),
    }


def rows(scored):
    """A row for each arm, with entries over data sets."""
    found = {}
    for name, one in scored.items():
        found.setdefault(name.rpartition(", ")[0], []).append(one)
    return [scoring.row(name, scores) for name, scores in found.items()]
