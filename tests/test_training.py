"""Training against the closed form."""

from helpers import (
    training,
)

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax


def test_training_follows_the_closed_form_of_gradient_descent():
    """On a parabola each step shrinks the distance by one factor."""
    start, rate = {"x": jnp.array([3.0, -1.0])}, 0.1
    run = partial(
        training.train, lambda p: ((p["x"] - 2) ** 2).sum() / 2, start, optax.sgd(rate), 20
    )
    last, kept = jax.jit(partial(run, lambda p: p["x"]))()
    expected = 2 + (1 - rate) ** np.arange(1, 21)[:, None] * np.array([[1.0, -3.0]])
    np.testing.assert_allclose(kept, expected, rtol=1e-5)
    np.testing.assert_allclose(last["x"], expected[-1], rtol=1e-5)
    assert run()[1] is None
    last, kept = jax.jit(partial(run, lambda p: p["x"], every=5))()
    np.testing.assert_allclose(kept, expected[4::5], rtol=1e-5)
    np.testing.assert_allclose(last["x"], expected[-1], rtol=1e-5)
