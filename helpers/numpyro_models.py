"""A NumPyro model as a log density: what ``mcmc.sample`` takes, and its draws back on the scale on
which the model was written.

    def model(data):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        numpyro.sample("y", dist.Normal(slope * data["x"], noise), obs=data["y"])

    found = numpyro_models.of(model, data)
    starts = mcmc.normal_starts(key_start, found.shapes, (4,), scale=0.3)
    posterior = mcmc.sample(key, found.log_density, starts, data=data)
    draws = numpyro_models.constrained(found, posterior.draws, data)  # {"slope": ..., "noise": ...}

A model has one argument, any pytree of arrays. Its latent sites are continuous.
"""

from helpers import checks, predict

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import constrain_fn, potential_energy


class Found(NamedTuple):
    """A model as samplers take it."""

    # f(position, data), in nats, whose position is on NumPyro's unconstrained scale
    log_density: Callable[[dict, Any], Float[Array, ""]]
    shapes: dict  # and types of one position, by latent site
    model: Callable[[Any], None]


def of(model: Callable[[Any], None], data: Any) -> Found:
    """Return a NumPyro model as a log density of unconstrained positions, with their shapes.

    Nothing is computed: the model is traced once for its shapes, so that this takes milliseconds,
    where ``numpyro.infer.util.initialize_model`` compiles for seconds.

    Args:
        model: a function of the data, with ``numpyro.sample``.
        data: what it takes, any pytree of arrays, with the observed values.

    ValueError: no latent site, a discrete one.
    """
    shapes = {}

    def trace(data):
        sites = handlers.trace(handlers.seed(model, jax.random.key(0))).get_trace(data)
        for name, site in sites.items():
            if site["type"] != "sample" or site["is_observed"]:
                continue
            if site["fn"].support.is_discrete:
                raise ValueError(f"model: given the discrete latent {name!r}, expected none")
            shape = biject_to(site["fn"].support).inverse_shape(jnp.shape(site["value"]))
            shapes[name] = jax.ShapeDtypeStruct(shape, jnp.result_type(float))

    jax.eval_shape(trace, data)
    if not shapes:
        raise ValueError("model: given no latent site, expected some")

    def log_density(position, data):
        return -potential_energy(model, (data,), {}, position)

    return Found(log_density, shapes, model)


def constrained(found: Found, draws: dict, data: Any, keep: Callable[[str], bool] = bool) -> dict:
    """Return draws as the model has them, deterministic sites among them: NumPy arrays by site,
    leading axes [chain, draw].

    Args:
        found: the model.
        draws: unconstrained, by site, leading axes [chain, draw], as ``mcmc.sample`` returns them.
        data: what the model takes.
        keep: whether a site, by its name, is returned.

    ValueError: other sites than the model's, leading axes that differ.
    """
    if draws.keys() != found.shapes.keys():
        raise ValueError(f"draws: given sites {[*draws]}, expected {[*found.shapes]}")
    checks.leading("draws", draws, ("chain", "draw"))
    for name, shape in found.shapes.items():
        if np.shape(draws[name])[2:] != shape.shape:
            raise ValueError(
                f"draws: given {name!r} of shape {np.shape(draws[name])}, expected "
                f"[chain, draw, {', '.join(map(str, shape.shape))}]"
            )

    def one(position):
        sites = constrain_fn(found.model, (data,), {}, position, return_deterministic=True)
        return {name: site for name, site in sites.items() if keep(name)}

    return predict.by_chain(one, draws)
