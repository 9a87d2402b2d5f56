"""What a posterior costs with `mcmc.sample`: seconds, compilation and warm-up included, to an
effective size of 400.

The hierarchical network on the sources' data, four chains with the likelihood at power 0.8, in
stages until they agree on a layer, which go on with the whole of it; and the eighteen flat
networks. A fresh density for every seed, so that every run compiles; a second run of the same
density shows what is left without. Arguments: [seeds] [draws].
"""

from helpers import data, densities, diagnostics, hierarchical, mcmc, networks, predict, tempering

import resource
import sys
import time
from functools import partial

import jax
import numpy as np

NETWORK = networks.MLP()


def hierarchical_run(seed, num_samples, tasks):
    """Return the seconds of a run from dispersed starts and of the same run again, and its
    diagnostics.
    """
    key_start, key_tempered, key_chains = jax.random.split(jax.random.key(seed), 3)
    shapes, seen = (
        hierarchical.shapes(NETWORK, 18, 2),
        densities.observe(tasks.x_train, tasks.y_train),
    )
    logits, log_density = hierarchical.logits(NETWORK), hierarchical.log_density(NETWORK)
    second = {"num_samples": num_samples, "max_tree_depth": 6, "data": seen}
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        starts = mcmc.normal_starts(key_start, shapes, (4,))
        starts, _ = tempering.agreed_starts(
            key_tempered, log_density, starts, seen, max_tree_depth=6
        )
        posterior = mcmc.sample(key_chains, log_density, starts, **second)
        seconds.append(time.perf_counter() - begin)
    p = jax.jit(partial(predict.probabilities, logits))(posterior.draws, tasks.x_test)
    found = diagnostics.summarize(p.reshape(4, num_samples, -1))
    rhat = diagnostics.summarize(posterior.draws["log_sd"]).rhat.max()
    ess = np.quantile(np.minimum(found.ess_bulk, found.ess_tail), 0.05)
    return *seconds, ess, np.quantile(found.rhat, 0.99), rhat


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    num_samples = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    tasks = data.source_moons()
    for seed in range(seeds):
        first, second, ess, rhat_predictions, rhat_log_sd = hierarchical_run(
            seed, num_samples, tasks
        )
        print(
            f"hierarchical, seed {seed}: {first:.1f} s, again without compilation {second:.1f} s, "
            f"ESS of predictions (p5) {ess:.0f}, "
            f"R-hat (p99) {rhat_predictions:.3f}, of log sd {rhat_log_sd:.3f}",
            flush=True,
        )
    weights = jax.eval_shape(NETWORK.init, jax.random.key(0), tasks.x_train[0])
    observed = densities.observe(tasks.x_train, tasks.y_train, np.ones(3))
    starts = mcmc.normal_starts(jax.random.key(1), weights, (18, 4))
    begin = time.perf_counter()
    flat = densities.flat_log_density(NETWORK)
    mcmc.sample(jax.random.key(2), flat, starts, num_warmup=500, num_samples=1000, tasks=observed)
    print(f"flat, 18 tasks x 4 chains x (500 + 1000): {time.perf_counter() - begin:.1f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
