"""Networks as Flax Linen modules: ``init`` makes the weights, ``apply`` uses them."""

from collections.abc import Callable, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class MLP(nn.Module):
    """Multi-layer perceptron from points to one logit a point.

    The default is the sources' two-moons network: 2-5-5-1, tanh, no biases (40 weights).
    Its parameters are ``{"params": {"Dense_0": {"kernel": ...}, ...}}``, input layer first.
    """

    hidden: Sequence[int] = (5, 5)
    activation: Callable = nn.tanh
    use_bias: bool = False

    @nn.compact
    def __call__(self, x: Float[Array, "*point feature"]) -> Float[Array, "*point"]:
        for units in self.hidden:
            x = self.activation(nn.Dense(units, use_bias=self.use_bias, dot_general=_product)(x))
        return nn.Dense(1, use_bias=self.use_bias, dot_general=_product)(x)[..., 0]


def _product(x, kernel, dimension_numbers, precision=None):
    """Multiply points by a kernel; a small one as a plain sum with the points last.

    XLA fuses that sum with its neighbours, where it would call a matrix routine that costs more
    than the work on a few units and points.
    """
    if kernel.size > 64:
        return jax.lax.dot_general(x, kernel, dimension_numbers, precision)
    points_last = jnp.moveaxis(x, -1, 0)[:, None]
    weights = kernel.reshape(*kernel.shape, *[1] * (x.ndim - 1))
    return jnp.moveaxis((points_last * weights).sum(axis=0), 0, -1)
