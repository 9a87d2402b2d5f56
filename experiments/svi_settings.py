"""The two tips and the restarts: initial scale and particles of the mean-field guide, on one wave, many starts."""

from helpers import data, densities, metrics, networks, svi

from functools import partial

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import store
from numpyro.infer import TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal

SETTINGS = {
    "seed": 5001,  # the wave is the first one of guides.py
    "num_starts": 10,
    "cases": [[0.001, 10], [0.1, 10], [1.0, 10], [0.001, 1], [0.001, 100]],  # init_scale, particles
    "num_steps": 5000,
    "num_draws": 500,
    "every": 50,  # losses are averaged over so many steps
}
NETWORK = networks.MLP((10,), use_bias=True)
MODEL = partial(densities.regression_numpyro, NETWORK)


@partial(jax.jit, static_argnums=(1, 2))
def starts(keys, init_scale, num_particles, measured, x):
    """Fit from every key; return losses, curves, noise and log weights."""
    guide = partial(AutoNormal, init_scale=init_scale)
    loss = TraceMeanField_ELBO(num_particles=num_particles)

    def one(key):
        key_fit, key_draw, key_weigh = jax.random.split(key, 3)
        fit = svi.run(key_fit, MODEL, guide, (measured,), num_steps=SETTINGS["num_steps"], loss=loss)
        draws = svi.draw(key_draw, MODEL, guide, fit.params, (measured,), SETTINGS["num_draws"])
        weights = svi.log_weights(key_weigh, MODEL, guide, fit.params, (measured,), SETTINGS["num_draws"])
        f = jax.vmap(lambda w: NETWORK.apply(w, x))(svi.network_position(draws))
        return fit.losses, f, draws["noise"], weights

    return jax.lax.map(one, keys)


def main():
    key_data, *_ = jax.random.split(jax.random.key(SETTINGS["seed"]), 3)
    key_fit = jax.random.split(jax.random.key(SETTINGS["seed"]), 4)[3]
    wave = data.wave(jax.random.split(jax.random.fold_in(key_data, 0), 6)[0])
    measured = densities.measure(wave.x_train, wave.y_train, [1.0, 1.0])
    x = jnp.concatenate([wave.grid, wave.x_test[0]])
    keys = jax.random.split(key_fit, SETTINGS["num_starts"])
    rows = []
    for init_scale, num_particles in SETTINGS["cases"]:
        losses, f, noise, weights = map(np.asarray, starts(keys, init_scale, num_particles, measured, x))
        svi.check_losses(losses)
        test = f[..., 200:]
        rows.append(
            {
                "init_scale": init_scale,
                "num_particles": num_particles,
                "losses": losses.reshape(len(losses), -1, SETTINGS["every"]).mean(axis=2).round(3).tolist(),
                "first_losses": losses[:, :20].astype(float).round(2).tolist(),
                "wobble": losses[:, -1000:].std(axis=1).tolist(),
                "elbo": weights.mean(axis=1).tolist(),
                "k_hat": [float(arviz.psislw(w.astype(np.float64))[1]) for w in weights],
                "nll": [metrics.mixture_nll(g, s, wave.y_test[0]) for g, s in zip(test, noise, strict=True)],
                "curve": f[..., :200].mean(axis=1).round(4).tolist(),
                "curve_sd": f[..., :200].std(axis=1).round(4).tolist(),
                "noise": noise.mean(axis=1).tolist(),
            }
        )
        print({k: np.round(v, 3) for k, v in rows[-1].items() if k in ("elbo", "k_hat", "nll", "wobble")}, flush=True)
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
