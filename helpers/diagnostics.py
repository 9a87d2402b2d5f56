"""Has the sampler converged? R-hat, effective sample sizes, divergences, energy.

R-hat and effective sample sizes are BlackJAX's rank-normalised ones (Vehtari et al. 2021).
Weights need not agree between chains, since a network has many copies of the same function;
its predictions and its log density must.
"""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from blackjax import diagnostics as blackjax_diagnostics
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from helpers.mcmc import Posterior


class Summary(NamedTuple):
    """Diagnostics of each scalar quantity."""

    rhat: Float[Array, " quantity"]
    ess_bulk: Float[Array, " quantity"]
    ess_tail: Float[Array, " quantity"]


class LeaveOneOut(NamedTuple):
    """How well each training point is predicted by the others, without fitting again."""

    log_density: Float[Array, " point"]  # log p(y_i | all other points), nats
    pareto_k: Float[Array, " point"]  # above 0.7 the estimate of that point is not to be trusted


class Check(NamedTuple):
    """Diagnostics of one sampling run: the worst task, where there are several."""

    rhat_predictions: float  # 99th percentile over the predictions
    rhat_log_density: float
    ess_predictions: float  # 5th percentile of the smaller of bulk and tail
    ess_log_density: float  # the smaller of bulk and tail
    divergences: int  # number of draws
    bfmi: float  # energy's Bayesian fraction of missing information (Betancourt 2016)
    integration_steps: float  # mean per draw


def summarize(values: Any) -> Summary:
    """Diagnose every scalar of a pytree of draws, leading axes [chain, draw], in the order of its leaves.

    Raises:
        ValueError: fewer than 2 chains or 4 draws, or values that are not finite.
    """
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(values)]
    for leaf in leaves:
        if leaf.ndim < 2 or leaf.shape[0] < 2 or leaf.shape[1] < 4:
            raise ValueError(f"values: given shape {leaf.shape}, expected [chain, draw, ...], 2 chains and 4 draws")
        if not np.isfinite(leaf).all():
            raise ValueError("values: given some that are not finite, expected none")
    flat = np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=2)
    # In blocks of one width, so that runs of one length compile once, whatever is summarized.
    size = flat.shape[2]
    flat = np.pad(flat, [(0, 0), (0, 0), (0, -size % 16)], mode="edge")
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # BlackJAX mixes both
        blocks = [_summarize(block) for block in np.split(flat, flat.shape[2] // 16, axis=2)]
    return Summary(*(np.concatenate(parts)[:size] for parts in zip(*blocks, strict=True)))


@jax.jit
def _summarize(flat):
    parts = (blackjax_diagnostics.rhat, blackjax_diagnostics.ess_bulk, blackjax_diagnostics.ess_tail)
    return Summary(*(part(flat).reshape(-1) for part in parts))


def leave_one_out(log_likelihood: Float[Array, "chain draw point"]) -> LeaveOneOut:
    """Estimate leave-one-out predictive densities by BlackJAX's PSIS (Vehtari, Gelman and Gabry 2017).

    Raises:
        ValueError: another number of axes, or values that are not finite.
    """
    if log_likelihood.ndim != 3 or not np.isfinite(log_likelihood).all():
        raise ValueError(
            f"log_likelihood: given shape {log_likelihood.shape} and "
            f"{np.count_nonzero(~np.isfinite(log_likelihood))} values that are not finite, "
            "expected [chain, draw, point] and none"
        )
    flat = jnp.moveaxis(log_likelihood.reshape(-1, log_likelihood.shape[-1]), 1, 0)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        return _leave_one_out(flat)


@jax.jit
def _leave_one_out(flat):
    log_weights, pareto_k = jax.vmap(lambda row: blackjax_diagnostics.psis_weights(-row))(flat)
    return LeaveOneOut(logsumexp(log_weights + flat, axis=1), pareto_k)


@jax.jit
def energy_bfmi(energy: Float[Array, "*chain draw"]) -> Float[Array, "*chain"]:
    """Return the mean squared change of the energy over its variance; below 0.3 the tails are hardly visited."""
    return (jnp.diff(energy, axis=-1) ** 2).mean(axis=-1) / energy.var(axis=-1)


def check(posterior: Posterior, p: Float[Array, "*task chain draw point"]) -> Check:
    """Diagnose a run by its predictions and its log density; with tasks, report the worst task."""
    log_density = posterior.stats.log_density
    tasks = zip(p, log_density, strict=True) if p.ndim == 4 else [(p, log_density)]
    runs = [(summarize(p_task), summarize(density)) for p_task, density in tasks]  # p may be thinned

    def ess(run):
        return np.minimum(run.ess_bulk, run.ess_tail)

    return Check(
        # np.max and np.min keep a NaN, the R-hat of what never moves; Python's may pass over it.
        rhat_predictions=float(np.max([np.quantile(run.rhat, 0.99) for run, _ in runs])),
        rhat_log_density=float(np.max([run.rhat[0] for _, run in runs])),
        ess_predictions=float(np.min([np.quantile(ess(run), 0.05) for run, _ in runs])),
        ess_log_density=float(np.min([ess(run)[0] for _, run in runs])),
        divergences=int(posterior.stats.diverging.sum()),
        bfmi=float(energy_bfmi(posterior.stats.energy).min()),
        integration_steps=float(posterior.stats.integration_steps.mean()),
    )


def describe(result: Check) -> str:
    """Return a check in one line."""
    return (
        f"R-hat: predictions (p99) {result.rhat_predictions:.3f}, log density {result.rhat_log_density:.3f}; "
        f"ESS: predictions (p5) {result.ess_predictions:.0f}, log density {result.ess_log_density:.0f}; "
        f"divergences: {result.divergences}; BFMI: {result.bfmi:.2f}; steps a draw: {result.integration_steps:.0f}"
    )


def to_arviz(posterior: Posterior):
    """Return a posterior of one task, leading axes [chain, draw], as ArviZ InferenceData."""
    with warnings.catch_warnings():
        # ArviZ announces its version 1 once a day, by the clock; no other warning is hidden.
        warnings.filterwarnings("ignore", message="\nArviZ is undergoing a major refactor", category=FutureWarning)
        import arviz

    names = {"log_density": "lp", "acceptance": "acceptance_rate", "integration_steps": "n_steps"}
    stats = {names.get(name, name): np.asarray(value) for name, value in posterior.stats._asdict().items()}
    paths = jax.tree_util.tree_flatten_with_path(posterior.draws)[0]
    draws = {".".join(str(getattr(k, "key", k)) for k in path) or "position": np.asarray(leaf) for path, leaf in paths}
    return arviz.from_dict(posterior=draws, sample_stats=stats)
