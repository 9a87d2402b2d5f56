"""Steps of SVI and steps from minibatches, by the book and by other libraries, on one core: ROUNDS.

Prints microseconds of each, by round. Steps are timed in processor time and in turns, programs
compiled before: a busy machine slows all alike.
"""

from helpers import data, densities, mcmc, networks, sgfs, sgmcmc, svi

import json
import os
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.others.flat import NETWORK, log_density, numpyro_model
from benchmarks.others.posterior import SHAPES


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


def main():
    """Time steps in turns; print microseconds of each, by round."""
    rounds = int(sys.argv[1])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])

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


if __name__ == "__main__":
    main()
