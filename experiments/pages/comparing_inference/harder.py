"""Long runs on three posteriors more: the hierarchical networks, a regression with its noise, and
the spiral.

As in ``references``: two independent runs of eight chains in double precision, from dispersed
starts, wherever they end; of the hierarchical networks after a tempered stage, as in
``hierarchical_bnn/long_runs``. Tempered SMC stands beside those, confined to the region that holds
nearly all of the mass (``hierarchical_bnn/masses``), several runs. Its particles move five times a
power, which is little for a posterior in which chains need hundreds of draws to pass from one kind
of features to another: so some of them, resampled, move on as chains.
"""

from helpers import (
    common,
    data,
    densities,
    diagnostics,
    hierarchical,
    mcmc,
    networks,
    predict,
    tempering,
)
from helpers.common import take

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import region_masses, runs
from experiments.pages.comparing_inference.references import double_precision, posterior_gradients
from experiments.problems import regions, six_tasks, spirals, wave_networks

RUN = {
    "seed": 9020,
    "num_chains": 8,
    "sizes": {
        "hierarchical": {"num_warmup": 300, "num_samples": 12_000, "target_acceptance": 0.9},
        "regression": {"num_warmup": 400, "num_samples": 8000},
        "spiral": {"num_warmup": 300, "num_samples": 2500, "max_tree_depth": 8},
    },
    # draws to each whose predictions are kept
    "thin": {"hierarchical": 6, "regression": 4, "spiral": 2},
    "tempered": {"power": 0.6, "num_warmup": 300, "num_samples": 300, "target_acceptance": 0.9},
    "region": 2,  # that in which the output layer differs most between tasks
    "particles": 400,
    "moving_on": 48,  # of the particles, and for how long
    "after": {"num_warmup": 200, "num_samples": 600},
    "prior_scale": 1.0,  # of the spiral
    "least_sd": 1e-2,  # of a prediction over draws: one that never moves has no R-hat
}
# The number of runs is no part of what a unit does, so that more can follow.
SETTINGS = {"num_runs": 2, "num_smc": 4, **RUN}
VARIANT = "N(0, 1), 10 tanh units"  # of the regression
SMALL = {"posterior": "regression", "method": "chains", "run": 0}


class Problem(NamedTuple):
    """A posterior, and what of it is compared."""

    log_density: Callable
    shapes: Any
    observed: densities.Observed
    predict: Callable  # position -> predictions [point]
    # draws -> logarithms of what is learnt of scales: a dict, empty where there are none
    log_scales: Callable


@cache
def problem(posterior: str) -> Problem:
    """Return a posterior by its name. ValueError: no such name."""
    made = {"hierarchical": _hierarchical, "regression": _regression, "spiral": _spiral}
    if posterior not in made:
        raise ValueError(f"posterior: given {posterior!r}, expected one of {list(made)}")
    return made[posterior]()


def _hierarchical():
    tasks = data.source_moons()
    shapes, logits = (
        hierarchical.shapes(regions.NETWORK, len(tasks.y_train), 2),
        hierarchical.logits(regions.NETWORK),
    )

    def predict(position):
        return jax.nn.sigmoid(logits(position, tasks.x_test)).ravel()

    observed = densities.observe(tasks.x_train, tasks.y_train)
    return Problem(
        hierarchical.log_density(regions.NETWORK),
        shapes,
        observed,
        predict,
        lambda draws: draws["log_sd"],
    )


def _regression():
    model, x = wave_networks.build(VARIANT), wave_networks.wave(0).grid[::4]

    def predict(position):
        return model.network.apply(position["params"], x)

    observed = wave_networks.measured(VARIANT, 0)
    return Problem(
        model.log_density, model.shapes, observed, predict, lambda d: {"noise": d["log_noise"]}
    )


def _spiral():
    line = jnp.linspace(-0.6, 0.6, spirals.SETTINGS["grid"])
    near = jnp.stack(jnp.meshgrid(line, line), axis=-1).reshape(-1, 2)
    x = jnp.concatenate([near, spirals.far_points(12)])

    def predict(position):
        return jax.nn.softmax(spirals.NETWORK.apply(position, x)).ravel()

    train, _, _ = spirals.problem(0)
    observed = densities.observe(train.x, train.y, 2 * [RUN["prior_scale"]], num_classes=3)
    shapes = networks.parameter_shapes(spirals.NETWORK, 2)
    return Problem(
        densities.flat_log_density(spirals.NETWORK), shapes, observed, predict, lambda draws: {}
    )


def units() -> dict[str, dict]:
    """Return the runs of each posterior, the longest first."""
    names = "hierarchical", "spiral", "regression"
    runs, clouds = range(SETTINGS["num_runs"]), range(SETTINGS["num_smc"])
    found = {
        f"{name}, chains, run {i}": _setting(name, "chains", i) for name in names for i in runs
    }
    return found | {
        f"hierarchical, SMC, run {i}": _setting("hierarchical", "SMC", i) for i in clouds
    }


def _setting(posterior, method, run):
    return {"posterior": posterior, "method": method, "run": run}


def unit(posterior: str, method: str, run: int) -> dict:
    """Return predictions [chain, draw, point] of some draws and log scales of all.

    Of SMC those of the particles [particle], with weights, and predictions of those that moved on
    [chain, draw, point].
    """
    key, asked = common.key(RUN["seed"], posterior, method, run), problem(posterior)
    if method == "SMC":
        return cloud_and_chains(key, asked)
    found = chains(key, asked, posterior)
    thinned, log_scales = (
        take(found.draws, np.s_[:, :: RUN["thin"][posterior]]),
        asked.log_scales(found.draws),
    )
    learnt = {"log_scales": log_scales} if log_scales else {}
    return {
        "predictions": predict.of_draws(asked.predict, thinned),
        **learnt,
        **runs.kept_run(found),
    }


def chains(key, asked, posterior):
    """Run the book's sampler in double precision; return its run in single precision."""
    sizes, key = RUN["sizes"][posterior], jax.random.key_data(key)
    with double_precision():
        key_start, key_chains = jax.random.split(jax.random.wrap_key_data(key))
        shapes = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, np.float64), asked.shapes
        )
        observed = jax.tree.map(_doubled, asked.observed)
        if posterior == "hierarchical":
            given = {**RUN["tempered"], "num_started": RUN["num_chains"]}
            starts = tempering.tempered_starts(
                key_start, asked.log_density, shapes, observed, **given
            )
        else:
            starts = mcmc.normal_starts(key_start, shapes, (RUN["num_chains"],))
        found = mcmc.sample(key_chains, asked.log_density, starts, data=observed, **sizes)
        return jax.tree.map(
            lambda a: np.asarray(a, np.float32) if a.dtype == np.float64 else np.asarray(a), found
        )


def _doubled(values):
    return np.asarray(values, np.float64) if values.dtype == np.float32 else np.asarray(values)


@jax.jit
def cloud(key, observed):
    """Follow particles of the prior of the hierarchical networks to their posterior, within one
    region: state, path.
    """
    key_begin, key_path = jax.random.split(key)
    return region_masses.annealed(
        key_begin, key_path, observed, "HalfNormal(1)", RUN["region"], RUN["particles"]
    )


def cloud_and_chains(key, asked):
    """Follow particles, then move some on as chains, resampled by their weights, so that they begin
    spread out well.
    """
    key_cloud, key_chosen, key_chains = jax.random.split(key, 3)
    state, path = cloud(key_cloud, asked.observed)
    chosen = blackjax.smc.resampling.systematic(key_chosen, state.weights, RUN["moving_on"])
    starts = take(state.particles, np.asarray(chosen))
    after = mcmc.sample(key_chains, asked.log_density, starts, data=asked.observed, **RUN["after"])
    thinned = take(after.draws, np.s_[:, :: RUN["thin"]["hierarchical"]])
    return {
        "predictions": jax.jit(lambda particles: jax.lax.map(asked.predict, particles))(
            state.particles
        ),
        "log_scales": state.particles["log_sd"],
        "weights": state.weights,
        "after": predict.of_draws(asked.predict, thinned),
        "log_scales_after": after.draws["log_sd"],
        **path,
    }


def score(drawn: dict, posterior: str, method: str, run: int) -> dict:
    """Return mean predictions and log scales, with their Monte Carlo errors, and diagnostics."""
    predictions, log_scales = (
        np.asarray(drawn["predictions"], np.float64),
        drawn.get("log_scales", {}),
    )
    if method == "SMC":
        weights, last = np.asarray(drawn["weights"], np.float64), int(drawn["number"]) - 1
        scales = {name: float(weights @ values) for name, values in log_scales.items()}
        found = {
            "log_evidence": float(drawn["log_evidence"][last]),
            "power": float(drawn["powers"][last]),
        }
        found |= {"mean": six_tasks.rounded(weights @ predictions, 5), "log_scales": scales}
        after = np.asarray(drawn["after"], np.float64)
        found |= {"mean_after": six_tasks.rounded(after.mean(axis=(0, 1)), 6)}
        found |= {"mean_after_error": six_tasks.rounded(diagnostics.standard_error(after), 7)}
        return found | {
            "log_scales_after": {n: float(v.mean()) for n, v in drawn["log_scales_after"].items()}
        }
    moves = predictions.std(axis=(0, 1)) >= RUN["least_sd"]
    others = {"log scales": log_scales} if log_scales else {}
    return {
        "check": runs.diagnosis(runs.run_from(drawn), predictions[..., moves], **others),
        "gradients": float(posterior_gradients(drawn, RUN["sizes"][posterior]["num_warmup"])),
        "compared": int(moves.sum()),
        "mean": six_tasks.rounded(predictions.mean(axis=(0, 1)), 6),
        "mean_error": six_tasks.rounded(diagnostics.standard_error(predictions), 7),
        "log_scales": {name: float(values.mean()) for name, values in log_scales.items()},
        "log_scales_error": {
            name: float(diagnostics.standard_error(values)) for name, values in log_scales.items()
        },
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each run."""
    settings = units()
    return [settings[name] | found for name, found in scored.items()]
