"""Seconds of a value with its gradient, on one core."""

import time

import jax

SETTINGS = {"seconds_a_run": 0.3}  # of the result ``are_the_samplers_right/gradient_time``


def timer(log_density, position, observed):
    """Return a function that times a value with its gradient, in seconds of a core.

    The value comes with the gradient in every sampler, and XLA compiles both together, into other
    code than for the gradient alone.
    """

    @jax.jit
    def loop(position, observed, count):
        def step(_, carry):
            position, total = carry
            value, slope = jax.value_and_grad(log_density)(position, observed)
            return jax.tree.map(lambda a, b: a + 1e-7 * b, position, slope), total + value

        return jax.lax.fori_loop(0, count, step, (position, 0.0))

    def seconds(count):
        begin = time.process_time()
        jax.block_until_ready(loop(position, observed, count))
        return time.process_time() - begin

    seconds(1)  # compiles
    count = 4
    while seconds(count) < SETTINGS["seconds_a_run"]:
        count *= 2
    return lambda: seconds(count) / count
