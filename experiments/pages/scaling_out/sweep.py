"""Many fits: each group of a table by itself, on Dask's workers.

    python -m experiments.pages.scaling_out.sweep 1000  # on the cores of this machine
    DASK_SCHEDULER_ADDRESS=tcp://HOST:8786 python -m experiments.pages.scaling_out.sweep 1000

The second line takes the workers of a cluster.

A worker that dies is started again, and what it had not finished is done once more. A group under
which one worker after the other dies is given up, and the others go on.
"""

from helpers import common, densities, mcmc, networks

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from distributed import Client, KilledWorker, as_completed

from experiments.engine.dask_cluster import connected

NUM_FEATURES, MOST_ROWS = 2, 60
NETWORK = networks.MLP(hidden=(4,))
LOG_DENSITY = densities.flat_log_density(NETWORK)  # one for all, so that a worker compiles it once


def group(number: int) -> dict:
    """Return 20 to 60 rows, filled up by rows of weight 0, so that one program fits all."""
    random = np.random.default_rng([17, number])
    x, angle = random.normal(size=(MOST_ROWS, NUM_FEATURES)), random.normal()
    y = random.random(MOST_ROWS) < 1 / (
        1 + np.exp(-3 * (x[:, 0] * np.cos(angle) + x[:, 1] * np.sin(angle)))
    )
    weight = np.arange(MOST_ROWS) < random.integers(20, MOST_ROWS + 1)
    return {"number": number, "x": x, "y": y.astype(int), "weight": weight}


def fit(of: dict, num_warmup: int = 300, num_samples: int = 500) -> dict:
    """Fit one group; what comes back is small, since all of it ends at whoever asked."""
    observed = densities.observe(of["x"], of["y"], jnp.array([1.0, 3.0]), weight=of["weight"])
    key, key_starts = (common.key(17, name, of["number"]) for name in ("chains", "starts"))
    starts = mcmc.normal_starts(key_starts, networks.parameter_shapes(NETWORK, NUM_FEATURES), (4,))
    posterior = mcmc.sample(
        key, LOG_DENSITY, starts, data=observed, num_warmup=num_warmup, num_samples=num_samples
    )
    log_density = np.asarray(posterior.stats.log_density, np.float64)
    return {
        "mean log density": float(log_density.mean()),
        "divergences": int(posterior.stats.diverging.sum()),
    }


def sweep(
    client: Client, function: Callable, groups: Iterable[dict], **sizes: Any
) -> Iterator[tuple[int, Any]]:
    """Yield number and ``function(group, **sizes)`` of groups as they finish, or the error met.

    A group under which worker after worker died gives a MemoryError if they were ended for their
    memory.
    """
    futures = {client.submit(function, of, **sizes, pure=False): of["number"] for of in groups}
    for future in as_completed(list(futures)):
        error = future.exception()
        if isinstance(error, KilledWorker) and (
            ended := client.get_events("worker-restart-memory")
        ):
            size = max(event["rss"] for _, event in ended) / 2**20
            error = MemoryError(
                f"group {futures[future]}: its workers exceeded their memory, with {size:.0f} MB"
            )
        yield futures.pop(future), future.result() if error is None else error


def main(num_groups: int) -> None:
    """Fit so many groups on the cluster of Dask's configuration, or on this machine's cores."""
    with connected() as client:
        found = dict(sweep(client, fit, map(group, range(num_groups))))
    failed = {number: one for number, one in found.items() if isinstance(one, Exception)}
    print(f"{len(found) - len(failed)} of {num_groups} groups", *failed.values(), sep="\n")


if __name__ == "__main__":
    # workers look for functions there; in __main__ they go by value
    from experiments.pages.scaling_out import sweep

    sweep.main(int(sys.argv[1]))
