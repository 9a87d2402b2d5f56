"""The steps of ``many_chains``, each a process of its own on one device: PROGRAM prepare FOLDER,
PROGRAM KIND FOLDER.

All chains take the same number of leapfrog steps, 1 to 2 m - 1, drawn anew for each draw, so that
under ``vmap`` no chain waits for another. On a GPU all chains are one program; on a processor each
core has a thread that runs its chains one after the other, as ``mcmc.sample`` does.
"""

from helpers import data, densities, diagnostics, hierarchical, mcmc, networks, predict

import json
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from tensorflow_probability.substrates.jax import distributions as tfd

NETWORK, WIDE = networks.MLP(), networks.MLP(hidden=(100, 100))
WIDE_ROWS = 10_000
# The most chains of each problem, on a processor and on a GPU: beyond, a gradient hardly costs
# less.
MOST = {
    "flat": (1024, 65_536),
    "hierarchical": (256, 16_384),
    "hierarchical, all tasks at once": (64, 16_384),
    "wide": (4, 64),
}
SECONDS, ROUNDS = 0.2, 5
COMPARED, DRAWS = 64, 200  # chains and draws whose predictions must be those of ``mcmc.sample``
TOO_FAR = 7.0  # standard errors, of 900 predictions


class Problem(NamedTuple):
    """A density of vectors, the predictions of one, and what its chains need."""

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
    """Return a problem's log density, its logits, the shapes of a position, its data and the points
    to predict.
    """
    tasks = data.source_moons()
    if name == "flat":  # the source's first task
        observed = densities.observe(tasks.x_train[0], tasks.y_train[0], np.ones(3))
        shapes = networks.parameter_shapes(NETWORK, 2)
        return densities.flat_log_density(NETWORK), NETWORK.apply, shapes, observed, tasks.x_test[0]
    if name == "wide":
        points = data.two_moons(jax.random.key(8101), WIDE_ROWS)
        observed = densities.observe(points.x, points.y, np.ones(3))
        shapes = networks.parameter_shapes(WIDE, 2)
        return densities.flat_log_density(WIDE), WIDE.apply, shapes, observed, points.x[:50]
    density = hierarchical.log_density(NETWORK) if name == "hierarchical" else all_at_once
    observed = densities.observe(tasks.x_train, tasks.y_train)
    return (
        density,
        hierarchical.logits(NETWORK),
        hierarchical.shapes(NETWORK, 18, 2),
        observed,
        tasks.x_test,
    )


def prepare(folder):
    """Find starts, step size, metric and length of trajectories by ``mcmc.sample``, and its
    effective size a gradient.

    The wide network is timed only: its chains stand near 0 and take short steps.
    """
    from helpers import tempering

    key_start, key_tempered, key_chains = jax.random.split(jax.random.key(8102), 3)
    for name in ("flat", "hierarchical"):
        density, logits, shapes, observed, x = parts(name)
        starts, depth = mcmc.normal_starts(key_start, shapes, (4,)), 10
        if name == "hierarchical":
            depth = 6
            starts, _ = tempering.agreed_starts(
                key_tempered, density, starts, observed, max_tree_depth=depth
            )
        posterior = mcmc.sample(
            key_chains, density, starts, data=observed, num_samples=2000, max_tree_depth=depth
        )
        p = jax.jit(partial(predict.probabilities, logits))(posterior.draws, x).reshape(4, 2000, -1)
        found = diagnostics.summarize(p)
        ess = np.quantile(np.minimum(found.ess_bulk, found.ess_tail), 0.05)
        vectors = jax.vmap(jax.vmap(lambda position: ravel_pytree(position)[0]))(posterior.draws)
        np.savez(
            Path(folder) / f"{name}.npz",
            starts=vectors[:, ::8].reshape(-1, vectors.shape[-1]),
            step_size=np.median(posterior.warmup.step_size),
            inverse_metric=posterior.warmup.inverse_metric[0],
            mean_steps=np.ceil(posterior.warmup.mean_steps[0]).astype(int),
            ess_a_gradient=ess / posterior.stats.integration_steps.sum(),
            rhat=np.quantile(found.rhat, 0.99),
            p=p.mean(axis=(0, 1)),
            p_error=diagnostics.standard_error(p),
        )


def problem(name, folder):
    """Put a problem together from its parts and what was prepared."""
    density, logits, shapes, observed, x = parts(name)
    vector, unravel = ravel_pytree(
        jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    )
    observed = jax.tree.map(np.asarray, observed)
    functions = (
        lambda v: density(unravel(v), observed),
        lambda v: jax.nn.sigmoid(logits(unravel(v), np.asarray(x))).ravel(),
    )
    if name == "wide":
        starts = 0.1 * np.random.default_rng(8103).standard_normal((64, vector.size)).astype(
            np.float32
        )
        return Problem(*functions, starts, 1e-4, np.ones(vector.size, np.float32), 8)
    with np.load(Path(folder) / f"{name.split(',')[0]}.npz") as found:
        return Problem(*functions, *(found[part] for part in Problem._fields[2:]))


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
    program, (key_steps, key_chains) = moves(of, together), jax.random.split(jax.random.key(8104))
    rows = np.random.default_rng(8105).integers(len(of.starts), size=chains)
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


def timer(of, chains, threads, together):
    """Return a function that times some draws of every chain: microseconds a gradient, over all
    chains.
    """
    run = runner(of, chains, threads, together)

    def timed(count):
        begin = time.perf_counter()
        found = run(count)
        return time.perf_counter() - begin, sum(int(steps) * len(p) for steps, p, _ in found)

    timed(1)  # compiles
    count = 1
    while timed(count)[0] < SECONDS:
        count *= 2

    def microseconds():
        seconds, gradients = timed(count)
        return 1e6 * seconds / gradients

    return microseconds


def measure(kind, folder):
    """Measure all problems on this process's device, and compare what its chains predict with what
    was prepared.
    """
    # a GPU would multiply with ten bits
    jax.config.update("jax_default_matmul_precision", "highest")
    gpu, rows, apart = kind != "cpu", [], {}
    for name, most in MOST.items():
        of, chains = problem(name, folder), 1
        while chains <= most[gpu]:
            timed = timer(of, chains, 1 if gpu else min(chains, mcmc.cores()), gpu)
            microseconds = sorted(timed() for _ in range(ROUNDS))
            rows.append({"problem": name, "chains": chains, "microseconds": microseconds})
            print(
                f"{kind}, {name}, {chains} chains: {np.median(microseconds):.3g} us a gradient",
                flush=True,
            )
            chains *= 4
        if name != "wide":
            found = runner(of, COMPARED, 1 if gpu else mcmc.cores(), gpu)(DRAWS)
            with np.load(Path(folder) / f"{name.split(',')[0]}.npz") as expected:
                z = in_errors(
                    np.concatenate([p for _, p, _ in found]), expected["p"], expected["p_error"]
                )
            apart[name] = {
                "root_mean_square": float(np.sqrt(np.mean(z**2))),
                "largest": float(np.abs(z).max()),
            }
            print(f"{kind}, {name}: predictions apart {apart[name]}", flush=True)
            if apart[name]["largest"] > TOO_FAR:
                raise SystemExit(f"{kind}, {name}: predictions are not those of mcmc.sample")
    told = {"device": device(), "jax": jax.__version__, "rows": rows, "apart": apart}
    told |= {"wide_log_density": wide_densities(folder), "sample_seconds": sample_seconds()}
    (Path(folder) / f"{kind}.json").write_text(json.dumps(told))


def in_errors(p, expected, error):
    """Return by how many standard errors means over chains [chain, point] are from what is
    expected, [point].
    """
    return (p.mean(axis=0) - expected) / np.sqrt(p.var(axis=0, ddof=1) / len(p) + error**2)


def wide_densities(folder):
    """Return the wide log density at one position as this device finds it, at JAX's default
    precision and highest.
    """
    of, found = problem("wide", folder), {}
    for precision in ("default", "highest"):
        with jax.default_matmul_precision(precision):
            found[precision] = float(jax.jit(of.log_density)(10 * of.starts[0]))
    return found


def sample_seconds():
    """Return the seconds of ``mcmc.sample`` for four short chains of the flat network, compiled
    before.
    """
    density, _, shapes, observed, _ = parts("flat")
    starts, seconds = mcmc.normal_starts(jax.random.key(8108), shapes, (4,)), []
    for _ in range(3):
        begin = time.perf_counter()
        mcmc.sample(
            jax.random.key(8109), density, starts, data=observed, num_warmup=100, num_samples=100
        )
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]


def device():
    """Return what this process computes on, in words."""
    first = jax.devices()[0]
    if first.platform != "cpu":
        return first.device_kind
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        known = dict((part.strip() for part in line.split(":", 1)) for line in lines if ":" in line)
        name = known.get("model name", name)
    return f"{mcmc.cores()} cores of {name}"


if __name__ == "__main__":
    step, to = sys.argv[1:]
    prepare(to) if step == "prepare" else measure(step, to)
