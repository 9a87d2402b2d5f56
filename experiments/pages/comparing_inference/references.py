"""Long runs of the book's sampler in double precision: what every method of the ladder is measured
against.

Two independent runs of eight chains from dispersed starts for each task. Their distance from each
other is the floor of every comparison, their agreement its ceiling. Tempered SMC, which knows
nothing of chains, metrics or warm-up, stands beside them, several runs of each task. The same is
done for the tasks on which settings are chosen.
"""

from helpers import common, densities, diagnostics, mcmc, metrics, smc
from helpers.common import take

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np

from experiments.methods import runs
from experiments.problems import six_tasks

RUN = {
    "seed": 9001,
    "num_chains": 8,
    "chains": {
        "ladder": {"num_warmup": 400, "num_samples": 5000, "max_tree_depth": 6},
        "tuning": {"num_warmup": 400, "num_samples": 2000, "max_tree_depth": 6},
    },
    "particles": 1000,
    "thin": 5,  # draws of the chains whose scores have an error
    "least_ess": 4000.0,  # of every prediction and of the log density, in each of the two runs
}
# The number of runs is no part of what a unit does, so that more can follow.
SETTINGS = {"num_runs": 2, "num_smc": 4, **RUN}
FLAT = densities.flat_log_density(six_tasks.NETWORK)
SMALL = {"kind": "tuning", "method": "chains", "task": 0, "run": 0}


def units() -> dict[str, dict]:
    """Return each task's runs."""
    found = {}
    for kind, count in (("tuning", six_tasks.NUM_TUNING), ("ladder", six_tasks.NUM_TASKS)):
        for task in range(count):
            for run in range(SETTINGS["num_runs"] if kind == "ladder" else 1):
                found[f"{kind}, task {task}, chains, run {run}"] = _setting(
                    kind, "chains", task, run
                )
            for run in range(SETTINGS["num_smc"] if kind == "ladder" else 0):
                found[f"{kind}, task {task}, SMC, run {run}"] = _setting(kind, "SMC", task, run)
    return found


def _setting(kind, method, task, run):
    return {"kind": kind, "method": method, "task": task, "run": run}


@contextmanager
def double_precision() -> Iterator[None]:
    """Let JAX work in double precision in all threads, those of ``mcmc.sample`` too."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def unit(kind: str, method: str, task: int, run: int) -> dict:
    """Return weights [chain, draw, 40] and how chains fared; or particles [particle, 40]."""
    key = common.key(RUN["seed"], kind, method, task, run)
    observed = take(six_tasks.problem(kind).observed, task)
    return (
        particles(key, observed)
        if method == "SMC"
        else chains(key, observed, RUN["num_chains"], **RUN["chains"][kind])
    )


def chains(key, observed, num_chains, **sizes):
    """Run the book's sampler on one task in double precision."""
    key = jax.random.key_data(key)
    with double_precision():
        key_start, key_chains = jax.random.split(jax.random.wrap_key_data(key))
        observed = jax.tree.map(
            lambda a: np.asarray(a, np.float64) if a.dtype == np.float32 else a, observed
        )
        shapes = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, np.float64), six_tasks.SHAPES
        )
        starts = mcmc.normal_starts(key_start, shapes, (num_chains,))
        posterior = mcmc.sample(key_chains, FLAT, starts, data=observed, **sizes)
        vectors = np.asarray(six_tasks.vector_of(posterior.draws))
        kept = jax.tree.map(np.asarray, runs.kept_run(posterior))
    gradients = posterior_gradients(kept, sizes["num_warmup"])
    return {"vectors": vectors, "gradients": gradients} | kept


def posterior_gradients(kept, num_warmup):
    """Count the gradients of a run, its warm-up included."""
    steps = np.asarray(kept["stats"]["integration_steps"]).sum()
    return np.array(steps + num_warmup * np.asarray(kept["warmup"]["mean_steps"]).sum())


@jax.jit
def particles(key, observed):
    """Follow particles of the prior to the posterior of one task; in single precision."""
    key_start, key_path = jax.random.split(key)
    begin = jax.random.normal(key_start, (RUN["particles"], six_tasks.SIZE))
    state, path = smc.anneal(
        key_path,
        begin,
        six_tasks.log_prior,
        lambda vector: six_tasks.log_likelihood(vector, observed),
    )
    return {"vectors": state.particles, "weights": state.weights, **path}


def score(drawn: dict, kind: str, method: str, task: int, run: int) -> dict:
    """Return mean predictions, quantiles of p over draws, scores and diagnostics."""
    problem = six_tasks.problem(kind)
    x, y = np.asarray(problem.x[task]), np.asarray(problem.y[task])
    if method == "SMC":
        p = np.asarray(six_tasks.probabilities(drawn["vectors"], x), np.float64)
        mean, last = np.asarray(drawn["weights"], np.float64) @ p, int(drawn["number"]) - 1
        found = {
            "log_evidence": float(drawn["log_evidence"][last]),
            "power": float(drawn["powers"][last]),
        }
        found |= {"powers": last + 1, "nll": metrics.negative_log_likelihood(mean[: len(y)], y)}
        # Particles are as good as independent after the last moves; resampling makes the error
        # larger, at most twice.
        found |= {"nll_error": 2 * diagnostics.nll_error(p[None, :, : len(y)], y)}
        return found | {"p": six_tasks.rounded(mean)}
    each = [in_double(chain, x) for chain in drawn["vectors"]]
    mean, kept = (
        np.mean([p.mean(axis=0) for p in each], axis=0),
        np.stack([six_tasks.compared(p) for p in each]),
    )
    thinned = np.stack([p[:: RUN["thin"], : len(y)] for p in each])
    found = {
        "check": runs.diagnosis(runs.run_from(drawn), kept),
        "gradients": float(drawn["gradients"]),
    }
    found |= {
        "nll": metrics.negative_log_likelihood(mean[: len(y)], y),
        "nll_error": diagnostics.nll_error(thinned, y),
    }
    error = diagnostics.standard_error(kept)
    spread = kept[..., : six_tasks.NUM_SPREAD].reshape(-1, six_tasks.NUM_SPREAD)
    found |= {"p": six_tasks.rounded(mean, 6), "p_error": six_tasks.rounded(error, 7)}
    return found | {
        "quantiles": six_tasks.rounded(np.quantile(spread, six_tasks.LEVELS, axis=0).T, 4)
    }


def in_double(vectors, x):
    """Return p of the draws of a chain, [draw, point], in double precision."""
    with double_precision():
        return np.asarray(
            six_tasks.probabilities(jnp.asarray(vectors), jnp.asarray(x, jnp.float64))
        )


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each run."""
    settings = units()
    return [settings[name] | found for name, found in scored.items()]
