"""A ladder of guides against NUTS, on redrawn waves with and without a gap.

Every guide sees the same training sets and is drawn from as often as NUTS; its error is the Wasserstein
distance of the curves' marginals from NUTS, averaged over the grid. A guide is fitted anew for each length.
"""

from helpers import data, densities, diagnostics, mcmc, metrics, networks, svi

import itertools
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import optax
import store
from numpyro.infer import Trace_ELBO, autoguide
from tensorflow_probability.substrates.jax import distributions as tfd

SETTINGS = {
    "seed": 5001,
    "num_redraws": 6,
    "num_train": 40,
    "gap": [-0.5, 0.5],
    "guides": ["mean-field", "low-rank", "full-rank", "flow", "Laplace"],
    "num_steps": [1000, 10000],
    "num_particles": 10,
    "num_draws": 1000,
    "levels": [0.5, 0.9, 0.95],
    "num_chains": 4,
    "num_warmup": 300,
    "num_samples": 1500,
    "max_tree_depth": 8,
}
NETWORK = networks.MLP((10,), use_bias=True)
MODEL = partial(densities.regression_numpyro, NETWORK)
GUIDES = {
    "mean-field": partial(autoguide.AutoNormal, init_scale=1e-3),
    "low-rank": partial(autoguide.AutoLowRankMultivariateNormal, init_scale=1e-3, rank=5),
    "full-rank": partial(autoguide.AutoMultivariateNormal, init_scale=1e-3),
    "flow": partial(autoguide.AutoIAFNormal, num_flows=2, hidden_dims=[32]),
    "Laplace": autoguide.AutoLaplaceApproximation,
}


def loss_of(name):
    """The lecture's ELBO for the mean field; the Laplace guide is a point until it is drawn from."""
    return svi.ELBO if name == "mean-field" else Trace_ELBO(num_particles=1 if name == "Laplace" else 10)


def curves(params, sd, x):
    """Return curves [draw, point] and noise [draw]."""
    return jax.vmap(lambda w: NETWORK.apply(w, x))(params), sd


@partial(jax.jit, static_argnums=(1, 2))
def fit_all(keys, name, num_steps, measured, x):
    """Fit one guide to every redraw; return curves, noise, log weights and the last losses."""

    def one(pair):
        key, measured, x = pair
        key_fit, key_draw, key_weigh = jax.random.split(key, 3)
        settings = {"num_steps": num_steps, "loss": loss_of(name)}
        if name == "Laplace":  # the curvature is that of the very top
            decaying = optax.adam(optax.cosine_decay_schedule(1e-2, num_steps))
            settings["optimizer"] = optax.chain(optax.clip_by_global_norm(10.0), decaying)
        fit = svi.run(key_fit, MODEL, GUIDES[name], (measured,), **settings)
        draws = svi.draw(key_draw, MODEL, GUIDES[name], fit.params, (measured,), SETTINGS["num_draws"])
        weights = jnp.zeros(0)
        if name != "Laplace":
            weights = svi.log_weights(key_weigh, MODEL, GUIDES[name], fit.params, (measured,), SETTINGS["num_draws"])
        return *curves(svi.network_position(draws), draws["noise"], x), weights, fit.losses

    return jax.lax.map(one, (keys, measured, x))


def distance(one, other):
    """Wasserstein distance of the marginals at each point, [point]; as many draws of each."""
    return np.abs(np.sort(one, axis=0) - np.sort(other, axis=0)).mean(axis=0)


def by_region(score, f, sd, waves):
    """Score every redraw in each region of its test points, [region][redraw]."""
    regions = data.REGIONS[: waves.y_test.shape[1]]
    size, skip = waves.y_test.shape[2], waves.grid.shape[1]
    found = {}
    for r, region in enumerate(regions):
        part = slice(skip + r * size, skip + (r + 1) * size)
        found[region] = [score(f[i, :, part], sd[i], waves.y_test[i, r]) for i in range(len(f))]
    return found


def row(kind, name, steps, gradients, f, sd, reference, waves, log_weights=None, check=None):
    """What is stored of one guide at one length."""
    skip = waves.grid.shape[1]
    inside = np.abs(np.asarray(waves.grid[0, :, 0])) <= 1
    apart = np.stack([distance(a, b) for a, b in zip(f[..., :skip], reference[..., :skip], strict=True)])
    cdf = by_region(metrics.mixture_cdf, f, sd, waves)
    kept = {
        "data": kind,
        "name": name,
        "steps": steps,
        "gradients": gradients,
        "distance_inside": apart[:, inside].mean(axis=1).tolist(),
        "distance_outside": apart[:, ~inside].mean(axis=1).tolist(),
        "distance": apart.mean(axis=1).tolist(),
        "sd": {
            region: [float(np.median(a)) for a in part]
            for region, part in by_region(lambda g, s, y: g.std(axis=0), f, sd, waves).items()
        },
        "nll": by_region(metrics.mixture_nll, f, sd, waves),
        "coverage": {
            str(level): {region: [metrics.coverage(c, level) for c in part] for region, part in cdf.items()}
            for level in SETTINGS["levels"]
        },
        "noise": np.mean(sd, axis=1).tolist(),
        "elbo": [] if log_weights is None else np.mean(log_weights, axis=1).tolist(),
        "k_hat": [] if log_weights is None else [float(arviz.psislw(w.astype(np.float64))[1]) for w in log_weights],
        "check": {} if check is None else check,
    }
    print(kind, name, steps, np.mean(kept["distance"]), {r: np.mean(v) for r, v in kept["nll"].items()}, flush=True)
    return kept


def nuts(key, waves, measured, x):
    """Reference draws of every redraw, curves and noise, and diagnostics."""
    log_density = densities.regression_log_density(NETWORK, tfd.Normal(0.0, 1.0))
    weights = jax.eval_shape(NETWORK.init, key, waves.x_train[0])
    shapes = {"params": weights, "log_noise": jax.ShapeDtypeStruct((), jnp.float32)}
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(key_start, shapes, (len(x), SETTINGS["num_chains"]), 0.5)
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples", "max_tree_depth")}
    posterior = mcmc.sample(key_chains, log_density, starts, data=measured, **sizes)
    of_draws = jax.vmap(jax.vmap(lambda d, x: curves(d["params"], jnp.exp(d["log_noise"]), x), (0, None)))
    f, sd = jax.tree.map(np.asarray, jax.jit(of_draws)(posterior.draws, x))
    checks = [diagnostics.check(jax.tree.map(lambda a: a[i], posterior), f[i, ..., :200:10]) for i in range(len(f))]
    worst = {
        "rhat": float(max(c.rhat.max() for c in checks)),
        "rhat_bound": float(min(c.rhat_bound.min() for c in checks)),
        "ess": float(min(c.ess.min() for c in checks)),
        "divergences": sum(c.divergences for c in checks),
    }
    gradients = float(np.asarray(posterior.stats.integration_steps).sum() / len(f))
    gradients *= 1 + SETTINGS["num_warmup"] / SETTINGS["num_samples"]
    print(worst, gradients, flush=True)
    return f, sd, worst, gradients


def main():
    key_data, key_fit, key_nuts = jax.random.split(jax.random.key(SETTINGS["seed"]), 3)
    rows = []
    kinds = {"whole": None, "gap": tuple(SETTINGS["gap"])}
    for number, (kind, gap) in enumerate(kinds.items()):
        keys = jax.random.split(jax.random.fold_in(key_data, number), SETTINGS["num_redraws"])
        waves = jax.vmap(partial(data.wave, num_train=SETTINGS["num_train"], gap=gap))(keys)
        measured = densities.measure(waves.x_train, waves.y_train, [1.0, 1.0])
        x = jnp.concatenate([waves.grid, waves.x_test.reshape(len(keys), -1, 1)], axis=1)
        x = jnp.pad(x, [(0, 0), (0, 800 - x.shape[1]), (0, 0)])  # one shape, one program
        f, sd, worst, gradients = nuts(jax.random.fold_in(key_nuts, number), waves, measured, x)
        chains = SETTINGS["num_chains"] // 2
        halves = [np.s_[:, :chains, ::3], np.s_[:, chains:, ::3]]  # as many draws as of a guide
        first, second = (f[part].reshape(len(f), -1, f.shape[-1]) for part in halves)
        both, noise = (a[:, :, ::6].reshape(len(f), -1, *a.shape[3:]) for a in (f, sd))
        arguments = (0, gradients / 2, first, sd[halves[0]].reshape(len(f), -1), second, waves)
        rows.append(row(kind, "NUTS, half", *arguments, check=worst))
        rows.append(row(kind, "NUTS", 0, gradients, both, noise, both, waves, check=worst))

        pairs = list(itertools.product(range(len(SETTINGS["guides"])), SETTINGS["num_steps"]))

        def lowered(place, steps, number=number, measured=measured, x=x):
            each = jax.random.split(jax.random.fold_in(key_fit, 10 * number + place), len(x))
            # NumPyro traces on one thread only; compiling and running may share the cores.
            return fit_all.lower(each, SETTINGS["guides"][place], steps, measured, x), (each, measured, x)

        def fitted(job):
            return jax.tree.map(np.asarray, job[0].compile()(*job[1]))

        jobs = [lowered(*pair) for pair in pairs]
        with ThreadPoolExecutor(2) as pool:
            for (place, steps), (f_q, sd_q, weights, losses) in zip(pairs, pool.map(fitted, jobs), strict=True):
                svi.check_losses(losses)
                name = SETTINGS["guides"][place]
                cost = steps * loss_of(name).num_particles
                weights = weights if weights.size else None
                rows.append(row(kind, name, steps, cost, f_q, sd_q, both, waves, weights))
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
