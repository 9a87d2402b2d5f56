"""All rows by parts: variational inference and Langevin sampling on minibatches, beside full
sampling.

The network that groups shift, on four families a cell and on all. A minibatch is a few blocks of 32
rows in random order. Each of four runs gets so many gradients of a minibatch, samplers ten times as
many as fits, since theirs cost less; the full sampler gets what it asks for. Of a sampler's step
sizes the rule takes the largest whose predictions of training rows match those of half of it within
``match`` on average; it sees no test row and no other method. Effects of new families are drawn
with the same numbers in every method and in both halves of its runs.

Step sizes and numbers of gradients were set once more after a first run had been seen, its NLL
included: a tenth as long, with steps of SGHMC so short that chains stayed near their starts.
"""

from helpers import common, diagnostics, mcmc, networks, sgmcmc, svi
from helpers.common import take

import itertools
import time
from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoLowRankMultivariateNormal, AutoNormal

from experiments.methods import grouped_networks, grouped_rows
from experiments.pages.real_data import predictions, table_fits
from experiments.problems import health

SETTINGS = {
    **table_fits.SETTINGS,
    "sizes": [4, 1000],
    "batch": 8,  # blocks
    # of a minibatch, each run
    "gradients": {"SVI": 100_000, "SGLD": 1_000_000, "SGHMC": 1_000_000},
    "num_particles": 4,
    "num_kept": 200,  # draws of each run
    "integration_steps": 10,  # of SGHMC
    "step_sizes": {
        "SGLD": [2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4, 6.25e-5],
        "SGHMC": [1.6e-2, 8e-3, 4e-3, 2e-3, 1e-3, 5e-4],
    },
    "match": 0.01,
}
GUIDES = {"SVI, mean field": AutoNormal, "SVI, low rank": AutoLowRankMultivariateNormal}
FULL = "full sampling"
HALVES = np.s_[:2], np.s_[2:]  # of the runs


def units():
    """A method on one of the two tables each; a sampler by its step size."""
    found = {}
    for size in reversed(SETTINGS["sizes"]):
        full = {"num_warmup": SETTINGS["num_warmup"], "num_samples": SETTINGS["num_samples"]}
        found |= {f"{size}: {FULL}": {"method": FULL, "size": size, **full}}
        found |= {f"{size}: {method}": {"method": method, "size": size} for method in GUIDES}
        for method, step_sizes in SETTINGS["step_sizes"].items():
            found |= {
                f"{size}: {method}, {e:g}": {"method": method, "size": size, "step_size": e}
                for e in step_sizes
            }
    return found


SMALL = units()[f"4: {FULL}"]


def problem(size):
    """Return network, recipe, table, training rows in random order, and test rows."""
    train, test = table_fits.split("family", size, 0)
    train = train.sample(frac=1, random_state=SETTINGS["seed"])
    arm = table_fits.SAMPLED[table_fits.SHIFTED]
    recipe = grouped_rows.learn(train, health.OUTCOME, health.FEATURES, arm.groups)
    network = networks.MLP(hidden=tuple(arm.hidden), use_bias=True)
    return network, recipe, grouped_rows.encode(recipe, train), train, test


def unit(method, size, step_size=None, **lengths):
    """Fit; keep predictions of test rows and some training rows, log standard deviations."""
    network, recipe, table, train, test = problem(size)
    density, shapes = (
        grouped_networks.log_density(network, recipe),
        grouped_networks.shapes(network, recipe),
    )
    key = common.key(SETTINGS["seed"], "minibatches", method, size, f"{step_size}")
    key_starts, key_run = jax.random.split(key)
    key_new = common.key(SETTINGS["seed"], "minibatches", "new families", size)
    starts = mcmc.normal_starts(key_starts, shapes, (SETTINGS["num_chains"],), scale=0.3)
    begun, finite = time.process_time(), True
    if method == FULL:
        posterior = mcmc.sample(key_run, density, starts, data=table, **lengths)
        draws = take(posterior.draws, np.s_[:, :: SETTINGS["num_samples"] // SETTINGS["num_kept"]])
    elif method in GUIDES:
        draws = fitted(key_run, GUIDES[method], density, shapes, table)
    else:
        try:
            draws = walked(key_run, method, step_size, density, starts, table)
        except FloatingPointError:  # the step is too large, which is a result
            draws, finite = jax.tree.map(lambda a: a[:, None], starts), False
    seconds = time.process_time() - begun

    def predicted(frame):
        halves, table = (take(draws, half) for half in HALVES), grouped_rows.encode(recipe, frame)
        return np.concatenate(
            [
                grouped_networks.predict(key_new, network, recipe, half, table).mean()
                for half in halves
            ]
        )

    kept = {
        "p": predicted(test),
        "seen": predicted(train.iloc[:: len(train) // 400]),
        "log_sd": draws["log_sd"],
    }
    return kept | {"seconds": np.array(seconds), "finite": np.array(finite)}


def part(table, at):
    """Return those blocks, weighted so that the likelihood is estimated without bias."""
    blocks = take(table._replace(place=jnp.zeros(len(table.y))), at)
    return blocks._replace(weight=blocks.weight * (len(table.y) / SETTINGS["batch"]))


def fitted(key, guide, density, shapes, table):
    """Draws of a guide that was fitted four times, [fit, draw]."""
    names = [jax.tree_util.keystr(at) for at, _ in jax.tree_util.tree_leaves_with_path(shapes)]
    num_steps = SETTINGS["gradients"]["SVI"] // SETTINGS["num_particles"]
    optimizer = optax.chain(
        optax.clip_by_global_norm(10.0), optax.adam(optax.cosine_decay_schedule(1e-2, num_steps))
    )
    settings = {
        "loss": Trace_ELBO(SETTINGS["num_particles"]),
        "optimizer": optimizer,
        "num_steps": num_steps,
    }

    def position_of(sites):
        return jax.tree.unflatten(jax.tree.structure(shapes), [sites[name] for name in names])

    def model(table):
        flat = dist.ImproperUniform(dist.constraints.real, (), ())
        leaves = zip(names, jax.tree.leaves(shapes), strict=True)
        sites = {
            name: numpyro.sample(name, flat.expand(leaf.shape).to_event()) for name, leaf in leaves
        }
        with numpyro.plate("blocks", len(table.y), subsample_size=SETTINGS["batch"]) as at:
            blocks = part(table, at)
        numpyro.factor("density", density(position_of(sites), blocks))

    def one(key):
        key_fit, key_draw = jax.random.split(key)
        made = partial(guide, init_scale=0.01)
        fit = svi.fit(key_fit, model, made, (table,), **settings)
        return position_of(
            svi.draw(key_draw, model, made, fit.params, (table,), SETTINGS["num_kept"])
        )

    fits = [one(k) for k in jax.random.split(key, SETTINGS["num_chains"])]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *fits)


def walked(key, method, step_size, density, starts, table):
    """Draws of a sampler that sees minibatches, [chain, draw]; its first half is thrown away."""
    rescale = table.weight * (len(table.y) / SETTINGS["batch"])
    data = table._replace(weight=rescale, place=jnp.zeros(len(table.y)))
    each, slope = SETTINGS["integration_steps"], jax.grad(density)
    algorithm = (
        blackjax.sgld(slope)
        if method == "SGLD"
        else blackjax.sghmc(slope, num_integration_steps=each)
    )
    num_steps = SETTINGS["gradients"][method] // (1 if method == "SGLD" else each)
    thin = num_steps // 2 // SETTINGS["num_kept"]
    lengths = {"num_warmup": num_steps // 2, "num_samples": SETTINGS["num_kept"], "thin": thin}
    return sgmcmc.sample(
        key, algorithm, starts, data, batch_size=SETTINGS["batch"], step_size=step_size, **lengths
    )


def score(drawn, method, size, step_size=None, **_):
    """Means and spreads of predictions, log sd, R-hat of both, and the NLL of test rows."""
    train, test = table_fits.split("family", size, 0)
    found = {
        "method": method,
        "size": size,
        "step_size": step_size,
        "finite": bool(drawn["finite"]),
    }
    found |= {"num_train": len(train), "seconds": float(drawn["seconds"])}
    if not found["finite"]:
        return found | {"nll": None, "nll_error": None}
    p, y = np.asarray(drawn["p"]), test[health.OUTCOME].to_numpy(np.int32)
    label = np.where(y == 1, p.mean(axis=(0, 1)), 1 - p.mean(axis=(0, 1)))
    found |= {"nll": float(-np.log(label).mean()), "nll_error": diagnostics.nll_error(p, y)}
    found |= {"by_row": (-np.log(label, dtype=np.float64)).tolist(), "family": test.family.tolist()}
    of_runs = {"test": p.mean(axis=1), "seen": np.asarray(drawn["seen"]).mean(axis=1)}
    found |= {f"{name}_by_run": values.tolist() for name, values in of_runs.items()}
    found["spread"] = np.asarray(drawn["seen"]).std(axis=(0, 1)).tolist()
    found["sd"] = {
        name: [float(f(np.exp(v))) for f in (np.mean, np.std)]
        for name, v in drawn["log_sd"].items()
    }
    for name in ("seen", "log_sd"):
        found[f"rhat_{name}"] = float(diagnostics.summarize(drawn[name]).rhat.max())
    return found


def rows(scored):
    """A row a method and table, with its distance to full sampling, at the step of the rule."""
    found = []
    for size in SETTINGS["sizes"]:
        full = scored[f"{size}: {FULL}"]
        halves = [np.array(full["test_by_run"])[half].mean(axis=0) for half in HALVES]
        for method in (FULL, *GUIDES, *SETTINGS["step_sizes"]):
            one, tried = scored.get(f"{size}: {method}"), {}
            if one is None:
                one, tried = chosen(scored, size, method)
            keep = ("method", "size", "step_size", "num_train", "seconds", "nll", "nll_error", "sd")
            row = {key: one[key] for key in (*keep, "rhat_seen", "rhat_log_sd")} | {"tried": tried}
            mean, other = (np.mean(of["test_by_run"], axis=0) for of in (one, full))
            row["distance"] = float(
                np.abs(np.subtract(*halves) if one is full else mean - other).mean()
            )
            row["spread"] = float(np.mean(one["spread"]) / np.mean(full["spread"]))
            gap = np.subtract(one["by_row"], full["by_row"])
            row["less_than_full"] = predictions.paired(gap, full["family"])
            found.append(row)
    return found


def chosen(scored, size, method):
    """The run of the largest step that matches half of it on training rows; all gaps tried."""
    runs = [scored[f"{size}: {method}, {e:g}"] for e in SETTINGS["step_sizes"][method]]
    means = [np.mean(one["seen_by_run"], axis=0) if one["finite"] else None for one in runs]
    gaps = [
        None if a is None or b is None else float(np.abs(a - b).mean())
        for a, b in itertools.pairwise(means)
    ]
    fits = [i for i, gap in enumerate(gaps) if gap is not None and gap <= SETTINGS["match"]]
    tried = {f"{one['step_size']:g}": gap for one, gap in zip(runs, [*gaps, None], strict=True)}
    return runs[fits[0] if fits else -1], tried
