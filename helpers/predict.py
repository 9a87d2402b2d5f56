"""From draws to predictions: probabilities of every draw, and uncertainty in two parts.

    predict.variance_split(predict.probabilities(network.apply, posterior.draws, x)).epistemic

Both splits come from the probabilities of the draws, never from sampled labels, whose sd is a
function of their mean.
"""

from helpers import checks
from helpers.common import stack, take

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr
from jaxtyping import Array, Float


class Split(NamedTuple):
    """Uncertainty of a prediction; ``total = aleatoric + epistemic``, all in one unit."""

    total: Float[Array, "*point"]
    aleatoric: Float[Array, "*point"]
    epistemic: Float[Array, "*point"]


def probabilities(
    apply: Callable, draws: Any, x: Float[Array, "point feature"]
) -> Float[Array, "chain draw point"]:
    """Return p(y = 1 | x, w) for every draw w; ``apply(position, x)`` gives the logits [point] of
    one draw. Where it gives those of classes, [point, class], so do the probabilities, by softmax.

    ValueError: draws without the two leading axes [chain, draw], other logits.
    """
    checks.leading("draws", draws, ("chain", "draw"))
    logits = jax.vmap(jax.vmap(lambda position: apply(position, x)))(draws)
    of_points = jnp.shape(x)[:-1]
    if logits.shape[2:] == of_points:
        return jax.nn.sigmoid(logits)
    if logits.shape[2:-1] != of_points or logits.shape[-1] < 2:
        raise ValueError(
            f"apply: given logits {logits.shape[2:]} of one draw for x {jnp.shape(x)}, "
            f"expected {of_points}, or as well an axis of classes"
        )
    return jax.nn.softmax(logits)


def variance_split(p: Float[Array, "chain draw *point"]) -> Split:
    """Split the variance of a label: p(1 - p) of the mean = mean of p(1 - p) + variance of p.

    ValueError: other axes, or what is no probability.
    """
    return _variance_split(jnp.asarray(checks.array("p", p, ("chain", "draw", "*point"), 0, 1)))


@jax.jit
def _variance_split(p):
    mean = p.mean(axis=(0, 1))
    return Split(mean * (1 - mean), (p * (1 - p)).mean(axis=(0, 1)), p.var(axis=(0, 1)))


def entropy_split(p: Float[Array, "chain draw *point"]) -> Split:
    """Split the entropy of a label, in bits: entropy of the mean = mean entropy + mutual
    information.

    ValueError: other axes, or what is no probability.
    """
    p = jnp.asarray(checks.array("p", p, ("chain", "draw", "*point"), 0, 1))
    return _entropy_split(jnp.stack([p, 1 - p], axis=-1))


def class_entropy_split(p: Float[Array, "chain draw *point class"]) -> Split:
    """Split the entropy of a label of several classes as ``entropy_split`` does; log2(classes) bits
    at most.

    ValueError: other axes, or what is no probability.
    """
    p = checks.array("p", p, ("chain", "draw", "*point", "class"), 0, 1 + 1e-6)
    return _entropy_split(jnp.asarray(p))


@jax.jit
def _entropy_split(p):
    total = entr(p.mean(axis=(0, 1))).sum(axis=-1) / jnp.log(2.0)
    aleatoric = entr(p).sum(axis=-1).mean(axis=(0, 1)) / jnp.log(2.0)
    # Rounding may leave a tiny negative difference where all draws agree.
    return Split(total, aleatoric, jnp.maximum(total - aleatoric, 0.0))


def of_draws(function: Callable, draws: Any, num_axes: int = 2) -> Any:
    """Return ``function(position)`` of every draw, on leading axes [chain, draw], or [task, chain,
    draw] if 3.

    ValueError: draws without so many leading axes, or with none.
    """
    _check_axes(draws, num_axes)
    mapped = function
    for _ in range(num_axes):
        mapped = _mapped(mapped)
    return jax.jit(mapped)(draws)


def by_chain(function: Callable, *draws: Any) -> Any:
    """Return ``function(position, ...)`` of every draw, leading axes [chain, draw], in NumPy: a
    chain at a time, fifty draws at once, where ``of_draws`` would take too much room.

    Args:
        function: of a position of each of ``draws``.
        draws: pytrees, leading axes [chain, draw].

    ValueError: draws that have other leading axes.
    """
    num_chains, _ = checks.leading("draws", draws, ("chain", "draw"))
    program = jax.jit(lambda one: jax.lax.map(lambda at: function(*at), one, batch_size=50))
    chains = [jax.tree.map(np.asarray, program(take(draws, i))) for i in range(num_chains)]
    return stack(chains)


def _check_axes(draws, num_axes):
    checks.count(num_axes=num_axes)
    checks.leading("draws", draws, ("task", "chain", "draw")[-num_axes:])


def _mapped(function):
    return lambda tree: jax.lax.map(function, tree)


def chain_means(function: Callable, draws: Any, num_axes: int = 2) -> Any:
    """Return the mean of ``function(position)`` over the draws of each chain, one draw in memory at
    a time.

    ValueError: as ``of_draws``.
    """
    _check_axes(draws, num_axes)

    def one_chain(draws):
        def add(total, position):
            return jax.tree.map(jnp.add, total, function(position)), None

        first = jax.eval_shape(function, take(draws, 0))
        zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), first)
        total = jax.lax.scan(add, zeros, draws)[0]
        return jax.tree.map(lambda a: a / jax.tree.leaves(draws)[0].shape[0], total)

    mapped = one_chain
    for _ in range(num_axes - 1):
        mapped = _mapped(mapped)
    return jax.jit(mapped)(draws)
