"""SVI on the eighteen rotated moons: the flat network, each task alone, and the hierarchical one.

Scored on the fresh test points of the page hierarchical-bnn, beside NUTS on the flat network; the
hierarchical posterior by NUTS is a result of its own. An optimiser's answer depends on its start,
so every fit has several.
"""

from helpers import (
    common,
    data,
    densities,
    diagnostics,
    hierarchical,
    mcmc,
    metrics,
    networks,
    predict,
    svi,
)
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

from experiments.methods import runs
from experiments.problems.numpyro_models import flat_model

SETTINGS = {
    "seed": 5001,
    "num_starts": {"flat": 3, "hierarchical": 12},
    "steps": {"flat": 5000, "hierarchical": 10_000},
    "num_draws": 400,  # of a guide
    "num_chains": 4,
    "num_warmup": 300,
    "num_samples": 1000,
    "max_tree_depth": 10,
}
NETWORK = networks.MLP()
LOG_DENSITY = densities.flat_log_density(NETWORK)
GUIDES = {
    "mean-field": (partial(AutoNormal, init_scale=1e-2), svi.ELBO),
    "full-rank": (partial(AutoMultivariateNormal, init_scale=1e-2), Trace_ELBO(num_particles=10)),
}
SMALL = {"model": "flat", "guide": "mean-field", "start": 0}


def units() -> dict[str, dict]:
    """Return NUTS on the flat network, and every start of every fit."""
    fits = [("flat", "mean-field"), ("flat", "full-rank"), ("hierarchical", "mean-field")]
    starts = [(*fit, start) for fit in fits for start in range(SETTINGS["num_starts"][fit[0]])]
    return {
        f"{model}, {guide}, start {start}": {"model": model, "guide": guide, "start": start}
        for model, guide, start in [("flat", "NUTS", 0), *starts]
    }


def unit(model: str, guide: str, start: int) -> dict:
    """Return weights [task, chain, draw], and how sampler or optimiser fared."""
    source = data.source_moons()
    key = common.key(SETTINGS["seed"], model, guide, start)
    if guide == "NUTS":
        return nuts(key, densities.observe(source.x_train, source.y_train, [1.0, 1.0, 1.0]))
    fitted = {"flat": flat_fit, "hierarchical": group_fit}[model](key, guide, source)
    svi.check_losses(fitted["losses"])
    # A guide's draws are independent; called chains, they are scored as NUTS's are.
    chains = SETTINGS["num_chains"]
    return fitted | {
        "weights": jax.tree.map(
            lambda a: a.reshape(len(a), chains, -1, *a.shape[2:]), fitted["weights"]
        )
    }


def nuts(key, observed):
    """Every task's posterior."""
    key_start, key_chains = jax.random.split(key)
    shapes = networks.parameter_shapes(NETWORK, observed.x.shape[-1])
    starts = mcmc.normal_starts(key_start, shapes, (len(observed.y), SETTINGS["num_chains"]))
    sizes = {
        "num_warmup": SETTINGS["num_warmup"],
        "num_samples": SETTINGS["num_samples"],
        "max_tree_depth": SETTINGS["max_tree_depth"],
    }
    posterior = mcmc.sample(key_chains, LOG_DENSITY, starts, tasks=observed, **sizes)
    return {"weights": posterior.draws, **runs.kept_run(posterior)}


def flat_fit(key, guide, tasks):
    """Fit one guide a task; its losses are summed over tasks."""
    observed = densities.observe(tasks.x_train, tasks.y_train, [1.0, 1.0, 1.0])
    weights, losses = _flat_fits(jax.random.split(key, len(observed.y)), guide, observed)
    return {"weights": weights, "losses": losses.sum(axis=0)}


@partial(jax.jit, static_argnums=1)
def _flat_fits(keys, name, observed):
    def one(task):
        key, observed = task
        draws, losses = fit_and_draw(
            key, partial(flat_model, NETWORK), name, observed, SETTINGS["steps"]["flat"]
        )
        return svi.network_position(draws), losses

    return jax.lax.map(one, (keys, observed))


@partial(jax.jit, static_argnums=1)
def group_fit(key, guide, tasks):
    """Fit one guide to all tasks."""
    observed = densities.Observed(tasks.x_train, tasks.y_train, jnp.ones(tasks.y_train.shape))
    draws, losses = fit_and_draw(
        key, group_model, guide, observed, SETTINGS["steps"]["hierarchical"]
    )
    weights = jax.vmap(partial(hierarchical.task_weights, num_tasks=len(observed.y)))(
        group_position(draws)
    )
    by_task = jax.tree.map(lambda a: jnp.swapaxes(a, 0, 1), weights)
    sd = {
        name.removeprefix("sd/"): value for name, value in draws.items() if name.startswith("sd/")
    }
    return {"weights": by_task, "losses": losses, "sd": sd}


def fit_and_draw(key, model, guide, observed, num_steps):
    """Return draws of a fitted guide, by site, and losses."""
    key_fit, key_draw = jax.random.split(key)
    made, loss = GUIDES[guide]
    fit = svi.run(key_fit, model, made, (observed,), num_steps=num_steps, loss=loss)
    return svi.draw(
        key_draw, model, made, fit.params, (observed,), SETTINGS["num_draws"]
    ), fit.losses


def group_model(observed: densities.Observed) -> None:
    """State ``hierarchical.log_density`` in NumPyro, all layers special, all labels seen.

    Its sites are ``mean/Dense_0.kernel``, ``sd/Dense_0``, ``offset/Dense_0.kernel`` and so on.
    """
    shapes = hierarchical.shapes(NETWORK, observed.y.shape[0], observed.x.shape[-1])

    def normals(part):
        return {
            name: {
                leaf: numpyro.sample(
                    f"{part}/{name}.{leaf}", dist.Normal(0.0, 1.0).expand(shape.shape).to_event()
                )
                for leaf, shape in layer.items()
            }
            for name, layer in shapes[part].items()
        }

    sd = {name: numpyro.sample(f"sd/{name}", dist.HalfNormal(1.0)) for name in shapes["log_sd"]}
    position = {
        "mean": normals("mean"),
        "log_sd": jax.tree.map(jnp.log, sd),
        "offset": normals("offset"),
    }
    logits = hierarchical.logits(NETWORK)(position, observed.x)
    numpyro.sample("y", dist.BernoulliLogits(logits).to_event(2), obs=observed.y)


def group_position(draws: dict) -> dict:
    """Return sites of ``group_model`` as positions of ``hierarchical``, [*lead]."""
    position = {"mean": {}, "log_sd": {}, "offset": {}}
    for site, value in draws.items():
        part, _, name = site.partition("/")
        if part == "sd":
            position["log_sd"][name] = jnp.log(value)
        elif part in position:
            layer, leaf = name.rsplit(".", 1)
            position[part].setdefault(layer, {})[leaf] = value
    return position


def score(drawn: dict, model: str, guide: str, start: int) -> dict:
    """Score the mean prediction on fresh points; errors are those of finitely many draws."""
    fresh, source = data.fresh_moons(), data.source_moons()
    by_task = [
        of_task(take(drawn["weights"], t), fresh.x_test[t], fresh.y_test[t], source.x_test[t])
        for t in range(len(fresh.y_test))
    ]
    found = {name: [one[name] for one in by_task] for name in by_task[0]}
    # the tasks' draws are independent
    error = float(np.linalg.norm(found["task_nll_error"]) / len(by_task))
    thinned = np.stack(found.pop("thinned"))
    kept = {
        "model": model,
        "guide": guide,
        "start": start,
        "scores": metrics.scores(np.stack(found.pop("p")), fresh.y_test) | {"NLL_error": error},
        **found,
        "losses": [],
        "sd": {name: float(np.median(values)) for name, values in drawn.get("sd", {}).items()},
        "check": {},
    }
    if guide == "NUTS":
        posterior = runs.run_from(drawn)
        return kept | {"check": runs.diagnosis(posterior, thinned)}
    losses = drawn["losses"].reshape(100, -1)
    error = losses.std(axis=1) / np.sqrt(losses.shape[1])
    return kept | {"losses": losses.mean(axis=1).tolist(), "losses_error": error.tolist()}


_probabilities = jax.jit(partial(predict.probabilities, NETWORK.apply))


def of_task(weights, x, y, x_source):
    """Return the predictions of one task and their NLL, as parts of a row."""
    p, p_source = (np.asarray(_probabilities(weights, at)) for at in (x, x_source))
    mean = p.mean(axis=(0, 1))
    return {
        "p": mean,
        "thinned": p[..., ::200],
        "task_nll": metrics.negative_log_likelihood(mean, y),
        "task_nll_error": diagnostics.nll_error(p, y),
        "p_source": p_source.mean(axis=(0, 1)).round(6).tolist(),
        "p_source_error": diagnostics.standard_error(p_source).tolist(),
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row a unit; the error of a fit's NLL is its standard deviation over starts."""

    def row(one):
        alike = [
            other
            for other in scored.values()
            if (other["model"], other["guide"]) == (one["model"], one["guide"])
        ]
        if len(alike) < 2:
            return one
        error = float(np.std([other["scores"]["NLL"] for other in alike], ddof=1))
        of_tasks = np.std([other["task_nll"] for other in alike], axis=0, ddof=1).tolist()
        return one | {"scores": one["scores"] | {"NLL_error": error}, "task_nll_error": of_tasks}

    return [row(one) for one in scored.values()]
