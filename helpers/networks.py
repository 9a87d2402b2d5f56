"""Networks as Flax Linen modules: ``init`` makes the weights, ``apply`` uses them."""

from collections.abc import Callable, Sequence

import flax.linen as nn
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
            x = self.activation(nn.Dense(units, use_bias=self.use_bias)(x))
        return nn.Dense(1, use_bias=self.use_bias)(x)[..., 0]
