"""NumPyro's NUTS at its defaults, 1000 steps of warm-up, four chains side by side as its
documentation has it; of NumPyro's model, or on the book's density.
"""

from benchmarks.others.session import CHAINS, Session, asked_for

if asked_for("our density"):
    import helpers  # noqa: F401, whose flags JAX reads when it starts

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

from benchmarks.others.posterior import NUM_UNKNOWNS, SHAPES, split

WARM_UP = 1000


def model(x, y):
    """The hierarchical network, as the book's page states it for NumPyro."""
    h = x
    for i, shape in enumerate(SHAPES):
        normal = dist.Normal(0.0, 1.0).expand(shape).to_event(2)
        mean = numpyro.sample(f"mean_{i}", normal)
        sd = numpyro.sample(f"sd_{i}", dist.HalfNormal(1.0))
        with numpyro.plate(f"task_{i}", x.shape[0]):
            offset = numpyro.sample(f"offset_{i}", normal)
        h = h @ (mean + sd * offset)
        h = h if i == len(SHAPES) - 1 else jnp.tanh(h)
    numpyro.sample("y", dist.Bernoulli(logits=h[..., 0]).to_event(2), obs=y)


def canonical(samples):
    """Return the draws as all samplers hand them over."""
    draws = {
        name: np.asarray(samples[name]) for name in samples if name.startswith(("mean", "offset"))
    }
    return {
        **draws,
        "log_sd": np.log(np.stack([np.asarray(samples[f"sd_{i}"]) for i in range(3)], axis=-1)),
    }


def rival(session, key):
    """Return the kernel, what the sampler is called with, and what makes its draws canonical."""
    x, y = jnp.asarray(session.x), jnp.asarray(session.y)
    if session.kind != "our density":
        return NUTS(model), ((x, y), {}), canonical
    from benchmarks.others.of_book import density_of

    density = density_of(session.x, session.y, double=False)
    starts = jax.random.normal(jax.random.fold_in(key, 2**20), (CHAINS, NUM_UNKNOWNS))
    of_vectors = lambda samples: split(np.asarray(samples))  # noqa: E731
    return NUTS(potential_fn=lambda v: -density(v)), ((), {"init_params": starts}), of_vectors


def main():
    """Warm up, then draw from checkpoint to checkpoint."""
    numpyro.set_host_device_count(CHAINS)
    session = Session()
    session.listen_to_jax()
    session.begin()
    key = jax.random.key(session.seed)
    kernel, (given, start), as_all = rival(session, key)
    sizes = {
        "num_warmup": session.steps(WARM_UP),
        "num_chains": CHAINS,
        "chain_method": "parallel",
        "progress_bar": False,
    }
    mcmc = MCMC(kernel, num_samples=session.counts[0], **sizes)
    mcmc.warmup(key, *given, **start)
    jax.block_until_ready(mcmc.last_state)
    session.warm()
    # a run that is not interrupted compiles one program for warm-up and draws
    session.first_batch()
    done = 0
    for i, count in enumerate(session.counts):
        mcmc.num_samples = count - done
        mcmc.run(jax.random.fold_in(key, i), *given)
        samples = mcmc.get_samples(group_by_chain=True)
        diverging = np.asarray(mcmc.get_extra_fields(group_by_chain=True)["diverging"])
        if not session.judged(as_all(samples), diverging):
            return
        mcmc.post_warmup_state, done = mcmc.last_state, count


if __name__ == "__main__":
    main()
