"""The eighteen flat posteriors, cold, by the book, NumPyro or BlackJAX: NAME SEED.

Prints seconds, and the effective size of test probabilities.
"""

from helpers import data, densities, diagnostics, mcmc, networks

import json
import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.others.posterior import SHAPES
from benchmarks.others.session import CHAINS

WARM_UP, DRAWS = 1000, 1000
NETWORK = networks.MLP()


def logits(weights, x):
    """The network, as anyone would write it."""
    h = x
    for i, weight in enumerate(weights):
        h = h @ weight if i == len(weights) - 1 else jnp.tanh(h @ weight)
    return h[..., 0]


def log_density(weights, x, y):
    """N(0, 1) on every weight, up to a constant, and the labels."""
    f = logits(weights, x)
    prior = -0.5 * sum((weight**2).sum() for weight in weights)
    return prior + (y * jax.nn.log_sigmoid(f) + (1 - y) * jax.nn.log_sigmoid(-f)).sum()


def numpyro_model(x, y):
    """The same in NumPyro."""
    import numpyro
    import numpyro.distributions as dist

    normal = dist.Normal(0.0, 1.0)
    weights = [numpyro.sample(f"w_{i}", normal.expand(s).to_event(2)) for i, s in enumerate(SHAPES)]
    numpyro.sample("y", dist.Bernoulli(logits=logits(weights, x)).to_event(1), obs=y)


def ours(seed, tasks):
    """The book's sampler at its defaults."""
    observed = densities.observe(tasks.x_train, tasks.y_train, jnp.ones(3))
    key_start, key_chains = jax.random.split(jax.random.key(seed))
    starts = mcmc.normal_starts(
        key_start, networks.parameter_shapes(NETWORK, 2), (len(tasks.y_train), CHAINS)
    )
    draws = mcmc.sample(
        key_chains, densities.flat_log_density(NETWORK), starts, tasks=observed
    ).draws
    return [draws["params"][f"Dense_{i}"]["kernel"] for i in range(3)]


def numpyros(seed, tasks):
    """NumPyro's NUTS at its defaults, task by task, chains side by side."""
    from numpyro.infer import MCMC, NUTS

    sizes = {
        "num_warmup": WARM_UP,
        "num_samples": DRAWS,
        "num_chains": CHAINS,
        "progress_bar": False,
    }
    run, found = MCMC(NUTS(numpyro_model), chain_method="parallel", **sizes), []
    for task, (x, y) in enumerate(zip(tasks.x_train, tasks.y_train, strict=True)):
        run.run(jax.random.fold_in(jax.random.key(seed), task), x, y)
        found.append(
            {name: np.asarray(a) for name, a in run.get_samples(group_by_chain=True).items()}
        )
    return [np.stack([one[f"w_{i}"] for one in found]) for i in range(3)]


def blackjaxs(seed, tasks):
    """BlackJAX's NUTS after its window adaptation, a chain of every task on each device."""
    import blackjax

    def one_task(key, x, y):
        density, (key_start, key_warm, key_draws) = (
            partial(log_density, x=x, y=y),
            jax.random.split(key, 3),
        )
        keys = jax.random.split(key_start, len(SHAPES))
        begin = [jax.random.normal(k, shape) for k, shape in zip(keys, SHAPES, strict=True)]
        quiet = {"adaptation_info_fn": lambda state, info, adaptation: None}
        adaptation = blackjax.window_adaptation(blackjax.nuts, density, **quiet)
        (state, parameters), _ = adaptation.run(key_warm, begin, WARM_UP)
        step = blackjax.nuts(density, **parameters).step

        def draw(state, key):
            state, _ = step(key, state)
            return state, state.position

        return jax.lax.scan(draw, state, jax.random.split(key_draws, DRAWS))[1]

    def all_tasks(keys, x, y):
        return jax.lax.map(lambda one: one_task(*one), (keys, x, y))

    keys = jax.random.split(jax.random.key(seed), (CHAINS, len(tasks.y_train)))
    run = jax.pmap(all_tasks, in_axes=(0, None, None))
    return [np.swapaxes(np.asarray(a), 0, 1) for a in run(keys, tasks.x_train, tasks.y_train)]


RIVALS = {"ours": ours, "NumPyro NUTS": numpyros, "BlackJAX NUTS": blackjaxs}


def main():
    """Fit the eighteen tasks from cold; print seconds, and ESS of predictions."""
    name, seed = sys.argv[1], int(sys.argv[2])
    tasks = data.source_moons()
    tasks = tasks._replace(x_train=jnp.asarray(tasks.x_train), y_train=jnp.asarray(tasks.y_train))
    begun = time.perf_counter()
    weights = jax.block_until_ready(RIVALS[name](seed, tasks))
    seconds = time.perf_counter() - begun
    p = np.asarray(jax.nn.sigmoid(logits(weights, np.asarray(tasks.x_test)[:, None, None])))
    found = diagnostics.summarize(np.moveaxis(p, 0, 2).reshape(*p.shape[1:3], -1))
    ess = np.quantile(np.minimum(found.ess_bulk, found.ess_tail), 0.05)
    within = float((found.rhat <= found.rhat_bound).mean())
    print(json.dumps({"seconds": seconds, "ess": ess, "rhat_within": within}))


if __name__ == "__main__":
    main()
