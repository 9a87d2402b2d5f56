"""Densities that strain a sampler, with exact answers: narrow, wide, curved, or in several parts.

Each function returns a density and the answers: the mean, sd and three quantiles of its quantities.
"""

from helpers.common import float_shapes

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import integrate, optimize, special, stats

from experiments.problems.posteriordb_models import Density, linear

LEVELS = (0.05, 0.5, 0.95)


class Answers(NamedTuple):
    """What is known of each quantity, in its own unit."""

    mean: Float[np.ndarray, " quantity"]
    sd: Float[np.ndarray, " quantity"]
    q05: Float[np.ndarray, " quantity"]
    q50: Float[np.ndarray, " quantity"]
    q95: Float[np.ndarray, " quantity"]


def of_distributions(distributions) -> Answers:
    """Return the answers of quantities whose distributions SciPy has."""
    rows = [(one.mean(), one.std(), *one.ppf(LEVELS)) for one in distributions]
    return Answers(*np.array(rows, np.float64).T)


def of_distribution_function(mean, sd, share_below, low, high) -> Answers:
    """Return the answers of one quantity, its quantiles as roots between ``low`` and ``high``."""
    found = [optimize.brentq(lambda x: share_below(x) - level, low, high) for level in LEVELS]
    return Answers(*np.array([[mean], [sd], *[[quantile] for quantile in found]]))


def joined(*parts: Answers) -> Answers:
    """Return the answers of all quantities, in their order."""
    return Answers(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def years() -> tuple[Density, Answers]:
    """A trend over the years 1900 to 2020, not centred: intercept and slope correlate at -0.9998.

    Noise is unknown and all priors are flat, log sigma's too, so that weights have Student's
    distribution and sigma^-2 a chi-squared one (Gelman et al. 2013, section 14.2).
    """
    year = np.arange(1900.0, 2021.0)
    y = 0.02 * (year - 1960) + 0.5 * np.random.default_rng(19).normal(size=len(year))
    design = np.stack([np.ones(len(year)), year], axis=1)
    orthogonal, triangle = np.linalg.qr(design)
    best = np.linalg.solve(triangle, orthogonal.T @ y)
    freedom = len(year) - 2
    squares = ((y - design @ best) ** 2).sum()
    unit_sd = np.sqrt((np.linalg.inv(triangle) ** 2).sum(axis=1) * squares / freedom)
    weights = [stats.t(freedom, mean, sd) for mean, sd in zip(best, unit_sd, strict=True)]
    # sigma = sqrt(squares / chi2): squares times an inverse gamma, under a root
    sigma = stats.gengamma(freedom / 2, -2, scale=np.sqrt(squares / 2))
    return linear(design, y, lambda log_sigma: 0.0), of_distributions([*weights, sigma])


def alike(size: int = 50, correlation: float = 0.999) -> tuple[Density, Answers]:
    """Unit normals, every two of them correlated alike."""
    apart = 1 - correlation

    def log_density(x):
        centre = x.mean()
        along = size * centre**2 / (apart + size * correlation)
        return -0.5 * (((x - centre) ** 2).sum() / apart + along)

    density = Density(log_density, float_shapes((size,)), lambda x: x)
    return density, of_distributions([stats.norm()] * size)


def scales(size: int = 20, decades: float = 6.0) -> tuple[Density, Answers]:
    """Independent normals with scales from 1e-6 to 1e6."""
    sd = np.logspace(-decades, decades, size)

    def log_density(x):
        return -0.5 * ((x / jnp.asarray(sd, x.dtype)) ** 2).sum()

    density = Density(log_density, float_shapes((size,)), lambda x: x)
    return density, of_distributions([stats.norm(0, scale) for scale in sd])


def funnel(size: int = 10, scale: float = 3.0) -> tuple[Density, Answers]:
    """Neal's (2003) funnel, v ~ N(0, scale), the others N(0, exp(v / 2)); quantities: v and the
    logarithm of the first of the others.
    """

    def log_density(position):
        v, x = position["v"], position["x"]
        others = -0.5 * ((x * jnp.exp(-v / 2)) ** 2).sum() - 0.5 * (size - 1) * v
        return others - 0.5 * (v / scale) ** 2

    def quantities(position):
        return jnp.stack([position["v"], jnp.log(jnp.abs(position["x"][0]))])

    def share_below(log_x):
        def given(v):
            return stats.norm.pdf(v, 0, scale) * special.erf(np.exp(log_x - v / 2) / np.sqrt(2))

        return integrate.quad(given, -9 * scale, 9 * scale, limit=200)[0]

    # of log |z|, z ~ N(0, 1): half the logarithm of a chi-squared number
    mean, variance = -(np.euler_gamma + np.log(2)) / 2, np.pi**2 / 8
    of_log = of_distribution_function(mean, np.sqrt(scale**2 / 4 + variance), share_below, -20, 20)
    density = Density(log_density, float_shapes({"v": (), "x": (size - 1,)}), quantities)
    return density, joined(of_distributions([stats.norm(0, scale)]), of_log)


def spike(size: int = 10, width: float = 1e-3) -> tuple[Density, Answers]:
    """Half N(0, 1), half N(0, width), in all directions at once; quantities: log |x|, x[1]."""
    log_height = -size * float(np.log(width))

    def log_density(x):
        square = (x**2).sum()
        return jnp.logaddexp(-0.5 * square, log_height - 0.5 * square / width**2)

    def quantities(x):
        return jnp.stack([0.5 * jnp.log((x**2).sum()), x[0]])

    length, shift = stats.chi(size), np.log(width)
    mean = (special.digamma(size / 2) + np.log(2)) / 2 + shift / 2
    sd = np.sqrt(special.polygamma(1, size / 2) / 4 + shift**2 / 4)
    of_log = of_distribution_function(
        mean, sd, lambda x: length.cdf(np.exp([x, x - shift])).mean(), -20, 20
    )
    of_x = of_distribution_function(
        0.0, np.sqrt((1 + width**2) / 2), lambda x: stats.norm.cdf([x, x / width]).mean(), -9, 9
    )
    return Density(log_density, float_shapes((size,)), quantities), joined(of_log, of_x)


def far_modes(
    size: int = 5, weight: float = 0.3, distance: float = 20.0
) -> tuple[Density, Answers]:
    """Two unit normals, so far apart in the first direction that no path leads across."""
    half = distance / 2

    def log_density(x):
        left = float(np.log(1 - weight)) - 0.5 * (x[0] + half) ** 2
        right = float(np.log(weight)) - 0.5 * (x[0] - half) ** 2
        return jnp.logaddexp(left, right) - 0.5 * (x[1:] ** 2).sum()

    def share_below(x):
        return (1 - weight) * stats.norm.cdf(x + half) + weight * stats.norm.cdf(x - half)

    mean = half * (2 * weight - 1)
    sd = np.sqrt(1 + half**2 - mean**2)
    first = of_distribution_function(mean, sd, share_below, -half - 9, half + 9)
    density = Density(log_density, float_shapes((size,)), lambda x: x)
    return density, joined(first, of_distributions([stats.norm()] * (size - 1)))
