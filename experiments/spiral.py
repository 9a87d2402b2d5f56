"""The spiral's networks on redrawn training sets: SVI at two prior scales, one network, its temperature, an ensemble.

The temperature is fitted on training points that its network has not seen. The page draws its maps from
the guide of the first redraw, which is stored.
"""

from helpers import data, densities, metrics, networks, svi

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import store
from jax.flatten_util import ravel_pytree
from numpyro.infer import TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal

SETTINGS = {
    "seed": 5001,  # the page's, whose keys are used here too
    "num_redraws": 4,
    "points_per_class": 100,
    "test_per_class": 1000,
    "num_steps": 10000,
    "init_scale": 1e-2,
    "prior_scales": [10.0, 1.0],
    "num_draws": 200,
    "members": 5,
    "held_out": 0.2,
    "far": 3.0,  # radius of the circle on which entropy is far from the data
}
NETWORK = networks.MLP((100,), nn.relu, True, 3)
MODEL = partial(densities.flat_numpyro, NETWORK)
GUIDE = partial(AutoNormal, init_scale=SETTINGS["init_scale"])
ELBO = TraceMeanField_ELBO(num_particles=10, vectorize_particles=False)  # the same, in less time on a CPU
ANGLES = jnp.linspace(0, 2 * jnp.pi, 100, endpoint=False)
FAR = SETTINGS["far"] * jnp.stack([jnp.cos(ANGLES), jnp.sin(ANGLES)], axis=-1)


def network_fit(key, x, y, weight):
    """The lecture's optimiser on the mean cross-entropy of the points of weight 1."""

    def loss(params):
        return -(weight * densities.categorical_log_likelihood(NETWORK.apply(params, x), y)).sum() / weight.sum()

    def step(carry, _):
        params, state = carry
        updates, state = svi.CLIPPED_ADAM.update(jax.grad(loss)(params), state)
        return (optax.apply_updates(params, updates), state), None

    params = NETWORK.init(key, x)
    return jax.lax.scan(step, (params, svi.CLIPPED_ADAM.init(params)), length=SETTINGS["num_steps"])[0][0]


def temperature_of(logits, y):
    """The temperature, on a grid from 0.1 to 100, with the least NLL."""
    grid = jnp.logspace(-1, 2, 301)
    nll = jax.vmap(lambda t: -densities.categorical_log_likelihood(logits / t, y).mean())(grid)
    return grid[nll.argmin()]


@jax.jit
def deterministic(key, x, y, held_out, x_all):
    """Probabilities of one network, its tempered twin, and the ensemble, at all points."""
    keys = jax.random.split(key, SETTINGS["members"] + 1)
    weights = jnp.concatenate([jnp.ones((SETTINGS["members"], y.size)), (~held_out).astype(x.dtype)[None]])
    params = jax.lax.map(lambda pair: network_fit(pair[0], x, y, pair[1]), (keys, weights))
    logits = jax.vmap(lambda w: NETWORK.apply(w, x_all))(params)
    seen = NETWORK.apply(jax.tree.map(lambda a: a[-1], params), x)
    # Points that are not held out get a logit and a label that no temperature changes.
    seen = jnp.where(held_out[:, None], seen, 0.0)
    temperature = temperature_of(seen, y)
    p = jax.nn.softmax(logits, axis=-1)
    return p[0], jax.nn.softmax(logits[-1] / temperature, axis=-1), p[:-1], temperature


@jax.jit
def variational(key, observed, x_all):
    """Probabilities of every draw, losses and the guide's parameters."""
    key_fit, key_draw = jax.random.split(key)
    fit = svi.run(key_fit, MODEL, GUIDE, (observed,), num_steps=SETTINGS["num_steps"], loss=ELBO)
    draws = svi.draw(key_draw, MODEL, GUIDE, fit.params, (observed,), SETTINGS["num_draws"])
    p = jax.lax.map(lambda w: jax.nn.softmax(NETWORK.apply(w, x_all), axis=-1), svi.network_position(draws))
    return p, fit


def entropy(p):
    """In bits."""
    return float(-(p * np.log2(np.clip(p, 1e-30, 1))).sum(axis=-1).mean())


def main():
    key_data, key_test, key_split, key_fit, key_net = jax.random.split(jax.random.key(SETTINGS["seed"]), 9)[4:]
    rows = []
    for redraw in range(SETTINGS["num_redraws"]):
        one = partial(jax.random.fold_in, data=redraw)
        train = data.spiral(one(key_data), SETTINGS["points_per_class"])
        test = data.spiral(one(key_test), SETTINGS["test_per_class"])
        x_all = jnp.concatenate([test.x, FAR])

        def row(name, p, temperature=1.0, losses=(), params=(), redraw=redraw, test=test):
            """Scores on fresh points, entropy there and far away; p [draw, point, class]."""
            mean = p.mean(axis=0)
            near, far = mean[: len(test.y)], mean[len(test.y) :]
            kept = {
                "redraw": redraw,
                "name": name,
                "scores": metrics.class_scores(near, test.y),
                "entropy_near": entropy(near),
                "entropy_far": entropy(far),
                "aleatoric_far": entropy(p[:, len(test.y) :]),
                "temperature": float(temperature),
                "losses": np.asarray(losses).tolist(),
                "params": params,
            }
            rows.append(kept)
            print(redraw, name, kept["scores"], kept["entropy_far"], kept["temperature"], flush=True)

        held_out = jax.random.permutation(one(key_split), train.y.size) < SETTINGS["held_out"] * train.y.size
        single, tempered, members, temperature = deterministic(one(key_net), train.x, train.y, held_out, x_all)
        row("one network", single[None])
        row("one network, temperature", tempered[None], temperature)
        row("ensemble of 5", members)
        for number, scale in enumerate(SETTINGS["prior_scales"]):
            observed = densities.observe(train.x, train.y, [scale, scale], num_classes=3)
            p, fit = variational(jax.random.fold_in(one(key_fit), number), observed, x_all)
            svi.check_losses(fit.losses)
            vector = np.asarray(ravel_pytree(fit.params)[0]).round(5).tolist() if redraw == 0 else []
            row(f"SVI, prior sd {scale:g}", p, losses=fit.losses.reshape(100, -1).mean(axis=1), params=vector)
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
