"""The NumPyro port's study, whole, by NumPyro alone: separate networks, the hierarchical network,
and separate networks under the prior that it has learnt.

The sources' own tasks, NumPyro's sampler at its defaults, but four chains where the port has one;
and the hierarchical network once more at a higher target acceptance, since divergences are likely
at the default (0.9 was tried first, where ten of 4000 draws diverged). From that run is the
informed prior. It is the port's: a normal of each layer's weights, fitted to weights of new tasks
that are drawn from one chain, one for each draw of it.
"""

from helpers import common, data, diagnostics, mcmc, plots

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS

from experiments.methods import runs, scoring

SETTINGS = {
    "seed": 3045,
    "num_warmup": 1000,
    "num_samples": 1000,
    "num_chains": 4,
    "thin": 2,  # of draws whose predictions are kept
    "shown": [0, 2, 8, 10, 12, 17],  # tasks whose surfaces are kept
    "grid": 31,  # points of a side
}
DEFAULT = 0.8  # NumPyro's target acceptance
HIGHER = "hierarchical, 0.95"
TARGETS = {"flat": DEFAULT, "hierarchical": DEFAULT, HIGHER: 0.95}
SHAPES = {"w0": (2, 5), "w1": (5, 5), "w2": (5, 1)}
UNKNOWN = ("at_limit", "begun_again")
FIELDS = ("potential_energy", "energy", "diverging", "num_steps")


def flat(x, y=None, prior=None):
    """One task's network, points [point, 2]; of a prior the location and factor of each layer."""
    h = x
    for name, shape in SHAPES.items():
        if prior is None:
            w = numpyro.sample(name, dist.Normal().expand(shape).to_event(2))
        else:
            loc, factor = prior[name]
            w = numpyro.sample(name, dist.MultivariateNormal(loc, scale_tril=factor)).reshape(shape)
        h = h @ w if name == "w2" else jnp.tanh(h @ w)
    numpyro.sample("y", dist.Bernoulli(logits=h[:, 0]).to_event(1), obs=y)


def hierarchical(x, y=None):
    """All tasks' networks, points [task, point, 2]."""
    h = x
    for name, shape in SHAPES.items():
        mean = numpyro.sample(f"mean_{name}", dist.Normal().expand(shape).to_event(2))
        sd = numpyro.sample(f"sd_{name}", dist.HalfNormal())
        each = dist.Normal().expand((len(x), *shape)).to_event(3)
        w = mean + sd * numpyro.sample(f"offset_{name}", each)
        h = h @ w if name == "w2" else jnp.tanh(h @ w)
    numpyro.sample("y", dist.Bernoulli(logits=h[..., 0]).to_event(2), obs=y)


def units():
    """Separate networks, and the hierarchical one at both targets."""
    return {name: {"name": name, "num_tasks": 18, **SIZES} for name in TARGETS}


SIZES = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
SMALL = {"name": HIGHER, "num_tasks": 3, "num_warmup": 200, "num_samples": 200}


def sampler_of(model, num_warmup, num_samples, target=DEFAULT):
    """Return NumPyro's sampler, whose chains run side by side in one program."""
    return MCMC(
        NUTS(model, target_accept_prob=target),
        num_warmup=num_warmup,
        num_samples=num_samples,
        num_chains=SETTINGS["num_chains"],
        chain_method="vectorized",
        progress_bar=False,
        jit_model_args=True,
    )


def run(sampler, key, *of_model):
    """Run a sampler; return draws [chain, draw] and statistics."""
    sampler.run(key, *of_model, extra_fields=FIELDS)
    draws = sampler.get_samples(group_by_chain=True)
    fields = sampler.get_extra_fields(group_by_chain=True)
    return {"draws": draws, "stats": {name: fields[name] for name in FIELDS}}


def separate(key, tasks, prior, **sizes):
    """Fit each task alone; draws [task, chain, draw] of weights in their layers' shapes."""
    sampler = sampler_of(flat, **sizes)
    keys = jax.random.split(key, len(tasks.x_train))
    each = [
        run(sampler, *pair, prior) for pair in zip(keys, tasks.x_train, tasks.y_train, strict=True)
    ]
    found = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    draws = {name: a.reshape(*a.shape[:3], *SHAPES[name]) for name, a in found["draws"].items()}
    return found | {"draws": draws}


def unit(name, num_tasks, **sizes):
    """Sample one of the models; keep draws."""
    tasks = jax.tree.map(lambda a: a[:num_tasks], data.source_moons())
    key = common.key(SETTINGS["seed"], name)
    if name == "flat":
        return {"flat": separate(key, tasks, None, **sizes)}
    key_shared, key_prior, key_each = jax.random.split(key, 3)
    sampler = sampler_of(hierarchical, **sizes, target=TARGETS[name])
    shared = run(sampler, key_shared, tasks.x_train, tasks.y_train)
    if name != HIGHER:
        return {name: shared}
    prior = informed(key_prior, shared["draws"])
    return {name: shared, "informed prior": separate(key_each, tasks, prior, **sizes)}


def informed(key, draws):
    """Return location and Cholesky factor of each layer's weights for a task not seen."""
    prior = {}
    for one, (name, shape) in zip(jax.random.split(key, len(SHAPES)), SHAPES.items(), strict=True):
        mean, sd = draws[f"mean_{name}"][0], draws[f"sd_{name}"][0]
        new = mean + sd[:, None, None] * jax.random.normal(one, (len(mean), *shape))
        new = np.asarray(new, np.float64).reshape(len(mean), -1)
        factor = np.linalg.cholesky(np.cov(new, rowvar=False))
        prior[name] = jnp.asarray(new.mean(axis=0), jnp.float32), jnp.asarray(factor, jnp.float32)
    return prior


@jax.jit
def probabilities(weights, x):
    """Return p [chain, draw, task, point] of weights [task, chain, draw] at x [task, point, 2]."""

    def of_task(pair):
        weights, h = pair
        for name in SHAPES:
            h = jnp.einsum("...pi,...ij->...pj", h, weights[name])
            h = h if name == "w2" else jnp.tanh(h)
        return jax.nn.sigmoid(h[..., 0])

    return jnp.moveaxis(jax.lax.map(of_task, (weights, x)), 0, 2)


def weights_of(draws):
    """Return weights [task, chain, draw] of some draws of either kind."""
    if "w0" in draws:
        return {name: draws[name][:, :, :: SETTINGS["thin"]] for name in SHAPES}
    some = {name: a[:, :: SETTINGS["thin"]] for name, a in draws.items()}
    return {
        name: np.moveaxis(
            some[f"mean_{name}"][:, :, None]
            + some[f"sd_{name}"][..., None, None, None] * some[f"offset_{name}"],
            2,
            0,
        )
        for name in SHAPES
    }


def score(drawn, name, num_tasks, **_):
    """Scores of each fit, how far its chains agree, and its surfaces."""
    return {fit: scored(found, num_tasks) for fit, found in drawn.items()}


def scored(found, num_tasks):
    """Scores of one fit."""
    tasks, fresh = (
        jax.tree.map(lambda a: a[:num_tasks], of)
        for of in (data.source_moons(), data.fresh_moons())
    )
    weights = weights_of(found["draws"])
    of_train, of_test, p = (
        np.asarray(probabilities(weights, x)) for x in (tasks.x_train, tasks.x_test, fresh.x_test)
    )
    sds = {n: np.log(found["draws"][n]) for n in found["draws"] if n.startswith("sd_")}
    check = check_of_run(found["stats"], p, sds)
    corners = plots.grid(SETTINGS["grid"])
    shown = [task for task in SETTINGS["shown"] if task < num_tasks]
    of_shown = {n: a[np.array(shown)] for n, a in weights.items()}
    surfaces = probabilities(of_shown, jnp.broadcast_to(corners, (len(shown), *corners.shape)))
    return scoring.scored(p, np.asarray(fresh.y_test)) | {
        "accuracy_train": right(of_train, tasks.y_train),
        "accuracy_test": right(of_test, tasks.y_test),
        "check": {k: v for k, v in runs.row_of(check).items() if k not in UNKNOWN},
        "more": {
            "sd_by_chain": {n: np.exp(np.median(a, axis=1)).tolist() for n, a in sds.items()},
            "surfaces": np.asarray(surfaces.mean(axis=(0, 1))).round(3).tolist(),
        },
    }


def check_of_run(stats, p, sds):
    """Return the check of a run of either kind; NumPyro keeps nothing of its warm-up."""
    potential, energy, diverging, steps = (np.asarray(stats[name]) for name in FIELDS)
    posterior = mcmc.Posterior(None, mcmc.Stats(-potential, diverging, None, energy, steps))
    predictions = p[..., ::200]
    if potential.ndim == 3:  # tasks alone come first
        predictions = np.moveaxis(predictions, 2, 0)
    return diagnostics.check(posterior, predictions, **({"log_sd": sds} if sds else {}))


def right(p, y):
    """Return the accuracy of the mean of draws, in percent."""
    return float(100 * ((p.mean(axis=(0, 1)) > 0.5) == (np.asarray(y) == 1)).mean())


def rows(scores):
    """One row a fit."""
    return [{"name": fit} | one for found in scores.values() for fit, one in found.items()]
