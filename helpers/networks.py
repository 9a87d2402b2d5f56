"""Networks as Flax Linen modules: ``MLP().init(key, x)`` makes the weights, ``MLP().apply(params,
x)`` uses them.
"""

from helpers import checks

from collections.abc import Callable, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float


class MLP(nn.Module):
    """Multi-layer perceptron from points to one logit a point, or to one a class if there are
    several outputs.

    The default is the sources' two-moons network: 2-5-5-1, tanh, no biases (40 weights). Its
    parameters are ``{"params": {"Dense_0": {"kernel": ...}, ...}}``.

    Args:
        hidden: units of each hidden layer; without any the network is linear.
        activation: function of one array, after each hidden layer.
        use_bias: whether every layer has biases.
        num_outputs: 1 for logits [*point], more for [*point, class].

    ValueError: a layer without units, an activation that is not a function.
    """

    hidden: Sequence[int] = (5, 5)
    activation: Callable = nn.tanh
    use_bias: bool = False
    num_outputs: int = 1

    def __post_init__(self):
        """Check the sizes and the activation before Flax does anything with them."""
        if not isinstance(self.hidden, Sequence) or isinstance(self.hidden, str):
            raise ValueError(
                f"hidden: given {self.hidden!r}, "
                "expected a sequence of integers of 1 or more, one a layer"
            )
        checks.count(**{f"hidden[{i}]": units for i, units in enumerate(self.hidden)})
        checks.count(num_outputs=self.num_outputs)
        if not callable(self.activation):
            raise ValueError(
                f"activation: given {self.activation!r}, "
                "expected a function such as flax.linen.tanh"
            )
        super().__post_init__()

    @nn.compact
    def __call__(self, x: Float[Array, "*point feature"]) -> Float[Array, "..."]:
        for units in self.hidden:
            x = self.activation(nn.Dense(units, use_bias=self.use_bias, dot_general=_product)(x))
        x = nn.Dense(self.num_outputs, use_bias=self.use_bias, dot_general=_product)(x)
        return x[..., 0] if self.num_outputs == 1 else x


def parameter_shapes(network: nn.Module, num_features: int) -> dict:
    """Return shapes and types of a network's parameters, ``{"params": ...}``; nothing is computed.

    ``num_features`` is how many numbers describe a point.

    ValueError: no features.
    """
    checks.count(num_features=num_features)
    one_point = jax.ShapeDtypeStruct((1, num_features), jnp.float32)
    return jax.eval_shape(network.init, jax.random.key(0), one_point)


def weights_of(network: nn.Module, num_features: int) -> tuple[Callable[[Array], dict], int]:
    """Return the function that makes parameters of one vector [weight], in the order of
    ``ravel_pytree``, and the length of that vector.

    ``num_features`` is how many numbers describe a point.
    """
    shapes = parameter_shapes(network, num_features)
    vector, unravel = ravel_pytree(
        jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    )
    return unravel, vector.size


def _product(x, kernel, dimension_numbers, precision=None):
    """Multiply points by a kernel; a small one as a plain sum with the points last.

    XLA fuses that sum with its neighbours, where it would call a matrix routine that costs more
    than the work on a few units and points.
    """
    if kernel.size > 256:
        return jax.lax.dot_general(x, kernel, dimension_numbers, precision)
    points_last = jnp.moveaxis(x, -1, 0)[:, None]
    weights = kernel.reshape(*kernel.shape, *[1] * (x.ndim - 1))
    return jnp.moveaxis((points_last * weights).sum(axis=0), 0, -1)
