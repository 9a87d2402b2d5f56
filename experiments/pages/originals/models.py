"""The sources' own models on the sources' own data: accuracy as they report it, chain by chain.

Numpy seed 31, 18 tasks of 50 training and 50 test points. First every model with care: four chains
and, where tasks share weights, a tempered first stage. Then what single chains do without that
stage, from several starts, and in the coordinates of the BlackJAX port, whose group standard
deviations are sampled as they are.
"""

from helpers import (
    common,
    data,
    densities,
    diagnostics,
    hierarchical,
    mcmc,
    metrics,
    monte_carlo,
    networks,
    predict,
    tempering,
)
from helpers.common import take

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import runs

SETTINGS = {
    "seed": 3006,
    "num_chains": 4,
    "flat": {"num_warmup": 200, "num_samples": 500},
    "power": 0.8,  # of the likelihood in the tempered stage
    "tempered": {"num_warmup": 200, "num_samples": 50},
    "careful": {"num_warmup": 400, "num_samples": 1000, "target_acceptance": 0.9},
    "num_single": 16,
    "single": {"num_warmup": 200, "num_samples": 100},
}
INPUT, HIDDEN = "Dense_0", "Dense_1"


class Port(nn.Module):
    """The hierarchical network of the BlackJAX port: no biases but the output's."""

    num_outputs: int = 1  # the densities ask

    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = nn.tanh(nn.Dense(5, use_bias=False)(x))
        return nn.Dense(1)(x)[..., 0]


PLAIN, BIASED, PORT = networks.MLP(), networks.MLP(use_bias=True), Port()
FLAT = {network: densities.flat_log_density(network) for network in (PLAIN, BIASED)}
SHARED = {network: hierarchical.log_density(network) for network in (PLAIN, PORT)}


def raw_log_density(position, observed):
    """Return the port's posterior of ``sd`` itself: no Jacobian, and a wall at 0."""
    log_sd = jax.tree.map(lambda sd: jnp.log(jnp.abs(sd)), position["sd"])
    value = SHARED[PORT](
        {"mean": position["mean"], "log_sd": log_sd, "offset": position["offset"]}, observed
    )
    wall = sum(jnp.where(sd > 0, 0.0, -jnp.inf) for sd in position["sd"].values())
    return value - sum(log_sd.values()) + wall


# What is sampled, and from where: of separate networks the network, of networks that share also the
# starts' scale; a "tempered" start is the end of a first stage, one at "sd 1" has the group
# standard deviations at 1, as in the port.
MODELS = {
    "flat": {"network": PLAIN},
    "flat, scaled by training points": {"network": PLAIN},
    "flat, with biases": {"network": BIASED},
    "hierarchical": {"network": PLAIN, "start": "tempered"},
    "output layer shared": {"network": PORT, "start": "tempered"},
    "single chains, start 0.05": {"network": PLAIN, "start": 0.05},
    "single chains, start 1.0": {"network": PLAIN, "start": 1.0},
    "single chains, log sd": {"network": PORT, "start": "sd 1"},
    "single chains, raw sd": {"network": PORT, "start": "sd 1"},
}


def units():
    """A model each."""
    return {name: {"name": name} for name in MODELS}


SMALL = {"name": "flat"}


def points_of(name):
    """Return the sources' tasks, or their points scaled by the training half alone."""
    tasks = data.source_moons()
    if name != "flat, scaled by training points":
        return tasks
    raw_train, raw_test = (data.to_raw(tasks, x) for x in (tasks.x_train, tasks.x_test))
    location, scale = raw_train.mean(axis=1), raw_train.std(axis=1)
    x_train, x_test = (
        jax.vmap(data.to_task)(raw, tasks.angles, location, scale) for raw in (raw_train, raw_test)
    )
    return tasks._replace(x_train=x_train, x_test=x_test, location=location, scale=scale)


def shapes_of(network):
    """Return shapes of networks that share; the port's output layer is the same for all."""
    special = (INPUT, HIDDEN) if network is PORT else None
    return hierarchical.shapes(network, 18, 2, special=special)


def sample(name, network, observed, start=None):
    """Sample a model, as sizes and starts of its kind are."""
    key_start, key_chains = (
        common.key(SETTINGS["seed"], part, name) for part in ("starts", "chains")
    )
    if start is None:
        shapes, batch = networks.parameter_shapes(network, 2), (18, SETTINGS["num_chains"])
        starts = mcmc.normal_starts(key_start, shapes, batch)
        return mcmc.sample(key_chains, FLAT[network], starts, tasks=observed, **SETTINGS["flat"])
    shapes, log_density, batch = shapes_of(network), SHARED[network], (SETTINGS["num_single"],)
    if start == "tempered":
        first_stage = {
            "power": SETTINGS["power"],
            "num_started": SETTINGS["num_chains"],
            **SETTINGS["tempered"],
        }
        starts = tempering.tempered_starts(key_start, log_density, shapes, observed, **first_stage)
        return mcmc.sample(key_chains, log_density, starts, data=observed, **SETTINGS["careful"])
    if start != "sd 1":
        starts = mcmc.normal_starts(key_start, shapes, batch, start)
        return mcmc.sample(key_chains, log_density, starts, data=observed, **SETTINGS["single"])
    # Of the two rows of single chains of the port only the coordinate differs, not the starts.
    key_start = common.key(SETTINGS["seed"], "starts", "sd 1")
    starts = mcmc.normal_starts(
        key_start, {part: shapes[part] for part in ("mean", "offset")}, batch
    )
    at_one = {layer: jnp.ones(batch) for layer in (INPUT, HIDDEN)}
    if not name.endswith("raw sd"):
        starts["log_sd"] = jax.tree.map(jnp.log, at_one)
        return mcmc.sample(key_chains, log_density, starts, data=observed, **SETTINGS["single"])
    starts["sd"] = at_one
    posterior = mcmc.sample(
        key_chains, raw_log_density, starts, data=observed, **SETTINGS["single"]
    )
    draws = {part: posterior.draws[part] for part in ("mean", "offset")}
    return posterior._replace(
        draws={**draws, "log_sd": jax.tree.map(jnp.log, posterior.draws["sd"])}
    )


def probabilities(network, draws, x, separate):
    """Return probabilities of class 1 of every draw, [chain, draw, task, point]."""
    if separate:  # draws [task, chain, draw]
        each = jax.vmap(jax.vmap(network.apply, (0, None)), (0, None))
        of_tasks = jax.jit(lambda tasks: jax.lax.map(lambda task: each(*task), tasks))((draws, x))
        return jnp.moveaxis(jax.nn.sigmoid(of_tasks), 0, 2)
    logits = hierarchical.logits(network)
    return predict.of_draws(lambda position: jax.nn.sigmoid(logits(position, x)), draws)


def unit(name):
    """Sample; keep p of every draw at test points, of every fifth at training points."""
    tasks, model = points_of(name), MODELS[name]
    network, separate = model["network"], "start" not in model
    scales = jnp.ones(3) if separate else None
    posterior = sample(
        name, observed=densities.observe(tasks.x_train, tasks.y_train, scales), **model
    )
    every_fifth = take(posterior.draws, np.s_[:, :, ::5] if separate else np.s_[:, ::5])
    kept = {
        **runs.kept_run(posterior),
        "p_train": probabilities(network, every_fifth, tasks.x_train, separate),
        "p_test": probabilities(network, posterior.draws, tasks.x_test, separate),
    }
    if not separate:
        kept |= {
            "log_sd": posterior.draws["log_sd"],
            "input_mean": posterior.draws["mean"][INPUT]["kernel"],
        }
    return kept


def correlations(means):
    """Correlations of the ten group means of the input layer, by chain; [chain, draw, 2, 5].

    Copies of a network permute these weights and flip their signs, so chains cannot be averaged.
    Whether a chain's correlations are more than the wandering of a slow chain, its two halves tell:
    the correlation of the 45 pairs' values in the first half with those in the second.
    """
    means = means.reshape(*means.shape[:2], -1)
    pairs = np.triu_indices(means.shape[2], 1)
    middle = means.shape[1] // 2
    halves = [
        [np.corrcoef(h, rowvar=False)[pairs] for h in (chain[:middle], chain[middle:])]
        for chain in means
    ]
    each = [
        diagnostics.summarize(np.stack([chain[:middle], chain[middle : 2 * middle]])).ess_bulk
        for chain in means
    ]
    return {
        "strongest_correlation": [
            float(np.abs(np.corrcoef(c, rowvar=False)[pairs]).max()) for c in means
        ],
        "halves_agree": [float(np.corrcoef(*pair)[0, 1]) for pair in halves],
        "ess_of_means": [float(np.median(ess)) for ess in each],
    }


def by_chain(name, p, y):
    """Accuracy of each chain in percent, and its error; p [chain, draw, *point]."""
    values, errors = zip(*[monte_carlo.percent_right(chain[None], y) for chain in p], strict=True)
    return {name: list(values), f"{name}_error": list(errors)}


def score(drawn, name):
    """Return one row. ``labels_by_chain``: a sampled label a draw, not p, averaged."""
    tasks, p_train, p_test = points_of(name), drawn["p_train"], drawn["p_test"]
    y_train, y_test = np.asarray(tasks.y_train), np.asarray(tasks.y_test)
    posterior = runs.run_from(drawn)
    mean = p_test.mean(axis=(0, 1))
    labels = jax.random.bernoulli(common.key(SETTINGS["seed"], "labels", name), p_test).mean(axis=1)
    if "log_sd" in drawn:
        log_sd, network = drawn["log_sd"], MODELS[name]["network"]
        of_sd = diagnostics.summarize(log_sd)
        more = {
            "sd_by_chain": {
                layer: np.exp(np.median(a, axis=1)).round(4).tolist() for layer, a in log_sd.items()
            },
            "log_sd": {layer: float(a.mean()) for layer, a in log_sd.items()},
            "log_sd_error": {
                layer: float(diagnostics.standard_error(a)) for layer, a in log_sd.items()
            },
            "rhat_log_sd": of_sd.rhat.tolist(),
            **correlations(drawn["input_mean"]),
        }
        check = runs.diagnosis(
            posterior, p_test.reshape(*p_test.shape[:2], -1)[..., ::9], log_sd=log_sd
        )
        shapes, nll_error = shapes_of(network), diagnostics.nll_error(p_test, y_test)
    else:
        more, shapes = {}, networks.parameter_shapes(MODELS[name]["network"], 2)
        check = runs.diagnosis(posterior, np.moveaxis(p_test, 2, 0)[..., ::10])
        errors = [diagnostics.nll_error(p_test[:, :, task], y_test[task]) for task in range(18)]
        nll_error = float(np.sqrt(np.mean(np.square(errors)) / 18))  # of independent tasks
    train, train_error = monte_carlo.percent_right(p_train, y_train)
    test, test_error = monte_carlo.percent_right(p_test, y_test)
    return {
        "parameters": sum(leaf.size for leaf in jax.tree.leaves(shapes)),
        "train": train,
        "train_error": train_error,
        "test": test,
        "test_error": test_error,
        "test_nll": metrics.negative_log_likelihood(mean, y_test),
        "test_nll_error": nll_error,
        **by_chain("train_by_chain", p_train, y_train),
        **by_chain("test_by_chain", p_test, y_test),
        "labels_by_chain": [100 * metrics.accuracy(of_chain, y_test) for of_chain in labels],
        "wrong_points": np.flatnonzero((mean > 0.5) != (y_test == 1)).tolist(),
        "divergences_by_chain": drawn["stats"]["diverging"].sum(axis=-1).ravel().tolist(),
        "check": check,
        "more": more,
    }
