"""The probability of the data under a model, from draws at powers of the likelihood between 0 and
1.

One mode's curvature (Laplace's method) misses every other copy of a network; draws from the prior
see all copies, and each power hands over to the next.
"""

import numpy as np
from jaxtyping import Array, Float
from scipy import optimize, special


def log_evidence(
    log_likelihood: Float[Array, "power draw"], powers: Float[Array, " power"]
) -> float:
    """Return log p(y), the log of the likelihood's mean over the prior, by bridge sampling.

    Row k holds the log likelihoods of draws from prior * likelihood ** powers[k]. Each ratio of
    neighbouring normalizing constants is the optimal bridge estimate (Meng and Wong 1996; with
    equally many draws on both sides it is the root of Bennett's acceptance ratio).

    Raises:
        ValueError: shapes that do not fit, values that are not finite, powers that do not rise from
            0 to 1.
    """
    values, powers = np.asarray(log_likelihood, np.float64), np.asarray(powers, np.float64)
    if (
        values.ndim != 2
        or values.shape[:1] != powers.shape
        or values.size == 0
        or not np.isfinite(values).all()
    ):
        raise ValueError(
            f"log_likelihood, powers: given shapes {values.shape} and {powers.shape} and "
            f"{np.count_nonzero(~np.isfinite(values))} values that are not finite, "
            "expected [power, draw] and [power], none 0, and none"
        )
    if len(powers) < 2 or powers[0] != 0 or powers[-1] != 1 or not (np.diff(powers) > 0).all():
        expected = "increasing numbers from 0 to 1"
        raise ValueError(f"powers: given {powers.tolist()}, expected {expected}")
    steps = np.diff(powers)[:, None]
    return float(
        sum(
            _ratio(below, above)
            for below, above in zip(steps * values[:-1], steps * values[1:], strict=True)
        )
    )


def log_evidence_error(
    log_likelihood: Float[Array, "power chain draw"], powers: Float[Array, " power"]
) -> float:
    """Return the Monte Carlo standard error of ``log_evidence``, from 20 stretches of each chain.

    A stretch must be long against the time in which a chain forgets. The error has 19 degrees of
    freedom.

    Raises:
        ValueError: fewer than 40 draws, and as ``log_evidence``.
    """
    values = np.asarray(log_likelihood)
    if values.ndim != 3 or values.shape[2] < 40:
        raise ValueError(
            f"log_likelihood: given shape {values.shape}, "
            "expected [power, chain, draw], 40 draws or more"
        )
    stretches = np.array_split(values, 20, axis=2)
    found = [log_evidence(part.reshape(len(part), -1), powers) for part in stretches]
    return float(np.std(found, ddof=1) / np.sqrt(20))


def _ratio(below, above):
    """Return log(Z_above / Z_below), given log(q_above / q_below) at the draws of both."""

    def imbalance(log_ratio):
        return special.expit(below - log_ratio).sum() - special.expit(log_ratio - above).sum()

    low, high = min(below.min(), above.min()) - 1, max(below.max(), above.max()) + 1
    return optimize.brentq(imbalance, low - np.log(below.size), high + np.log(below.size))


def laplace(log_density: float, precision: Float[Array, "unknown unknown"]) -> float:
    """Return the log of a mode's mass from log density and minus the Hessian there (MacKay 1992).

    Raises:
        ValueError: a matrix that is not square, symmetric and positive definite, which no mode has.
    """
    precision = np.asarray(precision, np.float64)
    if (
        precision.ndim != 2
        or precision.shape[0] != precision.shape[1]
        or not np.isfinite(precision).all()
    ):
        expected = "a square matrix of finite numbers"
        raise ValueError(f"precision: given shape {precision.shape}, expected {expected}")
    eigenvalues = np.linalg.eigvalsh((precision + precision.T) / 2)
    if eigenvalues.min() <= 0:
        raise ValueError(
            f"precision: given a least eigenvalue of {eigenvalues.min():.3g}, "
            "expected positive ones"
        )
    log_det = np.log(eigenvalues).sum()
    return float(log_density + 0.5 * (len(eigenvalues) * np.log(2 * np.pi) - log_det))


def log_copies(hidden: int, odd: bool = True) -> float:
    """Return the log of how many copies a network of one hidden layer has: H!, times 2^H if odd.

    Raises:
        ValueError: a number of units that is not an integer of 1 or more.
    """
    if hidden != int(hidden) or hidden < 1:
        raise ValueError(f"hidden: given {hidden}, expected an integer of 1 or more")
    return float(special.gammaln(hidden + 1) + (hidden * np.log(2) if odd else 0.0))
