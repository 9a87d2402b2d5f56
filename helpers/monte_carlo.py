"""Monte Carlo errors of what is found of draws, where no formula gives them.

A stretch of draws must be long against the time in which a chain forgets.

    error = monte_carlo.jackknife(lambda draws: draws.std(axis=0), draws)
"""

from helpers import checks, diagnostics, metrics

from collections.abc import Callable

import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int
from scipy import stats


def percent_right(
    p: Float[np.ndarray, "chain draw *point"], y: Int[ArrayLike, "*point"]
) -> tuple[float, float]:
    """Return the accuracy of the average prediction in percent, and its Monte Carlo error.

    The error is that of the mean over eight stretches of each chain, and no less than what one
    point is worth.

    ValueError: shapes that do not fit, fewer than 8 draws, what is no probability or no label.
    """
    p = np.asarray(checks.array("p", p, ("chain", "draw", "*point"), 0, 1))
    checks.count(least=8, draws=p.shape[1])
    stretches = [part.mean(axis=0) for chain in p for part in np.array_split(chain, 8)]
    spread = np.std([metrics.accuracy(part, y) for part in stretches], ddof=1) / np.sqrt(
        len(stretches)
    )
    return 100 * metrics.accuracy(p.mean(axis=(0, 1)), y), 100 * float(
        np.hypot(spread, 1 / np.size(y))
    )


def mixture_nll_error(
    f: Float[Array, "*draw point"], noise: Float[Array, "*draw"], y: Float[Array, " point"]
) -> float:
    """Return the Monte Carlo standard error of ``metrics.mixture_nll``; draws [draw] are
    independent ones, a multiple of four.

    ValueError: shapes that do not fit, values that are not finite, a noise that is not positive.
    """
    noise = checks.array("noise", noise, ("*draw",), low=np.finfo(np.float32).tiny)
    y = checks.array("y", y, ("point",))
    f = checks.array("f", f, (*np.shape(noise), *np.shape(y)))
    if noise.ndim > 2 or (noise.ndim == 1 and len(noise) % 4):
        raise ValueError(
            f"noise: given shape {noise.shape}, expected [chain, draw], or [draw], a multiple of 4"
        )
    log_p = stats.norm.logpdf(y, f, noise[..., None]).reshape(
        *(noise.shape if noise.ndim == 2 else (4, -1)), y.size
    )
    # Of each point only ratios between draws count; far from the data its densities are too small
    # for numbers.
    return diagnostics.nll_error(np.exp(log_p - log_p.max(axis=(0, 1))), np.ones_like(y))


def jackknife(
    function: Callable, *draws: Float[Array, "draw ..."], num_stretches: int = 20
) -> np.ndarray:
    """Return the Monte Carlo standard error of numbers found of draws, where no formula gives it.

    Stretches of the draws, chains one after the other, are left out in turn. A stretch must be long
    against the time in which a chain forgets. The error has 19 degrees of freedom.

    ValueError: fewer than 2 stretches, fewer draws than stretches, values that are not finite.
    """
    checks.count(least=2, num_stretches=num_stretches)
    (num_draws,) = checks.leading("draws", draws, ("draw",))
    checks.count(least=num_stretches, draws=num_draws)
    checks.finite(draws=draws)
    stretches = np.array_split(np.arange(len(draws[0])), num_stretches)
    found = [
        function(*(np.delete(values, stretch, axis=0) for values in draws)) for stretch in stretches
    ]
    return np.sqrt(num_stretches - 1) * np.std(found, axis=0)
