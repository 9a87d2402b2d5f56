"""Minibatches against full batches: the spiral, the moons of the stochastic-gradient source, and forty times as many.

All fits take the same number of steps, but for the largest full batch. Times are of the processor, in the machine
that wrote this result.
"""

from helpers import data, densities, networks, svi

import time
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import store
from numpyro.infer import TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal

SETTINGS = {
    "seed": 5001,  # the page's, whose keys are used here too
    "batch": 50,
    "num_particles": 10,
    "num_steps": 2000,
    "num_starts": 3,
    "num_draws": 200,
    "problems": ["spiral", "moons", "many moons"],
    "sizes": [300, 500, 20000],
    "large_steps": 300,  # of the full batch of the largest problem
}
LOSS = TraceMeanField_ELBO(num_particles=SETTINGS["num_particles"], vectorize_particles=False)
GUIDE = partial(AutoNormal, init_scale=1e-2)
MOONS, SPIRAL = networks.MLP(use_bias=True), networks.MLP((100,), nn.relu, True, 3)


def problem(key, name, size):
    """Return network, training data and 3000 test points; the moons are scaled by their training points."""
    key_train, key_test = jax.random.split(key)
    if name == "spiral":
        train, test = data.spiral(key_train, size // 3), data.spiral(key_test, 1000)
        return SPIRAL, densities.observe(train.x, train.y, [10.0, 10.0], num_classes=3), test
    train, test = data.two_moons(key_train, size, 0.2), data.two_moons(key_test, 3000, 0.2)
    location, scale = train.x.mean(axis=0, keepdims=True), train.x.std(axis=0, keepdims=True)
    observed = densities.observe((train.x - location) / scale, train.y, [1.0, 1.0, 1.0])
    return MOONS, observed, test._replace(x=(test.x - location) / scale)


@partial(jax.jit, static_argnums=(1, 2, 3))
def fit(key, network, batch, num_steps, observed):
    """Fit one guide."""
    model = partial(densities.flat_numpyro, network, batch_size=batch)
    return svi.run(key, model, GUIDE, (observed,), num_steps=num_steps, loss=LOSS)


@partial(jax.jit, static_argnums=1)
def judge(key, network, params, observed, x):
    """ELBO of all points, and mean probabilities of test points."""
    model = partial(densities.flat_numpyro, network)
    key_draw, key_weigh = jax.random.split(key)
    draws = svi.draw(key_draw, model, GUIDE, params, (observed,), SETTINGS["num_draws"])
    weights = svi.log_weights(key_weigh, model, GUIDE, params, (observed,), SETTINGS["num_draws"])
    logits = jax.lax.map(lambda w: network.apply(w, x), svi.network_position(draws))
    if network.num_outputs == 1:
        p = jax.nn.sigmoid(logits).mean(axis=0)
        return weights.mean(), jnp.stack([1 - p, p], axis=-1)
    return weights.mean(), jax.nn.softmax(logits, axis=-1).mean(axis=0)


def main():
    rows = []
    key_data, key_fit, key_judge = jax.random.split(jax.random.key(SETTINGS["seed"]), 23)[20:]
    for number, (name, size) in enumerate(zip(SETTINGS["problems"], SETTINGS["sizes"], strict=True)):
        network, observed, test = problem(jax.random.fold_in(key_data, number), name, size)
        for batch in (None, SETTINGS["batch"]):
            large = batch is None and size > 1000
            num_steps = SETTINGS["large_steps"] if large else SETTINGS["num_steps"]
            kept = {"problem": name, "size": size, "batch": batch or size, "num_steps": num_steps}
            kept |= {"seconds": [], "elbo": [], "nll": [], "accuracy": [], "losses": []}
            for start in range(SETTINGS["num_starts"]):
                key = jax.random.fold_in(key_fit, 10 * number + start)
                began = time.process_time()
                found = jax.block_until_ready(fit(key, network, batch, num_steps, observed))
                kept["seconds"].append(time.process_time() - began)
                svi.check_losses(found.losses)
                elbo, p = judge(jax.random.fold_in(key_judge, start), network, found.params, observed, test.x)
                of_label = np.take_along_axis(np.asarray(p), np.asarray(test.y)[:, None], axis=1)
                kept["elbo"].append(float(elbo))
                kept["nll"].append(float(-np.log(of_label).mean()))
                kept["accuracy"].append(100 * float((np.asarray(p).argmax(axis=1) == np.asarray(test.y)).mean()))
                kept["losses"].append(np.asarray(found.losses).reshape(100, -1).mean(axis=1).tolist())
            kept["seconds"] = kept["seconds"][1:]  # the first compiles
            rows.append(kept)
            print({key: value for key, value in kept.items() if key != "losses"}, flush=True)
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
