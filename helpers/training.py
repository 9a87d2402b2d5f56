"""Networks trained by gradient descent, in one compiled loop.

Optax brings the optimiser; what is kept of the way is a function of the parameters.

    params, losses = training.train(loss, start, optax.adam(0.01), num_steps=1000, keep=loss)
"""

from helpers import checks

from collections.abc import Callable
from typing import Any

import jax
import optax


def decaying_adam(rate: float, num_steps: int) -> optax.GradientTransformation:
    """Return Adam with a learning rate that falls to 0 along half a cosine.

    ValueError: a rate that is not positive, no steps.
    """
    checks.number(rate=rate)
    checks.count(num_steps=num_steps)
    return optax.adam(optax.cosine_decay_schedule(rate, num_steps))


def clipped_adam(rate: float, num_steps: int) -> optax.GradientTransformation:
    """Return ``decaying_adam`` of gradients whose norm is 10 at most.

    ValueError: as ``decaying_adam``.
    """
    return optax.chain(optax.clip_by_global_norm(10.0), decaying_adam(rate, num_steps))


def train(
    loss: Callable,
    start: Any,
    optimizer: optax.GradientTransformation,
    num_steps: int,
    keep: Callable | None = None,
    every: int = 1,
) -> tuple[Any, Any]:
    """Minimise ``loss(params)`` by optax in one scan, to be called within ``jit`` and mapped.

    Returns the last parameters, and what was kept, leading axis [num_steps // every], or None.

    Args:
        start: parameters, any tree of arrays.
        optimizer: of optax, such as ``optax.adam(0.01)``.
        keep: ``f(params)`` of what is kept of the way; by default nothing.
        every: steps from one that is kept to the next; it divides ``num_steps``.

    ValueError: no steps, or ``every`` does not divide them.
    """
    checks.count(num_steps=num_steps, every=every)
    if num_steps % every:
        raise ValueError(f"every: given {every}, expected a divisor of num_steps, {num_steps}")

    def step(carry, _):
        params, state = carry
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    def stretch(carry, _):
        carry = jax.lax.scan(step, carry, length=every)[0]
        return carry, None if keep is None else keep(carry[0])

    (params, _), kept = jax.lax.scan(
        stretch, (start, optimizer.init(start)), length=num_steps // every
    )
    return params, kept
