"""The book's sampler as its page runs it: tempered stages until four chains agree on a layer, and
all of them go on.

A run cannot be taken up again, so each checkpoint is a cold run of that length; its draws begin
with those of a shorter one.
"""

from helpers import densities, hierarchical, mcmc, networks, tempering

import jax
import numpy as np

from benchmarks.others.posterior import SHAPES
from benchmarks.others.session import CHAINS, Session

SIZES = {"num_warmup": 300, "max_tree_depth": 6}


def main():
    """Run to one checkpoint."""
    session = Session()
    (count,) = session.counts
    session.listen_to_jax()
    double = session.kind == "float64"
    jax.config.update("jax_enable_x64", double)
    session.begin()
    network = networks.MLP()
    log_density, shapes = (
        hierarchical.log_density(network),
        hierarchical.shapes(network, len(session.x), SHAPES[0][0]),
    )
    seen = densities.observe(session.x, session.y)
    if double:
        seen = seen._replace(x=seen.x.astype(float), weight=seen.weight.astype(float))
    key_start, key_tempered, key_chains = jax.random.split(jax.random.key(session.seed), 3)
    sizes = {**SIZES, "num_warmup": session.steps(SIZES["num_warmup"])}
    starts = mcmc.normal_starts(key_start, shapes, (CHAINS,))
    starts, _ = tempering.agreed_starts(key_tempered, log_density, starts, seen, **sizes)

    def all_of_them(positions):
        session.warm()
        return np.arange(CHAINS)

    posterior = mcmc.sample(
        key_chains, log_density, starts, data=seen, num_samples=count, choose=all_of_them, **sizes
    )
    layers = list(posterior.draws["mean"])
    draws = {
        f"mean_{i}": posterior.draws["mean"][layer]["kernel"] for i, layer in enumerate(layers)
    }
    draws |= {
        f"offset_{i}": posterior.draws["offset"][layer]["kernel"] for i, layer in enumerate(layers)
    }
    draws["log_sd"] = np.stack([posterior.draws["log_sd"][layer] for layer in layers], axis=-1)
    session.judged(draws, posterior.stats.diverging)


if __name__ == "__main__":
    main()
