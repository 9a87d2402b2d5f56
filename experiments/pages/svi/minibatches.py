"""Minibatches against full batches: the spiral, the moons of the stochastic-gradient source, and
forty times as many.

All fits take the same number of steps, but for the largest full batch. Times are of the processor,
without compiling, on the core of whoever computed this result: only those of one problem may be
compared, and no check can.
"""

from helpers import common, data, densities, diagnostics, networks, svi

import time
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal

from experiments.methods.autoguides import log_weights
from experiments.problems.numpyro_models import flat_model
from experiments.problems.spirals import spiral

SETTINGS = {
    "seed": 5001,
    "batch": 50,
    "num_particles": 10,
    "num_steps": 2000,
    "num_starts": 3,
    "num_draws": 200,
    "problems": {"spiral": 300, "moons": 500, "many moons": 20_000},  # training points
    "large_steps": 300,  # of the full batch of the largest problem
}
LOSS = TraceMeanField_ELBO(num_particles=SETTINGS["num_particles"], vectorize_particles=False)
GUIDE = partial(AutoNormal, init_scale=1e-2)
MOONS, SPIRAL = networks.MLP(use_bias=True), networks.MLP((100,), nn.relu, True, 3)
SMALL = {"problem": "moons", "size": 500, "batch": 50, "num_steps": 2000}


def units() -> dict[str, dict]:
    """Return each problem by full batches and by small ones."""
    settings = [
        {"problem": problem, "size": size, "batch": batch, "num_steps": SETTINGS["num_steps"]}
        for problem, size in SETTINGS["problems"].items()
        for batch in (size, SETTINGS["batch"])
    ]
    for one in settings:
        if one["batch"] == max(SETTINGS["problems"].values()):
            one["num_steps"] = SETTINGS["large_steps"]
    return {f"{one['problem']}, {one['batch']} of {one['size']}": one for one in settings}


def network_and_data(
    problem: str, size: int
) -> tuple[networks.MLP, densities.Observed, data.Points]:
    """Return network, training data, 3000 test points; training points scale moons."""
    key_train, key_test = jax.random.split(common.key(SETTINGS["seed"], "data", problem))
    if problem == "spiral":
        train, test = spiral(key_train, size // 3), spiral(key_test, 1000)
        return SPIRAL, densities.observe(train.x, train.y, [10.0, 10.0], num_classes=3), test
    train, test = data.two_moons(key_train, size, 0.2), data.two_moons(key_test, 3000, 0.2)
    location, scale = train.x.mean(axis=0, keepdims=True), train.x.std(axis=0, keepdims=True)
    observed = densities.observe((train.x - location) / scale, train.y, [1.0, 1.0, 1.0])
    return MOONS, observed, test._replace(x=(test.x - location) / scale)


@partial(jax.jit, static_argnums=(1, 2, 3))
def fit(key, network, batch, num_steps, observed):
    """Fit one guide."""
    model = partial(flat_model, network, batch_size=batch)
    return svi.run(key, model, GUIDE, (observed,), num_steps=num_steps, loss=LOSS)


@partial(jax.jit, static_argnums=1)
def evaluate(key, network, params, observed, test):
    """Return log weights of all points, mean probabilities of test points, and of their label for
    every draw.
    """
    model = partial(flat_model, network)
    key_draw, key_weigh = jax.random.split(key)
    draws = svi.draw(key_draw, model, GUIDE, params, (observed,), SETTINGS["num_draws"])
    weights = log_weights(key_weigh, model, GUIDE, params, (observed,), SETTINGS["num_draws"])
    logits = jax.lax.map(lambda w: network.apply(w, test.x), svi.network_position(draws))
    if network.num_outputs == 1:
        logits = jnp.stack([jnp.zeros_like(logits), logits], axis=-1)
    p = jax.nn.softmax(logits, axis=-1)
    of_label = jnp.take_along_axis(p, test.y[None, :, None], axis=-1)[..., 0]
    return {"log_weights": weights, "p": p.mean(axis=0), "of_label": of_label}


def unit(problem: str, size: int, batch: int, num_steps: int) -> dict:
    """Return of each start losses, processor time and what ``evaluate`` does."""
    network, observed, test = network_and_data(problem, size)

    def key(part, start):
        return common.key(SETTINGS["seed"], part, problem, start)  # one for all batches

    compiled = fit.lower(key("fit", 0), network, batch, num_steps, observed).compile()
    found = []
    for start in range(SETTINGS["num_starts"]):
        began = time.process_time()
        fitted = jax.block_until_ready(compiled(key("fit", start), observed))
        seconds = time.process_time() - began
        svi.check_losses(fitted.losses)
        evaluated = evaluate(key("judge", start), network, fitted.params, observed, test)
        found.append({**evaluated, "losses": fitted.losses, "seconds": seconds})
    return jax.tree.map(lambda *leaves: np.stack(leaves), *found) | {"y": test.y}


def score(drawn: dict, problem: str, size: int, batch: int, num_steps: int) -> dict:
    """Return a row, lists over starts; errors are those of finitely many draws from each guide."""
    weights, of_label = drawn["log_weights"], drawn["of_label"]
    # independent draws, called chains
    parted = of_label.reshape(len(of_label), 4, -1, of_label.shape[-1])
    losses = drawn["losses"].reshape(len(weights), 100, -1)
    return {
        "problem": problem,
        "size": size,
        "batch": batch,
        "num_steps": num_steps,
        "seconds": drawn["seconds"].tolist(),
        "elbo": weights.mean(axis=1).tolist(),
        "elbo_error": (weights.std(axis=1, ddof=1) / np.sqrt(weights.shape[1])).tolist(),
        "nll": (-np.log(of_label.mean(axis=1, dtype=np.float64)).mean(axis=1)).tolist(),
        "nll_error": [diagnostics.nll_error(p, np.ones(p.shape[-1])) for p in parted],
        "accuracy": (100 * (drawn["p"].argmax(axis=-1) == drawn["y"]).mean(axis=1)).tolist(),
        "losses": losses.mean(axis=2).tolist(),
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each unit, in their order."""
    return list(scored.values())
