"""The spiral's networks on redrawn training sets: SVI at two prior scales, one network, its
temperature, an ensemble.

The temperature is fitted on training points that its network has not seen. The page draws its maps
from the guide of the first redraw, which is stored.
"""

from helpers import common, densities, metrics, svi, training
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.infer import TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal
from scipy.special import log_softmax, logsumexp

from experiments.problems import spirals
from experiments.problems.numpyro_models import flat_model

SETTINGS = {
    "seed": 5001,
    "num_redraws": 5,
    "points_per_class": 100,
    "test_per_class": 1000,
    "num_steps": 10_000,
    "init_scale": 1e-2,
    "prior_scales": [10.0, 1.0],
    "num_draws": 200,
    "members": 5,
    "held_out": 0.2,
    "far": 3.0,  # radius of the circle on which entropy is far from the data
}
MODEL = partial(flat_model, spirals.NETWORK)
GUIDE = partial(AutoNormal, init_scale=SETTINGS["init_scale"])
# the same, in less time on a CPU
ELBO = TraceMeanField_ELBO(num_particles=10, vectorize_particles=False)
SMALL = {"redraw": 0, "prior_scale": 10.0, "num_steps": 500}


def units() -> dict[str, dict]:
    """Return for each redraw its networks (no prior) and the guides of both priors."""
    return {
        f"redraw {redraw}, {f'SVI, prior sd {scale:g}' if scale else 'networks'}": {
            "redraw": redraw,
            "prior_scale": scale,
            "num_steps": SETTINGS["num_steps"],
        }
        for redraw in range(SETTINGS["num_redraws"])
        for scale in (None, *SETTINGS["prior_scales"])
    }


def unit(redraw: int, prior_scale: float | None, num_steps: int) -> dict:
    """Return weights, [member] or [draw]; of a guide its losses and parameters, too."""
    train, test, held_out = spirals.problem(redraw)
    if prior_scale is None:
        members = SETTINGS["members"] + 1  # the last one is for the temperature
        keys = jnp.stack(
            [common.key(SETTINGS["seed"], "network", redraw, member) for member in range(members)]
        )
        weight = jnp.ones((members, train.y.size)).at[-1].set(~held_out)
        return networks_of(keys, train, test, weight, num_steps)
    observed = densities.observe(train.x, train.y, 2 * [prior_scale], num_classes=3)
    keys = [common.key(SETTINGS["seed"], part, redraw, prior_scale) for part in ("fit", "draw")]
    found = variational(*keys, observed, num_steps)
    svi.check_losses(found["losses"])
    return found


@partial(jax.jit, static_argnums=4)
def networks_of(keys, train, test, weight, num_steps):
    """Train networks on the mean cross-entropy of points of weight 1, as the lecture does.

    Returns also the NLL on fresh points as they learn, [network, hundred steps].
    """

    def nll(params, points, weight):
        log_p = densities.categorical_log_likelihood(
            spirals.NETWORK.apply(params, points.x), points.y
        )
        return -(weight * log_p).sum() / weight.sum()

    def one(pair):
        key, weight = pair
        losses = [
            partial(nll, points=p, weight=w)
            for p, w in ((train, weight), (test, jnp.ones(test.y.shape)))
        ]
        found = training.train(
            losses[0],
            spirals.NETWORK.init(key, train.x),
            svi.CLIPPED_ADAM,
            num_steps,
            losses[1],
            every=100,
        )
        return {"params": found[0]["params"], "fresh_nll": found[1]}

    return jax.lax.map(one, (keys, weight))


@partial(jax.jit, static_argnums=3)
def variational(key_fit, key_draw, observed, num_steps):
    """Return draws of the fitted guide, losses and the guide's parameters as one vector."""
    fit = svi.run(key_fit, MODEL, GUIDE, (observed,), num_steps=num_steps, loss=ELBO)
    draws = svi.draw(key_draw, MODEL, GUIDE, fit.params, (observed,), SETTINGS["num_draws"])
    return svi.network_position(draws) | {
        "losses": fit.losses,
        "guide": ravel_pytree(fit.params)[0],
    }


def score(drawn: dict, redraw: int, prior_scale: float | None, num_steps: int) -> dict:
    """Return scores on fresh points, and entropies there and far away, by method."""
    train, test, held_out = spirals.problem(redraw)
    angles = jnp.linspace(0, 2 * jnp.pi, 100, endpoint=False)
    far = SETTINGS["far"] * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)
    logits = _logits({"params": drawn["params"]}, jnp.concatenate([test.x, far]))
    # float32 has no probability below 1e-45
    logits, y = np.asarray(logits, np.float64), np.asarray(test.y)
    log_p = log_softmax(logits, axis=-1)
    if prior_scale is not None:
        losses, of_guide = drawn["losses"].reshape(100, -1), []
        if redraw == 0:  # the page's
            of_guide = drawn["guide"].astype(np.float64).round(5).tolist()
        kept = {"losses": losses.mean(axis=1).tolist(), "params": of_guide}
        kept["losses_error"] = (losses.std(axis=1) / np.sqrt(losses.shape[1])).tolist()
        return {f"SVI, prior sd {prior_scale:g}": scores(log_p, y) | kept}
    seen = spirals.NETWORK.apply({"params": take(drawn["params"], -1)}, train.x[held_out])
    temperature = temperature_of(seen, train.y[held_out])
    tempered = log_softmax(logits[-1:] / float(temperature), axis=-1)
    alone = [scores(one[None], y) for one in log_p[:-1]]
    values = {
        name: [one[name] for one in alone]
        for name in ("entropy_near", "entropy_far", "aleatoric_far")
    }
    return {
        # What one network may be off by is the spread of networks from other starts.
        "one network": with_errors(
            alone[0], values | {"NLL": [one["scores"]["NLL"] for one in alone]}
        )
        | {"losses": drawn["fresh_nll"][0].tolist()},  # of fresh points, every hundred steps
        "one network, temperature": scores(tempered, y) | {"temperature": float(temperature)},
        "ensemble of 5": scores(log_p[:-1], y),
    }


_logits = jax.jit(
    lambda weights, x: jax.lax.map(lambda one: spirals.NETWORK.apply(one, x), weights)
)


@jax.jit
def temperature_of(logits, y):
    """The temperature, on a grid from 0.1 to 100, with the least NLL."""
    grid = jnp.logspace(-1, 2, 301)
    nll = jax.vmap(lambda t: -densities.categorical_log_likelihood(logits / t, y).mean())(grid)
    return grid[nll.argmin()]


def scores(log_p, y):
    """Score the mean of independent log_p [draw, point, class]; the last points are far away.

    Where the mean moves from q to q + d, its NLL moves by -mean(d / q) of the label, and its
    entropy by minus the sum of d log q, to first order: errors are those of the means of these
    numbers over draws.
    """
    p, size, at = np.exp(log_p), len(y), np.arange(len(y))
    mean, of_label = p.mean(axis=0), logsumexp(log_p[:, at, y], axis=0) - np.log(len(p))
    bits = -np.log2(np.clip(mean, 1e-30, 1))
    of_draws = {
        "NLL": np.exp(log_p[:, at, y] - of_label).mean(axis=1),
        "entropy_near": (p[:, :size] * bits[:size]).sum(axis=-1).mean(axis=1),
        "entropy_far": (p[:, size:] * bits[size:]).sum(axis=-1).mean(axis=1),
        "aleatoric_far": entropy(p[:, size:]).mean(axis=1),
    }
    found = {
        "scores": metrics.class_scores(jnp.float32(mean[:size]), y)
        | {"NLL": float(-of_label.mean())},
        "entropy_near": float(entropy(mean[:size]).mean()),
        "entropy_far": float(entropy(mean[size:]).mean()),
        "aleatoric_far": float(of_draws["aleatoric_far"].mean()),
        "temperature": 1.0,
        "losses": [],
        "params": [],
    }
    return with_errors(found, of_draws, 1 / np.sqrt(len(p))) if len(p) > 1 else found


def with_errors(found, values, share=1.0):
    """Put beside scores the standard deviation of values by name, times what of it is the error."""
    errors = {f"{name}_error": float(share * np.std(values[name], ddof=1)) for name in values}
    return found | {"scores": found["scores"] | {"NLL_error": errors.pop("NLL_error")}} | errors


def entropy(p):
    """In bits."""
    return -(p * np.log2(np.clip(p, 1e-30, 1))).sum(axis=-1)


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each redraw and method."""
    settings = units()
    return [
        {"redraw": settings[unit]["redraw"], "name": name, **found}
        for unit, methods in scored.items()
        for name, found in methods.items()
    ]
