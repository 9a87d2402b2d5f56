"""Runs minibatches from a folder and prints by how many megabytes the process grew: ``memory``
starts it.

The first number is what the process took for itself, the second the most that it had at any time.
"""

from helpers import sgmcmc

import sys
from pathlib import Path

import blackjax
import jax
import jax.numpy as jnp
import numpyro
import optax
from numpyro import distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

from experiments.methods import streamed


def main(way: str, rows: str, folder: str, batch: str, steps: str, stretch: str) -> None:
    """Run one stretch, which compiles, and then as many steps as asked for."""
    run = {"SG-MCMC": sampled, "SVI": fitted, "in memory": loaded}[way]
    sizes = int(rows), Path(folder), int(batch), int(stretch)
    run(int(stretch), *sizes)
    Path("/proc/self/clear_refs").write_text("5")  # the most that it had is counted from here
    before = memory()
    kept = run(int(steps), *sizes)
    after = memory()
    own, most = after["RssAnon"] - before["RssAnon"], after["VmHWM"] - before["VmRSS"]
    del kept
    print(own / 1000, most / 1000)


def memory():
    """Read kilobytes: RssAnon is the process's own, VmRSS all, VmHWM the most so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in lines)
        if "kB" in rest
    }


def sampled(steps, rows, folder, batch, stretch):
    """Langevin dynamics."""
    key, start = jax.random.key(1), jnp.zeros((1, streamed.files(folder)["x"].shape[1]))
    source, sizes = streamed.rows(folder), sizes_of(steps, rows, batch, stretch)
    return sgmcmc.sample(key, langevin(rows), start, source, **sizes)


def loaded(steps, rows, folder, batch, stretch):
    """The same from data that are read whole."""
    data = {name: jnp.array(values) for name, values in streamed.files(folder).items()}
    key, start = jax.random.key(1), jnp.zeros((1, data["x"].shape[1]))
    return data, sgmcmc.sample(
        key, langevin(rows), start, data, **sizes_of(steps, rows, batch, stretch)
    )


def fitted(steps, rows, folder, batch, stretch):
    """A guide of independent normal distributions."""

    def model(part):
        w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([part["x"].shape[1]]).to_event(1))
        with numpyro.handlers.scale(scale=rows / batch), numpyro.plate("rows", batch):
            numpyro.sample("y", dist.Normal(part["x"] @ w, 1.0), obs=part["y"])

    svi = SVI(model, AutoNormal(model), optax.adam(0.01), Trace_ELBO())
    sizes = {"batch_size": batch, "num_steps": steps, "stretch": stretch}
    return streamed.fit(jax.random.key(1), svi, streamed.rows(folder), **sizes)


def langevin(rows):
    """Prior N(0, 1), noise of variance 1."""
    return blackjax.sgld(
        blackjax.sgmcmc.gradients.grad_estimator(
            lambda w: -(w**2).sum() / 2, lambda w, row: -((row["y"] - row["x"] @ w) ** 2) / 2, rows
        )
    )


def sizes_of(steps, rows, batch, stretch):
    """The sizes of a run that keeps the position after every stretch."""
    fixed = {"batch_size": batch, "num_warmup": 0, "thin": stretch}
    return {"step_size": 0.1 / rows, "num_samples": steps // stretch} | fixed


if __name__ == "__main__":
    main(*sys.argv[1:])
