"""The BlackJAX port's settings on the all-layer posterior: window adaptation of 1000 steps, then
NUTS; on the port's density, or on the book's from N(0, 1).

Its own loop, its starts (weights N(0, 1), standard deviations 1) and its way to write the network:
all tasks in one product. It runs one chain; four run here side by side, one a device, as BlackJAX's
guide to several chains has it. Where the port samples the standard deviation itself, this samples
its logarithm, as all others do.
"""

import os

from benchmarks.others.session import CHAINS, Session, asked_for

os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={CHAINS}"
if asked_for("our density"):
    import helpers  # noqa: F401, whose flags JAX reads when it starts

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import stats

from benchmarks.others.posterior import NUM_UNKNOWNS, SHAPES, shapes, split

WARM_UP = 1000


def log_density(position, x, y):
    """The log posterior of log sd, Jacobian and constants included."""
    h, log_sd = x, position["log_sd"]
    for i in range(len(SHAPES)):
        h = h @ (position[f"mean_{i}"] + jnp.exp(log_sd[i]) * position[f"offset_{i}"])
        h = h if i == len(SHAPES) - 1 else jnp.tanh(h)
    f = h[..., 0]
    total = (y * jax.nn.log_sigmoid(f) + (1 - y) * jax.nn.log_sigmoid(-f)).sum()
    total += sum(stats.norm.logpdf(position[name]).sum() for name in position if name != "log_sd")
    return total + (jnp.log(2.0) + stats.norm.logpdf(jnp.exp(log_sd)) + log_sd).sum()


def start(key):
    """The port's start: weights from N(0, 1), standard deviations 1."""
    keys = dict(zip(shapes(), jax.random.split(key, len(shapes())), strict=True))
    position = {name: jax.random.normal(keys[name], shape) for name, shape in shapes().items()}
    return {**position, "log_sd": jnp.zeros(3)}


def rival(session):
    """Return the density, what makes a start, and what makes draws canonical."""
    x, y = jnp.asarray(session.x), jnp.asarray(session.y)
    if session.kind != "our density":
        return (lambda position: log_density(position, x, y)), start, (lambda draws: draws)
    from benchmarks.others.of_book import density_of

    density = density_of(session.x, session.y, double=False)
    return density, (lambda key: jax.random.normal(key, (NUM_UNKNOWNS,))), split


def main():
    """Warm up, then draw from checkpoint to checkpoint."""
    session = Session()
    session.listen_to_jax()
    session.begin()
    density, begin, as_all = rival(session)

    def warm_up(key):
        key_start, key_run = jax.random.split(key)
        adaptation = blackjax.window_adaptation(
            blackjax.nuts, density, adaptation_info_fn=lambda state, info, adaptation: None
        )
        (state, parameters), _ = adaptation.run(key_run, begin(key_start), session.steps(WARM_UP))
        return state, parameters

    def draw(key, state, parameters, count):
        step = blackjax.nuts(density, **parameters).step

        def one(state, key):
            state, info = step(key, state)
            return state, (state.position, info.is_divergent)

        return jax.lax.scan(one, state, jax.random.split(key, count))

    key_warm, key_draws = jax.random.split(jax.random.key(session.seed))
    state, parameters = jax.block_until_ready(jax.pmap(warm_up)(jax.random.split(key_warm, CHAINS)))
    session.warm()
    done = 0
    for i, count in enumerate(session.counts):
        batch = jax.pmap(draw, static_broadcasted_argnums=3)
        keys = jax.random.split(jax.random.fold_in(key_draws, i), CHAINS)
        state, (draws, diverging) = jax.block_until_ready(
            batch(keys, state, parameters, count - done)
        )
        if not session.judged(as_all(jax.tree.map(np.asarray, draws)), diverging):
            return
        session.first_batch()
        done = count


if __name__ == "__main__":
    main()
