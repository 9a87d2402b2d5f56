"""The sources' own models on the sources' own data: accuracy as they report it, chain by chain.

Numpy seed 31, 18 tasks of 50 training and 50 test points. First every model with care: four chains
and, where tasks share weights, a tempered first stage. Then what single chains do without that
stage, from several starts, and in the coordinates of the BlackJAX port, whose group standard
deviations are sampled as they are.
"""

from helpers import data, densities, diagnostics, hierarchical, mcmc, metrics, networks, predict

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import store

SETTINGS = {
    "seed": 3006,
    "num_tasks": 18,
    "num_chains": 4,
    "flat": {"num_warmup": 200, "num_samples": 500, "max_tree_depth": 6},
    "temperature": 0.8,
    "tempered": {"num_warmup": 200, "num_samples": 50, "max_tree_depth": 6},
    "careful": {"num_warmup": 400, "num_samples": 1000, "max_tree_depth": 7, "target_acceptance": 0.9},
    "single": {"num_chains": 16, "num_warmup": 200, "num_samples": 100, "max_tree_depth": 6},
    "starts": [0.05, 1.0],
}
INPUT, HIDDEN = "Dense_0", "Dense_1"


class Port(nn.Module):
    """The hierarchical network of the BlackJAX port: no biases but the output's."""

    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = nn.tanh(nn.Dense(5, use_bias=False)(x))
        return nn.Dense(1)(x)[..., 0]


def raw_log_density(network):
    """The hierarchical posterior with ``sd`` itself as coordinate: no Jacobian, and a wall at 0."""
    log_density = hierarchical.log_density(network)

    def density(position, tasks):
        log_sd = jax.tree.map(lambda sd: jnp.log(jnp.abs(sd)), position["sd"])
        sds = jnp.stack(jax.tree.leaves(position["sd"]))
        value = log_density({"mean": position["mean"], "log_sd": log_sd, "offset": position["offset"]}, tasks)
        return value - jnp.stack(jax.tree.leaves(log_sd)).sum() + jnp.where(sds > 0, 0.0, -jnp.inf).sum()

    return density


def percent_right(p, y):
    return round(100 * float(metrics.accuracy(p, y)), 3)


def row(key, name, parameters, posterior, p_train, p_test, tasks, check, error, **more):
    """One model; probabilities are [chain, draw, task, point]. ``labels``: one sampled label a draw, averaged."""
    right = (np.asarray(p_test.mean(axis=(0, 1))) > 0.5) == (np.asarray(tasks.y_test) == 1)
    labels = jax.random.bernoulli(key, p_test).mean(axis=1)
    kept = {
        "name": name,
        "parameters": parameters,
        "train": percent_right(p_train.mean(axis=(0, 1)), tasks.y_train),
        "test": percent_right(p_test.mean(axis=(0, 1)), tasks.y_test),
        "test_nll": float(metrics.negative_log_likelihood(p_test.mean(axis=(0, 1)), tasks.y_test)),
        "train_by_chain": [percent_right(p, tasks.y_train) for p in p_train.mean(axis=1)],
        "test_by_chain": [percent_right(p, tasks.y_test) for p in p_test.mean(axis=1)],
        "labels_by_chain": [percent_right(p, tasks.y_test) for p in labels],
        "wrong_points": np.flatnonzero(~right).tolist(),
        "divergences_by_chain": np.asarray(posterior.stats.diverging.sum(axis=-1)).reshape(-1).tolist(),
        "test_nll_error": error,
        "check": store.diagnosed(check),
        "more": more,
    }
    print(name, parameters, {k: kept[k] for k in ("train", "test", "test_nll", "test_by_chain", "labels_by_chain")})
    print("   ", diagnostics.describe(check), flush=True)
    return kept


def size(shapes):
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


def scaled_by_training(tasks):
    """The same points, each task scaled by its training half alone."""
    raw_train, raw_test = (data.to_raw(tasks, x) for x in (tasks.x_train, tasks.x_test))
    location, scale = raw_train.mean(axis=1), raw_train.std(axis=1)

    def to_task(raw, angle, location, scale):
        turn = jnp.array([[jnp.cos(angle), jnp.sin(angle)], [-jnp.sin(angle), jnp.cos(angle)]])
        return ((raw - location[None, :]) / scale[None, :]) @ turn

    x_train, x_test = (jax.vmap(to_task)(raw, tasks.angles, location, scale) for raw in (raw_train, raw_test))
    return tasks._replace(x_train=x_train, x_test=x_test, location=location, scale=scale)


def flat(key, name, network, tasks):
    """A network for each task alone, N(0, 1) on every parameter."""
    key_start, key_chains, key_labels = jax.random.split(key, 3)
    shapes = jax.eval_shape(network.init, key, tasks.x_train[0])
    starts = mcmc.normal_starts(key_start, shapes, (SETTINGS["num_tasks"], SETTINGS["num_chains"]))
    observed = densities.observe(tasks.x_train, tasks.y_train, jnp.ones(3))
    posterior = mcmc.sample(key_chains, densities.flat_log_density(network), starts, data=observed, **SETTINGS["flat"])
    p_train, p_test = (
        jax.lax.map(lambda pair: predict.probabilities(network.apply, *pair), (posterior.draws, x))
        for x in (tasks.x_train, tasks.x_test)
    )
    check = diagnostics.check(posterior, p_test[..., ::10])
    errors = [diagnostics.nll_error(*one) for one in zip(np.asarray(p_test), tasks.y_test, strict=True)]
    error = float(np.sqrt(np.mean(np.square(errors)) / len(errors)))  # of independent tasks
    p_train, p_test = (jnp.moveaxis(p, 0, 2) for p in (p_train, p_test))
    return row(key_labels, name, size(shapes), posterior, p_train, p_test, tasks, check, error)


def probabilities(network, draws, x):
    """Probability of class 1 for every draw, [chain, draw, task, point]."""
    logits = hierarchical.logits(network)
    return jax.jit(lambda d: jax.lax.map(lambda c: jax.lax.map(lambda w: jax.nn.sigmoid(logits(w, x)), c), d))(draws)


def shared(key, name, network, shapes, posterior, tasks):
    """The row of a model whose tasks share weights; draws [chain, draw]."""
    draws = posterior.draws
    p_train, p_test = (probabilities(network, draws, x) for x in (tasks.x_train, tasks.x_test))
    check = diagnostics.check(posterior, p_test.reshape(*p_test.shape[:2], -1)[..., ::9])
    sd = {layer: np.exp(np.median(a, axis=1)).round(4).tolist() for layer, a in draws["log_sd"].items()}
    of_sd = diagnostics.summarize(draws["log_sd"])
    more = {"sd_by_chain": sd, "rhat_log_sd": np.asarray(of_sd.rhat).tolist(), **correlations(draws)}
    error = diagnostics.nll_error(p_test, tasks.y_test)
    return row(key, name, size(shapes), posterior, p_train, p_test, tasks, check, error, **more)


def correlations(draws):
    """Correlations between the ten group means of the input layer, chain by chain.

    Copies of a network permute these weights and flip their signs, so chains cannot be averaged. Whether a
    chain's correlations are more than the wandering of a slow chain, its two halves tell: the correlation of
    the 45 pairs' values in the first half with those in the second.
    """
    means = np.asarray(draws["mean"][INPUT]["kernel"])
    means = means.reshape(*means.shape[:2], -1)
    pairs = np.triu_indices(means.shape[2], 1)
    middle = means.shape[1] // 2
    halves = [[np.corrcoef(h, rowvar=False)[pairs] for h in (chain[:middle], chain[middle:])] for chain in means]
    each = [diagnostics.summarize(np.stack([chain[:middle], chain[middle : 2 * middle]])).ess_bulk for chain in means]
    return {
        "strongest_correlation": [float(np.abs(np.corrcoef(c, rowvar=False)[pairs]).max()) for c in means],
        "halves_agree": [float(np.corrcoef(*pair)[0, 1]) for pair in halves],
        "ess_of_means": [float(np.median(ess)) for ess in each],
    }


def in_two_stages(key, log_density, shapes, labelled):
    """Dispersed starts, a tempered stage in which chains still cross between modes, then the posterior itself."""
    key_start, key_tempered, key_chains = jax.random.split(key, 3)
    starts = mcmc.normal_starts(key_start, shapes, (1, SETTINGS["num_chains"]))
    below = labelled._replace(weight=SETTINGS["temperature"] * labelled.weight)
    tempered = mcmc.sample(key_tempered, log_density, starts, data=below, **SETTINGS["tempered"])
    starts = jax.tree.map(lambda a: a[:, :, -1], tempered.draws)
    return mcmc.sample(key_chains, log_density, starts, data=labelled, **SETTINGS["careful"])


def first(tree):
    """The only data set."""
    return jax.tree.map(lambda a: a[0], tree)


def main():
    keys = iter(jax.random.split(jax.random.key(SETTINGS["seed"]), 20))
    tasks = data.source_moons()
    rows = [flat(next(keys), "flat", networks.MLP(), tasks)]
    rows.append(flat(next(keys), "flat, scaled by training points", networks.MLP(), scaled_by_training(tasks)))
    rows.append(flat(next(keys), "flat, with biases", networks.MLP(use_bias=True), tasks))

    labelled = jax.tree.map(lambda a: a[None], hierarchical.labelled(tasks.x_train, tasks.y_train))
    every, port = networks.MLP(), Port()
    models = {
        "hierarchical": (every, hierarchical.shapes(every, SETTINGS["num_tasks"])),
        "output layer shared": (port, hierarchical.shapes(port, SETTINGS["num_tasks"], special=(INPUT, HIDDEN))),
    }
    for name, (network, shapes) in models.items():
        posterior = in_two_stages(next(keys), hierarchical.log_density(network), shapes, labelled)
        rows.append(shared(next(keys), name, network, shapes, first(posterior), tasks))

    single = dict(SETTINGS["single"])
    batch = (1, single.pop("num_chains"))
    network, shapes = models["hierarchical"]
    for scale in SETTINGS["starts"]:
        starts = mcmc.normal_starts(next(keys), shapes, batch, scale)
        posterior = mcmc.sample(next(keys), hierarchical.log_density(network), starts, data=labelled, **single)
        rows.append(shared(next(keys), f"single chains, start {scale}", network, shapes, first(posterior), tasks))

    network, shapes = models["output layer shared"]  # and now as the port starts and samples it
    starts = mcmc.normal_starts(next(keys), {name: shapes[name] for name in ("mean", "offset")}, batch)
    starts["log_sd"] = {layer: jnp.zeros(batch) for layer in (INPUT, HIDDEN)}
    posterior = mcmc.sample(next(keys), hierarchical.log_density(network), starts, data=labelled, **single)
    rows.append(shared(next(keys), "single chains, log sd", network, shapes, first(posterior), tasks))

    starts["sd"] = jax.tree.map(jnp.exp, starts.pop("log_sd"))
    posterior = mcmc.sample(next(keys), raw_log_density(network), starts, data=labelled, **single)
    draws = dict(posterior.draws)
    draws["log_sd"] = jax.tree.map(jnp.log, draws.pop("sd"))
    posterior = first(posterior._replace(draws=draws))
    rows.append(shared(next(keys), "single chains, raw sd", network, shapes, posterior, tasks))
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
