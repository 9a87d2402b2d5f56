"""nutpie at its defaults, four chains side by side, a thread each; of PyMC's model, or fed the
book's density in JAX.

Its diagonal metric warms up for 400 steps, its low-rank one for 800.
"""

import os
import threading

import numpy as np
import nutpie
from nutpie import _lib
from nutpie.sample import _BackgroundSampler

from benchmarks.others.posterior import NUM_UNKNOWNS, shapes, split
from benchmarks.others.session import CHAINS, Session

# what nutpie says of its progress
TEMPLATE = "{% for chain in chains %}{{ chain.finished_draws }} {% endfor %}"
EVERY = 20  # ms


def of_pymc(x, y):
    """Compile PyMC's model by nutpie's default, Numba."""
    from benchmarks.others import with_pymc

    return nutpie.compile_pymc_model(with_pymc.model(x, y))


def of_jax(x, y):
    """Compile the book's density for nutpie, which wants float64."""
    import jax

    from benchmarks.others.of_book import density_of

    jax.config.update("jax_enable_x64", True)
    density = density_of(x, y, double=True)
    both = jax.jit(jax.value_and_grad(density))
    both(np.zeros(NUM_UNKNOWNS))

    def make():
        def log_density(vector):
            value, gradient = both(vector)
            return float(value), np.asarray(gradient)

        return log_density

    def expand(seed1, seed2, chain):
        return split

    named = shapes()
    kinds = [np.dtype(float)] * len(named)
    return nutpie.compiled_pyfunc.from_pyfunc(
        NUM_UNKNOWNS, make, expand, kinds, list(named.values()), list(named)
    )


def settings_of(kind, seed, **others):
    """Return nutpie's settings: "pymc diagonal", "jax low rank"."""
    make = _lib.PyNutsSettings.LowRank if kind.endswith("low rank") else _lib.PyNutsSettings.Diag
    settings = make(seed)
    for name, value in {"num_chains": CHAINS, **others}.items():
        setattr(settings, name, value)
    return settings


class Sampler(_BackgroundSampler):
    """What ``nutpie.sample(blocking=False)`` returns, but for the progress, which that shows and
    this one tells.
    """

    def __init__(self, model, settings, told):
        """Begin to sample from nutpie's own starts."""
        self._settings, self._compiled_model, self._save_warmup, self._return_raw_trace = (
            settings,
            model,
            True,
            False,
        )
        progress = _lib.ProgressType.template_callback(EVERY, TEMPLATE, CHAINS, told)
        self._store = _lib.PyStorage.arrow()
        self._sampler = model._make_sampler(
            settings, np.zeros(model.n_dim), CHAINS, progress, self._store
        )


def canonical(found, begin, end):
    """Return draws of a trace as all samplers hand them over."""
    draws = {
        name: found.posterior[name].values[:, begin:end]
        for name in found.posterior
        if name in shapes()
    }
    if "log_sd" not in draws:
        sd = [found.posterior[f"sd_{i}"].values[:, begin:end] for i in range(3)]
        draws["log_sd"] = np.log(np.stack(sd, axis=-1))
    return draws


def main():
    """Sample in the background; at a checkpoint all chains pause."""
    session = Session()
    if session.kind.startswith("jax"):
        import helpers  # noqa: F401, before JAX
    else:
        import pymc  # noqa: F401
    session.begin()
    with session.compiling():
        model = (of_jax if session.kind.startswith("jax") else of_pymc)(session.x, session.y)
    settings = settings_of(session.kind, session.seed, num_draws=session.counts[-1])
    settings.num_tune = session.steps(settings.num_tune)
    warm_up, reached, enough = settings.num_tune, [], threading.Event()
    targets = list(session.counts)

    def told(progress):
        fewest = min(map(int, progress.split()), default=0)
        if not session.is_warm and fewest >= warm_up:
            session.warm()
        if targets and fewest >= warm_up + targets[0]:
            reached.append(session.now())
            targets.pop(0)
            enough.set()

    sampler, done = Sampler(model, settings, told), 0
    for count in session.counts:
        enough.wait()  # to ask nutpie whether it still runs is an error where its threads are busy
        enough.clear()
        sampler.pause()
        found = sampler.inspect()
        draws = canonical(found, done, count)  # some chains are further than others
        if (
            draws["log_sd"].shape[:2] != (CHAINS, count - done)
            or not np.isfinite(draws["log_sd"]).all()
        ):
            raise RuntimeError(f"nutpie: has no {count} draws of every chain, as its progress says")
        diverging = found.sample_stats["diverging"].values[:, done:count]
        if not session.judged(draws, diverging, at=reached[-1]):
            break
        done = count
        sampler.resume()
    os._exit(0)  # the chains are paused, and nothing of them is needed


if __name__ == "__main__":
    main()
