"""All rivals sample one posterior: their log densities agree at 100 positions, in float64, to one
part in a million.

Jacobian of log sd and constants included. nutpie does not give its density at a position of one's
choice; it says what it found at each of its draws.
"""

import helpers  # noqa: F401, before JAX

import functools

import jax
import numpy as np
from numpyro.infer.util import potential_energy

from benchmarks.others import of_book, posterior, with_numpyro, with_nutpie, with_pymc
from benchmarks.others.session import CHAINS, Session

COUNT = 100


def ours(x, y):
    """The book's density of a vector."""
    return of_book.density_of(x, y, double=True)


def numpyros(x, y):
    """NumPyro's potential, turned round, of a vector."""

    def density(vector):
        parts = posterior.split(vector)
        log_sd = parts.pop("log_sd")
        unconstrained = parts | {f"sd_{i}": log_sd[i] for i in range(3)}
        return -potential_energy(with_numpyro.model, (x, y), {}, unconstrained)

    return density


def blackjaxs(x, y):
    """The density that BlackJAX is given."""
    from benchmarks.others import with_blackjax

    return lambda vector: with_blackjax.log_density(posterior.split(vector), x, y)


def pymcs(x, y):
    """PyMC's compiled density."""
    compiled = with_pymc.model(x, y).compile_logp()
    return lambda vector: compiled(with_pymc.point_of(posterior.split(vector)))


def nutpies(kind, x, y):
    """What nutpie found at its first draws, and what NumPy finds there."""
    model = (with_nutpie.of_jax if kind.startswith("jax") else with_nutpie.of_pymc)(x, y)
    settings = with_nutpie.settings_of(kind, 0, num_tune=10, num_draws=COUNT // CHAINS, maxdepth=3)
    sampler = with_nutpie.Sampler(model, settings, lambda progress: None)
    found = sampler.wait()
    draws = with_nutpie.canonical(found, 0, None)
    return found.sample_stats["logp"].values, posterior.log_density(draws, x, y)


def main():
    """Compare all; what differs is an error."""
    session = Session()
    jax.config.update("jax_enable_x64", True)
    x, y = session.x.astype(float), session.y
    vectors = posterior.random_vectors(COUNT)
    expected = posterior.log_density(posterior.split(vectors), x, y)
    for name, make in {
        "ours": ours,
        "NumPyro": numpyros,
        "BlackJAX": blackjaxs,
        "PyMC": pymcs,
    }.items():
        density = make(x, y)
        found = (
            [density(v) for v in vectors]
            if name == "PyMC"
            else jax.jit(functools.partial(jax.lax.map, density))(vectors)
        )
        compare(session, name, found, expected)
    for kind in ("jax diagonal", "pymc diagonal"):
        compare(session, f"nutpie, {kind}", *nutpies(kind, x, y))


def compare(session, name, found, expected):
    """Assert that log densities agree."""
    found = np.asarray(found)
    assert found.size == COUNT and found.dtype == np.float64, (name, found.shape, found.dtype)
    largest = float(np.abs(found / expected - 1).max())
    session.say(
        f"log density, {name}: at {COUNT} positions as NumPy's, "
        f"largest relative difference {largest:.1e}"
    )
    assert largest < 1e-6, (name, largest)


if __name__ == "__main__":
    main()
