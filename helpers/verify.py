"""Is a sampler right? Averages against exact values, ranks against uniform ones."""

from helpers.targets import Target

from typing import Any, NamedTuple

import jax
import numpy as np
from blackjax import diagnostics as blackjax_diagnostics
from jaxtyping import Array, Bool, Float, Int
from scipy import stats


class Verdict(NamedTuple):
    """How far averages lie from exact values, one entry a quantity."""

    difference: Float[np.ndarray, " quantity"]  # of mean and exact value, in standard deviations of the quantity
    error: Float[np.ndarray, " quantity"]  # Monte Carlo standard error of the difference
    ess: Float[np.ndarray, " quantity"]
    rhat: Float[np.ndarray, " quantity"]
    enough: Bool[np.ndarray, " quantity"]  # effective draws and R-hat that allow a verdict
    passed: Bool[np.ndarray, " quantity"]  # enough, and the difference is one that chance explains


def judge(
    draws: Any,
    target: Target,
    least_ess: float = 400,
    largest_rhat: float = 1.02,
    chance: float = 1e-3,
    bias: float = 0.0,
) -> Verdict:
    """Compare the averages of a run with a target's exact expectations.

    No tolerance is set by hand: a difference may be as large as ``chance``, shared by all quantities,
    allows at the run's own effective sample size. A run with fewer effective draws than asked does not pass.

    Args:
        draws: pytree like the target's position, leading axes [chain, draw].
        bias: what a sampler that is not exact is known to be off by, in standard deviations of the quantity.

    Raises:
        ValueError: fewer than 2 chains or 4 draws, draws that are not finite, a negative bias.
    """
    if not 0 <= bias < np.inf:
        raise ValueError(f"bias: given {bias}, expected a number of 0 or more")
    leading = {np.shape(leaf)[:2] for leaf in jax.tree.leaves(draws)}
    if len(leading) != 1 or len(min(leading)) < 2 or min(min(leading)) < 2 or min(leading)[1] < 4:
        raise ValueError(f"draws: given leaves that begin {sorted(leading)}, expected [chain, draw], 2 and 4 at least")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(draws)):
        raise ValueError("draws: given some that are not finite, expected none")
    values = jax.jit(lambda d: jax.lax.map(lambda chain: jax.lax.map(target.quantities, chain), d))(draws)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # BlackJAX mixes both
        ess, rhat = map(np.asarray, _mixing(values))
    values = np.asarray(values, np.float64).reshape(-1, values.shape[-1])
    spread = values.std(axis=0)
    difference = (values.mean(axis=0) - target.exact) / np.where(spread > 0, spread, 1.0)
    enough = (ess >= least_ess) & (rhat <= largest_rhat)  # both false where nothing moved: NaN
    error = 1 / np.sqrt(np.where(ess > 0, ess, np.nan))
    bound = stats.norm.isf(chance / 2 / values.shape[1])
    return Verdict(difference, error, ess, rhat, enough, enough & (np.abs(difference) <= bias + bound * error))


@jax.jit
def _mixing(values):
    size, rhat = blackjax_diagnostics.effective_sample_size(values), blackjax_diagnostics.rhat(values)
    return size.reshape(-1), rhat.reshape(-1)


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
