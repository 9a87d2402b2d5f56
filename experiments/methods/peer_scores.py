"""How far a run lies from the answers of a posterior, and whether a verdict on it is right."""

from helpers import diagnostics
from helpers.mcmc import Posterior

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from experiments.problems import peers
from experiments.problems.stressed import LEVELS

MOST_ERRORS = 6.0  # by which a mean may differ, in errors of both
MOST_SDS = 1 / 3  # or in sd of the quantity


class Distances(NamedTuple):
    """The largest differences from the answers, over quantities, in Monte Carlo errors of both."""

    mean: float
    sd: float  # of the squared distance from the mean
    quantiles: float  # of the shares below the 5, 50 and 95 % quantiles
    mean_in_sds: float  # the largest difference of a mean, in sd of the quantity


class Score(NamedTuple):
    """A run beside the answers."""

    distances: Distances
    ess_quantities: float  # least bulk ESS of the quantities
    ess_bulk: float  # of the quantities and the log density
    ess_tail: float
    gradients: float  # of the draws
    mean: list[float]  # of the quantities
    mean_error: list[float]  # its Monte Carlo error
    divergences: int
    accepted: bool  # what the verdict says
    fault: str  # what is wrong with the verdict; empty where nothing is


def distances(values: Float[np.ndarray, "chain draw quantity"], peer: peers.Peer) -> Distances:
    """Return how far averages of draws lie from the answers.

    All that is compared is an average: of the quantity, of its squared distance from the known
    mean, and of whether it is below a known quantile. So all have Monte Carlo errors of one kind.
    """
    known = peer.answers
    below = [known.q05, known.q50, known.q95]
    averaged = [values, (values - known.mean) ** 2, *[values <= quantile for quantile in below]]
    expected = [known.mean, known.sd**2, *[np.full(known.mean.shape, level) for level in LEVELS]]
    of_squares = averaged[1].std(axis=(0, 1))
    of_squares = np.where(of_squares > 0, of_squares, known.sd**2)
    sds = [known.sd, of_squares, *[np.sqrt(level * (1 - level)) for level in LEVELS]]
    num_draws, found = values.shape[0] * values.shape[1], []
    for column, exact, sd in zip(averaged, expected, sds, strict=True):
        column = np.asarray(column, np.float64)
        # what never moves has no error of its own: at least that of as many independent draws
        error = np.fmax(diagnostics.standard_error(column), sd / np.sqrt(num_draws))
        error = np.sqrt(error**2 + sd**2 / peer.num_draws)
        found.append(np.abs((column.mean(axis=(0, 1)) - exact) / error).max())
    in_sds = np.abs(values.mean(axis=(0, 1)) - known.mean) / known.sd
    return Distances(found[0], found[1], max(found[2:]), in_sds.max())


def fault(accepted: bool, of_run: Distances | None, asked: str) -> str:
    """Return what is wrong with a verdict, or nothing: ``accepted`` though a mean is off, or
    refused though the posterior is an easy one. A run without draws, None, is refused.
    """
    if not accepted:
        return "refused, and easy" if asked == peers.EASY else ""
    off = of_run.mean > MOST_ERRORS or of_run.mean_in_sds > MOST_SDS
    return "accepted, and wrong" if off and asked != peers.BEYOND else ""


def score(
    posterior: Posterior, values: Float[np.ndarray, "chain draw quantity"], peer: peers.Peer
) -> Score:
    """Return a run beside the answers of its posterior.

    Args:
        posterior: whose statistics are asked, its draws are not.
        values: of the quantities, at the draws.
        peer: whose answers they are.

    ValueError: statistics or quantities that are not finite.
    """
    check, of_run = diagnostics.check(posterior, values), distances(values, peer)
    return Score(
        of_run,
        float(check.ess_bulk[check.kinds.index("predictions")]),
        float(check.ess_bulk.min()),
        float(check.ess_tail.min()),
        float(np.asarray(posterior.stats.integration_steps).sum(dtype=np.float64)),
        values.mean(axis=(0, 1)).tolist(),
        diagnostics.standard_error(values).tolist(),
        int(posterior.stats.diverging.sum()),
        check.ok,
        fault(check.ok, of_run, peer.asked),
    )
