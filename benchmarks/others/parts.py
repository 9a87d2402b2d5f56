"""Flat fits, steps of SVI and steps from minibatches, by the book and by other libraries, with two
cores or with one.

    make benchmark NAMES=others ARGUMENTS="--parts --seeds 5 --date 2026-01-31"

Flat fits are cold processes, seed by seed in turns. Steps are timed in one process on one core, in
processor time and in turns, programs compiled before: a busy machine slows all alike.
"""

from helpers import data, densities, diagnostics, mcmc, networks, sgfs, sgmcmc, svi

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import table

STORED = Path(__file__).parent / "parts.json"
CHAINS, WARM_UP, DRAWS = 4, 1000, 1000
NETWORK = networks.MLP()
SHAPES = ((2, 5), (5, 5), (5, 1))
FLAT_RIVALS = ("ours", "NumPyro NUTS", "BlackJAX NUTS")


def logits(weights, x):
    """The network, as anyone would write it."""
    h = x
    for i, weight in enumerate(weights):
        h = h @ weight if i == len(weights) - 1 else jnp.tanh(h @ weight)
    return h[..., 0]


def log_density(weights, x, y):
    """N(0, 1) on every weight, up to a constant, and the labels."""
    f = logits(weights, x)
    prior = -0.5 * sum((weight**2).sum() for weight in weights)
    return prior + (y * jax.nn.log_sigmoid(f) + (1 - y) * jax.nn.log_sigmoid(-f)).sum()


def numpyro_model(x, y):
    """The same in NumPyro."""
    import numpyro
    import numpyro.distributions as dist

    normal = dist.Normal(0.0, 1.0)
    weights = [numpyro.sample(f"w_{i}", normal.expand(s).to_event(2)) for i, s in enumerate(SHAPES)]
    numpyro.sample("y", dist.Bernoulli(logits=logits(weights, x)).to_event(1), obs=y)


def flat_ours(seed, tasks):
    """The book's sampler at its defaults."""
    observed = densities.observe(tasks.x_train, tasks.y_train, jnp.ones(3))
    key_start, key_chains = jax.random.split(jax.random.key(seed))
    starts = mcmc.normal_starts(
        key_start, networks.parameter_shapes(NETWORK, 2), (len(tasks.y_train), CHAINS)
    )
    draws = mcmc.sample(
        key_chains, densities.flat_log_density(NETWORK), starts, tasks=observed
    ).draws
    return [draws["params"][f"Dense_{i}"]["kernel"] for i in range(3)]


def flat_numpyro(seed, tasks):
    """NumPyro's NUTS at its defaults, task by task, chains side by side."""
    from numpyro.infer import MCMC, NUTS

    sizes = {
        "num_warmup": WARM_UP,
        "num_samples": DRAWS,
        "num_chains": CHAINS,
        "progress_bar": False,
    }
    run, found = MCMC(NUTS(numpyro_model), chain_method="parallel", **sizes), []
    for task, (x, y) in enumerate(zip(tasks.x_train, tasks.y_train, strict=True)):
        run.run(jax.random.fold_in(jax.random.key(seed), task), x, y)
        found.append(
            {name: np.asarray(a) for name, a in run.get_samples(group_by_chain=True).items()}
        )
    return [np.stack([one[f"w_{i}"] for one in found]) for i in range(3)]


def flat_blackjax(seed, tasks):
    """BlackJAX's NUTS after its window adaptation, a chain of every task on each device."""
    import blackjax

    def one_task(key, x, y):
        density, (key_start, key_warm, key_draws) = (
            partial(log_density, x=x, y=y),
            jax.random.split(key, 3),
        )
        keys = jax.random.split(key_start, len(SHAPES))
        begin = [jax.random.normal(k, shape) for k, shape in zip(keys, SHAPES, strict=True)]
        quiet = {"adaptation_info_fn": lambda state, info, adaptation: None}
        adaptation = blackjax.window_adaptation(blackjax.nuts, density, **quiet)
        (state, parameters), _ = adaptation.run(key_warm, begin, WARM_UP)
        step = blackjax.nuts(density, **parameters).step

        def draw(state, key):
            state, _ = step(key, state)
            return state, state.position

        return jax.lax.scan(draw, state, jax.random.split(key_draws, DRAWS))[1]

    def all_tasks(keys, x, y):
        return jax.lax.map(lambda one: one_task(*one), (keys, x, y))

    keys = jax.random.split(jax.random.key(seed), (CHAINS, len(tasks.y_train)))
    run = jax.pmap(all_tasks, in_axes=(0, None, None))
    return [np.swapaxes(np.asarray(a), 0, 1) for a in run(keys, tasks.x_train, tasks.y_train)]


def flat(name, seed):
    """Fit the eighteen tasks from cold; print seconds, and ESS of predictions."""
    tasks = data.source_moons()
    tasks = tasks._replace(x_train=jnp.asarray(tasks.x_train), y_train=jnp.asarray(tasks.y_train))
    fit = dict(zip(FLAT_RIVALS, (flat_ours, flat_numpyro, flat_blackjax), strict=True))[name]
    begun = time.perf_counter()
    weights = jax.block_until_ready(fit(seed, tasks))
    seconds = time.perf_counter() - begun
    p = np.asarray(jax.nn.sigmoid(logits(weights, np.asarray(tasks.x_test)[:, None, None])))
    found = diagnostics.summarize(np.moveaxis(p, 0, 2).reshape(*p.shape[1:3], -1))
    ess = np.quantile(np.minimum(found.ess_bulk, found.ess_tail), 0.05)
    within = float((found.rhat <= found.rhat_bound).mean())
    print(json.dumps({"seconds": seconds, "ess": ess, "rhat_within": within}))


def svi_rivals():
    """Return by name what takes so many steps of mean-field SVI with Adam, a draw a step, on 900
    labels.
    """
    import blackjax
    import pymc as pm
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    from experiments.problems.numpyro_models import flat_model

    tasks = data.source_moons()
    x, y = jnp.asarray(tasks.x_train).reshape(-1, 2), jnp.asarray(tasks.y_train).reshape(-1)
    observed, adam, elbo = densities.observe(x, y, jnp.ones(3)), optax.adam(1e-2), Trace_ELBO()
    model, of_pymc = partial(flat_model, NETWORK), pm.Model()
    with of_pymc:
        h = np.asarray(x)
        for i, shape in enumerate(SHAPES):
            h = pm.math.dot(h, pm.Normal(f"w_{i}", 0.0, 1.0, shape=shape))
            h = h if i == len(SHAPES) - 1 else pm.math.tanh(h)
        pm.Bernoulli("y", logit_p=h[:, 0], observed=np.asarray(y))

    def ours(count):
        sizes = {"num_steps": count, "loss": elbo, "optimizer": adam}
        return svi.fit(jax.random.key(1), model, AutoNormal, (observed,), **sizes).losses

    @partial(jax.jit, static_argnums=0)
    def numpyro_run(count):
        run = SVI(numpyro_model, AutoNormal(numpyro_model), adam, elbo)
        return run.run(jax.random.key(1), count, x, y, progress_bar=False).losses

    mean_field = blackjax.meanfield_vi(lambda w: log_density(w, x, y), adam, 1)

    @partial(jax.jit, static_argnums=0)
    def blackjax_run(count):
        begin = mean_field.init([jnp.zeros(shape) for shape in SHAPES])
        keys = jax.random.split(jax.random.key(1), count)
        return jax.lax.scan(lambda state, key: mean_field.step(key, state), begin, keys)[1]

    def pymc_run(count):
        with of_pymc:
            pm.fit(
                n=count,
                method="advi",
                progressbar=False,
                random_seed=1,
                obj_optimizer=pm.adam(learning_rate=1e-2),
            )

    return {
        "SVI, ours": ours,
        "SVI, NumPyro": numpyro_run,
        "SVI, BlackJAX": blackjax_run,
        "SVI, PyMC": pymc_run,
    }


def minibatch_rivals():
    """Return by name what takes so many steps on minibatches of 50 out of 500, one chain."""
    import blackjax
    from blackjax.sgmcmc import gradients

    from experiments.problems.source_moons import fisher_source_moons

    tasks = fisher_source_moons(jax.random.key(0))
    points = data.Points(tasks.x_train[0], tasks.y_train[0])
    start = mcmc.normal_starts(jax.random.key(1), networks.parameter_shapes(NETWORK, 2), (1,))

    def log_prior(weights):
        return densities.log_prior(weights, jnp.ones(3))

    def log_likelihood(weights, point):
        return densities.bernoulli_log_likelihood(NETWORK.apply(weights, point.x), point.y)

    slope = gradients.grad_estimator(log_prior, log_likelihood, len(points.y))
    sgld = blackjax.sgld(slope)

    def ours(algorithm):
        sizes = {"batch_size": 50, "step_size": 1e-5, "num_warmup": 0, "thin": 100}

        def steps(count):
            return sgmcmc.sample(
                jax.random.key(2), algorithm, start, points, num_samples=count // 100, **sizes
            )

        return steps

    step = jax.jit(sgld.step)

    def blackjax_loop(count):
        """As BlackJAX's documentation has it."""
        position, random = jax.tree.map(lambda a: a[0], start), np.random.default_rng(2)
        for key in jax.random.split(jax.random.key(2), count):
            rows = random.choice(len(points.y), 50)
            position = step(key, position, jax.tree.map(lambda a: a[rows], points), 1e-5)
        return position

    return {
        "SGFS, ours": ours(sgfs.sgfs(log_prior, log_likelihood, len(points.y))),
        "SGLD, ours": ours(sgld),
        "SGLD, BlackJAX": blackjax_loop,
    }


COUNTS = {"SVI, PyMC": 2000, "SGLD, BlackJAX": 1000}  # steps: others take 20 000


def steps(rounds):
    """Time steps in turns; print microseconds of each, by round."""

    def timed(run, count):
        begun = time.process_time()
        jax.block_until_ready(run(count))
        return time.process_time() - begun

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        runs = svi_rivals() | minibatch_rivals()
        counts = {name: COUNTS.get(name, 20_000) for name in runs}
        short = {name: count // 10 for name, count in counts.items()}
        for name, run in runs.items():
            timed(run, short[name]), timed(run, counts[name])  # compile
        found = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                both = timed(run, counts[name]) - timed(run, short[name])
                found[name].append(1e6 * both / (counts[name] - short[name]))
    print(json.dumps(found))


def child(*arguments, devices=None):
    """Do one part in a process of its own; return what it prints."""
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"} if devices else {}
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(
        command, env=os.environ | flags, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def measured(seeds, date):
    """Run all parts, seed by seed; return what is stored."""
    fits = {name: [] for name in FLAT_RIVALS}
    for seed in range(seeds):
        for name in FLAT_RIVALS:
            fits[name].append(child("flat", name, seed, devices=CHAINS))
            print(f"{name}, seed {seed}: {fits[name][-1]}", file=sys.stderr, flush=True)
    fixed = {"date": date, "machine": table.machine(), "versions": table.versions(sys.executable)}
    return fixed | {"flat": fits, "microseconds": child("steps", seeds)}


def of_flat(stored):
    """Return the table of flat fits."""
    rows = [
        "| eighteen flat posteriors | seconds | p5 ESS | p5 ESS/s | share of R-hat in bound | ours, times its ESS/s |"
    ]
    rows.append("|---" * 6 + "|")
    ours = np.array([run["ess"] / run["seconds"] for run in stored["flat"]["ours"]])
    for name, runs in stored["flat"].items():
        seconds, ess, within = (
            np.array([run[part] for run in runs]) for part in ("seconds", "ess", "rhat_within")
        )
        cells = [seconds, ess, ess / seconds, within, ours / (ess / seconds)]
        rows.append(f"| {name} | " + " | ".join(map(middle, cells)) + " |")
    return "\n".join(rows)


def of_steps(stored):
    """Return the table of steps; each is compared with ours of its kind, in the same round."""
    rows = ["| a step | microseconds of a core | times ours |", "|---|---|---|"]
    for name, values in stored["microseconds"].items():
        ours = np.array(stored["microseconds"][f"{name.split(',')[0]}, ours"])
        rows.append(f"| {name} | {middle(np.array(values))} | {middle(np.array(values) / ours)} |")
    return "\n".join(rows)


def middle(values):
    """Return median and range."""
    return table.number({"median": np.median(values), "least": values.min(), "most": values.max()})


def main():
    """Do one part, ``flat NAME SEED`` or ``steps ROUNDS``, or all of them: ``all SEEDS DATE``."""
    what, *rest = sys.argv[1:]
    if what == "flat":
        flat(rest[0], int(rest[1]))
    elif what == "steps":
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
        steps(int(rest[0]))
    else:
        stored = measured(int(rest[0]), rest[1])
        STORED.write_text(json.dumps(stored, indent=1) + "\n")
        print(of_flat(stored), of_steps(stored), sep="\n\n")


if __name__ == "__main__":
    main()
