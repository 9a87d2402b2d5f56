"""R-hat, effective sample sizes, drift and Monte Carlo errors of draws, many quantities at once.

R-hat and effective sample sizes are the rank-normalised ones (Vehtari et al. 2021). R-hat is
ArviZ's; effective sample sizes are BlackJAX's, which nearly always equal ArviZ's, and to a
twentieth otherwise (``tests/test_diagnostics.py``). ``diagnostics`` says what follows from them.

    found = summaries.summarize(predictions)  # a pytree, leading axes [chain, draw]
    found.rhat, found.ess_bulk, found.drift
"""

from helpers import checks
from helpers.common import mixed_types

from typing import Any, NamedTuple

import jax
import numpy as np
from blackjax import diagnostics as blackjax_diagnostics
from jaxtyping import ArrayLike, Float
from scipy import special, stats

CHANCE = 1e-5  # that a right run breaks one of the book's statistical claims
MOST_RHAT = 1.05  # however few draws there are to tell chains apart
BLOCK = 16  # quantities at once: more are no faster, and every size is a program to compile
# of which BlackJAX's functions take a few milliseconds for a block
_ess = jax.jit(blackjax_diagnostics.effective_sample_size)
_rhat = jax.jit(blackjax_diagnostics.potential_scale_reduction)


class Summary(NamedTuple):
    """Diagnostics of each scalar quantity."""

    rhat: Float[np.ndarray, " quantity"]  # the larger of those of location and of spread
    ess_bulk: Float[np.ndarray, " quantity"]  # of all chains together
    ess_tail: Float[np.ndarray, " quantity"]  # the lesser of those of the 5 % and 95 % quantiles
    # of chains taken one at a time, summed: location's or spread's
    ess_alone: Float[np.ndarray, " quantity"]
    ess_worst: Float[np.ndarray, " quantity"]  # likewise, of the chain that has fewest
    # by how many errors the first tenth of a chain lies beyond what follows, the worst chain
    drift: Float[np.ndarray, " quantity"]
    # what chance explains of R-hat, shared by these quantities, `MOST_RHAT` at most
    rhat_bound: Float[np.ndarray, " quantity"]


def summarize(values: Any) -> Summary:
    """Diagnose every scalar of a pytree of draws, leading axes [chain, draw], in the order of its
    leaves.

    ValueError: fewer than 2 chains or 8 draws, or values that are not finite.
    """
    checks.finite(values=values)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(values)]
    num_chains, num_draws = checks.leading("values", leaves, ("chain", "draw"))
    if num_chains < 2 or num_draws < 8:
        raise ValueError(
            f"values: given {num_chains} chains of {num_draws} draws, expected 2 of 8 at least"
        )
    with np.errstate(invalid="ignore"):  # what never moves has no R-hat: NaN
        found = np.concatenate([_of_block(b) for leaf in leaves for b in _blocks(leaf)], axis=1)
    bound = _rhat_bound(found[3], found.shape[1], num_draws, num_chains, CHANCE)
    return Summary(*found, np.minimum(bound, MOST_RHAT))


def _blocks(leaf):
    """Return [chain, draw, ...] in parts of [chain, draw, quantity]."""
    flat = leaf.reshape(*leaf.shape[:2], -1)
    return [
        np.asarray(flat[..., i : i + BLOCK], np.float64) for i in range(0, flat.shape[2], BLOCK)
    ]


def _of_block(values):
    """Return the fields of `Summary` but the bound, [6, quantity]."""
    num_chains, num_draws, size = values.shape
    rows = np.ascontiguousarray(values.reshape(-1, size).T)  # [quantity, draw of any chain]
    low, high = np.quantile(rows, (0.05, 0.95), axis=1)[..., None]
    folded = np.abs(rows - np.median(rows, axis=1, keepdims=True))
    rest = values[:, _tenth(num_draws) :]
    within = np.clip(values, rest.min(axis=(0, 1)), rest.max(axis=(0, 1)))
    kinds = np.stack([_normal(rows), _normal(folded), rows <= low, rows <= high, rows])
    # [chain, draw, kind, quantity]
    kinds = np.moveaxis(kinds.reshape(5, size, num_chains, num_draws), (2, 3), (0, 1))
    kinds[:, :, 4] = within
    rhat = _each(_rhat, kinds[:, :, :2]).max(axis=0)
    bulk, low, high, raw = _each(_ess, kinds[:, :, [0, 2, 3, 4]])
    # chains side by side, as if each were the only one: [chain, kind, quantity]
    one = _each(_ess, np.moveaxis(kinds[:, :, :2], 0, 1)[None]).min(axis=1)
    tail, drift = np.minimum(low, high), _drift(values, within, raw)
    return np.stack([rhat, bulk, tail, one.sum(axis=0), one.min(axis=0), drift])


def _drift(values, within, ess):
    """Return by how many errors the first tenth of a chain lies beyond what follows, [quantity].

    ``within`` are the values, raw ones, brought into the range of what follows, of all chains: what
    they lack is what is beyond. Ranks would hide how far that is; and a difference of means, of
    quantities with heavy tails, would take a right run for one that had not arrived. The error is
    that of what follows, and ``ess`` of the values within, since a chain that has not arrived
    widens an error from all draws by as much as it moves the mean.
    """
    first = _tenth(values.shape[1])
    rest = values[:, first:]
    total = len(values) * (1 / first + 1 / rest.shape[1]) * values.shape[1]
    ess = np.clip(ess, 1, values[..., 0].size)  # none, where chains stand still apart
    error = rest.std(axis=(0, 1)) * np.sqrt(total / ess)
    return (np.abs((values - within)[:, :first].mean(axis=1)) / error).max(axis=0)


def _tenth(num_draws):
    return -(-num_draws // 10)


def _normal(rows):
    """Return the normal numbers of the same ranks among all draws of a row (Blom 1958)."""
    ranks = stats.rankdata(rows, axis=1)
    return special.ndtri((ranks - 0.375) / (rows.shape[1] + 0.25))


def _each(function, values):
    """Apply a function of BlackJAX to halves of chains, [chain, draw, *kind, quantity].

    The effective sample size of what never moves is the number of draws, as ArviZ has it.
    """
    size, half = values.shape[-1], values.shape[1] // 2
    padding = [(0, 0)] * (values.ndim - 1) + [(0, BLOCK - size)]  # every size would be compiled
    padded = np.pad(values, padding)
    halves = np.concatenate([padded[:, :half], padded[:, -half:]])
    # one kind at a time: the size of a program whatever the number of kinds
    blocks = np.moveaxis(halves.reshape(*halves.shape[:2], -1, BLOCK), 2, 0)
    with jax.enable_x64(True), mixed_types():
        found = np.stack([np.asarray(function(block)) for block in blocks])
    found = found.reshape(padded.shape[2:])[..., :size]
    if function is _ess:
        moved = np.ptp(values, axis=(0, 1)) > 0
        found = np.where(moved, found, values.shape[0] * values.shape[1])
    return found


def rhat_bound(
    ess_alone: Float[ArrayLike, "*quantity"],
    num_quantities: int,
    num_draws: int,
    num_chains: int = 4,
    chance: float = CHANCE,
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

    ValueError: no quantity, fewer than 8 draws or 2 chains, a chance that is no probability, an ESS
        that is negative or not finite.
    """
    checks.array("ess_alone", ess_alone, ("*quantity",), low=0.0)
    checks.count(num_quantities=num_quantities)
    checks.count(least=8, num_draws=num_draws)
    checks.count(least=2, num_chains=num_chains)
    checks.number(high=1.0, chance=chance)
    return _rhat_bound(ess_alone, num_quantities, num_draws, num_chains, chance)


def _rhat_bound(ess_alone, num_quantities, num_draws, num_chains, chance):
    means, ess = 2 * num_chains, np.maximum(np.asarray(ess_alone, np.float64), 1.0)
    excess = means / ess * stats.f.isf(chance / (2 * num_quantities), means - 1, ess / 5)
    return np.sqrt(1 - 2 / num_draws + excess)


def _checked(values):
    return checks.array("values", values, ("chain", "draw", "*quantity"), single=False)


def standard_error(
    values: Float[np.ndarray, "chain draw *quantity"],
) -> Float[np.ndarray, "*quantity"]:
    """Return the Monte Carlo standard error of the mean of all draws: their sd over the root of
    their ESS.

    The ESS is that of all chains together, so that chains that disagree make the error larger; and
    never more than the number of draws, since one above it, of draws that alternate, is poorly
    known. With an ESS of 200 or more a mean is off by more than 5 of these with probability 1e-5 at
    most (``tests/test_diagnostics.py``). The unit is that of the values.

    ValueError: no chains or draws, values that are not finite.
    """
    values = np.asarray(_checked(values), np.float64)
    ess = np.concatenate([_each(_ess, block) for block in _blocks(values)])
    size = values.shape[0] * values.shape[1]
    error = values.std(axis=(0, 1), ddof=1).ravel() / np.sqrt(np.clip(ess, 1, size))
    return error.reshape(values.shape[2:])


def ess_of_median_chain(
    values: Float[np.ndarray, "chain draw *quantity"],
) -> Float[np.ndarray, "*quantity"]:
    """Return the effective sample size of the mean of all draws if every chain were the median one.

    Unlike that of all chains together it does not fall as chains disagree.

    ValueError: as ``standard_error``.
    """
    values = np.asarray(_checked(values), np.float64)
    num_chains, num_draws = values.shape[:2]
    parts = [_each(_ess, np.moveaxis(block, 0, 1)[None]) for block in _blocks(values)]
    of_chains = np.clip(np.concatenate(parts, axis=1), 1, num_draws)
    return num_chains * np.median(of_chains, axis=0).reshape(values.shape[2:])
