"""Gaussian process classifiers whose amplitude and length scale are drawn together with the
functions, by MCMC.

The kernel is a^2 exp(-|x - x'|^2 / 2 l^2), or half of k(x, x') - k(x, -x'), whose functions are
odd, as those of networks without biases are. A function is a sum over the eigenfunctions of the
Laplacian in a box, each times the root of the kernel's spectral density and a coefficient N(0, 1)
(Solin and Sarkka 2020; Riutort-Mayol et al. 2023); the odd half of them gives the odd kernel. No
matrix is inverted, which saves jitter and nine tenths of the time; what the sum leaves out of the
kernel is measured in `tests/test_rivals.py`.
"""

from helpers import densities, mcmc
from helpers.common import float_shapes, mixed_types

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpyro.contrib.hsgp import laplacian

# of the box, in which the points lie within 4 of its middle; frequencies a dimension
HALF_WIDTH, MOST = 6.0, 22


class Labelled(NamedTuple):
    """Eigenfunctions at points of a task or several, labels, the normal prior of log a, log l."""

    phi: Float[Array, "*task point function"]
    y: Int[Array, "*task point"]
    centre: Float[Array, "*task 2"]
    spread: Float[Array, "*task 2 2"]  # a root of the covariance


# of ``laplacian``
INDICES = np.stack(np.meshgrid(*[np.arange(1, MOST + 1)] * 2, indexing="ij")).reshape(2, -1)


def kept(odd):
    """Return which eigenfunctions are used: those of low frequency; if ``odd``, the odd ones."""
    low = (INDICES**2).sum(axis=0) <= MOST**2
    return low & (INDICES.sum(axis=0) % 2 == 1) if odd else low


def squared_frequencies(odd):
    """Return the eigenvalues of the functions used, [function]."""
    return np.float32((INDICES[:, kept(odd)] ** 2).sum(axis=0) * (np.pi / 2 / HALF_WIDTH) ** 2)


def functions(x, odd):
    """Return the eigenfunctions at points [*task, point, 2]: [*task, point, function]."""
    with mixed_types():
        return laplacian.eigenfunctions(x, HALF_WIDTH, MOST)[..., kept(odd)]


def root_density(log_scales, squared):
    """Root of the spectral density at squared frequencies, as an exponential: a finite gradient."""
    log_amplitude, log_length = log_scales
    log_root = log_amplitude + log_length + jnp.log(2 * jnp.pi) / 2
    return jnp.exp(log_root - jnp.exp(2 * log_length) * squared / 4)


def log_density(odd):
    """Return the log posterior of ``{"scales": [2], "z": [*task, function]}`` given ``Labelled``.

    Of one task, or of several that have one a and one l in common.
    """
    squared = squared_frequencies(odd)

    def density(position, labelled):
        root = root_density(labelled.centre + labelled.spread @ position["scales"], squared)
        f = jnp.einsum("...pm,...m,m->...p", labelled.phi, position["z"], root)
        of_prior = -(position["scales"] ** 2).sum() / 2 - (position["z"] ** 2).sum() / 2
        return of_prior + densities.bernoulli_log_likelihood(f, labelled.y).sum()

    return density


DENSITIES = {odd: log_density(odd) for odd in (True, False)}


def sample(keys, x, y, odd, prior, together, num_chains, **lengths):
    """Sample processes of labels y [task, point], all with the same scales or each with its own.

    ``keys`` are of starts and of chains; the prior is centre and spread of log scales.
    """
    phi, num_tasks, (key_start, key_chains) = functions(x, odd), len(y), keys
    z = (num_tasks, phi.shape[-1]) if together else phi.shape[-1:]
    batch = (num_chains,) if together else (num_tasks, num_chains)
    starts = mcmc.normal_starts(key_start, float_shapes({"scales": (2,), "z": z}), batch)
    prior = [np.float32(part) for part in prior]
    if not together:
        prior = [np.broadcast_to(part, (num_tasks, *part.shape)) for part in prior]
    seen = {"data" if together else "tasks": Labelled(phi, y, *prior)}
    return mcmc.sample(key_chains, DENSITIES[odd], starts, **seen, **lengths)


def log_scales(position, prior):
    """Return log a and log l, [..., 2], of what was sampled under a prior, centre and spread."""
    return prior[0] + np.asarray(position, np.float64) @ prior[1].T


def prior_of(at):
    """Return centre and spread of the normal prior that draws of log scales, [..., 2], make."""
    found = at.reshape(-1, 2)
    return found.mean(axis=0), np.linalg.cholesky(np.cov(found.T))


def probabilities(log_scales, z, x, odd):
    """Return p [chain, draw, task, point] at points [task, point, 2].

    Of log scales [task or 1, chain, draw, 2], and z [task, chain, draw, function].
    """
    squared = squared_frequencies(odd)
    of_draw = jax.vmap(jax.vmap(jax.vmap(lambda at: root_density(at, squared))))
    root = of_draw(jnp.float32(log_scales))
    f = jnp.einsum("tpm,tcdm->cdtp", functions(x, odd), z * root)
    return np.asarray(jax.nn.sigmoid(f))
