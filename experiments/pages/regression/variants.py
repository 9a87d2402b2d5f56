"""One network on a wave: nine priors and sizes, each on redrawn training sets, and their evidence.

For every variant: four chains on each of the redrawn training sets, scored on fresh points inside
and outside of the data; on the first training set also four chains at each power of the likelihood
below 1, which with those of power 1 give the log evidence; and Laplace's method at the best mode
that was found.
"""

from helpers import common, diagnostics, mcmc, metrics, monte_carlo
from helpers.common import take

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy import optimize, special

from experiments.methods import evidence_estimates, runs
from experiments.methods.crps import crps
from experiments.problems import wave_networks

SETTINGS = {
    "seed": 5002,
    "num_redraws": 16,
    "num_chains": 4,
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
POWERS = (np.linspace(0, 1, SETTINGS["powers"]) ** 4).tolist()
SMALL = {"variant": "sd 0.1", "redraw": 0, "power": 1.0}


def units() -> dict[str, dict]:
    """Return every redraw of every variant, and on the first the powers below 1."""
    on = [(redraw, 1.0) for redraw in range(SETTINGS["num_redraws"])] + [
        (0, power) for power in POWERS[:-1]
    ]
    return {
        unit_name(variant, redraw, power): {"variant": variant, "redraw": redraw, "power": power}
        for variant in SETTINGS["variants"]
        for redraw, power in on
    }


def unit_name(variant, redraw, power):
    """By what `rows` finds it."""
    return f"{variant}; redraw {redraw}; power {power:.4f}"


def unit(variant: str, redraw: int, power: float) -> dict:
    """Return draws, how the sampler fared, and for the evidence the best mode from them."""
    model, observed = wave_networks.build(variant), wave_networks.measured(variant, redraw, power)
    key = partial(common.key, SETTINGS["seed"])
    starts = mcmc.normal_starts(
        key("start", variant, redraw, power), model.shapes, (SETTINGS["num_chains"],)
    )
    sizes = {
        "num_warmup": SETTINGS["num_warmup"],
        "num_samples": SETTINGS["num_samples"],
        "max_tree_depth": SETTINGS["max_tree_depth"],
    }
    sizes["target_acceptance"] = model.options["target_acceptance"]
    posterior = mcmc.sample(
        key("chains", variant, redraw, power), model.log_density, starts, data=observed, **sizes
    )
    found = {"draws": posterior.draws, **runs.kept_run(posterior)}
    if (redraw, power) == (0, 1.0):
        found["mode"] = best_mode(partial(model.log_density, observed=observed), posterior.draws)
    return found


def best_mode(log_density: Callable, draws: Any, num_starts: int = 8) -> dict:
    """Return the log density at the best mode from some draws; Laplace's log evidence."""
    each = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), draws)
    vectors = np.asarray(jax.vmap(lambda p: ravel_pytree(p)[0])(each))
    _, unravel = ravel_pytree(take(each, 0))
    value = jax.jit(jax.value_and_grad(lambda v: -log_density(unravel(v))))
    found = [
        optimize.minimize(
            lambda v: [np.float64(a) for a in value(np.float32(v))], v, jac=True, method="L-BFGS-B"
        )
        for v in vectors[:: len(vectors) // num_starts]
    ]
    best = min(found, key=lambda one: one.fun)
    hessian = np.asarray(
        jax.jit(jax.hessian(lambda v: -log_density(unravel(v))))(jnp.float32(best.x))
    )
    try:
        mass = evidence_estimates.laplace(-best.fun, hessian)
    except ValueError:  # a ridge in place of a mode, as kinks make it: no estimate
        mass = 0.0
    return {"log_density_at_mode": -float(best.fun), "laplace": mass}


def score(drawn: dict, variant: str, redraw: int, power: float) -> dict:
    """Scores of a redraw, [region] or [region, level]; of a power what evidence needs."""
    model, points = wave_networks.build(variant), wave_networks.wave(redraw)
    posterior = runs.run_from(drawn, drawn["draws"])
    f = np.asarray(
        wave_networks.curves(model.network, posterior.draws["params"], points.x_test.reshape(-1, 1))
    )
    check = {"check": runs.diagnosis(posterior, f[..., ::25])}
    if redraw == 0:  # at weight 1, whatever the power
        values = np.asarray(
            model.log_likelihood(posterior.draws, wave_networks.measured(variant, redraw)),
            np.float64,
        )
        check["log_likelihood"] = values.round(4).tolist()
    if power < 1:
        return check
    noise = np.exp(posterior.draws["log_noise"].astype(np.float64))
    f = f.reshape(*noise.shape, *points.y_test.shape)
    best = np.unravel_index(np.argmax(posterior.stats.log_density), noise.shape)
    random = np.random.default_rng(redraw)
    by_region = [
        of_region(f[..., i, :], noise, np.asarray(y), best, random)
        for i, y in enumerate(points.y_test)
    ]
    found = {name: [one[name] for one in by_region] for name in by_region[0]}
    found |= {"noise": float(noise.mean()), "noise_error": float(diagnostics.standard_error(noise))}
    return found | check | (first(drawn, model, points) if redraw == 0 else {})


def of_region(f, noise, y, best, random):
    """Score curves [chain, draw, point], noise [chain, draw] in a region of the test points."""
    cdf, level = metrics.mixture_cdf(f, noise, y), SETTINGS["decision_level"]
    draws = (f + noise[..., None] * random.normal(size=f.shape)).reshape(-1, y.size)

    def of_predictions(draws):
        return np.array([crps(draws, y), pinball(np.quantile(draws, level, axis=0), y, level)])

    values, errors = of_predictions(draws), monte_carlo.jackknife(of_predictions, draws)
    return {
        "nll": metrics.mixture_nll(f, noise, y),
        "nll_error": monte_carlo.mixture_nll_error(f, noise, y),
        "crps": float(values[0]),
        "crps_error": float(errors[0]),
        "coverage": [metrics.coverage(cdf, level) for level in SETTINGS["levels"]],
        "loss": float(values[1]),
        "loss_error": float(errors[1]),
        "loss_of_one": pinball(f[best] + special.ndtri(level) * noise[best], y, level),
    }


def first(drawn, model, points):
    """What is kept of the first training set alone: the posterior of the curve, and its mode."""
    f = np.asarray(wave_networks.curves(model.network, drawn["draws"]["params"], points.grid[::4]))
    flat = f.reshape(-1, f.shape[-1])
    return {
        **{name: float(value) for name, value in drawn["mode"].items()},
        "band": np.quantile(flat, [0.025, 0.5, 0.975], axis=0).tolist(),
        "mean": flat.mean(axis=0).tolist(),
        "mean_error": diagnostics.standard_error(f).tolist(),
        "sd": flat.std(axis=0).tolist(),
        "sd_error": monte_carlo.jackknife(lambda part: part.std(axis=0), flat).tolist(),
    }


def pinball(amount, y, level):
    """Mean loss of an amount: a unit missing costs level / (1 - level) times one too many."""
    return float(np.maximum(level / (1 - level) * (y - amount), amount - y).mean())


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row a variant: lists over redraws, evidence, what is kept of the first."""
    return [row(variant, scored) for variant in SETTINGS["variants"]]


def row(variant, scored):
    """Return one row of the stored result."""
    redraws = [scored[unit_name(variant, redraw, 1.0)] for redraw in range(SETTINGS["num_redraws"])]
    powers = [scored[unit_name(variant, 0, power)] for power in POWERS]
    entries = ("nll", "crps", "loss", "noise")
    entries = [*entries, *(f"{name}_error" for name in entries), "coverage", "loss_of_one", "check"]
    values, options = (
        np.array([one["log_likelihood"] for one in powers]),
        wave_networks.build(variant).options,
    )
    checks = [one["check"] for one in redraws]
    nearest = [
        max(check["rhat"], key=lambda kind: check["rhat"][kind] - check["rhat_bound"][kind])
        for check in checks
    ]
    kept = ("laplace", "log_density_at_mode", "band", "mean", "mean_error", "sd", "sd_error")
    return {
        "name": variant,
        **{entry: [one[entry] for one in redraws] for entry in entries},
        "divergences": [check["divergences"] for check in checks],
        "rhat": [check["rhat"][kind] for check, kind in zip(checks, nearest, strict=True)],
        "rhat_bound": [
            check["rhat_bound"][kind] for check, kind in zip(checks, nearest, strict=True)
        ],
        "log_evidence": evidence_estimates.log_evidence(values.reshape(len(POWERS), -1), POWERS),
        "log_evidence_error": evidence_estimates.log_evidence_error(values, POWERS),
        "log_copies": evidence_estimates.log_copies(
            options["hidden"], options["activation"] == "tanh"
        ),
        **{entry: redraws[0][entry] for entry in kept},
        "first_check": checks[0],
        "power_check": [one["check"] for one in powers],
    }
