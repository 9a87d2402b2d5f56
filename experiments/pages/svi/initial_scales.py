"""The two tips and the restarts: initial scale and particles of the mean-field guide, on one wave,
many starts.
"""

from helpers import common, densities, metrics, monte_carlo, networks, svi

from functools import partial

import arviz
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal

from experiments.methods.autoguides import log_weights
from experiments.problems import waves
from experiments.problems.numpyro_models import regression_model

SETTINGS = {
    "seed": 5001,  # the wave is the first one of svi/guides, by the same key
    "num_starts": 10,
    "cases": [[0.001, 10], [0.1, 10], [1.0, 10], [0.001, 1], [0.001, 100]],  # init_scale, particles
    "num_steps": 5000,
    "num_draws": 500,
    "every": 50,  # losses are averaged over so many steps
}
NETWORK = networks.MLP((10,), use_bias=True)
MODEL = partial(regression_model, NETWORK)
SMALL = {"init_scale": 0.001, "num_particles": 10, "num_starts": 2}


def units() -> dict[str, dict]:
    """Return one unit for each case."""
    return {
        f"init_scale {init_scale:g}, particles {num_particles}": {
            "init_scale": init_scale,
            "num_particles": num_particles,
            "num_starts": SETTINGS["num_starts"],
        }
        for init_scale, num_particles in SETTINGS["cases"]
    }


def wave() -> waves.Wave:
    """Return the data."""
    return jax.jit(waves.wave)(common.key(SETTINGS["seed"], "data", "whole", 0))


def unit(init_scale: float, num_particles: int, num_starts: int) -> dict:
    """Return losses, curves on grid and inside, noise and log weights, [start, ...]."""
    # A start has the same key in every case, so that cases are compared in pairs.
    keys = jnp.stack([common.key(SETTINGS["seed"], "start", start) for start in range(num_starts)])
    drawn = starts(keys, init_scale, num_particles, wave())
    svi.check_losses(drawn["losses"])
    return drawn


@partial(jax.jit, static_argnums=(1, 2))
def starts(keys, init_scale, num_particles, wave):
    """Fit from every key."""
    guide, loss = (
        partial(AutoNormal, init_scale=init_scale),
        TraceMeanField_ELBO(num_particles=num_particles),
    )
    observed = densities.Observed(
        wave.x_train, wave.y_train, jnp.ones(wave.y_train.shape), jnp.ones(2)
    )
    x = jnp.concatenate([wave.grid, wave.x_test[0]])

    def one(key):
        key_fit, key_draw, key_weigh = jax.random.split(key, 3)
        fit = svi.run(
            key_fit, MODEL, guide, (observed,), num_steps=SETTINGS["num_steps"], loss=loss
        )
        draws = svi.draw(key_draw, MODEL, guide, fit.params, (observed,), SETTINGS["num_draws"])
        weights = log_weights(
            key_weigh, MODEL, guide, fit.params, (observed,), SETTINGS["num_draws"]
        )
        curves = jax.vmap(lambda w: NETWORK.apply(w, x))(svi.network_position(draws))
        return {
            "losses": fit.losses,
            "curves": curves,
            "noise": draws["noise"],
            "log_weights": weights,
        }

    return jax.lax.map(one, keys)


def score(drawn: dict, init_scale: float, num_particles: int, num_starts: int) -> dict:
    """Return a case's row, lists over starts; errors are of finitely many draws a fit."""
    losses, curves, noise, weights = (
        drawn[name] for name in ("losses", "curves", "noise", "log_weights")
    )
    y, (on_grid, at_test) = wave().y_test[0], np.split(curves, [200], axis=2)

    def error(values):
        return (values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])).tolist()

    return {
        "init_scale": init_scale,
        "num_particles": num_particles,
        "losses": losses.reshape(num_starts, -1, SETTINGS["every"]).mean(axis=2).round(3).tolist(),
        "first_losses": losses[:, :20].astype(float).round(2).tolist(),
        "wobble": losses[:, -1000:].std(axis=1).tolist(),
        "elbo": weights.mean(axis=1).tolist(),
        "elbo_error": error(weights),
        "k_hat": [float(arviz.psislw(w.astype(np.float64))[1]) for w in weights],
        "nll": [metrics.mixture_nll(f, sd, y) for f, sd in zip(at_test, noise, strict=True)],
        "nll_error": [
            monte_carlo.mixture_nll_error(f, sd, y) for f, sd in zip(at_test, noise, strict=True)
        ],
        "curve": on_grid.mean(axis=1).round(4).tolist(),
        "curve_sd": on_grid.std(axis=1).round(4).tolist(),
        "noise": noise.mean(axis=1).tolist(),
        "noise_error": error(noise),
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each case, in their order."""
    return list(scored.values())
