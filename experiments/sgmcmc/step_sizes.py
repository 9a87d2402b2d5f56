"""Samplers that see minibatches, on one posterior: error against step size at equal numbers of per-datum gradients.

The reference is NUTS on all data; what its two halves differ by is the floor under every error. Each setting has
four chains from four starts, the same for all; errors are also given for every chain alone. A unit is a sampler with
all of its step sizes, one after the other in one program. Times are of the processor, without compiling, on the core
of whoever computed this result: only ratios of them may be compared, and no check can.
"""

from helpers import data, densities, diagnostics, mcmc, metrics, networks, predict, sgfs, sgmcmc, svi
from helpers.common import take

import time
from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from blackjax.sgmcmc import gradients
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

from experiments import shared
from experiments.sgmcmc import psgld
from experiments.sgmcmc.source import cyclical, fisher_source_moons
from experiments.svi.models import flat_model

SETTINGS = {
    "seed": 7001,
    "num_chains": 4,
    "batch_size": 50,
    "steps": 60_000,  # of one minibatch gradient, each chain; fewer where a step has several
    "warmup_share": 0.2,
    "num_draws": 400,  # kept of each chain
    "num_points": 500,  # fresh points at which predictions are compared
    "num_test": 10_000,  # fresh points for scores
    "reference": {"num_warmup": 300, "num_samples": 2500, "max_tree_depth": 10},
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
MODEL = partial(flat_model, NETWORK, batch_size=SETTINGS["batch_size"])
LOG_DENSITY = densities.flat_log_density(NETWORK)
FAMILIES = {
    "SVI, diagonal": (partial(AutoNormal, init_scale=1e-2), svi.ELBO),
    "SVI, full": (partial(AutoMultivariateNormal, init_scale=1e-2), Trace_ELBO(num_particles=10)),
}
SMALL = {"name": "SGFS, identity", "step_sizes": [1e-2]}


def units() -> dict[str, dict]:
    """Return NUTS and the guides, which have no step size, and every sampler with all of its own."""
    others = {name: [0.0] for name in ("NUTS", *FAMILIES)}
    return {name: {"name": name, "step_sizes": sizes} for name, sizes in (others | SETTINGS["step_sizes"]).items()}


def problem() -> tuple[data.Points, data.Points]:
    """Return training and fresh points."""
    source = fisher_source_moons(shared.key(SETTINGS["seed"], "split"))
    tasks = data.redraw_test(shared.key(SETTINGS["seed"], "test"), source, SETTINGS["num_test"], 0.2)
    return data.Points(tasks.x_train[0], tasks.y_train[0]), data.Points(tasks.x_test[0], tasks.y_test[0])


def log_prior(weights):
    """N(0, 1) on every weight."""
    return densities.log_prior(weights, jnp.ones(3))


def log_likelihood(weights, point):
    """Of one labelled point, or of several."""
    return densities.bernoulli_log_likelihood(NETWORK.apply(weights, point.x), point.y)


def unit(name: str, step_sizes: list[float]) -> dict:
    """Return for each step size weights, [chain, draw], seconds and per-datum gradients of all chains."""
    points = problem()[0]
    shapes = networks.parameter_shapes(NETWORK, points.x.shape[-1])
    starts = mcmc.normal_starts(shared.key(SETTINGS["seed"], "start"), shapes, (SETTINGS["num_chains"],))
    if name in SETTINGS["step_sizes"]:
        return minibatch_sampler(name, step_sizes, starts, points)
    observed = densities.observe(points.x, points.y, [1.0, 1.0, 1.0])
    return {f"{step_sizes[0]:g}": nuts(starts, observed) if name == "NUTS" else fits(name, observed)}


def nuts(starts, observed):
    """The reference, on all data."""
    key = shared.key(SETTINGS["seed"], "NUTS")
    posterior = mcmc.sample(key, LOG_DENSITY, starts, data=observed, **SETTINGS["reference"])
    steps = posterior.stats.integration_steps.sum()
    steps += SETTINGS["reference"]["num_warmup"] * posterior.warmup.mean_steps.sum()
    diagnosis = shared.kept_of(posterior)
    seconds = posterior.warmup.seconds.sum()
    return {"weights": posterior.draws, "gradients": steps * observed.y.size, "seconds": seconds, **diagnosis}


def fits(name, observed):
    """A guide, fitted as often as there are chains."""
    guide, loss = FAMILIES[name]
    parts, seconds = [], []
    for start in range(SETTINGS["num_chains"]):
        key_fit, key_draw = jax.random.split(shared.key(SETTINGS["seed"], name, start))
        began = time.process_time()
        fit = svi.fit(key_fit, MODEL, guide, (observed,), num_steps=SETTINGS["svi_steps"], loss=loss)
        seconds.append(time.process_time() - began)
        drawn = svi.draw(key_draw, MODEL, guide, fit.params, (observed,), SETTINGS["num_draws"])
        parts.append(svi.network_position(drawn))
    spent = SETTINGS["num_chains"] * SETTINGS["svi_steps"] * loss.num_particles * SETTINGS["batch_size"]
    # Their median, because the first one compiles.
    seconds = SETTINGS["num_chains"] * np.median(seconds)
    return {"weights": jax.tree.map(lambda *a: jnp.stack(a), *parts), "gradients": spent, "seconds": seconds}


def minibatch_sampler(name, step_sizes, starts, points):
    """One sampler; a step size at which chains leave the numbers is not among the runs."""
    centre = None
    if "control" in name:  # its chains start at the mode of one of them
        centre = jax.jit(maximum)(take(starts, 0), points)
        starts = jax.tree.map(lambda a, c: jnp.broadcast_to(c, a.shape), starts, centre)
    algorithm, sizes, found = kernel(name, points, centre), lengths(name), {}
    for step_size in [step_sizes[0], *step_sizes]:  # the first time compiles, and is repeated
        cycle = SETTINGS["steps"] // sizes["num_cycles"]
        schedule = cyclical(step_size, cycle) if name == "cyclical SGLD" else step_size
        key, began = shared.key(SETTINGS["seed"], name, f"{step_size:g}"), time.process_time()
        options = {"batch_size": SETTINGS["batch_size"], "step_size": schedule, **sizes}
        try:
            weights = sgmcmc.sample(key, algorithm, starts, points, **options)
        except FloatingPointError:
            continue
        spent = SETTINGS["num_chains"] * SETTINGS["steps"] * SETTINGS["batch_size"]
        seconds = time.process_time() - began
        found[f"{step_size:g}"] = {"weights": weights, "gradients": spent, "seconds": seconds}
    return found


def maximum(start, points):
    """Climb to the posterior mode that belongs to a start."""
    optimizer = optax.adam(optax.cosine_decay_schedule(3e-2, SETTINGS["map_steps"]))

    def loss(weights):
        return -log_prior(weights) - log_likelihood(weights, points).sum()

    return shared.train(loss, start, optimizer, SETTINGS["map_steps"])[0]


def kernel(name, points, centre):
    """Return a sampler of the comparison."""
    size = points.y.shape[0]
    slope = gradients.grad_estimator(log_prior, log_likelihood, size)
    return {
        "SGLD": lambda: blackjax.sgld(slope),
        "SGLD, control variates": lambda: blackjax.sgld(gradients.control_variates(slope, centre, points)),
        "preconditioned SGLD": lambda: psgld.psgld(slope),
        "cyclical SGLD": lambda: blackjax.sgld(slope),
        "SGHMC": lambda: blackjax.sghmc(slope),
        "SGNHT": lambda: blackjax.sgnht(slope, alpha=SETTINGS["friction"]),
        "SGFS, identity": lambda: sgfs.sgfs(log_prior, log_likelihood, size),
        "SGFS, proportional": lambda: sgfs.sgfs(log_prior, log_likelihood, size, preconditioner=sgfs.PROPORTIONAL),
    }[name]()


def lengths(name):
    """Warm-up, draws and thinning of a sampler, so that all spend the same number of gradients."""
    steps = SETTINGS["steps"] // SETTINGS["gradients_a_step"].get(name, 1)
    cycles = SETTINGS["num_cycles"] if name == "cyclical SGLD" else 1
    draws = SETTINGS["num_draws"] // cycles
    share = 0.5 if cycles > 1 else SETTINGS["warmup_share"]
    thin = int(steps / cycles * (1 - share)) // draws
    return {"num_warmup": steps // cycles - thin * draws, "num_samples": draws, "thin": thin, "num_cycles": cycles}


def score(drawn: dict, name: str, step_sizes: list[float]) -> dict:
    """Return what a row is made of, for each step size whose chains stayed finite, and the other step sizes."""
    test, sizes = problem()[1], {size: f"{size:g}" for size in step_sizes}
    runs = [{"name": name, "step_size": size} | of_run(drawn[at], test) for size, at in sizes.items() if at in drawn]
    return {"runs": runs, "not_finite": [size for size, at in sizes.items() if at not in drawn]}


def of_run(run, test):
    """Score one run at fresh points."""
    p = probabilities(run["weights"], test.x[: SETTINGS["num_points"]])
    p_test = probabilities(hundred(run["weights"]), test.x)
    kept = {
        "gradients": int(run["gradients"]),
        "seconds": float(run["seconds"]),
        **metrics.scores(p_test.mean(axis=(0, 1)), test.y),
        "NLL_error": diagnostics.nll_error(p_test, test.y),
        **compared_later(p),
        "quantiles": quantiles(p),
        "check": {},
    }
    if "stats" in run:
        kept["quantiles_of_halves"] = [quantiles(half) for half in np.array_split(p, 2)]
        posterior = shared.run_of(run)
        kept["check"] = shared.diagnosed(posterior, p[..., ::20])
    return kept


_probabilities = jax.jit(partial(predict.probabilities, NETWORK.apply))


def probabilities(weights, x):
    """Of every draw, [chain, draw, point]; one chain in memory at a time."""
    chains = jax.tree.leaves(weights)[0].shape[0]
    return np.concatenate([np.asarray(_probabilities(take(weights, np.s_[c : c + 1]), x)) for c in range(chains)])


def hundred(weights):
    """A hundred draws of each chain, for scores at many points."""
    return jax.tree.map(lambda a: a[:, :: max(1, a.shape[1] // 100)], weights)


def quantiles(p):
    """A hundred quantiles of all draws, [quantile, point], at every tenth point."""
    tenth = p[..., ::10].reshape(-1, p[..., ::10].shape[-1])
    return np.quantile(tenth.astype(np.float64), (np.arange(100) + 0.5) / 100, axis=0).round(6).tolist()


def compared_later(p):
    """What `against` and the reader need of predictions [chain, draw, point]; all but means at every tenth point."""
    tenth = p[..., ::10]
    found = diagnostics.summarize(tenth)
    bound = diagnostics.rhat_bound(found.ess_alone, found.rhat.size, p.shape[1])
    return {
        "p_of_chains": p.mean(axis=1, dtype=np.float64).round(6).tolist(),
        "p": tenth.mean(axis=(0, 1)).tolist(),
        "p_error": diagnostics.standard_error(tenth).tolist(),
        "ess": float(np.quantile(np.minimum(found.ess_bulk, found.ess_tail), 0.05)),
        "rhat": float(np.quantile(found.rhat, 0.99)),
        "mixed": bool((found.rhat <= bound).all() and found.ess_alone.min() >= diagnostics.LEAST_ESS),
    }


def against(run: dict, reference: dict) -> dict:
    """Return the distance of a run's mean predictions from the reference's; of the reference, that of its halves.

    |tv - its expectation| is at most the mean of |error| over points, which is its error here.
    """
    of_chains, truth = np.array(run["p_of_chains"]), np.array(reference["p_of_chains"]).mean(axis=0)
    one, other = of_chains.mean(axis=0), truth
    if run is reference:
        one, other = (half.mean(axis=0) for half in np.array_split(of_chains, 2))
    return {
        "tv": float(np.abs(one - other).mean()),
        "tv_error": float(np.hypot(run["p_error"], reference["p_error"]).mean()),
        "tv_chains": np.abs(of_chains - truth).mean(axis=1).tolist(),
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each sampler and step size, its distances from NUTS, those of NUTS between its halves."""
    reference = scored["NUTS"]["runs"][0]

    def row(run, not_finite):
        pair = run["quantiles_of_halves"] if run is reference else (run["quantiles"], reference["quantiles"])
        later = ("p_of_chains", "p", "p_error", "quantiles", "quantiles_of_halves")
        return {
            **{entry: value for entry, value in run.items() if entry not in later},
            **against(run, reference),
            "wasserstein": float(np.abs(np.subtract(*pair)).mean()),
            "not_finite": not_finite,
        }

    return [row(run, found["not_finite"]) for found in scored.values() for run in found["runs"]]
