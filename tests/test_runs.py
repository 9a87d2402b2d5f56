"""What is kept of a run is the run, and its diagnostics are those of ``diagnostics.check``."""

from helpers import (
    diagnostics,
    mcmc,
)

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.methods import runs

random = np.random.default_rng(0)


@pytest.fixture(scope="module")
def run():
    """Return a made-up run of one chain length, and its predictions."""
    shape = 4, 500
    energy, density = (jnp.asarray(random.normal(size=shape), jnp.float32) for _ in range(2))
    diverging = jnp.zeros(shape, bool).at[2, 7].set(True)
    found = mcmc.Stats(density, diverging, jnp.ones(shape), energy, jnp.full(shape, 7))
    return mcmc.Posterior(None, found), random.normal(size=(*shape, 3))


def test_a_row_of_diagnostics_is_the_check_by_kind(run):
    posterior, p = run
    row, check = (
        runs.diagnosis(posterior, p, log_sd=p[..., 0]),
        diagnostics.check(posterior, p, log_sd=p[..., 0]),
    )
    for name in ("rhat", "rhat_bound", "ess"):
        assert list(row[name]) == ["predictions", "log density", "log sd"]
        assert list(row[name].values()) == getattr(check, name).tolist()
    assert (row["chains"], row["divergences"], row["at_limit"]) == (4, 1, 0.0)
    assert row["integration_steps"] == pytest.approx(7.0)
    assert row["mixed"] is True
    stuck = p + np.array([0.0, 0.0, 0.0, 9.0]).reshape(4, 1, 1)
    assert runs.diagnosis(posterior, stuck)["mixed"] is False
    few = posterior._replace(stats=jax.tree.map(lambda a: a[:, :50], posterior.stats))
    # no R-hat is above its bound, but draws are too few to tell
    row = runs.diagnosis(few, p[:, :50])
    assert row["mixed"] is False and all(
        row["rhat"][kind] < row["rhat_bound"][kind] for kind in row["rhat"]
    )


def test_a_run_comes_back_from_what_is_kept_of_it(run):
    learnt = mcmc.Warmup(**{name: np.arange(4.0) for name in mcmc.Warmup._fields})
    kept = runs.kept_run(run[0]._replace(warmup=learnt))
    again = runs.run_from(kept | {"p": 1}, draws={"a": 2})
    assert again.draws == {"a": 2} and runs.run_from(kept).draws is None
    assert jax.tree.all(
        jax.tree.map(lambda a, b: bool((a == b).all()), again[1:3], (run[0].stats, learnt))
    )
