"""One network on a wave: nine priors and sizes, each on redrawn training sets, and their evidence.

For every variant: four chains on each of the redrawn training sets, scored on fresh points inside and
outside of the data; on the first training set, four chains at each power of the likelihood, which give
the log evidence, and the bands of the posterior; and Laplace's method at the best mode that was found.
"""

from helpers import data, densities, diagnostics, evidence, mcmc, metrics, networks

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import store
from jax.flatten_util import ravel_pytree
from scipy import optimize, special, stats
from tensorflow_probability.substrates.jax import distributions as tfd

SETTINGS = {
    "seed": 5002,
    "num_redraws": 16,
    "redraw_chains": 4,
    "evidence_chains": 4,
    "num_warmup": 300,
    "num_samples": 600,
    "max_tree_depth": 10,
    "powers": 10,
    "levels": [0.5, 0.9, 0.95],
    "decision_level": 0.9,
    "variants": {
        "N(0, 1), 10 tanh units": {},
        "sd 0.1": {"scale": 0.1},
        "sd 10": {"scale": 10.0},
        "2 units": {"hidden": 2},
        "100 units": {"hidden": 100},
        "ReLU": {"activation": "relu", "target_acceptance": 0.95},
        "sd learnt": {"prior": "learnt"},
        "Student t, 3 df": {"prior": "student"},
        "100 units, scaled": {"hidden": 100, "factor": 0.1},
    },
}


def build(hidden=10, activation="tanh", factor=1.0, prior="normal", scale=1.0, target_acceptance=0.8):
    """Return a variant's network, its log prior and log likelihood, the shapes of a position, and its settings."""

    def activate(z):
        return factor**0.5 * getattr(nn, activation)(z)

    network = networks.MLP((hidden,), activate, use_bias=True)
    unit = tfd.StudentT(3.0, 0.0, 1.0) if prior == "student" else tfd.Normal(0.0, 1.0)
    of_weights = densities.regression_log_prior(unit)

    def log_prior(position, measured):
        if prior != "learnt":
            return of_weights(position, measured)
        scales = jnp.exp(position["log_scales"])
        hyperprior = tfd.HalfCauchy(0.0, 1.0).log_prob(scales).sum() + position["log_scales"].sum()
        return of_weights(position, measured._replace(prior_scales=scales)) + hyperprior

    of_points = densities.regression_log_likelihood(network)
    shapes = {
        "params": jax.eval_shape(network.init, jax.random.key(0), jnp.zeros((1, 1))),
        "log_noise": jax.ShapeDtypeStruct((), jnp.float32),
    }
    if prior == "learnt":
        shapes["log_scales"] = jax.ShapeDtypeStruct((2,), jnp.float32)
    odd = activation == "tanh"
    return network, log_prior, lambda p, m: of_points(p, m).sum(), shapes, (scale, target_acceptance, hidden, odd)


def take(tree, index):
    """The same entry of every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def main():
    key_waves, key_starts, key_chains = jax.random.split(jax.random.key(SETTINGS["seed"]), 3)
    waves = jax.jit(jax.vmap(data.wave))(jax.random.split(key_waves, SETTINGS["num_redraws"]))
    keys = jax.random.split(key_chains, len(SETTINGS["variants"]))
    rows = []
    for key, (name, options) in zip(keys, SETTINGS["variants"].items(), strict=True):
        rows.append({"name": name, **variant(key, key_starts, waves, options)})
        short = ("nll", "coverage", "rhat", "rhat_bound", "log_evidence", "laplace", "log_copies")
        print(name, {k: np.round(np.mean(np.atleast_1d(rows[-1][k]), axis=0), 3).tolist() for k in short}, flush=True)
    store.write(__file__, SETTINGS, rows)


def variant(key, key_starts, waves, options):
    """Return one row of the stored result."""
    network, log_prior, log_likelihood, shapes, (scale, acceptance, hidden, odd) = build(**options)

    def log_density(position, tempered):
        measured, power = tempered
        return log_prior(position, measured) + power * log_likelihood(position, measured)

    key_redraws, key_powers = jax.random.split(key)
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples", "max_tree_depth")}
    run = partial(mcmc.sample, target_acceptance=acceptance, **sizes)
    measured = densities.measure(waves.x_train, waves.y_train, (scale, scale))
    count = SETTINGS["num_redraws"]
    starts = mcmc.normal_starts(key_starts, shapes, (count, SETTINGS["redraw_chains"]))
    posterior = run(key_redraws, log_density, starts, data=(measured, jnp.ones(count)))

    powers = jnp.linspace(0, 1, SETTINGS["powers"]) ** 4
    starts = mcmc.normal_starts(key_starts, shapes, (len(powers), SETTINGS["evidence_chains"]))
    first = take(measured, 0)
    repeated = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(powers), *a.shape)), first)
    tempered = run(key_powers, log_density, starts, data=(repeated, powers))
    values = np.asarray(jax.jit(jax.vmap(jax.vmap(jax.vmap(lambda p: log_likelihood(p, first)))))(tempered.draws))

    curves = jax.jit(jax.vmap(jax.vmap(lambda p, x: network.apply(p["params"], x), (0, None)), (0, None)))
    at_last = take(tempered, -1)
    f = np.asarray(curves(at_last.draws, waves.grid[0, ::4]))
    height, mode = laplace(lambda p: log_density(p, (first, 1.0)), at_last)
    return {
        **scores(posterior, waves, curves),
        "log_evidence": evidence.log_evidence(values.reshape(len(powers), -1), powers),
        "log_evidence_error": evidence.log_evidence_error(values, powers),
        "laplace": mode,
        "log_density_at_mode": height,
        "log_copies": evidence.log_copies(hidden, odd),
        "band": np.quantile(f, [0.025, 0.5, 0.975], axis=(0, 1)).tolist(),
        "mean": f.mean(axis=(0, 1)).tolist(),
        "mean_error": diagnostics.standard_error(f).tolist(),
        "sd": f.std(axis=(0, 1)).tolist(),
        "first_check": store.diagnosed(diagnostics.check(at_last, f[..., ::5])),
    }


def scores(posterior, waves, curves):
    """Return the scores of every redraw, [redraw] or [redraw, region] or [redraw, region, level]."""
    found = []
    random = np.random.default_rng(1)
    for t in range(SETTINGS["num_redraws"]):
        one = take(posterior, t)
        x = take(waves.x_test, t)
        f = np.asarray(curves(one.draws, x.reshape(-1, 1))).reshape(*one.stats.log_density.shape, *x.shape[:2])
        noise = np.exp(np.asarray(one.draws["log_noise"], np.float64))
        check = diagnostics.check(one, f.reshape(*noise.shape, -1)[..., ::25])
        nearest = np.argmax(check.rhat - check.rhat_bound)
        best = np.unravel_index(np.argmax(one.stats.log_density), noise.shape)
        row = {"nll": [], "nll_error": [], "crps": [], "coverage": [], "loss": [], "loss_of_one": []}
        for region in range(x.shape[0]):
            mean, y = f[..., region, :], np.asarray(waves.y_test[t, region])
            row["nll"].append(metrics.mixture_nll(mean, noise, y))
            densities_at = stats.norm.pdf(y, mean, noise[..., None])
            row["nll_error"].append(diagnostics.nll_error(densities_at, np.ones_like(y)))
            cdf = metrics.mixture_cdf(mean, noise, y)
            row["coverage"].append([metrics.coverage(cdf, level) for level in SETTINGS["levels"]])
            draws = mean + noise[..., None] * random.normal(size=mean.shape)
            row["crps"].append(metrics.crps(draws, y))
            level = SETTINGS["decision_level"]
            row["loss"].append(pinball(np.quantile(draws, level, axis=(0, 1)), y, level))
            row["loss_of_one"].append(pinball(mean[best] + special.ndtri(level) * noise[best], y, level))
        row |= {"noise": float(noise.mean()), "divergences": check.divergences}
        row |= {"rhat": float(check.rhat[nearest]), "rhat_bound": float(check.rhat_bound[nearest])}
        row |= {"ess": float(check.ess.min())}
        found.append(row)
    return {name: [row[name] for row in found] for name in found[0]}


def pinball(amount, y, level):
    """The mean loss of holding an amount: a unit that is missing costs level / (1 - level) times one too many."""
    return float(np.maximum(level / (1 - level) * (y - amount), amount - y).mean())


def laplace(log_density, posterior):
    """Return the log density at the best mode found from eight draws, and Laplace's log evidence there."""
    each = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), posterior.draws)
    vectors = np.asarray(jax.vmap(lambda p: ravel_pytree(p)[0])(each))
    _, unravel = ravel_pytree(take(each, 0))
    value = jax.jit(jax.value_and_grad(lambda v: -log_density(unravel(v))))
    starts = vectors[:: len(vectors) // 8]
    found = [
        optimize.minimize(lambda v: [np.float64(a) for a in value(np.float32(v))], v, jac=True, method="L-BFGS-B")
        for v in starts
    ]
    best = min(found, key=lambda one: one.fun)
    hessian = np.asarray(jax.jit(jax.hessian(lambda v: -log_density(unravel(v))))(jnp.float32(best.x)))
    try:
        return -float(best.fun), evidence.laplace(-best.fun, hessian)
    except ValueError:  # a ridge in place of a mode, as kinks make it: no estimate
        return -float(best.fun), 0.0


if __name__ == "__main__":
    main()
