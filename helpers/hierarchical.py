"""One network a task, under a prior that the tasks share and learn.

The weights of layer ``l`` of task ``t`` are ``mean[l] + sd[l] * offset[l][t]``, non-centred: means
and offsets are N(0, 1), a standard deviation has a hyperprior and is sampled as its logarithm. A
position is ``{"mean": ..., "log_sd": ..., "offset": ...}``, each by the names of the network's
layers. A layer that is not in ``mean`` has mean 0; one that is not in ``offset`` is the same for
all tasks.

    observed = densities.observe(x, y)  # [task, point, feature] and [task, point]
    shapes = hierarchical.shapes(network, num_tasks=18, num_features=2)
    starts = mcmc.normal_starts(key_starts, shapes, (4,))
    mcmc.sample(key, hierarchical.log_density(network), starts, data=observed)
"""

from helpers import checks, networks
from helpers.densities import POSITIVE, Observed, label_log_likelihood

from collections.abc import Callable, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from tensorflow_probability.substrates.jax import distributions as tfd


def shapes(
    network: nn.Module,
    num_tasks: int,
    num_features: int,
    *,
    means: Sequence[str] | None = None,
    special: Sequence[str] | None = None,
    sd_per_weight: bool = False,
) -> dict:
    """Return the shapes and types of one position.

    Args:
        num_tasks: leading axis of the offsets.
        num_features: how many numbers describe a point.
        means: names of the layers whose mean is learnt; all by default.
        special: names of the layers whose weights differ from task to task; all by default.
        sd_per_weight: whether each weight has a standard deviation of its own, instead of one for
            all weights of a layer.

    ValueError: no tasks, a layer that the network does not have or that is in neither list.
    """
    checks.count(num_tasks=num_tasks)
    layers = networks.parameter_shapes(network, num_features)["params"]
    means = list(layers) if means is None else list(means)
    special = list(layers) if special is None else list(special)
    if set(means) | set(special) != set(layers):
        raise ValueError(
            f"means, special: given {means} and {special}, "
            f"expected to cover {list(layers)} and no other"
        )
    scalar = jax.ShapeDtypeStruct((), jnp.float32)

    def of_tasks(leaf):
        return jax.ShapeDtypeStruct((num_tasks, *leaf.shape), leaf.dtype)

    return {
        "mean": {name: layers[name] for name in means},
        "log_sd": {name: layers[name] if sd_per_weight else scalar for name in special},
        "offset": {name: jax.tree.map(of_tasks, layers[name]) for name in special},
    }


def task_weights(position: dict, num_tasks: int) -> dict:
    """Return the network's parameters in every task, ``{"params": ...}``, leading axis [task]."""

    def one_layer(name):
        if name not in position["offset"]:
            return jax.tree.map(
                lambda m: jnp.broadcast_to(m, (num_tasks, *m.shape)), position["mean"][name]
            )

        def scaled(log_sd, offsets):  # log_sd of one weight array, or of all arrays of the layer
            sd = POSITIVE.forward(log_sd)
            return jax.tree.map(lambda offset: jnp.broadcast_to(sd, offset.shape) * offset, offsets)

        deviations = jax.tree.map(scaled, position["log_sd"][name], position["offset"][name])
        if name not in position["mean"]:
            return deviations
        return jax.tree.map(
            lambda d, m: jnp.broadcast_to(m, d.shape) + d, deviations, position["mean"][name]
        )

    return {
        "params": {
            name: one_layer(name) for name in sorted({*position["mean"], *position["offset"]})
        }
    }


def logits(network: nn.Module) -> Callable[[dict, Array], Array]:
    """Return ``f(position, x)``: logits [task, point] of points [task, point, feature]."""
    return lambda position, x: jax.vmap(network.apply)(task_weights(position, x.shape[0]), x)


def log_prior(position: dict, hyperprior: tfd.Distribution) -> Float[Array, ""]:
    """Return the log density of means, offsets and log standard deviations, Jacobian included.

    The hyperprior is that of every standard deviation.
    """
    normal = [
        tfd.Normal(0.0, 1.0).log_prob(a).sum()
        for a in jax.tree.leaves((position["mean"], position["offset"]))
    ]
    scale = [
        (hyperprior.log_prob(POSITIVE.forward(a)) + POSITIVE.forward_log_det_jacobian(a)).sum()
        for a in jax.tree.leaves(position["log_sd"])
    ]
    return jnp.sum(jnp.stack(normal + scale))


def log_density(
    network: nn.Module, hyperprior: tfd.Distribution | None = None
) -> Callable[[dict, Observed], Float[Array, ""]]:
    """Return ``f(position, observed)``, the log posterior, up to a constant, of all tasks.

    The hyperprior is that of every standard deviation, N+(0, 1) by default.

    ValueError: in ``f``, labels that are not [task, point].
    """
    hyperprior = tfd.HalfNormal(1.0) if hyperprior is None else hyperprior
    total = total_log_likelihood(network)

    def density(position, observed):
        if observed.y.ndim != 2:
            raise ValueError(
                f"observed: given y of shape {observed.y.shape}, expected [task, point]"
            )
        return log_prior(position, hyperprior) + total(
            task_weights(position, observed.y.shape[0]), observed
        )

    return density


def total_log_likelihood(network: nn.Module) -> Callable[[dict, Observed], Float[Array, ""]]:
    """Return ``f(weights, observed)``, the log likelihood of all tasks' labels times their weights.

    ``weights`` are those of ``task_weights``.
    """
    of_labels = label_log_likelihood(network)
    return sum_over_tasks(lambda weights, task: of_labels(weights, task).sum())


def sum_over_tasks(function: Callable) -> Callable:
    """Return ``f(weights, tasks)``, the sum of ``function(weights_t, task_t)``, to be
    differentiated by weights alone.

    Both are pytrees with leading axis [task], and the function returns one number. Each task's
    gradient is found together with its value, one task after the other, while its few numbers are
    in the processor's cache. What stands in ``tasks`` is data: its gradient is not found, and is 0.
    """

    @jax.custom_vjp
    def total(weights, tasks):
        return jax.lax.map(lambda pair: function(*pair), (weights, tasks)).sum()

    def forward(weights, tasks):
        values, gradients = jax.lax.map(
            lambda pair: jax.value_and_grad(function)(*pair), (weights, tasks)
        )
        return values.sum(), gradients

    def backward(gradients, cotangent):
        return jax.tree.map(lambda gradient: cotangent * gradient, gradients), None

    total.defvjp(forward, backward)
    return total
