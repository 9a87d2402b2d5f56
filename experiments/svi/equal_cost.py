"""Guides tuned by one rule, Laplace's method and a short NUTS at the same number of gradients, on the waves of guides.

Each guide is fitted under every initial scale and learning rate of one grid, and the fit of the highest ELBO counts; no
test point is asked. Laplace's method has as many gradients, for many starts, of which the highest evidence by the
generalised Gauss-Newton matrix (GGN) counts. NUTS has as many, warm-up included. Training sets, test points and
the long NUTS that all are compared with are those of ``svi/guides``, by the same keys.
"""

from helpers import densities, mcmc, svi
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from jax.flatten_util import ravel_pytree
from numpyro.distributions import constraints
from numpyro.distributions.transforms import AffineTransform, IndependentTransform
from numpyro.infer import Trace_ELBO, autoguide
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments import shared
from experiments.regression.variants import curves
from experiments.svi import guides
from experiments.svi.models import log_weights

SETTINGS = {
    "seed": 5011,
    "num_redraws": 6,
    "guides": ["mean-field", "low-rank", "full-rank", "flow"],
    "init_scales": [1e-3, 1e-2, 1e-1],
    "learning_rates": [1e-3, 3e-3, 1e-2, 3e-2],  # falling to 0 along a cosine
    "num_steps": 10_000,
    "num_particles": 10,
    "num_draws": 1000,
    "laplace_starts": 120,  # as many gradients as the grid of a guide takes: 12 times 10 particles
    "start_scale": 0.5,  # as of NUTS
    "laplace_rate": 1e-2,
    "short": {"num_warmup": 140, "num_samples": 150, "max_tree_depth": 10},  # at most 4 * 290 * 1023 gradients
    "reference_samples": 1500,
}
LAPLACES = ["Laplace, linearised", "Laplace, GGN", "Laplace, Hessian"]
SMALL = {
    "kind": "whole",
    "redraw": 0,
    "names": ["mean-field"],
    "num_steps": 500,
    "num_starts": 10,
    "num_reference": 300,
}


class Flow(autoguide.AutoIAFNormal):
    """NumPyro's inverse autoregressive guide, then a location and a scale of each unknown, so that it can start narrow.

    Without it the flow starts as wide as N(0, 1) round zero.
    """

    def __init__(self, model, *, init_scale, **options):
        self._init_scale = init_scale
        super().__init__(model, **options)

    def _get_posterior(self):
        flow = super()._get_posterior()
        loc = numpyro.param(f"{self.prefix}_loc", self._init_latent)
        scale = jnp.full(self.latent_dim, self._init_scale)
        scale = numpyro.param(f"{self.prefix}_scale", scale, constraint=constraints.softplus_positive)
        last = IndependentTransform(AffineTransform(loc, scale), 1)
        return dist.TransformedDistribution(flow.base_dist, [*flow.transforms, last])


GUIDES = {
    "mean-field": autoguide.AutoNormal,
    "low-rank": partial(autoguide.AutoLowRankMultivariateNormal, rank=5),
    "full-rank": autoguide.AutoMultivariateNormal,
    "flow": partial(Flow, num_flows=2, hidden_dims=[32]),
}


def units() -> dict[str, dict]:
    """Return every redraw, with and without a gap."""
    sizes = {"names": SETTINGS["guides"], "num_steps": SETTINGS["num_steps"]}
    sizes |= {"num_starts": SETTINGS["laplace_starts"], "num_reference": SETTINGS["reference_samples"]}
    return {
        f"{kind}, redraw {redraw}": {"kind": kind, "redraw": redraw, **sizes}
        for kind in ("whole", "gap")
        for redraw in range(SETTINGS["num_redraws"])
    }


def unit(kind: str, redraw: int, names: list[str], num_steps: int, num_starts: int, num_reference: int) -> dict:
    """Return draws of both runs of NUTS, [chain, draw], of each guide's best fit and of Laplace's method, [draw]."""
    points = guides.wave(kind, redraw)
    observed = densities.observe(points.x_train, points.y_train, [1.0, 1.0], num_classes=None)
    key = partial(shared.key, SETTINGS["seed"])
    found = {"NUTS": guides.nuts(kind, redraw, observed, num_reference)}
    found["NUTS, short"] = short_nuts(key("short", kind, redraw), observed)
    for name in names:
        found[name] = best_fit(name, partial(key, kind, redraw, name), num_steps, observed)
    return found | laplace(key("Laplace", kind, redraw), observed, num_starts, num_steps)


def short_nuts(key, observed):
    """NUTS with no more gradients than a guide has."""
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(key_start, guides.SHAPES, (guides.SETTINGS["num_chains"],), SETTINGS["start_scale"])
    posterior = mcmc.sample(key_chains, guides.LOG_DENSITY, starts, data=observed, **SETTINGS["short"])
    noise = jnp.exp(posterior.draws["log_noise"])
    return {"weights": posterior.draws["params"], "noise": noise, **shared.kept_of(posterior)}


def best_fit(name, key, num_steps, observed):
    """Return draws and log weights of the fit of the highest ELBO, and the ELBO of all, [init_scale, learning rate]."""
    rates = jnp.array(SETTINGS["learning_rates"])
    found = []
    for init_scale in SETTINGS["init_scales"]:
        keys = jnp.stack([key(init_scale, rate) for rate in SETTINGS["learning_rates"]])
        found.append(jax.device_get(fits(keys, rates, name, init_scale, num_steps, observed)))
    elbo = np.array([fit["log_weights"].mean(axis=1) for fit in found], np.float64)
    elbo = np.where(np.isfinite(elbo), elbo, -np.inf)  # a fit that failed
    scale, rate = np.unravel_index(elbo.argmax(), elbo.shape)
    return take(found[scale], rate) | {"elbo": elbo}


@partial(jax.jit, static_argnums=(2, 3, 4))
def fits(keys, rates, name, init_scale, num_steps, observed):
    """Fit one guide from one initial scale with each learning rate; draws of weights and noise, and log weights."""
    loss = svi.ELBO if name == "mean-field" else Trace_ELBO(num_particles=SETTINGS["num_particles"])
    guide = partial(GUIDES[name], init_scale=init_scale)

    def one(pair):
        key, rate = pair
        key_fit, key_draw, key_weigh = jax.random.split(key, 3)
        decaying = optax.adam(optax.cosine_decay_schedule(rate, num_steps))
        optimizer = optax.chain(optax.clip_by_global_norm(10.0), decaying)
        settings = {"num_steps": num_steps, "loss": loss, "optimizer": optimizer}
        fitted = svi.run(key_fit, guides.MODEL, guide, (observed,), **settings)
        arguments = guides.MODEL, guide, fitted.params, (observed,), SETTINGS["num_draws"]
        draws = svi.draw(key_draw, *arguments)
        weights = svi.network_position(draws)
        return {"weights": weights, "noise": draws["noise"], "log_weights": log_weights(key_weigh, *arguments)}

    return jax.lax.map(one, (keys, rates))


def laplace(key, observed, num_starts, num_steps):
    """Return the best top, and draws of weights and noise by the GGN and by the Hessian there, by arm."""
    key_start, key_draw = jax.random.split(key)
    starts = mcmc.normal_starts(key_start, guides.SHAPES, (num_starts,), SETTINGS["start_scale"])
    tops, height, ggn, hessian = jax.device_get(climb(starts, observed, num_steps))
    evidence = np.array([height[i] - 0.5 * np.linalg.slogdet(ggn[i].astype(np.float64))[1] for i in range(num_starts)])
    best = int(np.where(np.isfinite(evidence), evidence, -np.inf).argmax())
    top, unravel = ravel_pytree(take(tops, best))
    z = np.random.default_rng(np.asarray(jax.random.key_data(key_draw))).normal(size=(SETTINGS["num_draws"], top.size))
    mode = take(tops, best)
    found = {}
    for name, precision in (("Laplace, GGN", ggn[best]), ("Laplace, Hessian", hessian[best])):
        values, vectors = np.linalg.eigh(precision.astype(np.float64))
        # A direction that does not curve down has no width, as in NumPyro's guide the whole has none.
        width = np.where(values > 0, 1, 0) / np.sqrt(np.where(values > 0, values, 1.0))
        width = width * (values > 0).all()
        drawn = jax.vmap(unravel)(jnp.asarray(top + (z * width) @ vectors.T, top.dtype))
        found[name] = {"weights": drawn["params"], "noise": jnp.exp(drawn["log_noise"]), "least": values.min()}
    log_evidence = evidence[best] + 0.5 * top.size * np.log(2 * np.pi)
    more = {"mode": mode["params"], "log_evidence": log_evidence, "top": height[best], "tops": height}
    return found | {"Laplace, linearised": found["Laplace, GGN"] | more}


@partial(jax.jit, static_argnums=2)
def climb(starts, observed, num_steps):
    """Return the tops that Adam reaches, their log density, and minus its curvature there: GGN and Hessian."""
    optimizer = optax.adam(optax.cosine_decay_schedule(SETTINGS["laplace_rate"], num_steps))
    optimizer = optax.chain(optax.clip_by_global_norm(10.0), optimizer)

    def loss(position):
        return -guides.LOG_DENSITY(position, observed)

    tops, _ = jax.vmap(lambda start: shared.train(loss, start, optimizer, num_steps))(starts)

    def curved(position):
        vector, unravel = ravel_pytree(position)
        hessian = jax.hessian(lambda v: loss(unravel(v)))(vector)
        return -loss(position), gauss_newton(position, observed), hessian

    return tops, *jax.lax.map(curved, tops)


OF_PRIOR = densities.regression_log_prior(tfd.Normal(0.0, 1.0))


def gauss_newton(position, observed):
    """Return minus the log prior's Hessian plus J' F J: J of curve and log noise, F their Fisher information."""
    vector, unravel = ravel_pytree(position)

    def outputs(v):
        given = unravel(v)
        return guides.NETWORK.apply(given["params"], observed.x), given["log_noise"]

    of_curve, of_noise = jax.jacobian(outputs)(vector)
    prior = jax.hessian(lambda v: OF_PRIOR(unravel(v), observed))(vector)
    information = of_curve.T @ of_curve / jnp.exp(2 * position["log_noise"])
    return information + 2 * observed.y.size * jnp.outer(of_noise, of_noise) - prior


@jax.jit
def linearised(mode, weights, x):
    """Return curves [draw, point] of the network's first-order expansion round the mode (Immer et al. 2021)."""

    def one(weights):
        move = jax.tree.map(jnp.subtract, weights, mode)
        value, slope = jax.jvp(lambda w: guides.NETWORK.apply(w, x), (mode,), (move,))
        return value + slope

    return jax.lax.map(one, weights)


def score(
    drawn: dict, kind: str, redraw: int, names: list[str], num_steps: int, num_starts: int, num_reference: int
) -> dict:
    """Return the scores of NUTS, of its half, and of every arm, with the number of its gradients."""
    points, reference = guides.wave(kind, redraw), drawn["NUTS"]
    none = {"elbo": [], "elbo_error": [], "k_hat": [], "tuning": {}}
    found = guides.score({"NUTS": reference}, kind, redraw, [], [], num_reference)
    found = {name: one | none for name, one in found.items()}
    x = jnp.concatenate([points.grid, points.x_test.reshape(-1, 1)])

    def thinned(run):
        f, noise = np.asarray(curves(guides.NETWORK, run["weights"], x)), run["noise"]
        thin = max(1, noise.size // SETTINGS["num_draws"])
        return f, f[:, ::thin].reshape(-1, f.shape[-1]), noise[:, ::thin].ravel()

    of_reference = thinned(reference)[1]
    short = drawn["NUTS, short"]
    run, (f, *draws) = shared.run_of(short), thinned(short)
    gradients = float(run.stats.integration_steps.sum())
    gradients += SETTINGS["short"]["num_warmup"] * float(run.warmup.mean_steps.sum())
    check = shared.diagnosed(run, f[..., :200:10])
    scores = guides.of_draws(*draws, of_reference, points)
    found["NUTS, short"] = scores | none | {"gradients": gradients, "check": check}
    for name in [*names, *LAPLACES]:
        arm = drawn[name]
        if name == "Laplace, linearised":
            f = np.asarray(linearised(arm["mode"], arm["weights"], x))
        else:
            f = np.asarray(curves(guides.NETWORK, jax.tree.map(lambda a: a[None], arm["weights"]), x))[0]
        more = none | {"check": {}}
        if name in names:
            scale, rate = np.unravel_index(arm["elbo"].argmax(), arm["elbo"].shape)
            tuning = {"init_scale": SETTINGS["init_scales"][scale], "rate": SETTINGS["learning_rates"][rate]}
            tuning |= {"failed": int((~np.isfinite(arm["elbo"])).sum())}
            size = arm["elbo"].size * num_steps * SETTINGS["num_particles"]
            more |= guides.of_weights(arm["log_weights"]) | {"tuning": tuning, "gradients": size}
        else:
            more |= {"gradients": num_starts * num_steps, "tuning": {"least curvature": float(arm["least"])}}
        if name == "Laplace, linearised":
            more["tuning"] |= {"log_evidence": float(arm["log_evidence"]), "top": float(arm["top"])}
        found[name] = guides.of_draws(f, arm["noise"], of_reference, points) | more
    return found


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each arm, with and without a gap: lists over redraws."""
    settings = units()

    def row(kind, name):
        redraws = [dict(scored[unit][name]) for unit in scored if settings[unit]["kind"] == kind]
        check, tuning = ([one.pop(entry) for one in redraws] for entry in ("check", "tuning"))
        lists = jax.tree.map(lambda *values: list(values), *redraws)
        return {"data": kind, "name": name, **lists, "check": check if check[0] else [], "tuning": tuning}

    arms = ["NUTS, half", "NUTS", "NUTS, short", *SETTINGS["guides"], *LAPLACES]
    return [row(kind, name) for kind in ("whole", "gap") for name in arms]
