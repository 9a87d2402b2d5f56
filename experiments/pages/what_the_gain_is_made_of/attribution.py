"""What the gain of the hierarchical network is made of, and which layer differs between tasks under
which prior.

Every arm sees the data sets of ``arms``, whose N(0, 1), chosen scales and hierarchical network
under N+(0, 1) stand beside these. Arms differ in which layers may differ between tasks, in the
scale of the layers' common means, which is 1 as in the sources, learnt for each layer, or 0, and in
the hyperprior, one for all scales that are learnt.

Four chains start from both ends of the scales: all small; all large; the input layer's large and
the others small; the output layer's large and the others small. All spend a stage at a lower power
of the likelihood, none is left out.
"""

from helpers import common, densities, hierarchical, mcmc
from helpers.common import take

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import network_fits, scoring
from experiments.problems import moons_redrawn, regions

SEED = 3012
TEMPERED = {"power": 0.8, "num_warmup": 300, "num_samples": 200}
# Of chains 1 to 4, by what a scale belongs to: the standard deviations from which they start.
STARTS = {
    "Dense_0": [0.15, 3.0, 3.0, 0.15],
    "Dense_1": [0.15, 3.0, 0.15, 0.15],
    "Dense_2": [0.15, 3.0, 0.15, 3.0],
    "means": [0.15, 3.0, 1.0, 1.0],
}
SETTINGS = {
    "seed": SEED,
    "num_redraws": 6,  # of the arms that pages compare
    "num_redraws_of_others": 3,
    "num_warmup": 300,
    "num_samples": 800,
    "tempered": TEMPERED,
    "starts": STARTS,
    "threshold_nll": 0.005,  # fixed before any result was seen: a smaller difference is called none
}
LAYERS, INPUT, HIDDEN, OUTPUT = regions.LAYERS, *regions.LAYERS
# a learnt scale of the means, as it is called in ``log_sd``
MEANS = {f"means of {layer}": layer for layer in LAYERS}
NARROW, WIDE, CAUCHY = regions.HYPERPRIORS
ALONE = {
    "input layer alone": [INPUT],
    "hidden layer alone": [HIDDEN],
    "output layer alone": [OUTPUT],
}
SHARED = {"input layer shared": [HIDDEN, OUTPUT], "hidden layer shared": [INPUT, OUTPUT]}
SHARED |= {"output layer shared": [INPUT, HIDDEN]}
EVERY = {"every layer": list(LAYERS)}
OPTIMUM, FLAT = "Bayes optimum", "N(0, 1)"
TOTAL = hierarchical.total_log_likelihood(moons_redrawn.NETWORK)


def arms():
    """Return each arm's setting by name: layers that differ, scale of means, hyperprior."""
    found = {name: setting([], name, NARROW) for name in (OPTIMUM, FLAT)}
    found[f"every layer, means' scale 1, {NARROW}"] = setting(list(LAYERS), "1", NARROW)
    for hyperprior in regions.HYPERPRIORS:
        for name, special in (EVERY | ALONE).items():
            found[f"{name}, means' scale learnt, {hyperprior}"] = setting(
                special, "learnt", hyperprior
            )
        found[f"every layer, means 0, {hyperprior}"] = setting(list(LAYERS), "0", hyperprior)
    for name, special in (ALONE | SHARED).items():
        found[f"{name}, means' scale 1, {NARROW}"] = setting(special, "1", NARROW)
    for hyperprior in (WIDE, CAUCHY):
        found[f"every layer, means' scale 1, {hyperprior}"] = setting(list(LAYERS), "1", hyperprior)
    found[f"a scale per weight, means' scale 1, {NARROW}"] = setting(list(LAYERS), "1", NARROW) | {
        "per_weight": True
    }
    return found


def setting(special, means, hyperprior):
    """Return an arm's setting."""
    return {"special": special, "means": means, "hyperprior": hyperprior, "per_weight": False}


def num_redraws(name):
    """Return how many data sets an arm is fitted to: fewer beside the question."""
    beside = (
        "hidden" in name
        or "input layer shared" in name
        or "means 0" in name
        or "per weight" in name
    )
    beside |= name.endswith(CAUCHY) or name == f"every layer, means' scale 1, {WIDE}"
    return SETTINGS["num_redraws_of_others" if beside else "num_redraws"]


def units():
    """An arm on a data set each, data set by data set."""
    sizes = {"num_tasks": 18} | {
        "num_warmup": SETTINGS["num_warmup"],
        "num_samples": SETTINGS["num_samples"],
    }
    return {
        f"{name}, {i}": {"redraw": i, **arm, **sizes}
        for i in range(SETTINGS["num_redraws"])
        for name, arm in arms().items()
        if i < num_redraws(name)
    }


SMALL = {
    "redraw": 0,
    **setting([INPUT], "learnt", WIDE),
    "num_tasks": 6,
    "num_warmup": 300,
    "num_samples": 600,
}


def shapes(num_tasks, special, means, per_weight):
    """Shapes of a position; ``log_sd`` has the means' scales too where they are learnt."""
    learnt = () if means == "0" else None
    found = hierarchical.shapes(
        moons_redrawn.NETWORK, num_tasks, 2, means=learnt, special=special, sd_per_weight=per_weight
    )
    if means == "learnt":
        found["log_sd"] |= dict.fromkeys(MEANS, jax.ShapeDtypeStruct((), jnp.float32))
    return found


def plain(position):
    """Return the ``hierarchical`` position of the same weights: means times their scales."""
    mean, log_sd = dict(position["mean"]), dict(position["log_sd"])
    for name, layer in MEANS.items():
        if name in log_sd:
            scale = densities.POSITIVE.forward(log_sd.pop(name))
            mean[layer] = jax.tree.map(lambda m, scale=scale: scale * m, mean[layer])
    return position | {"mean": mean, "log_sd": log_sd}


def density(hyperprior):
    """Return the log posterior under a hyperprior, one for all scales that are learnt."""
    prior = regions.HYPERPRIORS[hyperprior]

    def log_density(position, observed):
        weights = hierarchical.task_weights(plain(position), observed.y.shape[0])
        return hierarchical.log_prior(position, prior) + TOTAL(weights, observed)

    return log_density


DENSITIES = {name: density(name) for name in regions.HYPERPRIORS}


def logits(position, x):
    """Logits [task, point] of points [task, point, 2]."""
    return moons_redrawn.LOGITS(plain(position), x)


def from_both_ends(key, shapes):
    """Return starts of four chains, N(0, 1), scales from both ends: [chain]."""
    starts = mcmc.normal_starts(key, shapes, (network_fits.NUM_CHAINS,))
    for name, part in starts["log_sd"].items():
        at = np.log(STARTS["means" if name in MEANS else name])
        starts["log_sd"][name] = jax.tree.map(
            lambda a, at=at: np.float32(at.reshape(-1, *[1] * (a.ndim - 1)) + 0.3 * np.asarray(a)),
            part,
        )
    return starts


def unit(redraw, special, means, hyperprior, per_weight, num_tasks, **sizes):
    """Fit one arm to one data set."""
    tasks = moons_redrawn.drawn(redraw, num_tasks=num_tasks)
    if means == OPTIMUM:
        return {"p": moons_redrawn.optimum(tasks)}
    key = common.key(SEED, *special, means, hyperprior, str(per_weight), redraw)
    if means == FLAT:
        observed = densities.observe(tasks.x_train, tasks.y_train, np.ones(len(LAYERS)))
        return network_fits.thinned_run(network_fits.fit_flat(key, observed, **sizes))
    key_start, key_below, key_chains = jax.random.split(key, 3)
    observed = densities.observe(tasks.x_train, tasks.y_train)
    starts = from_both_ends(key_start, shapes(num_tasks, special, means, per_weight))
    of_stage = dict(TEMPERED)
    below = observed._replace(weight=of_stage.pop("power") * observed.weight)
    stage = mcmc.sample(key_below, DENSITIES[hyperprior], starts, data=below, **of_stage)
    starts = take(stage.draws, np.s_[:, -1])
    return network_fits.thinned_run(
        mcmc.sample(key_chains, DENSITIES[hyperprior], starts, data=observed, **sizes)
    )


def score(drawn, redraw, special, means, num_tasks, **_):
    """Scores on the test points; accuracy also on training points and 50 test points a task.

    Of fits with learnt scales these by chain, and where each chain has come to rest.
    """
    tasks = moons_redrawn.drawn(redraw, num_tasks=num_tasks)
    y = np.asarray(tasks.y_test)
    if means == OPTIMUM:
        return scoring.scored_parts(drawn["p"][None], y)

    def of_draws(x):
        if means == FLAT:
            return np.asarray(network_fits.flat_probabilities(drawn["draws"], x))
        return np.asarray(network_fits.probabilities(logits, {"mean": {}, **drawn["draws"]}, x))

    p = of_draws(tasks.x_test)
    few, train = (
        scoring.scored(p[..., :50], y[:, :50]),
        scoring.scored(of_draws(tasks.x_train), tasks.y_train),
    )
    more = {
        "accuracy_train": train["accuracy"],
        "accuracy_train_error": train["accuracy_error"],
        "accuracy_900": few["accuracy"],
        "accuracy_900_error": few["accuracy_error"],
    }
    if means == FLAT:
        return scoring.scored(p, y) | {"check": scoring.check_of_run(drawn, p), "more": more}
    if means == "learnt" and len(special) > 1:
        more["share_by_chain"] = shares(drawn["draws"]["log_sd"]).tolist()
    return scoring.with_sampler(drawn, p, y) | {"more": more}


def ratio(log_sd):
    """Return how much layers differ between tasks: log group sd less log means' scale."""
    return jnp.stack([log_sd[layer] - log_sd[name] for name, layer in MEANS.items()])


def shares(log_sd):
    """Return the share of each chain's draws in which a layer differs most, [chain, layer]."""
    widest = np.asarray(ratio(log_sd)).argmax(axis=0)
    return (widest[..., None] == np.arange(len(LAYERS))).mean(axis=1)


def rows(scored):
    """A row for each arm, with entries over its data sets."""
    return [
        scoring.row(name, [scored[f"{name}, {i}"] for i in range(num_redraws(name))])
        for name in arms()
    ]
