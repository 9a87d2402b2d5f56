"""One network a task, under a prior that the tasks share and learn.

The weights of layer ``l`` of task ``t`` are ``mean[l] + sd[l] * offset[l][t]``, non-centred:
means and offsets are N(0, 1), a standard deviation has a hyperprior and is sampled as its
logarithm. A position is ``{"mean": ..., "log_sd": ..., "offset": ...}``, each by the names of the
network's layers. A layer that is not in ``mean`` has mean 0; one that is not in ``offset`` is the
same network layer for all tasks.
"""

from helpers import networks
from helpers.densities import POSITIVE, bernoulli_log_likelihood, observe

from collections.abc import Callable, Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int
from tensorflow_probability.substrates.jax import distributions as tfd


class Labelled(NamedTuple):
    """The tasks' labelled points; the likelihood of a label is raised to its weight."""

    x: Float[Array, "task point feature"]
    y: Int[Array, "task point"]
    weight: Float[Array, "task point"]  # 1: seen; 0: held out, or padding; between: tempered


def labelled(x: Array, y: Array, weight: Array | float = 1.0, num_classes: int = 2) -> Labelled:
    """Check the tasks' points and put them together; one weight may serve all.

    Raises:
        ValueError: what ``densities.observe`` raises; no task axis; weights of another shape, outside [0, 1].
    """
    observed = observe(x, y, np.ones(1), num_classes)
    if observed.y.ndim != 2:
        raise ValueError(f"y: given shape {observed.y.shape}, expected [task, point]")
    weight = np.asarray(weight, dtype=np.float32)
    if weight.shape not in ((), observed.y.shape) or not ((weight >= 0) & (weight <= 1)).all():
        raise ValueError(
            f"weight: given shape {weight.shape}, values {weight.min()} to {weight.max()}, "
            f"expected one number or shape {observed.y.shape}, values 0 to 1"
        )
    return Labelled(observed.x, observed.y, jnp.broadcast_to(jnp.asarray(weight), observed.y.shape))


def shapes(
    network: nn.Module,
    num_tasks: int,
    num_features: int = 2,
    *,
    means: Sequence[str] | None = None,
    special: Sequence[str] | None = None,
    sd_per_weight: bool = False,
) -> dict:
    """Return the shapes of one position.

    Args:
        means: names of the layers whose mean is learnt; all by default.
        special: names of the layers whose weights differ from task to task; all by default.
        sd_per_weight: a standard deviation for each weight instead of one a layer.

    Raises:
        ValueError: no tasks, a layer that the network does not have or that is in neither list.
    """
    if num_tasks != int(num_tasks) or num_tasks < 1:
        raise ValueError(f"num_tasks: given {num_tasks}, expected an integer of 1 or more")
    layers = networks.parameter_shapes(network, num_features)["params"]
    means = list(layers) if means is None else list(means)
    special = list(layers) if special is None else list(special)
    if set(means) | set(special) != set(layers):
        raise ValueError(f"means, special: given {means} and {special}, expected to cover {list(layers)} and no other")
    scalar = jax.ShapeDtypeStruct((), jnp.float32)
    return {
        "mean": {name: layers[name] for name in means},
        "log_sd": {name: layers[name] if sd_per_weight else scalar for name in special},
        "offset": {
            name: jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((num_tasks, *leaf.shape), leaf.dtype), layers[name])
            for name in special
        },
    }


def task_weights(position: dict, num_tasks: int) -> dict:
    """Return the network's parameters for every task, leading axis [task]."""

    def one_layer(name):
        if name not in position["offset"]:
            return jax.tree.map(lambda m: jnp.broadcast_to(m, (num_tasks, *m.shape)), position["mean"][name])

        def scaled(log_sd, offsets):  # log_sd of one weight array, or of all arrays of the layer
            sd = POSITIVE.forward(log_sd)
            return jax.tree.map(lambda offset: jnp.broadcast_to(sd, offset.shape) * offset, offsets)

        deviations = jax.tree.map(scaled, position["log_sd"][name], position["offset"][name])
        if name not in position["mean"]:
            return deviations
        return jax.tree.map(lambda d, m: jnp.broadcast_to(m, d.shape) + d, deviations, position["mean"][name])

    return {"params": {name: one_layer(name) for name in sorted({*position["mean"], *position["offset"]})}}


def logits(network: nn.Module) -> Callable[[dict, Array], Array]:
    """Return ``f(position, x)``: logits [task, point] of points [task, point, feature]."""
    return lambda position, x: jax.vmap(network.apply)(task_weights(position, x.shape[0]), x)


def log_prior(position: dict, hyperprior: tfd.Distribution) -> Float[Array, ""]:
    """Return the log density of means, offsets and log standard deviations, Jacobian included."""
    normal = [tfd.Normal(0.0, 1.0).log_prob(a).sum() for a in jax.tree.leaves((position["mean"], position["offset"]))]
    scale = [
        (hyperprior.log_prob(POSITIVE.forward(a)) + POSITIVE.forward_log_det_jacobian(a)).sum()
        for a in jax.tree.leaves(position["log_sd"])
    ]
    return jnp.sum(jnp.stack(normal + scale))


def log_density(
    network: nn.Module, hyperprior: tfd.Distribution | None = None
) -> Callable[[dict, Labelled], Float[Array, ""]]:
    """Return the log posterior, up to a constant, of all tasks; standard deviations ~ N+(0, 1) by default."""
    hyperprior = tfd.HalfNormal(1.0) if hyperprior is None else hyperprior

    def one_task(weights, task):
        log_likelihood = bernoulli_log_likelihood(network.apply(weights, task.x), task.y)
        return (task.weight * log_likelihood).sum()

    total = sum_over_tasks(one_task)

    def density(position, tasks):
        return log_prior(position, hyperprior) + total(task_weights(position, tasks.y.shape[0]), tasks)

    return density


def numpyro_model(network: nn.Module, tasks: Labelled) -> None:
    """State the model of ``log_density`` in NumPyro, with every layer special and every label seen.

    Its sites are ``mean/Dense_0.kernel``, ``sd/Dense_0``, ``offset/Dense_0.kernel`` and so on.
    """
    num_tasks = tasks.y.shape[0]
    of_position = shapes(network, num_tasks, tasks.x.shape[-1])

    def normals(part):
        return {
            name: {
                leaf: numpyro.sample(f"{part}/{name}.{leaf}", dist.Normal(0.0, 1.0).expand(shape.shape).to_event())
                for leaf, shape in layer.items()
            }
            for name, layer in of_position[part].items()
        }

    sd = {name: numpyro.sample(f"sd/{name}", dist.HalfNormal(1.0)) for name in of_position["log_sd"]}
    position = {"mean": normals("mean"), "log_sd": jax.tree.map(jnp.log, sd), "offset": normals("offset")}
    numpyro.sample("y", dist.BernoulliLogits(logits(network)(position, tasks.x)).to_event(2), obs=tasks.y)


def from_numpyro(draws: dict) -> dict:
    """Return values of ``numpyro_model``'s sites as a position; leading axes are kept."""
    position = {"mean": {}, "log_sd": {}, "offset": {}}
    for site, value in draws.items():
        part, _, name = site.partition("/")
        if part == "sd":
            position["log_sd"][name] = jnp.log(value)
        elif part in position:
            layer, leaf = name.rsplit(".", 1)
            position[part].setdefault(layer, {})[leaf] = value
    return position


def sum_over_tasks(function: Callable) -> Callable:
    """Return ``f(weights, tasks)``, the sum of ``function(weights_t, task_t)``, to be differentiated by weights.

    A task's value depends on its own weights alone, so each task's gradient is found together
    with its value, one task after the other, while its few numbers are in the processor's cache.
    """

    @jax.custom_vjp
    def total(weights, tasks):
        return jax.lax.map(lambda pair: function(*pair), (weights, tasks)).sum()

    def forward(weights, tasks):
        values, gradients = jax.lax.map(lambda pair: jax.value_and_grad(function)(*pair), (weights, tasks))
        return values.sum(), gradients

    def backward(gradients, cotangent):
        return jax.tree.map(lambda gradient: cotangent * gradient, gradients), None

    total.defvjp(forward, backward)
    return total
