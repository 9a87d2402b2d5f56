"""Is a sampler right? Averages against exact values, ranks against uniform ones."""

from helpers.diagnostics import CHANCE, LEAST_ESS, rhat_bound, standard_error, summarize
from helpers.targets import Target

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy import stats


class Verdict(NamedTuple):
    """How far averages lie from exact values, one entry a quantity."""

    difference: Float[np.ndarray, " quantity"]  # of mean and exact value, in standard deviations of the quantity
    error: Float[np.ndarray, " quantity"]  # Monte Carlo standard error of the difference
    allowed: Float[np.ndarray, " quantity"]  # what chance, and a bias that is stated, explain of the difference
    ess: Float[np.ndarray, " quantity"]  # of chains taken one at a time
    rhat: Float[np.ndarray, " quantity"]
    rhat_bound: Float[np.ndarray, " quantity"]
    enough: Bool[np.ndarray, " quantity"]  # effective draws and R-hat that allow a verdict
    passed: Bool[np.ndarray, " quantity"]  # enough, and the difference is allowed


def judge(draws: Any, target: Target, chance: float = CHANCE, bias: float = 0.0) -> Verdict:
    """Compare the averages of a run with a target's exact expectations.

    No tolerance is set by hand: a difference, and an R-hat, may be as large as ``chance``, shared by all
    quantities, allows at the run's own effective sample size. A run with fewer than 400 effective draws, counted
    in chains taken one at a time, does not pass.

    Args:
        draws: pytree like the target's position, leading axes [chain, draw].
        bias: what a sampler that is not exact is known to be off by, in standard deviations of the quantity.

    Raises:
        ValueError: fewer than 2 chains or 8 draws, draws that are not finite, a negative bias.
    """
    if not 0 <= bias < np.inf:
        raise ValueError(f"bias: given {bias}, expected a number of 0 or more")
    leading = {np.shape(leaf)[:2] for leaf in jax.tree.leaves(draws)}
    if len(leading) != 1 or len(min(leading)) < 2 or min(min(leading)) < 2 or min(leading)[1] < 8:
        raise ValueError(f"draws: given leaves that begin {sorted(leading)}, expected [chain, draw], 2 and 8 at least")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(draws)):
        raise ValueError("draws: given some that are not finite, expected none")
    values = jax.jit(lambda d: jax.lax.map(lambda chain: jax.lax.map(target.quantities, chain), d))(draws)
    values = np.asarray(values, np.float64)
    found = summarize(values)
    spread = values.std(axis=(0, 1))
    spread = np.where(spread > 0, spread, np.nan)  # what never moved has no error
    difference, error = (values.mean(axis=(0, 1)) - target.exact) / spread, standard_error(values) / spread
    num_chains, num_draws, size = values.shape
    bound = rhat_bound(found.ess_alone, size, num_draws, num_chains, chance)
    enough = (found.ess_alone >= LEAST_ESS) & (found.rhat <= bound)  # both false where nothing moved: NaN
    # The error is itself estimated, hence Student's t.
    allowed = bias + stats.t.isf(chance / 2 / size, np.maximum(found.ess_alone, 10) / 5) * error
    passed = enough & (np.abs(difference) <= allowed)
    return Verdict(difference, error, allowed, found.ess_alone, found.rhat, bound, enough, passed)


def ranks(values: Float[Array, " replication draw *quantity"], truth: Float[Array, " replication *quantity"]) -> Int:
    """Return how many draws lie below the value that made the data (Talts et al. 2018); ties count half, rounded down.

    Raises:
        ValueError: shapes that do not fit, or values that are not finite.
    """
    values, truth = np.asarray(values), np.asarray(truth)
    if values.ndim < 2 or (values.shape[0], *values.shape[2:]) != truth.shape:
        raise ValueError(
            f"values, truth: given shapes {values.shape} and {truth.shape}, expected one axis of draws more"
        )
    if not (np.isfinite(values).all() and np.isfinite(truth).all()):
        raise ValueError("values, truth: given some that are not finite, expected none")
    below, equal = (values < truth[:, None]).sum(axis=1), (values == truth[:, None]).sum(axis=1)
    return below + equal // 2


def rank_band(num_replications: int, num_draws: int, chance: float = 0.05, simulations: int = 2000) -> Float:
    """Return the largest distance of the ranks' cumulative share from a straight line that chance explains.

    The distance is standardised by its binomial standard deviation, so that the ends of the line count as much
    as its middle (Sailynoja, Burkner and Vehtari 2022); ``rank_distance`` is what to compare with it.
    """
    random = np.random.default_rng(5)
    drawn = random.integers(0, num_draws + 1, size=(num_replications, simulations))
    return float(np.quantile(rank_distance(drawn, num_draws), 1 - chance))


def rank_difference(
    found: Int[np.ndarray, " replication *quantity"], num_draws: int
) -> tuple[Float[np.ndarray, " step *one"], Float[np.ndarray, " step *quantity"]]:
    """Return the straight line of uniform ranks, and the ranks' cumulative share less that line."""
    found = np.asarray(found)
    share = np.stack([(found < step).mean(axis=0) for step in range(1, num_draws + 1)])
    line = (np.arange(1, num_draws + 1) / (num_draws + 1)).reshape(-1, *[1] * (share.ndim - 1))
    return line, share - line


def rank_distance(found: Int[np.ndarray, " replication *quantity"], num_draws: int) -> Float[np.ndarray, "*quantity"]:
    """Return the largest distance of the ranks' cumulative share from a straight line, standardised."""
    line, difference = rank_difference(found, num_draws)
    return (np.abs(difference) / np.sqrt(line * (1 - line) / len(found))).max(axis=0)
