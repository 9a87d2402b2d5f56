"""The book's sampler as its page runs it: tempered stages until four chains agree on a layer, and
all of them go on.

From checkpoint to checkpoint its chains go on, by ``mcmc.extend``.
"""

from helpers import densities, hierarchical, mcmc, networks, tempering

import jax
import numpy as np

from benchmarks.others.posterior import SHAPES
from benchmarks.others.session import CHAINS, Session

SIZES = {"num_warmup": 300, "max_tree_depth": 6}


def main():
    """Warm up, then draw from checkpoint to checkpoint."""
    session = Session()
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

    sizes |= {"num_samples": session.counts[0], "choose": all_of_them}
    posterior = mcmc.sample(key_chains, log_density, starts, data=seen, **sizes)
    done = 0
    for count in session.counts:
        if done:
            posterior = mcmc.extend(posterior, log_density, count - done, data=seen)
        new = jax.tree.map(lambda a: np.asarray(a)[:, done:], posterior[:2])
        if not session.judged(canonical(new[0]), new[1].diverging):
            return
        session.first_batch()  # the program of a stretch is made again for those that go on
        done = count


def canonical(draws):
    """Return draws as all samplers hand them over."""
    layers = list(draws["mean"])
    found = {
        f"{name}_{i}": draws[name][layer]["kernel"]
        for name in ("mean", "offset")
        for i, layer in enumerate(layers)
    }
    return found | {"log_sd": np.stack([draws["log_sd"][layer] for layer in layers], axis=-1)}


if __name__ == "__main__":
    main()
