"""Samplers that see minibatches, on one posterior: error against step size at equal numbers of per-datum gradients.

The reference is NUTS on all data; what its two halves differ by is the floor under every error. Each setting has
four chains from four starts, the same for all; errors are also given for every chain alone.
"""

from helpers import data, densities, diagnostics, mcmc, metrics, networks, predict, psgld, sgfs, sgmcmc, svi

import time
from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import store
from blackjax.sgmcmc import gradients
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

SETTINGS = {
    "seed": 7001,
    "num_chains": 4,
    "batch_size": 50,
    "steps": 60_000,  # of one minibatch gradient, each chain; fewer where a step has several
    "warmup_share": 0.2,
    "num_draws": 400,  # kept of each chain
    "num_points": 500,  # fresh points at which predictions are compared
    "num_test": 10_000,  # fresh points for scores
    "reference_draws": 2500,
    "num_cycles": 10,
    "map_steps": 3000,
    "step_sizes": {
        "SGLD": [1e-5, 3e-5, 1e-4, 3e-4, 1e-3],
        "SGLD, control variates": [1e-5, 3e-5, 1e-4, 3e-4, 1e-3],
        "preconditioned SGLD": [3e-4, 1e-3, 3e-3, 1e-2, 3e-2],
        "cyclical SGLD": [3e-5, 1e-4, 3e-4, 1e-3, 3e-3],
        "SGHMC": [3e-4, 1e-3, 2e-3, 4e-3, 1e-2],
        "SGNHT": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2],
        "SGFS, identity": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0],
        "SGFS, proportional": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0],
    },
    "gradients_a_step": {"SGLD, control variates": 2, "SGHMC": 10},
    "friction": 1.0,  # of SGNHT, where its thermostat begins
    "svi_steps": 10_000,  # of ten draws of the guide on one minibatch
}
NETWORK = networks.MLP()


def log_prior(weights):
    """N(0, 1) on every weight."""
    return densities.normal_log_prior(weights, jnp.ones(3))


def log_likelihood(weights, point):
    """Of one labelled point."""
    return densities.bernoulli_log_likelihood(NETWORK.apply(weights, point.x), point.y)


def log_density(weights, points):
    """Of all points at once."""
    return log_prior(weights) + densities.bernoulli_log_likelihood(NETWORK.apply(weights, points.x), points.y).sum()


def maximum(start, points, num_steps):
    """Climb to the posterior mode that belongs to a start."""
    optimizer = optax.adam(optax.cosine_decay_schedule(3e-2, num_steps))

    def step(state, _):
        weights, moments = state
        slope = jax.grad(lambda w: -log_density(w, points))(weights)
        update, moments = optimizer.update(slope, moments)
        return (optax.apply_updates(weights, update), moments), None

    state = jax.lax.scan(step, (start, optimizer.init(start)), length=num_steps)[0]
    return state[0]


def kernels(points, centre):
    """Every sampler of the comparison, by name."""
    size = points.y.shape[0]
    slope = gradients.grad_estimator(log_prior, log_likelihood, size)
    return {
        "SGLD": blackjax.sgld(slope),
        "SGLD, control variates": blackjax.sgld(gradients.control_variates(slope, centre, points)),
        "preconditioned SGLD": psgld.psgld(slope),
        "cyclical SGLD": blackjax.sgld(slope),
        "SGHMC": blackjax.sghmc(slope),
        "SGNHT": blackjax.sgnht(slope, alpha=SETTINGS["friction"]),
        "SGFS, identity": sgfs.sgfs(log_prior, log_likelihood, size),
        "SGFS, proportional": sgfs.sgfs(log_prior, log_likelihood, size, preconditioner=sgfs.PROPORTIONAL),
    }


def lengths(name):
    """Warm-up, draws and thinning of a sampler, so that all spend the same number of gradients."""
    steps = SETTINGS["steps"] // SETTINGS["gradients_a_step"].get(name, 1)
    cycles = SETTINGS["num_cycles"] if name == "cyclical SGLD" else 1
    draws = SETTINGS["num_draws"] // cycles
    share = 0.5 if cycles > 1 else SETTINGS["warmup_share"]
    thin = int(steps / cycles * (1 - share)) // draws
    return {"num_warmup": steps // cycles - thin * draws, "num_samples": draws, "thin": thin, "num_cycles": cycles}


def wasserstein(p, q):
    """Mean over points of the distance between two sets of equally many draws of a probability."""
    return float(np.abs(np.sort(p.reshape(-1, p.shape[-1]), 0) - np.sort(q.reshape(-1, q.shape[-1]), 0)).mean())


def main():
    key_split, key_test, key_start, key_reference, key_run, key_svi = jax.random.split(
        jax.random.key(SETTINGS["seed"]), 6
    )
    tasks = data.redraw_test(key_test, data.fisher_source_moons(key_split), SETTINGS["num_test"], 0.2)
    points = data.Points(tasks.x_train[0], tasks.y_train[0])
    x_test, y_test = tasks.x_test[0], tasks.y_test[0]
    shapes = jax.eval_shape(NETWORK.init, key_start, points.x)
    starts = mcmc.normal_starts(key_start, shapes, (SETTINGS["num_chains"],))
    of_points = jax.jit(lambda draws: predict.probabilities(NETWORK.apply, draws, x_test[: SETTINGS["num_points"]]))

    @jax.jit
    def of_test(draws):
        flat = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), draws)
        chosen = jax.tree.map(lambda a: a[:: len(a) // 400], flat)
        return jax.nn.sigmoid(jax.lax.map(lambda w: NETWORK.apply(w, x_test), chosen)).mean(axis=0)

    begin = time.process_time()
    reference = mcmc.sample(
        key_reference,
        lambda w: log_density(w, points),
        starts,
        num_samples=SETTINGS["reference_draws"],
        max_tree_depth=6,
    )
    thinned = jax.tree.map(
        lambda a: a[:, :: a.shape[1] // SETTINGS["num_draws"]][:, : SETTINGS["num_draws"]], reference.draws
    )
    p_all, p_thin = np.asarray(of_points(reference.draws)), np.asarray(of_points(thinned))
    check = diagnostics.check(reference, p_all[..., ::20])
    print(diagnostics.describe(check), flush=True)
    truth, truth_error = p_all.mean(axis=(0, 1)), diagnostics.standard_error(p_all[..., ::10])
    rows = []

    def row(name, step_size, p, p_test, gradients, seconds):
        found = diagnostics.summarize(p[..., ::10])
        ess = np.minimum(found.ess_bulk, found.ess_tail)
        bound = diagnostics.rhat_bound(found.ess_alone, found.rhat.size, p.shape[1])
        kept = {
            "name": name,
            "step_size": step_size,
            "gradients": gradients,  # per-datum, of all chains
            "seconds": seconds,  # of all cores, compilation included where a sampler runs for the first time
            "tv": float(np.abs(p.mean(axis=(0, 1)) - truth).mean()),
            # |tv - its expectation| is at most the mean of |error| over points.
            "tv_error": float(np.hypot(diagnostics.standard_error(p[..., ::10]), truth_error).mean()),
            "tv_chains": np.abs(p.mean(axis=1) - truth).mean(axis=1).tolist(),
            "wasserstein": wasserstein(p, p_thin),
            "ess": float(np.quantile(ess, 0.05)),
            "rhat": float(np.quantile(found.rhat, 0.99)),
            "mixed": bool((found.rhat <= bound).all() and found.ess_alone.min() >= diagnostics.LEAST_ESS),
            **metrics.scores(p_test, y_test),
        }
        rows.append(kept)
        print(*(f"{v:.4g}" if isinstance(v, float) else v for v in kept.values()), flush=True)

    spent = int(reference.stats.integration_steps.mean() * SETTINGS["num_chains"] * (SETTINGS["reference_draws"] + 300))
    row("NUTS", 0.0, p_thin, of_test(thinned), spent * len(points.y), time.process_time() - begin)
    half = p_all[:2].mean(axis=(0, 1)), p_all[2:].mean(axis=(0, 1))
    rows[0]["tv"] = float(np.abs(half[0] - half[1]).mean())
    rows[0]["wasserstein"] = wasserstein(p_thin[:2], p_thin[2:])
    model = partial(densities.flat_numpyro, NETWORK, batch_size=SETTINGS["batch_size"])
    observed = densities.observe(points.x, points.y, [1.0, 1.0, 1.0])
    for number, (name, family) in enumerate({"SVI, diagonal": AutoNormal, "SVI, full": AutoMultivariateNormal}.items()):
        guide, parts = partial(family, init_scale=1e-2), []
        loss = svi.ELBO if family is AutoNormal else Trace_ELBO(num_particles=10)
        begin = time.process_time()
        for key in jax.random.split(jax.random.fold_in(key_svi, number), SETTINGS["num_chains"]):
            key_fit, key_draw = jax.random.split(key)
            fit = svi.fit(key_fit, model, guide, (observed,), num_steps=SETTINGS["svi_steps"], loss=loss)
            drawn = svi.draw(key_draw, model, guide, fit.params, (observed,), SETTINGS["num_draws"])
            parts.append(svi.network_position(drawn))
        draws = jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)
        spent = SETTINGS["num_chains"] * SETTINGS["svi_steps"] * 10 * SETTINGS["batch_size"]
        row(name, 0.0, np.asarray(of_points(draws)), of_test(draws), spent, time.process_time() - begin)
    centre = jax.jit(maximum, static_argnums=2)(jax.tree.map(lambda a: a[0], starts), points, SETTINGS["map_steps"])
    for number, (name, kernel) in enumerate(kernels(points, centre).items()):
        first = jax.tree.map(lambda a, c: jnp.broadcast_to(c, a.shape), starts, centre) if "control" in name else starts
        sizes = lengths(name)
        for place, step_size in enumerate(SETTINGS["step_sizes"][name]):
            cycle = SETTINGS["steps"] // sizes["num_cycles"]
            schedule = sgmcmc.cyclical(step_size, cycle) if name == "cyclical SGLD" else step_size
            key = jax.random.fold_in(jax.random.fold_in(key_run, number), place)
            options = {"batch_size": SETTINGS["batch_size"], "step_size": schedule, **sizes}
            begin = time.process_time()
            try:
                draws = sgmcmc.sample(key, kernel, first, points, **options)
            except FloatingPointError as error:
                print(name, step_size, error, flush=True)
                continue
            spent = SETTINGS["num_chains"] * SETTINGS["steps"] * SETTINGS["batch_size"]
            row(name, step_size, np.asarray(of_points(draws)), of_test(draws), spent, time.process_time() - begin)
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
