"""Is a sampler right? Averages against exact values, ranks against uniform ones.

    # or quantities [chain, draw, quantity] and their exact values
    verdict = verify.compare_with_exact(draws, target)
    assert verdict.passed.all()

``experiments.problems.exact_targets`` has densities whose expectations are known exactly.
"""

from helpers import checks, diagnostics, summaries
from helpers.common import take
from helpers.programs import bounded
from helpers.summaries import CHANCE

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy import stats


class Target(NamedTuple):
    """A density, quantities of its draws, and their exact expectations."""

    name: str
    log_density: Callable[[Any], Float[Array, ""]]  # of one position, up to a constant
    position: Any  # the shapes of one position
    quantities: Callable[[Any], Float[Array, " quantity"]]  # of one position
    exact: Float[np.ndarray, " quantity"]  # their expectations
    labels: tuple[str, ...]  # their names


class Verdict(NamedTuple):
    """How far averages lie from exact values, one entry a quantity."""

    # of mean and exact value, in standard deviations of the quantity
    difference: Float[np.ndarray, " quantity"]
    error: Float[np.ndarray, " quantity"]  # Monte Carlo standard error of the difference
    # what chance, and a bias that is stated, explain of the difference
    allowed: Float[np.ndarray, " quantity"]
    ess: Float[np.ndarray, " quantity"]  # of all chains together, the lesser of bulk and tail
    rhat: Float[np.ndarray, " quantity"]
    rhat_bound: Float[np.ndarray, " quantity"]  # what chance explains of R-hat
    drift: Float[np.ndarray, " quantity"]  # of the first tenth of a chain, in errors
    enough: Bool[np.ndarray, " quantity"]  # whether the draws can be used, as ``diagnostics`` says
    passed: Bool[np.ndarray, " quantity"]  # enough, and the difference is allowed


def compare_with_exact(
    draws: Any,
    target: Target | Float[np.ndarray, "*quantity"],
    chance: float = CHANCE,
    bias: float = 0.0,
) -> Verdict:
    """Compare the averages of a run with exact expectations.

    No tolerance is set by hand: a difference and an R-hat may be as large as ``chance``, shared
    by all quantities, allows at the run's own effective sample size. Draws that
    ``diagnostics`` would not use do not pass. A right run fails with probability 2 ``chance`` at
    most if it has effective draws enough, whatever the number of quantities. Of runs with one mean
    off by 0.2 sd at an ESS of 1000, 96 % are found if there is one quantity and 87 % if there are
    twenty; off by 0.1 sd at 4000, 97 % and 88 % (2000 simulated runs, ``tests/test_verify.py``).

    Standard deviation and error are the median chain's, so that a chain that is stuck elsewhere
    widens neither.

    Args:
        draws: pytree like the target's position, leading axes [chain, draw]; with exact values, the
            quantities themselves, [chain, draw, *quantity].
        target: a ``Target``, or the exact values.
        chance: probability that a difference of a right run is larger than is allowed; as much
            again is for its R-hat.
        bias: what a sampler that is not exact is known to be off by, in standard deviations of the
            quantity.

    ValueError: fewer than 2 chains or 8 draws, shapes that do not fit, draws or exact values that
    are not finite, a negative bias, a chance that is no probability.
    """
    checks.number(bias=bias, closed=True)
    checks.number(high=1.0, chance=chance)
    num_chains, num_draws = checks.leading("draws", draws, ("chain", "draw"))
    if num_chains < 2 or num_draws < 8:
        raise ValueError(
            f"draws: given {num_chains} chains of {num_draws}, expected 2 of 8 at least"
        )
    checks.finite(draws=draws)
    if isinstance(target, Target):
        draws, target = _quantities(target.quantities, draws), target.exact
    values, exact = np.asarray(draws, np.float64), np.asarray(target, np.float64)
    if values.shape[2:] != exact.shape:
        raise ValueError(
            f"draws, target: given quantities {values.shape[2:]} and exact values {exact.shape}, "
            "expected the same"
        )
    checks.finite(target=exact)
    values, exact = values.reshape(num_chains, num_draws, -1), exact.ravel()
    found, sizes = summaries.summarize(values), values.shape[:2]
    spread = np.median(values.std(axis=1), axis=0)
    spread = np.where(spread > 0, spread, np.nan)  # what never moved has no error
    ess = summaries.ess_of_median_chain(values)
    difference, error = (values.mean(axis=(0, 1)) - exact) / spread, 1 / np.sqrt(ess)
    each = [
        diagnostics.of_summaries(
            {"quantity": take(found, np.s_[i : i + 1])}, sizes, exact.size, chance
        )
        for i in range(exact.size)
    ]
    enough = np.array([one.ok for one in each], bool)
    # The error is itself estimated, hence Student's t.
    allowed = bias + stats.t.isf(chance / 2 / exact.size, np.maximum(ess, 10) / 5) * error
    # false where nothing moved: NaN
    passed = enough & (np.abs(difference) <= allowed)
    bound = np.array([one.rhat_bound[0] for one in each])
    least = np.minimum(found.ess_bulk, found.ess_tail)
    return Verdict(
        difference, error, allowed, least, found.rhat, bound, found.drift, enough, passed
    )


@bounded(1)
def _quantities(function, draws):
    return jax.lax.map(lambda chain: jax.lax.map(function, chain), draws)


def ranks(
    values: Float[Array, " replication draw *quantity"],
    truth: Float[Array, " replication *quantity"],
) -> Int:
    """Return how many draws lie below the value that made the data (Talts et al. 2018).

    The leading axis is [replication]. Ties count half, rounded down.

    ValueError: shapes that do not fit, or values that are not finite.
    """
    values, truth = np.asarray(values), np.asarray(truth)
    if values.ndim < 2 or (values.shape[0], *values.shape[2:]) != truth.shape:
        raise ValueError(
            f"values, truth: given {values.shape} and {truth.shape}, "
            "expected one axis of draws more"
        )
    checks.finite(values=values, truth=truth)
    below, equal = (values < truth[:, None]).sum(axis=1), (values == truth[:, None]).sum(axis=1)
    return below + equal // 2


def rank_difference(
    found: Int[np.ndarray, " replication *quantity"], num_draws: int
) -> tuple[Float[np.ndarray, " step *one"], Float[np.ndarray, " step *quantity"]]:
    """Return the cumulative shares of uniform ranks, and by how much those of ranks exceed them.

    Ranks are 0 to ``num_draws``, as ``ranks`` returns; step ``s`` is the share of those below it,
    for ``s`` from 1 to ``num_draws``.

    ValueError: no ranks, or what is none.
    """
    checks.count(num_draws=num_draws)
    found = np.asarray(checks.array("found", found, ("replication", "*quantity"), 0, num_draws))
    if (found != found.round()).any():
        raise ValueError("found: given numbers between integers, expected ranks")
    share = np.stack([(found < step).mean(axis=0) for step in range(1, num_draws + 1)])
    line = (np.arange(1, num_draws + 1) / (num_draws + 1)).reshape(-1, *[1] * (share.ndim - 1))
    return line, share - line


def rank_band(
    num_replications: int, num_draws: int, chance: float = 0.05, simulations: int = 2000
) -> float:
    """Return the largest distance of the ranks' cumulative share from a straight line that chance
    explains.

    The distance is standardised by its binomial standard deviation, so that the ends of the line
    count as much as its middle (Sailynoja, Burkner and Vehtari 2022); ``rank_distance`` is what to
    compare with it.

    Args:
        num_replications: number of ranks.
        num_draws: draws among which a truth is ranked, so that ranks are 0 to ``num_draws``.
        chance: probability that uniform ranks lie beyond the band.
        simulations: sets of uniform ranks of which the band is the quantile.

    ValueError: no replications, draws or simulations, a chance that is no probability.
    """
    checks.count(num_replications=num_replications, num_draws=num_draws, simulations=simulations)
    checks.number(high=1.0, chance=chance)
    random = np.random.default_rng(5)
    drawn = random.integers(0, num_draws + 1, size=(num_replications, simulations))
    return float(np.quantile(rank_distance(drawn, num_draws), 1 - chance))


def rank_distance(
    found: Int[np.ndarray, " replication *quantity"], num_draws: int
) -> Float[np.ndarray, "*quantity"]:
    """Return the largest distance of the ranks' cumulative share from a straight line, in its
    binomial standard deviations.

    ValueError: as ``rank_difference``.
    """
    line, difference = rank_difference(found, num_draws)
    return (np.abs(difference) / np.sqrt(line * (1 - line) / len(found))).max(axis=0)
