"""A line that says how far a call is: it counts, it ends, and nothing that is computed differs."""

from helpers import mcmc, progress, sgmcmc, svi

from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.autoguide import AutoNormal

X = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
Y = (X @ np.array([1.0, 2.0, 3.0])).astype(np.float32)


def log_density(w, data=None):
    """A normal posterior, of one task if there are any."""
    x, y = (X, Y) if data is None else data
    return -((y - x @ w) ** 2).sum() / 2 - (w**2).sum() / 2


def log_likelihood(w, datum):
    """Of one datum."""
    return -((datum[1] - datum[0] @ w) ** 2) / 2


def model(x, y):
    """A regression."""
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)


GRADIENT = blackjax.sgmcmc.gradients.grad_estimator(lambda w: -(w**2).sum() / 2, log_likelihood, 40)
TASKS = X[None].repeat(2, axis=0), Y[None].repeat(2, axis=0)
SIZES = {"num_warmup": 60, "num_samples": 130}
STEPS = {
    "batch_size": 10,
    "step_size": 1e-3,
    "num_warmup": 200,
    "num_samples": 30,
    "thin": 3,
    "num_cycles": 2,
}
CALLS = {
    "mcmc": partial(mcmc.sample, jax.random.key(1), log_density, jnp.ones((3, 3)), **SIZES),
    "tasks": partial(
        mcmc.sample,
        jax.random.key(1),
        log_density,
        jnp.ones((2, 2, 3)),
        tasks=(X[None].repeat(2, 0), Y[None].repeat(2, 0)),
        **SIZES,
    ),
    "sgmcmc": partial(
        sgmcmc.sample, jax.random.key(2), blackjax.sgld(GRADIENT), jnp.ones((3, 3)), (X, Y), **STEPS
    ),
    "svi": partial(svi.fit, jax.random.key(3), model, AutoNormal, (X, Y), num_steps=230),
}
# What the last phase of each counts to: draws of all chains, steps of all cycles and chains, steps.
LAST = {
    "mcmc": ("draws", 3 * 130),
    "tasks": ("draws", 4 * 130),
    "sgmcmc": ("chains", 3 * 2 * 290),
    "svi": ("fit", 230),
}


def computed(found):
    """The numbers of a result, without the seconds that it took."""
    found = (
        found._replace(warmup=found.warmup._replace(seconds=0.0))
        if hasattr(found, "warmup")
        else found
    )
    return jax.tree.map(np.asarray, found)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_computed_is_the_same_with_a_line_and_without(name, capfd):
    silent = computed(CALLS[name]())
    assert capfd.readouterr().err == ""
    shown = computed(CALLS[name](progress=True))
    jax.tree.map(np.testing.assert_array_equal, silent, shown)
    phase, total = LAST[name]
    last = capfd.readouterr().err.strip().split("\r")[-1]
    assert last.startswith(f"{phase}: 100%") and f"{total}/{total}" in last


def test_a_reader_sees_a_line_unless_it_is_not_wanted(monkeypatch, capfd):
    monkeypatch.setenv("BOOK_READER", "1")
    CALLS["svi"]()
    assert "fit: 100%" in capfd.readouterr().err
    CALLS["svi"](progress=False)
    assert capfd.readouterr().err == ""


def test_steps_are_counted_as_they_are_taken():
    """Half way through a program its line has half of the steps."""
    with progress.line(True) as shown:
        number = progress.number(shown)

        @jax.jit
        def program(count):
            def step(state, i):
                progress.report(number, i, every=5, worth=2)
                return state + 1, None

            return jax.lax.scan(step, count, jnp.arange(1, 51))[0]

        program(0)
        jax.effects_barrier()
        assert progress._reported[shown.number] == 100
    assert shown.number not in progress._reported


def test_a_failure_ends_the_line_and_is_told(capfd):
    starts, far = jnp.ones((2, 3)), STEPS | {"step_size": 1e9}
    with pytest.raises(FloatingPointError):
        sgmcmc.sample(
            jax.random.key(4), blackjax.sgld(GRADIENT), starts, (X, Y), progress=True, **far
        )
    assert progress._reported == {} and capfd.readouterr().err.endswith("\n")
