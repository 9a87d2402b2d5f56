"""The problems that are fitted over processes are the book's densities."""

from helpers import densities, hierarchical, mcmc, networks

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.methods import joined_processes, meshes, sharded
from experiments.problems import large_problems


@pytest.mark.parametrize("name", ["moons", "tasks"])
def test_a_problem_is_a_density_of_the_helpers(name):
    log_density, shapes, observed = getattr(large_problems, name)(6)
    position = mcmc.normal_starts(jax.random.key(1), shapes, ())
    line = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    with jax.set_mesh(line):
        arguments = position, meshes.place(observed, line, "data")
        value, gradient = jax.jit(jax.value_and_grad(log_density))(*arguments)
    if name == "tasks":
        reference = hierarchical.log_density(networks.MLP())
    else:
        reference = densities.flat_log_density(networks.MLP())
        observed = observed._replace(prior_scales=jnp.array(large_problems.PRIOR_SCALES))
    expected = jax.jit(jax.value_and_grad(reference))(position, jax.tree.map(jnp.asarray, observed))
    for one, other in zip(
        jax.tree.leaves((value, gradient)), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("every", "message"), [(7, "expected a divisor of the 30 turns"), (0, "every: given 0")]
)
def test_stretches_that_do_not_divide_the_turns_are_named(every, message):
    log_density, shapes, observed = large_problems.moons(6)
    starts = mcmc.normal_starts(jax.random.key(1), shapes, (2,))
    with pytest.raises(ValueError, match=message):
        sizes = {"num_warmup": 40, "num_samples": 20, "every": every}
        sharded.sample(
            jax.random.key(2), log_density, starts, joined_processes.grid(1), data=observed, **sizes
        )
