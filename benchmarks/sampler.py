"""What a posterior costs with `mcmc.sample`: seconds, compilation and warm-up included, to an effective size of 400.

The hierarchical network on the sources' data: a tempered first stage, then four chains; and the eighteen flat
networks. A fresh density for every seed, so that every run compiles. Usage: python sampler.py [seeds] [draws]
"""

import resource
import sys
import time
from functools import partial

import jax
import numpy as np

from helpers import data, densities, diagnostics, hierarchical, mcmc, networks, predict

NETWORK = networks.MLP()


def hierarchical_run(seed, num_samples, tasks):
    """Return seconds and diagnostics of one run from dispersed starts."""
    key_start, key_tempered, key_chains = jax.random.split(jax.random.key(seed), 3)
    starts = mcmc.normal_starts(key_start, hierarchical.shapes(NETWORK, 18), (12,))
    seen = hierarchical.labelled(tasks.x_train, tasks.y_train)
    below = hierarchical.labelled(tasks.x_train, tasks.y_train, 0.6)
    log_density, logits = hierarchical.log_density(NETWORK), hierarchical.logits(NETWORK)
    begin = time.perf_counter()
    tempered = mcmc.sample(key_tempered, lambda p: log_density(p, below), starts, num_samples=1, max_tree_depth=5)
    middle = time.perf_counter()
    ends = jax.tree.map(lambda a: a[:, -1], tempered.draws)
    log_sd = np.stack([ends["log_sd"][f"Dense_{layer}"] for layer in range(3)], axis=1)
    best = np.argsort(log_sd[:, :2].max(axis=1) - log_sd[:, 2])[:4]
    starts = jax.tree.map(lambda a: a[best], ends)
    posterior = mcmc.sample(key_chains, lambda p: log_density(p, seen), starts, num_samples=num_samples)
    end = time.perf_counter()
    p = jax.jit(partial(predict.probabilities, logits))(posterior.draws, tasks.x_test)
    check = diagnostics.check(posterior, p.reshape(4, num_samples, -1))
    rhat = diagnostics.summarize(posterior.draws["log_sd"]).rhat.max()
    return middle - begin, end - middle, check, rhat


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    num_samples = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    tasks = data.source_moons()
    for seed in range(seeds):
        first, second, check, rhat = hierarchical_run(seed, num_samples, tasks)
        print(
            f"hierarchical, seed {seed}: tempered {first:.1f} s, chains {second:.1f} s, "
            f"ESS of predictions (p5) {check.ess_predictions:.0f}, R-hat {check.rhat_predictions:.3f}, "
            f"of log sd {rhat:.3f}",
            flush=True,
        )
    weights = jax.eval_shape(NETWORK.init, jax.random.key(0), tasks.x_train[0])
    observed = densities.observe(tasks.x_train, tasks.y_train, np.ones(3))
    starts = mcmc.normal_starts(jax.random.key(1), weights, (18, 4))
    begin = time.perf_counter()
    flat = densities.flat_log_density(NETWORK)
    mcmc.sample(jax.random.key(2), flat, starts, num_warmup=500, num_samples=1000, data=observed)
    print(f"flat, 18 tasks x 4 chains x (500 + 1000): {time.perf_counter() - begin:.1f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
