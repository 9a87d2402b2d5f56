"""A ladder of guides against NUTS, on redrawn waves with and without a gap.

Every guide sees the same training sets and is drawn from as often as NUTS; its error is the
Wasserstein distance of the curves' marginals from NUTS, averaged over the grid. A guide is fitted
anew for each length. A unit has one training set, with NUTS and all guides, since each guide is
compared with the draws of NUTS.
"""

from helpers import common, densities, diagnostics, mcmc, metrics, monte_carlo, networks, svi

import itertools
from functools import partial

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpyro.infer import Trace_ELBO, autoguide
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import runs
from experiments.methods.autoguides import log_weights
from experiments.problems import waves
from experiments.problems.numpyro_models import regression_model
from experiments.problems.wave_networks import curves

SETTINGS = {
    "seed": 5001,
    "num_redraws": 6,
    "num_train": 40,
    "gap": [-0.5, 0.5],
    "guides": ["mean-field", "low-rank", "full-rank", "flow", "Laplace"],
    "num_steps": [1000, 10000],
    "num_particles": 10,
    "num_draws": 1000,  # of a guide, and of NUTS where the two are compared
    "levels": [0.5, 0.9, 0.95],
    "num_chains": 4,
    "num_warmup": 300,
    "num_samples": 1500,
    "max_tree_depth": 10,
}
NETWORK = networks.MLP((10,), use_bias=True)
MODEL = partial(regression_model, NETWORK)
LOG_DENSITY = densities.regression_log_density(NETWORK, tfd.Normal(0.0, 1.0))
SHAPES = {
    "params": networks.parameter_shapes(NETWORK, 1),
    "log_noise": jax.ShapeDtypeStruct((), jnp.float32),
}
GUIDES = {
    "mean-field": partial(autoguide.AutoNormal, init_scale=1e-3),
    "low-rank": partial(autoguide.AutoLowRankMultivariateNormal, init_scale=1e-3, rank=5),
    "full-rank": partial(autoguide.AutoMultivariateNormal, init_scale=1e-3),
    "flow": partial(autoguide.AutoIAFNormal, num_flows=2, hidden_dims=[32]),
    "Laplace": autoguide.AutoLaplaceApproximation,
}
SMALL = {
    "kind": "whole",
    "redraw": 0,
    "guides": ["mean-field"],
    "num_steps": [1000],
    "num_samples": 300,
}


def units() -> dict[str, dict]:
    """Return every redraw, with and without a gap."""
    same = {
        "guides": SETTINGS["guides"],
        "num_steps": SETTINGS["num_steps"],
        "num_samples": SETTINGS["num_samples"],
    }
    return {
        f"{kind}, redraw {redraw}": {"kind": kind, "redraw": redraw, **same}
        for kind in ("whole", "gap")
        for redraw in range(SETTINGS["num_redraws"])
    }


def wave(kind: str, redraw: int) -> waves.Wave:
    """Return a training set and its test points."""
    gap = tuple(SETTINGS["gap"]) if kind == "gap" else None
    return _wave(
        common.key(SETTINGS["seed"], "data", kind, redraw), num_train=SETTINGS["num_train"], gap=gap
    )


_wave = jax.jit(waves.wave, static_argnames=("num_train", "gap"))


def unit(kind: str, redraw: int, guides: list[str], num_steps: list[int], num_samples: int) -> dict:
    """Return draws of NUTS, [chain, draw], and of each guide at each length, [draw]."""
    points = wave(kind, redraw)
    observed = densities.observe(points.x_train, points.y_train, [1.0, 1.0], num_classes=None)
    found = {"NUTS": nuts(kind, redraw, observed, num_samples)}
    for name, steps in itertools.product(guides, num_steps):
        keys = [
            common.key(SETTINGS["seed"], part, kind, redraw, name, steps)
            for part in ("fit", "draw", "weigh")
        ]
        fitted = fit(keys, name, steps, observed)
        svi.check_losses(fitted.pop("losses"))
        found[arm_name(name, steps)] = fitted
    return found


def arm_name(name, steps):
    """By what a guide's draws are found."""
    return f"{name}, {steps} steps"


def nuts(kind, redraw, observed, num_samples):
    """The reference."""
    key_start, key_chains = jax.random.split(common.key(SETTINGS["seed"], "NUTS", kind, redraw))
    starts = mcmc.normal_starts(key_start, SHAPES, (SETTINGS["num_chains"],), 0.5)
    sizes = {"num_warmup": SETTINGS["num_warmup"], "max_tree_depth": SETTINGS["max_tree_depth"]}
    posterior = mcmc.sample(
        key_chains, LOG_DENSITY, starts, data=observed, num_samples=num_samples, **sizes
    )
    noise = jnp.exp(posterior.draws["log_noise"])
    diagnosis = runs.kept_run(posterior)
    return {"weights": posterior.draws["params"], "noise": noise, **diagnosis}


def particles(name: str) -> int:
    """Return the gradients of a step: Laplace's guide is a point until it is drawn."""
    return 1 if name == "Laplace" else SETTINGS["num_particles"]


@partial(jax.jit, static_argnums=(1, 2))
def fit(keys, name, num_steps, observed):
    """Fit one guide; return draws of weights and noise, log weights and losses."""
    key_fit, key_draw, key_weigh = keys
    # The lecture's ELBO for the mean field.
    settings = {
        "loss": svi.ELBO if name == "mean-field" else Trace_ELBO(num_particles=particles(name))
    }
    if name == "Laplace":  # the curvature is that of the very top
        decaying = optax.adam(optax.cosine_decay_schedule(1e-2, num_steps))
        settings["optimizer"] = optax.chain(optax.clip_by_global_norm(10.0), decaying)
    fitted = svi.run(key_fit, MODEL, GUIDES[name], (observed,), num_steps=num_steps, **settings)
    arguments = MODEL, GUIDES[name], fitted.params, (observed,), SETTINGS["num_draws"]
    draws = svi.draw(key_draw, *arguments)
    found = {
        "weights": svi.network_position(draws),
        "noise": draws["noise"],
        "losses": fitted.losses,
    }
    return (
        found if name == "Laplace" else found | {"log_weights": log_weights(key_weigh, *arguments)}
    )


def score(
    drawn: dict, kind: str, redraw: int, guides: list[str], num_steps: list[int], num_samples: int
) -> dict:
    """Return the scores of NUTS, of a half of it beside the other, and of every guide."""
    points, reference = wave(kind, redraw), drawn["NUTS"]
    x = jnp.concatenate([points.grid, points.x_test.reshape(-1, 1)])
    f, noise = np.asarray(curves(NETWORK, reference["weights"], x)), reference["noise"]
    posterior = runs.run_from(reference)
    check = runs.diagnosis(posterior, f[..., :200:10])
    gradients = float(posterior.stats.integration_steps.sum())
    gradients += SETTINGS["num_warmup"] * float(posterior.warmup.mean_steps.sum())

    def part(chains):
        """As many draws of some chains as of a guide, [draw, point] and [draw]."""
        thin = max(1, noise[chains].size // SETTINGS["num_draws"])
        return f[chains, ::thin].reshape(-1, f.shape[-1]), noise[chains, ::thin].ravel()

    middle = SETTINGS["num_chains"] // 2
    both, one, other = part(np.s_[:]), part(np.s_[:middle]), part(np.s_[middle:])
    none = {"elbo": [], "elbo_error": [], "k_hat": []}
    found = {
        "NUTS, half": of_draws(*one, other[0], points)
        | {"gradients": gradients / 2, "check": check, **none},
        "NUTS": of_draws(*both, both[0], points) | {"gradients": gradients, "check": check, **none},
    }
    for name, steps in itertools.product(guides, num_steps):
        fitted = drawn[arm_name(name, steps)]
        draws = jax.tree.map(lambda a: a[None], fitted["weights"])
        scores = of_draws(
            np.asarray(curves(NETWORK, draws, x))[0], fitted["noise"], both[0], points
        )
        weights = of_weights(fitted["log_weights"]) if "log_weights" in fitted else none
        found[arm_name(name, steps)] = (
            scores | weights | {"gradients": steps * particles(name), "check": {}}
        )
    return found


def of_weights(values):
    """The ELBO and k-hat of log weights."""
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    k_hat = float(arviz.psislw(values.astype(np.float64))[1])
    return {"elbo": float(values.mean()), "elbo_error": error, "k_hat": k_hat}


def of_draws(f, noise, reference, points):
    """Score curves [draw, point] and noise [draw], their distance from a reference."""
    grid = len(points.grid)
    by_region = dict(
        zip(waves.REGIONS, np.split(f[:, grid:], len(points.y_test), axis=1), strict=False)
    )
    y = dict(zip(by_region, np.asarray(points.y_test), strict=True))
    cdf = {region: metrics.mixture_cdf(by_region[region], noise, y[region]) for region in y}
    inside = np.abs(np.asarray(points.grid[:, 0])) <= 1

    def distances(f, reference):
        """Wasserstein distance of marginals, mean over parts of the grid."""
        apart = np.abs(np.sort(f, axis=0) - np.sort(reference, axis=0)).mean(axis=0)
        return np.array([apart[inside].mean(), apart[~inside].mean(), apart.mean()])

    size = min(len(f), len(reference))
    pair, names = (
        (f[:size, :grid], reference[:size, :grid]),
        ("distance_inside", "distance_outside", "distance"),
    )
    return {
        **dict(zip(names, distances(*pair).tolist(), strict=True)),
        **dict(
            zip(
                [f"{name}_error" for name in names],
                monte_carlo.jackknife(distances, *pair).tolist(),
                strict=True,
            )
        ),
        "sd": {region: float(np.median(part.std(axis=0))) for region, part in by_region.items()},
        "nll": {
            region: metrics.mixture_nll(part, noise, y[region])
            for region, part in by_region.items()
        },
        "nll_error": {
            region: monte_carlo.mixture_nll_error(part, noise, y[region])
            for region, part in by_region.items()
        },
        "coverage": {
            str(level): {region: metrics.coverage(cdf[region], level) for region in y}
            for level in SETTINGS["levels"]
        },
        "noise": float(noise.mean()),
        "noise_error": float(diagnostics.standard_error(noise.reshape(SETTINGS["num_chains"], -1))),
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for NUTS, its half, each guide at each length: lists over redraws."""
    lengths = itertools.product(SETTINGS["guides"], SETTINGS["num_steps"])
    arms = [("NUTS, half", 0), ("NUTS", 0), *lengths]
    settings = units()

    def row(kind, name, steps):
        arm = arm_name(name, steps) if steps else name
        redraws = [dict(scored[unit][arm]) for unit in scored if settings[unit]["kind"] == kind]
        check = [one.pop("check") for one in redraws]
        gradients = float(np.mean([one.pop("gradients") for one in redraws]))
        lists = jax.tree.map(lambda *values: list(values), *redraws)
        return {"data": kind, "name": name, "steps": steps, "gradients": gradients, **lists} | {
            "check": check if check[0] else []
        }

    return [row(kind, *arm) for kind in ("whole", "gap") for arm in arms]
