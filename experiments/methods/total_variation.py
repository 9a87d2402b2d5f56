"""Total variation between mean predictions, and what of it chance explains."""

import numpy as np
from jaxtyping import Float

LIMIT = 0.005  # total variation to the posterior, up to which a sampler is near it
# between a step and half of it: an error in proportion to the step is twice that
MARGIN = LIMIT / 2


def beyond(apart: float, chance: float) -> float:
    """Return the part of a distance beyond chance: squares of independent parts add up."""
    return float(np.sqrt(max(apart**2 - chance**2, 0.0)))


def distance(
    of_chains: Float[np.ndarray, "chain point"], truth: Float[np.ndarray, "chain point"]
) -> tuple[float, float]:
    """Return the total variation between mean predictions of two sets of chains, and chance's.

    Chains of one set are independent, so what they differ by says how far their mean is off by
    chance, whether or not a chain has mixed; the mean of the absolute value of a normal is 0.8
    standard deviations.
    """
    gap = of_chains.mean(axis=0) - truth.mean(axis=0)
    variance = sum(chains.var(axis=0, ddof=1) / len(chains) for chains in (of_chains, truth))
    return float(np.abs(gap).mean()), float(np.sqrt(2 / np.pi * variance).mean())
