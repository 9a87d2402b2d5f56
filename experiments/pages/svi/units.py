"""Does a mean-field guide lose the wave because many weights must hold one curve?

The waves of ``guides``, networks of more and more units whose prior curves stay of one size:
weights and bias of the output layer are N(0, 10 / units), all others N(0, 1). If holding a curve is
what costs, the guide calls more of the wave noise with more units, and the posterior does not. Each
guide starts at its own default and at the last draw of NUTS, with two initial scales; the highest
ELBO counts.
"""

from helpers import common, densities, diagnostics, mcmc, networks, svi

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import autoguide, init_to_value
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.methods import runs
from experiments.methods.autoguides import log_weights
from experiments.pages.svi import guides
from experiments.problems.numpyro_models import regression_model
from experiments.problems.wave_networks import curves

SETTINGS = {
    "seed": 3048,
    "num_redraws": 6,
    "num_units": [5, 10, 40, 160],
    "init_scales": [1e-3, 1e-2],
    "num_steps": 10_000,
    "num_draws": 1000,
    "num_chains": 4,
    "max_tree_depth": 10,
}
SIZES = {"num_warmup": 500, "num_samples": 1500}
SMALL = {"num_units": 5, "redraw": 0, "num_warmup": 200, "num_samples": 200, "num_steps": 1000}


def units():
    """A number of units on a redraw each, the widest first."""
    return {
        f"{width} units, {i}": {
            "num_units": width,
            "redraw": i,
            "num_steps": SETTINGS["num_steps"],
            **SIZES,
        }
        for width in reversed(SETTINGS["num_units"])
        for i in range(SETTINGS["num_redraws"])
    }


def unit(num_units, redraw, num_steps, **sizes):
    """Sample the posterior and fit the guides; keep curves at the test points, and noise."""
    points = guides.wave("whole", redraw)
    network = networks.MLP((num_units,), use_bias=True)
    prior = jnp.array([1.0, (10 / num_units) ** 0.5])
    observed = densities.observe(points.x_train, points.y_train, prior, num_classes=None)
    key_start, key_chains, *keys = jax.random.split(
        common.key(SETTINGS["seed"], num_units, redraw), 2 + 2 * len(SETTINGS["init_scales"])
    )
    shapes = {
        "params": networks.parameter_shapes(network, 1),
        "log_noise": jax.ShapeDtypeStruct((), jnp.float32),
    }
    starts = mcmc.normal_starts(key_start, shapes, (SETTINGS["num_chains"],), 0.5)
    posterior = mcmc.sample(
        key_chains,
        densities.regression_log_density(network, tfd.Normal(0.0, 1.0)),
        starts,
        data=observed,
        max_tree_depth=SETTINGS["max_tree_depth"],
        **sizes,
    )
    last = jax.tree.map(lambda a: a[0, -1], posterior.draws)
    places = [(last, scale) for scale in SETTINGS["init_scales"]]
    places += [(None, scale) for scale in SETTINGS["init_scales"]]
    fits = [
        fit(key, network, observed, *place, num_steps)
        for key, place in zip(keys, places, strict=True)
    ]
    f = curves(network, posterior.draws["params"], points.x_test[0])
    return {
        "NUTS": {
            "f": f,
            "noise": jnp.exp(posterior.draws["log_noise"]),
            **runs.kept_run(posterior),
        },
        "fits": {name: np.stack([one[name] for one in fits]) for name in fits[0]},
    }


def fit(key, network, observed, start, init_scale, num_steps):
    """Fit the mean-field guide from a position, or from its default; return noise, log weights."""
    model, options = partial(regression_model, network), {"init_scale": init_scale}
    if start is not None:
        sites = {
            f"net/{layer}.{leaf}": value
            for layer, leaves in start["params"]["params"].items()
            for leaf, value in leaves.items()
        }
        sites["noise"] = jnp.exp(start["log_noise"])
        options["init_loc_fn"] = init_to_value(values=sites)
    guide = partial(autoguide.AutoNormal, **options)
    key_fit, key_draw, key_weigh = jax.random.split(key, 3)
    fitted = svi.fit(key_fit, model, guide, (observed,), num_steps=num_steps, progress=False)
    arguments = model, guide, fitted.params, (observed,), SETTINGS["num_draws"]
    return {
        "noise": svi.draw(key_draw, *arguments)["noise"],
        "log_weights": log_weights(key_weigh, *arguments),
    }


def score(drawn, num_units, redraw, **_):
    """The noise by either, and whether chains agree; the fit of highest ELBO."""
    sampled, weights = drawn["NUTS"], drawn["fits"]["log_weights"]
    elbo = weights.mean(axis=1, dtype=np.float64)
    best = elbo.argmax()
    posterior = runs.run_from(sampled)
    noise = np.asarray(sampled["noise"])
    return {
        "num_units": num_units,
        "redraw": redraw,
        "noise": float(drawn["fits"]["noise"][best].mean()),
        "noise_nuts": float(noise.mean()),
        "noise_nuts_error": float(diagnostics.standard_error(noise)),
        "elbo": elbo.tolist(),
        "best": int(best),
        "check": runs.diagnosis(posterior, sampled["f"][..., ::10], log_noise=np.log(noise)),
    }


def rows(scored):
    """One row a number of units, with lists over redraws."""
    found = []
    for width in SETTINGS["num_units"]:
        of_width = [one for one in scored.values() if one["num_units"] == width]
        names = ("noise", "noise_nuts", "noise_nuts_error", "elbo", "best", "check")
        found.append(
            {"num_units": width} | {name: [one[name] for one in of_width] for name in names}
        )
    return found
