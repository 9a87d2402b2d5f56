"""Has the sampler converged, and how far from the truth may an average of its draws be?

R-hat and effective sample sizes are ArviZ's rank-normalised ones (Vehtari et al. 2021).
Weights need not agree between chains, since a network has many copies of the same function;
its predictions and its log density must.

    found = diagnostics.check(posterior, predictions)
    print(diagnostics.describe(found))
    assert (found.rhat <= found.rhat_bound).all() and found.ess.min() >= diagnostics.LEAST_ESS
"""

from helpers import checks
from helpers.common import mixed_types
from helpers.mcmc import Posterior

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from blackjax import diagnostics as blackjax_diagnostics
from jax.scipy.special import logsumexp
from jaxtyping import Array, ArrayLike, Float
from scipy import stats

with warnings.catch_warnings():
    # ArviZ announces its version 1 once a day, by the clock; no other warning is hidden.
    warnings.filterwarnings(
        "ignore", message="\nArviZ is undergoing a major refactor", category=FutureWarning
    )
    import arviz

CHANCE = 1e-5  # that a right run breaks one of the book's statistical claims
# effective draws of chains taken one at a time, below which an R-hat says too little
LEAST_ESS = 400.0


class Summary(NamedTuple):
    """Diagnostics of each scalar quantity."""

    rhat: Float[np.ndarray, " quantity"]  # the larger of those of location and of spread
    ess_bulk: Float[np.ndarray, " quantity"]  # of all chains together
    ess_tail: Float[np.ndarray, " quantity"]  # the lesser of those of the 5 % and 95 % quantiles
    # of chains taken one at a time, summed: location's or spread's
    ess_alone: Float[np.ndarray, " quantity"]
    # what chance explains of R-hat, shared by these quantities
    rhat_bound: Float[np.ndarray, " quantity"]


class LeaveOneOut(NamedTuple):
    """How well each training point is predicted by the others, without fitting again."""

    log_density: Float[Array, " point"]  # log p(y_i | all other points), nats
    pareto_k: Float[Array, " point"]  # above 0.7 the estimate of that point is not to be trusted


class Check(NamedTuple):
    """Diagnostics of one sampling run; of each kind of quantity, the one nearest to its bound or
    beyond.
    """

    kinds: tuple[str, ...]  # "predictions", "log density", and what else was asked for
    rhat: Float[np.ndarray, " kind"]
    # what chance explains at that quantity's effective sample size
    rhat_bound: Float[np.ndarray, " kind"]
    ess: Float[np.ndarray, " kind"]  # least of the kind, chains taken one at a time
    divergences: int  # number of draws
    # energy's Bayesian fraction of missing information (Betancourt 2016); below 0.3 tails are not
    # visited
    bfmi: float
    integration_steps: float  # mean per draw
    at_limit: float  # share of warm-up's trajectories that were cut off at the largest tree depth


def summarize(values: Any) -> Summary:
    """Diagnose every scalar of a pytree of draws, leading axes [chain, draw], in the order of its
    leaves.

    ValueError: fewer than 2 chains or 8 draws, or values that are not finite.
    """
    checks.finite(values=values)
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(values)]
    for leaf in leaves:
        if leaf.ndim < 2 or leaf.shape[0] < 2 or leaf.shape[1] < 8:
            raise ValueError(
                f"values: given shape {leaf.shape}, "
                "expected [chain, draw, ...], 2 chains and 8 draws"
            )
    columns = [
        column for leaf in leaves for column in np.moveaxis(leaf.reshape(*leaf.shape[:2], -1), 2, 0)
    ]
    with np.errstate(invalid="ignore"):  # what never moves has no R-hat: NaN
        found = np.array([_summarize(column) for column in columns]).T
    num_chains, num_draws = leaves[0].shape[:2]
    return Summary(*found, rhat_bound(found[3], len(columns), num_draws, num_chains))


def _summarize(draws):
    """R-hat, bulk and tail ESS, and ESS of single chains, of one quantity [chain, draw]."""

    def alone(values):
        return sum(arviz.ess(chain[None]) for chain in values)

    least = min(alone(draws), alone(np.abs(draws - np.median(draws))))
    return arviz.rhat(draws), arviz.ess(draws), arviz.ess(draws, method="tail"), least


def rhat_bound(
    ess_alone: Float[ArrayLike, "*quantity"],
    num_quantities: int,
    num_draws: int,
    num_chains: int = 4,
    chance=CHANCE,
) -> Float[np.ndarray, "*quantity"]:
    """Return the largest R-hat that chance explains in chains that have converged.

    R-hat halves M chains of N draws and compares the means of the halves. Of chains with one common
    distribution each mean has the variance 2 M / ESS, in units of that of a draw, so that

        R-hat^2 = 1 - 2 / N + (2 M / ESS) F,

    where F is Fisher's, with 2 M - 1 and ESS / 5 degrees of freedom. ESS / 5 stands for the error
    of the estimated ESS and was found by simulation. ArviZ's R-hat is the larger of two, of
    location and of spread, so each has half of ``chance``; ``tests/test_diagnostics.py`` simulates
    it. For an ESS of 400 and 2000 in four chains of 1000 draws it is 1.062 and 1.010.

    The ESS is of the chains taken one at a time, summed. That of all chains together will not do:
    it falls as chains disagree, and a bound from it rejects nothing.

    Args:
        ess_alone: effective sample size of each quantity, as ``Summary`` has it.
        num_quantities: how many quantities share ``chance``.
        num_draws: of each chain, N.
        num_chains: the number M of chains.
        chance: probability that any of these quantities exceeds its bound if chains have converged.

    ValueError: no quantity, fewer than 8 draws or 2 chains, a chance that is no probability.
    """
    checks.count(num_quantities=num_quantities)
    checks.count(least=8, num_draws=num_draws)
    checks.count(least=2, num_chains=num_chains)
    checks.number(high=1.0, chance=chance)
    means, ess = 2 * num_chains, np.asarray(ess_alone, np.float64)
    excess = means / ess * stats.f.isf(chance / (2 * num_quantities), means - 1, ess / 5)
    return np.sqrt(1 - 2 / num_draws + excess)


def standard_error(
    values: Float[np.ndarray, "chain draw *quantity"],
) -> Float[np.ndarray, "*quantity"]:
    """Return the Monte Carlo standard error of the mean of all draws: their sd over the root of
    their ESS.

    The ESS is that of all chains together, so that chains that disagree make the error larger; and
    never more than the number of draws, since one above it, of draws that alternate, is poorly
    known. With an ESS of 200 or more a mean is off by more than 5 of these with probability 1e-5 at
    most (``tests/test_diagnostics.py``). The unit is that of the values.
    """
    values = np.asarray(values, np.float64)
    flat = np.moveaxis(values.reshape(*values.shape[:2], -1), 2, 0)
    independent = flat.std(axis=(1, 2)) / np.sqrt(flat[0].size)
    return np.maximum([arviz.mcse(column) for column in flat], independent).reshape(
        values.shape[2:]
    )


def nll_error(p: Float[np.ndarray, "chain draw *point"], y: Float[np.ndarray, "*point"]) -> float:
    """Return the Monte Carlo standard error of the NLL of the average prediction, in nats.

    Where the average moves from q to q + d, the NLL moves by -mean(d / q), q the probability of the
    label, to first order: so the error is that of the mean over draws of mean(q_draw / q), mean
    over points. ``p`` is the probability of class 1 under each draw; or of what happened, if ``y``
    is 1 throughout.
    """
    p = np.asarray(p, np.float64)
    q = np.where(np.asarray(y) == 1, p, 1 - p)
    ratio = (q / q.mean(axis=(0, 1))).reshape(*q.shape[:2], -1).mean(axis=2)
    return float(standard_error(ratio))


def leave_one_out(log_likelihood: Float[Array, "chain draw point"]) -> LeaveOneOut:
    """Estimate leave-one-out predictive densities by BlackJAX's PSIS (Vehtari, Gelman and Gabry
    2017), from the log likelihood of each point under each draw, in nats.

    ValueError: another number of axes, or values that are not finite.
    """
    checks.finite(log_likelihood=log_likelihood)
    if log_likelihood.ndim != 3:
        raise ValueError(
            f"log_likelihood: given shape {log_likelihood.shape}, expected [chain, draw, point]"
        )
    flat = jnp.moveaxis(log_likelihood.reshape(-1, log_likelihood.shape[-1]), 1, 0)
    with mixed_types():
        return _leave_one_out(flat)


@jax.jit
def _leave_one_out(flat):
    log_weights, pareto_k = jax.vmap(lambda row: blackjax_diagnostics.psis_weights(-row))(flat)
    return LeaveOneOut(logsumexp(log_weights + flat, axis=1), pareto_k)


def check(posterior: Posterior, predictions: Any, **others: Any) -> Check:
    """Diagnose a run by its predictions, its log density and whatever else is named; of several
    tasks, the worst.

    ``predictions`` and ``others``, such as ``log_sd=posterior.draws["log_sd"]``, are pytrees,
    leading axes [chain, draw]; with tasks, [task, chain, draw]. They may be thinned.

    ValueError: as ``summarize``.
    """
    log_density = posterior.stats.log_density
    groups = {"predictions": predictions, "log density": log_density}
    groups |= {name.replace("_", " "): values for name, values in others.items()}
    # a task's quantities are quantities of their own: [chain, draw, task, ...]
    if log_density.ndim == 3:
        for name, values in groups.items():
            groups[name] = jax.tree.map(lambda leaf: np.moveaxis(np.asarray(leaf), 0, 2), values)
    runs = {name: summarize(values) for name, values in groups.items()}
    total, (num_chains, num_draws) = (
        sum(run.rhat.size for run in runs.values()),
        log_density.shape[-2:],
    )
    bounds = {
        name: rhat_bound(run.ess_alone, total, num_draws, num_chains) for name, run in runs.items()
    }
    # np.argmax and np.min keep a NaN, the R-hat of what never moves; Python's may pass over it.
    nearest = {name: np.argmax(run.rhat - bounds[name]) for name, run in runs.items()}
    return Check(
        kinds=tuple(runs),
        rhat=np.array([run.rhat[nearest[name]] for name, run in runs.items()]),
        rhat_bound=np.array([bounds[name][nearest[name]] for name in runs]),
        ess=np.array([np.min(run.ess_alone) for run in runs.values()]),
        divergences=int(posterior.stats.diverging.sum()),
        bfmi=float(arviz.bfmi(np.asarray(posterior.stats.energy).reshape(-1, num_draws)).min()),
        integration_steps=float(posterior.stats.integration_steps.mean()),
        at_limit=0.0 if posterior.warmup is None else float(posterior.warmup.at_limit.mean()),
    )


def describe(result: Check) -> str:
    """Return a check in one line; trajectories that the tree depth cut off are said where they are
    more than 1 %.
    """
    quantities = zip(result.kinds, result.rhat, result.rhat_bound, result.ess, strict=True)
    parts = [
        f"{kind}: R-hat {rhat:.3f} (bound {bound:.3f}), ESS {ess:.0f}"
        for kind, rhat, bound, ess in quantities
    ]
    parts += [f"divergences: {result.divergences}", f"BFMI: {result.bfmi:.2f}"]
    parts += [f"steps a draw: {result.integration_steps:.0f}"]
    if result.at_limit > 0.01:
        parts += [f"{result.at_limit:.0%} of warm-up's trajectories at their limit"]
    return "; ".join(parts)
