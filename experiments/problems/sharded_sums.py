"""A log density that is a sum over data or tasks, summed where they lie: on the devices of a mesh.

total = sharded_sums.summed(lambda params, _, seen: log_likelihood(params, seen).sum())
log_density = lambda params, seen: log_prior(params) + total(params, None, seen)
"""

from collections.abc import Callable

import jax
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec

AXIS = "data"


def summed(function: Callable, gathered: bool = False) -> Callable:
    """Return ``f(shared, own, data)``, the sum over a row's devices of ``function`` of the same.

    Value and gradient are found together, and summed over devices as one vector. ``shared`` is
    whole on each device. ``own`` is what each part of the data has for itself, such as the weights
    of each task. It is divided like the data, and so is its gradient; or it is whole on each
    device, and its gradient is ``gathered`` there, which ``sample`` needs. Data have gradient 0. To
    be called under ``jax.set_mesh`` of a mesh with the axis "data".
    """

    def local(shared, own, data):
        own = _of_this(own) if gathered else own
        value, (of_shared, of_own) = jax.value_and_grad(function, argnums=(0, 1))(shared, own, data)
        vector, unravel = ravel_pytree((value, of_shared))
        return *unravel(jax.lax.psum(vector, AXIS)), _of_all(of_own) if gathered else of_own

    divided, whole = PartitionSpec(AXIS), PartitionSpec()
    of_own = whole if gathered else divided

    def everywhere(shared, own, data):
        specs = {"in_specs": (whole, of_own, divided), "out_specs": (whole, whole, of_own)}
        return jax.shard_map(local, **specs, check_vma=False)(shared, own, data)

    @jax.custom_vjp
    def total(shared, own, data):
        return everywhere(shared, own, data)[0]

    def forward(shared, own, data):
        value, *gradients = everywhere(shared, own, data)
        return value, gradients

    def backward(gradients, cotangent):
        return *jax.tree.map(lambda gradient: cotangent * gradient, gradients), None

    total.defvjp(forward, backward)
    return total


def _of_this(tree):
    """Take this device's part of every leaf."""

    def one(leaf):
        size = len(leaf) // jax.lax.axis_size(AXIS)
        return jax.lax.dynamic_slice_in_dim(leaf, jax.lax.axis_index(AXIS) * size, size)

    return jax.tree.map(one, tree)


def _of_all(tree):
    """Put the parts of all devices one after the other; they travel as one vector."""
    vector, unravel = ravel_pytree(tree)
    parts = jax.vmap(unravel)(jax.lax.all_gather(vector, AXIS))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), parts)
