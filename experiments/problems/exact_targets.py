"""Densities whose expectations are known exactly, to find out whether a sampler is right."""

from helpers import verify
from helpers.common import float_shapes

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import integrate, stats
from tensorflow_probability.substrates.jax import distributions as tfd


def moments(name, log_density, position, standardized, size):
    """Return a target whose ``standardized`` quantities have mean 0 and variance 1."""

    def quantities(x):
        z = standardized(x)
        return jnp.concatenate([z, z**2])

    labels = tuple(f"{kind} {i + 1}" for kind in ("mean", "variance") for i in range(size))
    exact = np.repeat([0.0, 1.0], size)
    return verify.Target(name, log_density, position, quantities, exact, labels)


def correlated_gaussian(size: int = 10, correlation: float = 0.9) -> verify.Target:
    """Scales 0.1 to 10, neighbours correlated as given; checked along the principal axes."""
    scale = np.logspace(-1, 1, size)
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    covariance = scale[:, None] * scale * correlation**apart
    variance, axes = np.linalg.eigh(covariance)
    whiten = jnp.asarray(axes / np.sqrt(variance), jnp.float32).T

    def log_density(x):
        return -0.5 * (jnp.matmul(whiten, x, precision="highest") ** 2).sum()

    start = float_shapes((size,))
    return moments("correlated Gaussian", log_density, start, lambda x: whiten @ x, size)


def conjugate_regression(
    seed: int, num_points: int, num_features: int, noise: float
) -> tuple[Array, ...]:
    """Return x, y, mean and whitening of weights N(0, 1) given them (Bishop 2006, 3.3)."""
    random = np.random.default_rng(seed)
    widths = np.diag(np.linspace(0.7, 2.0, num_features))
    x = random.normal(size=(num_points, num_features)) @ widths
    y = x @ random.normal(size=num_features) + noise * random.normal(size=num_points)
    precision = np.eye(num_features) + x.T @ x / noise**2
    mean = np.linalg.solve(precision, x.T @ y) / noise**2
    whiten = np.linalg.cholesky(precision).T
    return tuple(jnp.asarray(a, jnp.float32) for a in (x, y, mean, whiten))


def linear_regression(
    num_points: int = 40, num_features: int = 5, noise: float = 0.5
) -> verify.Target:
    """Weights N(0, 1), known noise: the posterior is normal."""
    x, y, mean, whiten = conjugate_regression(11, num_points, num_features, noise)

    def log_density(w):
        return tfd.Normal(x @ w, noise).log_prob(y).sum() + tfd.Normal(0.0, 1.0).log_prob(w).sum()

    def standardized(w):
        return whiten @ (w - mean)

    start = float_shapes((num_features,))
    return moments("linear regression", log_density, start, standardized, num_features)


def funnel(centred: bool, size: int = 9, scale: float = 3.0) -> verify.Target:
    """Neal's (2003) funnel, v ~ N(0, scale), x ~ N(0, exp(v / 2)); non-centred, both N(0, 1)."""

    def log_density(position):
        v, x = position["v"], position["x"]
        if not centred:
            return -0.5 * (v**2 + (x**2).sum())
        of_v = tfd.Normal(0.0, scale).log_prob(v)
        return of_v + tfd.Normal(0.0, jnp.exp(v / 2)).log_prob(x).sum()

    def quantities(position):
        v = position["v"] / scale if centred else position["v"]
        x = position["x"] * jnp.exp(-position["v"] / 2) if centred else position["x"]
        neck, mouth = (v < -1).astype(v.dtype), (v > 1).astype(v.dtype)
        return jnp.stack([v, v**2, neck, mouth, x[0], x[0] ** 2])

    exact = np.array([0.0, 1.0, stats.norm.cdf(-1), stats.norm.cdf(-1), 0.0, 1.0])
    labels = ("mean of v", "variance of v", "P(neck)", "P(mouth)")
    labels += ("mean of offset", "variance of offset")
    position = float_shapes({"v": (), "x": (size,)})
    name = f"funnel, {'' if centred else 'non-'}centred"
    return verify.Target(name, log_density, position, quantities, exact, labels)


def two_modes(weight: float = 0.3, distance: float = 4.0) -> verify.Target:
    """Two unit normals in one dimension; the right one has the given weight."""
    half = distance / 2

    def log_density(x):
        left = jnp.log(1 - weight) - 0.5 * (x + half) ** 2
        return jnp.logaddexp(left, jnp.log(weight) - 0.5 * (x - half) ** 2)

    def quantities(x):
        return jnp.stack([x, x**2, (x > 0).astype(x.dtype)])

    right = weight * stats.norm.cdf(half) + (1 - weight) * stats.norm.cdf(-half)
    exact = np.array([half * (2 * weight - 1), 1 + half**2, right])
    labels = ("mean", "second moment", "P(right)")
    return verify.Target("two modes", log_density, float_shapes(()), quantities, exact, labels)


def eight_schools(jacobian: bool = True) -> verify.Target:
    """Rubin's (1981) coaching effects, non-centred, in log tau; exact by 1-d quadrature.

    Without ``jacobian`` the density forgets that it is one of log tau: a mistake to be found.
    """
    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    sd = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def given_tau(tau):
        """Density of log tau up to a constant, and the means given tau, all else integrated out."""
        precision = 1 / (sd**2 + tau**2)
        spread = 1 / (1 / 25 + precision.sum())
        mu = spread * (precision * y).sum()
        log_marginal = 0.5 * (
            np.log(precision).sum() + np.log(spread) - (precision * y**2).sum() + mu**2 / spread
        )
        density = np.exp(log_marginal + 20) * tau * stats.halfcauchy.pdf(tau, scale=5)
        theta = (y / sd**2 * tau**2 + mu) / (tau**2 / sd**2 + 1)
        return density * np.array([1.0, mu, np.log(tau), float(tau < 5), *theta])

    parts = [
        integrate.quad_vec(lambda t: given_tau(np.exp(t)), a, b)[0]
        for a, b in ((-15, np.log(5)), (np.log(5), 9))
    ]
    total = np.sum(parts, axis=0)

    def theta_of(position):
        return position["mu"] + jnp.exp(position["log_tau"]) * position["offset"]

    def log_density(position):
        log_tau = position["log_tau"]
        prior = tfd.Normal(0.0, 5.0).log_prob(position["mu"])
        prior += tfd.HalfCauchy(0.0, 5.0).log_prob(jnp.exp(log_tau))
        offsets = tfd.Normal(0.0, 1.0).log_prob(position["offset"]).sum()
        likelihood = tfd.Normal(theta_of(position), jnp.asarray(sd, jnp.float32))
        found = prior + offsets + likelihood.log_prob(jnp.asarray(y, jnp.float32)).sum()
        return found + log_tau if jacobian else found

    def quantities(position):
        small = (position["log_tau"] < np.log(5)).astype(jnp.float32)
        scalars = jnp.stack([position["mu"], position["log_tau"], small])
        return jnp.concatenate([scalars, theta_of(position)])

    position = float_shapes({"mu": (), "log_tau": (), "offset": (8,)})
    labels = ("mu", "log tau", "P(tau < 5)", *(f"school {school}" for school in "ABCDEFGH"))
    exact = total[1:] / total[0]
    return verify.Target("eight schools", log_density, position, quantities, exact, labels)


def all_targets() -> list[verify.Target]:
    """Every target that a correct sampler passes: Neal's funnel in its non-centred form only."""
    regular = [correlated_gaussian(), linear_regression()]
    return [*regular, funnel(centred=False), two_modes(), eight_schools()]
