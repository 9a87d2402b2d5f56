"""Has the sampler converged, and how far from the truth may an average of its draws be?

Weights need not agree between chains, since a network has many copies of the same function; its
predictions and its log density must.

    found = diagnostics.check(posterior, predictions)
    print(diagnostics.describe(found))  # ends in "can be used", or in what is wrong
    assert found.ok, found.reasons
"""

from helpers import checks
from helpers.common import mixed_types
from helpers.mcmc import Posterior
from helpers.summaries import (
    CHANCE,
    MOST_RHAT,
    Summary,
    rhat_bound,
    standard_error,
    summarize,
)

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from blackjax import diagnostics as blackjax_diagnostics
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

with warnings.catch_warnings():
    # ArviZ announces its version 1 once a day, by the clock; no other warning is hidden.
    warnings.filterwarnings(
        "ignore", message="\nArviZ is undergoing a major refactor", category=FutureWarning
    )
    import arviz

# What a run needs if it is to be used: tried on runs that are known to be right or wrong, by
# tests/test_verdict.py and `make check-peers`. Wrong ones pass if no chain met what they lack.
LEAST_ESS = 400.0  # bulk and tail; a mean is then known to a twentieth of its standard deviation
LEAST_OF_MANY = 200.0  # of more than a hundred quantities, the one with the fewest
LEAST_BFMI = 0.3  # in every chain (Betancourt 2016)
# Starts that move a mean by a third of its sd lie 10 errors away or more, long tails 5.
MOST_DRIFT = 10.0
MOST_DIVERGENCES = 2e-3  # share of a posterior's draws


class LeaveOneOut(NamedTuple):
    """How well each training point is predicted by the others, without fitting again."""

    log_density: Float[Array, " point"]  # log p(y_i | all other points), nats
    pareto_k: Float[Array, " point"]  # above 0.7 the estimate of that point is not to be trusted


class Check(NamedTuple):
    """Diagnostics of one sampling run; of each kind of quantity, what is nearest to its bound or
    beyond. ``ok`` is the verdict, ``reasons`` say what is wrong.
    """

    kinds: tuple[str, ...]  # "predictions", "log density", and what else was asked for
    rhat: Float[np.ndarray, " kind"]
    # what chance explains at that quantity's effective sample size, 1.05 at most
    rhat_bound: Float[np.ndarray, " kind"]
    # effective sample sizes of all chains together: least of the kind
    ess_bulk: Float[np.ndarray, " kind"]
    ess_tail: Float[np.ndarray, " kind"]
    # the lesser of both that one quantity in a hundred falls below: of up to a hundred, the least
    ess: Float[np.ndarray, " kind"]
    ess_alone: Float[np.ndarray, " kind"]  # least of the kind, chains taken one at a time, summed
    ess_worst: Float[np.ndarray, " kind"]  # likewise, of the chain that has fewest
    # by how many errors the first tenth of a chain lies beyond the range of what follows
    drift: Float[np.ndarray, " kind"]
    divergences: int = 0  # number of draws whose trajectory diverged
    diverging: float = 0.0  # their share of the draws; of several tasks, the largest
    # energy's Bayesian fraction of missing information (Betancourt 2016); below 0.3 tails are not
    # visited
    bfmi: float = np.inf
    integration_steps: float = 0.0  # mean per draw
    at_limit: float = (
        0.0  # share of warm-up's trajectories that were cut off at the largest tree depth
    )
    begun_again: int = 0  # how often warm-up began a chain again, since its mode has far less mass

    @property
    def ok(self) -> bool:
        """Whether the draws can be used."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is wrong, each with its number and the first thing to do; none if nothing is."""
        broken, short = ([one for one in asked if one.broken] for asked in _asked(self))
        remedy = "more draws alone mend nothing" if broken else "draw on: mcmc.extend"
        return (*(one.words for one in broken), *(f"{one.words}; {remedy}" for one in short))

    @property
    def margin(self) -> float:
        """The logarithm of the factor by which what is nearest to its bound keeps it; below 0 where
        a bound is broken.
        """
        return min(one.margin for asked in _asked(self) for one in asked)


class Asked(NamedTuple):
    """One of the things that are asked of a run."""

    margin: float  # logarithm of the factor by which it is kept, NaN where it cannot be told
    words: str  # what is wrong if it is not

    @property
    def broken(self) -> bool:
        """Whether it is not kept."""
        return not self.margin >= 0


def nll_error(p: Float[np.ndarray, "chain draw *point"], y: Float[np.ndarray, "*point"]) -> float:
    """Return the Monte Carlo standard error of the NLL of the average prediction, in nats.

    Where the average moves from q to q + d, the NLL moves by -mean(d / q), q the probability of the
    label, to first order: so the error is that of the mean over draws of mean(q_draw / q), mean
    over points. ``p`` is the probability of class 1 under each draw; or the probability, or the
    density, of what happened, if ``y`` is 1 throughout.

    ValueError: shapes that do not fit, no draws or points, what is no probability or no label.
    """
    checks.labels(checks.array("y", y, np.shape(p)[2:]))
    most = np.inf if np.all(np.asarray(y) == 1) else 1.0
    p = np.asarray(checks.array("p", p, ("chain", "draw", "*point"), 0, most), np.float64)
    q = np.where(np.asarray(y) == 1, p, 1 - p)
    ratio = (q / q.mean(axis=(0, 1))).reshape(*q.shape[:2], -1).mean(axis=2)
    return float(standard_error(ratio))


def leave_one_out(log_likelihood: Float[Array, "chain draw point"]) -> LeaveOneOut:
    """Estimate leave-one-out predictive densities by BlackJAX's PSIS (Vehtari, Gelman and Gabry
    2017), from the log likelihood of each point under each draw, in nats.

    ValueError: another number of axes, or values that are not finite.
    """
    found = checks.array("log_likelihood", log_likelihood, ("chain", "draw", "point"))
    flat = jnp.moveaxis(jnp.asarray(found).reshape(-1, found.shape[-1]), 1, 0)
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
    stats = posterior.stats
    groups = {"predictions": predictions, "log density": stats.log_density}
    groups |= {name.replace("_", " "): values for name, values in others.items()}
    # a task's quantities are quantities of their own: [chain, draw, task, ...]
    if stats.log_density.ndim == 3:
        for name, values in groups.items():
            groups[name] = jax.tree.map(lambda leaf: np.moveaxis(np.asarray(leaf), 0, 2), values)
    diverging = np.asarray(stats.diverging).reshape(-1, *stats.diverging.shape[-2:])
    energy = np.asarray(stats.energy).reshape(-1, stats.energy.shape[-1])
    warmup = posterior.warmup
    return of_quantities(groups, stats.log_density.shape[-2:])._replace(
        divergences=int(diverging.sum()),
        diverging=float(diverging.mean(axis=(1, 2)).max()),
        bfmi=float(arviz.bfmi(energy).min()),
        integration_steps=float(stats.integration_steps.mean()),
        at_limit=0.0 if warmup is None else float(warmup.at_limit.mean()),
        begun_again=0
        if warmup is None or warmup.begun_again is None
        else int(warmup.begun_again.sum()),
    )


def of_quantities(groups: dict[str, Any], sizes: tuple[int, int] | None = None) -> Check:
    """Diagnose quantities alone, of which no trajectory is known: pytrees [chain, draw, ...] by
    kind.

    ``sizes`` are how many chains and draws there were before any were thinned.
    """
    sizes = sizes or jax.tree.leaves(groups)[0].shape[:2]
    runs = {name: summarize(values) for name, values in groups.items()}
    return of_summaries(runs, sizes, sum(run.rhat.size for run in runs.values()))


def of_summaries(
    runs: dict[str, Summary], sizes: tuple[int, int], num_quantities: int, chance: float = CHANCE
) -> Check:
    """Return the check of quantities whose summaries are known, by kind.

    Args:
        runs: what ``summarize`` returns, by kind.
        sizes: how many chains there are, and how many draws of each.
        num_quantities: how many quantities share ``chance``, these among them.
        chance: probability that any R-hat of a right run exceeds its bound.
    """
    num_chains, num_draws = sizes
    every = list(runs.values())
    bounds = [
        rhat_bound(run.ess_alone, num_quantities, num_draws, num_chains, chance) for run in every
    ]
    bounds = [np.minimum(bound, MOST_RHAT) for bound in bounds]
    # np.argmax and np.min keep a NaN, the R-hat of what never moves; Python's may pass over it.
    nearest = [np.argmax(run.rhat - bound) for run, bound in zip(every, bounds, strict=True)]
    both = [np.minimum(run.ess_bulk, run.ess_tail) for run in every]
    return Check(
        kinds=tuple(runs),
        rhat=np.array([run.rhat[i] for run, i in zip(every, nearest, strict=True)]),
        rhat_bound=np.array([bound[i] for bound, i in zip(bounds, nearest, strict=True)]),
        ess_bulk=np.array([run.ess_bulk.min() for run in every]),
        ess_tail=np.array([run.ess_tail.min() for run in every]),
        ess=np.array([np.quantile(ess, 0.01, method="lower") for ess in both]),
        ess_alone=np.array([run.ess_alone.min() for run in every]),
        ess_worst=np.array([run.ess_worst.min() for run in every]),
        drift=np.array([np.max(run.drift) for run in every]),
    )


def _asked(found):
    """Return what is asked of a run: of trajectories and chains, then of how many draws there are.
    Who asks for more draws first may never learn that a part of the posterior is avoided.
    """
    first = [
        Asked(
            _log(MOST_DIVERGENCES, found.diverging),
            f"{found.diverging:.2%} of trajectories diverged, more than {MOST_DIVERGENCES:.1%}: "
            "raise target_acceptance to 0.95, write learnt scales non-centred",
        ),
        Asked(
            _log(found.bfmi, LEAST_BFMI),
            f"BFMI {found.bfmi:.2f} in a chain, less than {LEAST_BFMI}: tails are not visited; "
            "write learnt scales non-centred, or lighten a prior's tails",
        ),
    ]
    then = []
    for i, kind in enumerate(found.kinds):
        rhat, bound = found.rhat[i], found.rhat_bound[i]
        if np.isnan(rhat):
            first += [Asked(-np.inf, f"{kind}: one never moves; leave it out")]
        else:
            disagree = f"{kind}: R-hat {rhat:.3f}, above {bound:.3f}: chains disagree; look at each"
            first += [
                Asked(
                    _log(bound - 0.99, rhat - 0.99),
                    f"{disagree} chain's log density, double num_warmup",
                ),
                Asked(
                    _log(MOST_DRIFT, found.drift[i]),
                    f"{kind}: the first tenth of a chain lies {found.drift[i]:.1f} errors beyond "
                    f"what follows, more than {MOST_DRIFT:.0f}: it had not arrived; double "
                    "num_warmup",
                ),
            ]
        least = min(found.ess_bulk[i], found.ess_tail[i])
        ess = [(found.ess[i], LEAST_ESS), (least, LEAST_OF_MANY)]
        for value, bound in ess[: 1 + (least < found.ess[i])]:
            words = f"{kind}: {value:.0f} effective draws, fewer than {bound:.0f}"
            then += [Asked(_log(value, bound), words)]
    return first, then


def _log(more, less):
    """Return log(more / less), infinite where either is not positive."""
    if less <= 0:
        return np.inf
    return float(np.log(more / less)) if more > 0 else -np.inf


def describe(result: Check) -> str:
    """Return a check in one line, which ends in "can be used" or in what is wrong.

    The bound of an R-hat is given where there are effective draws enough to have one; trajectories
    that the tree depth cut off where they are more than 1 %; chains that warm-up began again where
    there are any: modes are then chosen by a guess of their mass.
    """
    parts = []
    for i, kind in enumerate(result.kinds):
        bound = f" (bound {result.rhat_bound[i]:.3f})" if result.ess_alone[i] >= LEAST_ESS else ""
        ess = f"ESS {result.ess_bulk[i]:.0f}, tail {result.ess_tail[i]:.0f}"
        ess += f", worst chain {result.ess_worst[i]:.0f}"
        parts += [f"{kind}: R-hat {result.rhat[i]:.3f}{bound}, {ess}"]
    parts += [f"divergences: {result.divergences}", f"BFMI: {result.bfmi:.2f}"]
    parts += [f"steps a draw: {result.integration_steps:.0f}"]
    if result.at_limit > 0.01:
        parts += [f"{result.at_limit:.0%} of warm-up's trajectories at their limit"]
    if result.begun_again:
        parts += [f"chains begun again: {result.begun_again}"]
    reasons = result.reasons
    parts += [f"NOT to be used: {'; '.join(reasons)}" if reasons else "can be used"]
    return "; ".join(parts)
