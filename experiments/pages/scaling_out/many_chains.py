"""Chains by the thousand: they begin where ``mcmc.sample`` is, and draw from its posterior.

A row of each posterior says what ``mcmc.sample`` gets of a gradient, a row of each device how long
gradients take there. A core of any machine computes the posteriors, and chains enough to compare.
Devices begin with these posteriors; ``benchmarks.many_chains`` times them, and their rows stand as
they were measured, each with its date and its JAX. Earlier versions of the code measured those that
are stored, so the result bears no fingerprint.

All chains take the same number of leapfrog steps, 1 to 2 m - 1, drawn anew for each draw, so that
under ``vmap`` no chain waits for another. On a GPU all chains are one program; on a processor each
core has a thread that runs its chains one after the other, as ``mcmc.sample`` does.
"""

from helpers import data, densities, diagnostics, hierarchical, mcmc, networks, predict, tempering
from helpers.common import read_result

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments.pages.scaling_out.devices import FOUND, joined

SETTINGS = {
    "seed": 8102,
    "seed_of_chains": 8104,
    "seed_of_starts": 8105,
    "max_tree_depth": {"flat": 10, "hierarchical": 6},
    "num_samples": 2000,  # of each of four chains of mcmc.sample
    "chains": 64,  # which are compared with it
    "draws": 200,  # of each of them
}
NETWORK = networks.MLP()


def units():
    """The first of the sources' tasks, and all of them in a hierarchical network."""
    return {name: {"name": name} for name in SETTINGS["max_tree_depth"]}


SMALL = units()["flat"]


class Parts(NamedTuple):
    """What a posterior consists of."""

    log_density: Any  # of a position and the data
    logits: Any  # of a position at points
    shapes: Any  # of a position
    observed: densities.Observed
    x: Any  # points to predict


class Problem(NamedTuple):
    """A density of vectors, the predictions of one, and what its chains begin with."""

    log_density: Any
    predictions: Any  # of a vector, [point]
    starts: np.ndarray  # [draw, parameter]
    step_size: float
    inverse_metric: np.ndarray  # [parameter]
    mean_steps: int


def all_at_once(position, observed):
    """The hierarchical density of ``helpers`` with all tasks in one product, which gives a GPU more
    to do at a time.
    """
    logits = jax.vmap(NETWORK.apply)(hierarchical.task_weights(position, 18), observed.x)
    likelihood = densities.bernoulli_log_likelihood(logits, observed.y).sum()
    return likelihood + hierarchical.log_prior(position, tfd.HalfNormal(1.0))


def parts(name):
    """Return the parts of a posterior: "flat", "hierarchical" or "hierarchical, all tasks at
    once".
    """
    tasks = data.source_moons()
    if name == "flat":  # the source's first task
        observed = densities.observe(tasks.x_train[0], tasks.y_train[0], np.ones(3))
        shapes = networks.parameter_shapes(NETWORK, 2)
        density = densities.flat_log_density(NETWORK)
        return Parts(density, NETWORK.apply, shapes, observed, tasks.x_test[0])
    density = hierarchical.log_density(NETWORK) if name == "hierarchical" else all_at_once
    observed = densities.observe(tasks.x_train, tasks.y_train)
    shapes = hierarchical.shapes(NETWORK, 18, 2)
    return Parts(density, hierarchical.logits(NETWORK), shapes, observed, tasks.x_test)


def prepared(name):
    """Return what ``mcmc.sample`` finds: starts, step size, metric and length of trajectories, its
    effective size a gradient, and mean predictions with their errors, [point].
    """
    density, logits, shapes, observed, x = parts(name)
    key_start, key_tempered, key_chains = jax.random.split(jax.random.key(SETTINGS["seed"]), 3)
    depth, num_samples = SETTINGS["max_tree_depth"][name], SETTINGS["num_samples"]
    starts = mcmc.normal_starts(key_start, shapes, (4,))
    if name == "hierarchical":
        starts, _ = tempering.agreed_starts(
            key_tempered, density, starts, observed, max_tree_depth=depth
        )
    posterior = mcmc.sample(
        key_chains, density, starts, data=observed, num_samples=num_samples, max_tree_depth=depth
    )
    p = jax.jit(partial(predict.probabilities, logits))(posterior.draws, x)
    p = p.reshape(4, num_samples, -1)
    found = diagnostics.summarize(p)
    ess = np.quantile(np.minimum(found.ess_bulk, found.ess_tail), 0.05)
    vectors = jax.vmap(jax.vmap(lambda position: ravel_pytree(position)[0]))(posterior.draws)
    return {
        "starts": vectors[:, ::8].reshape(-1, vectors.shape[-1]),
        "step_size": np.median(posterior.warmup.step_size),
        "inverse_metric": posterior.warmup.inverse_metric[0],
        "mean_steps": np.ceil(posterior.warmup.mean_steps[0]).astype(int),
        "ess_a_gradient": ess / posterior.stats.integration_steps.sum(),
        "rhat": np.quantile(found.rhat, 0.99),
        "p": p.mean(axis=(0, 1)),
        "p_error": diagnostics.standard_error(p),
    }


def problem(parts, begin):
    """Put a problem together from its parts and what its chains begin with."""
    density, logits, shapes, observed, x = parts
    _, unravel = ravel_pytree(jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes))
    observed, x = jax.tree.map(np.asarray, (observed, x))
    return Problem(
        lambda v: density(unravel(v), observed),
        lambda v: jax.nn.sigmoid(logits(unravel(v), x)).ravel(),
        *(begin[part] for part in Problem._fields[2:]),
    )


def moves(of, together):
    """Return a program of (key of steps, keys, positions [chain, parameter], count): chains at a
    time or in turn.

    It returns the number of leapfrog steps of each chain, mean predictions [chain, point] and the
    mean acceptance.
    """
    kernel = blackjax.hmc.build_kernel()

    def one_draw(key, state, steps):
        return kernel(key, state, of.log_density, of.step_size, of.inverse_metric, steps)

    def some(key, keys, positions, count):
        def turn(i, carry):
            states, total, p, acceptance = carry
            # of all chains
            steps = jax.random.randint(jax.random.fold_in(key, i), (), 1, 2 * of.mean_steps)
            states, info = jax.vmap(one_draw, (0, 0, None))(
                jax.vmap(jax.random.fold_in, (0, None))(keys, i), states, steps
            )
            p = p + jax.vmap(of.predictions)(states.position)
            return states, total + steps, p, acceptance + info.acceptance_rate

        states = jax.vmap(lambda position: blackjax.hmc.init(position, of.log_density))(positions)
        begin = (
            states,
            0,
            jnp.zeros_like(jax.vmap(of.predictions)(positions)),
            jnp.zeros(len(positions)),
        )
        _, total, p, acceptance = jax.lax.fori_loop(0, count, turn, begin)
        return total, p / count, acceptance / count

    @jax.jit
    def run(key_steps, keys, positions, count):
        if together:
            return some(key_steps, keys, positions, count)
        in_turn = jax.tree.map(lambda a: a[:, None], (keys, positions))
        total, p, acceptance = jax.lax.map(lambda chain: some(key_steps, *chain, count), in_turn)
        return total[0], p[:, 0], acceptance[:, 0]

    return run


def runner(of, chains, threads, together):
    """Return a function of a count: so many draws of every chain, what ``moves`` returns by
    thread.
    """
    program = moves(of, together)
    key_steps, key_chains = jax.random.split(jax.random.key(SETTINGS["seed_of_chains"]))
    random = np.random.default_rng(SETTINGS["seed_of_starts"])
    rows = random.integers(len(of.starts), size=chains)
    every = jax.random.key_data(jax.random.split(key_chains, chains)), of.starts[rows]
    groups = list(zip(*(np.array_split(np.asarray(part), threads) for part in every), strict=True))

    def run(count):
        def one(group):
            keys, positions = group
            return jax.block_until_ready(
                program(key_steps, jax.random.wrap_key_data(keys), positions, count)
            )

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, groups))

    return run


def compared(of, threads, together):
    """Return mean predictions of the chains that are compared, [chain, point]."""
    found = runner(of, SETTINGS["chains"], threads, together)(SETTINGS["draws"])
    return np.concatenate([p for _, p, _ in found])


def in_errors(p, expected, error):
    """Return by how many standard errors means over chains [chain, point] are from what is
    expected, [point].
    """
    return (p.mean(axis=0) - expected) / np.sqrt(p.var(axis=0, ddof=1) / len(p) + error**2)


def apart(p, begin):
    """Return how far predictions of chains [chain, point] are from those of ``mcmc.sample``, in
    standard errors.
    """
    z = in_errors(p, begin["p"], begin["p_error"])
    return {
        "root_mean_square": float(np.sqrt(np.mean(z**2))),
        "largest": float(np.abs(z).max()),
    }


def unit(name):
    """What chains begin with, and the mean predictions of those that are compared."""
    begin = jax.tree.map(np.asarray, prepared(name))
    return {"begin": begin, "p": compared(problem(parts(name), begin), 1, together=False)}


def score(drawn, name):
    """What ``mcmc.sample`` gets of a gradient, and predictions of the chains beside its own."""
    begin, p = drawn["begin"], drawn["p"]
    return {part: float(begin[part]) for part in FOUND} | {
        "p": p.mean(axis=0).tolist(),
        "p_error": (p.std(axis=0, ddof=1) / np.sqrt(len(p))).tolist(),
        "apart": apart(p, begin),
    }


def rows(scored):
    """The posteriors, and the stored devices, if those began with them."""
    found = [{"name": name} | {part: one[part] for part in FOUND} for name, one in scored.items()]
    return joined(found, read_result("scaling_out/many_chains")["rows"])
