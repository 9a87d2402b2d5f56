"""Guides of variational inference by name, and log weights of their draws."""

from helpers import checks, svi
from helpers.common import mixed_types

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Key
from numpyro.distributions import constraints
from numpyro.distributions.transforms import AffineTransform, IndependentTransform
from numpyro.infer import Trace_ELBO, autoguide
from numpyro.infer.autoguide import AutoLaplaceApproximation


class Flow(autoguide.AutoIAFNormal):
    """NumPyro's inverse autoregressive guide, located and scaled last, so that it can start narrow.

    Without it the flow starts as wide as N(0, 1) round zero.
    """

    _init_scale = 0.1  # as of NumPyro's other guides

    def _get_posterior(self):
        flow = super()._get_posterior()
        loc = numpyro.param(f"{self.prefix}_loc", self._init_latent)
        start, positive = jnp.full(self.latent_dim, self._init_scale), constraints.softplus_positive
        scale = numpyro.param(f"{self.prefix}_scale", start, constraint=positive)
        last = IndependentTransform(AffineTransform(loc, scale), 1)
        return dist.TransformedDistribution(flow.base_dist, [*flow.transforms, last])


GUIDES = {
    "mean-field": autoguide.AutoNormal,
    "low-rank": partial(autoguide.AutoLowRankMultivariateNormal, rank=5),
    "full-rank": autoguide.AutoMultivariateNormal,
    "flow": partial(Flow, num_flows=2, hidden_dims=[32]),
}


def fit_and_draw(
    keys: Key[Array, "2"], model: Callable, guide: Callable, args: tuple, num_draws: int, **settings
) -> tuple[dict, svi.Fit]:
    """Fit a guide by ``svi.run`` and its settings; return draws by site, [draw], and the fit."""
    key_fit, key_draw = keys
    fit = svi.run(key_fit, model, guide, args, **settings)
    return svi.draw(key_draw, model, guide, fit.params, args, num_draws), fit


def log_weights(
    key: Key[Array, ""], model: Callable, guide: Callable, params: dict, args: tuple, num_draws: int
) -> Float[Array, " draw"]:
    """Return log p(y, w) - log q(w) at draws w of a guide; mean: the ELBO; tail: k-hat.

    ValueError: no draws; NumPyro's Laplace guide, which is a point while it is fitted.
    """
    checks.count(num_draws=num_draws)
    key_set_up, key_draw = jax.random.split(key)
    with mixed_types():
        ready = svi.made(key_set_up, model, guide, args)
        if isinstance(ready, AutoLaplaceApproximation):
            given = "AutoLaplaceApproximation, whose ELBO is that of a point"
            raise ValueError(f"guide: given {given}; expected another")
        keys, elbo = jax.random.split(key_draw, num_draws), Trace_ELBO()
        return -jax.lax.map(lambda k: elbo.loss(k, params, model, ready, *args), keys)
