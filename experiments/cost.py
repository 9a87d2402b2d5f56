"""What the settings of Wiecki (2018) cost, against this book's, in gradients and side by side in seconds.

Both sample the same hierarchical posterior of the sources' data by BlackJAX, two chains, one a core.
His: start from mean-field variational inference, 5000 steps of Stan's warm-up at acceptance 0.9, 500 draws.
Ours: four dispersed starts a core through a tempered stage, of which the first in the mode where the output
layer is the widest goes on (``posteriors.py``); all four are paid for. Gradients do not depend on the machine.
"""

import time
from functools import partial

import jax

jax.config.update("jax_num_cpu_devices", 2)

from helpers import data, diagnostics, hierarchical, mcmc, metrics, networks  # noqa: E402

import blackjax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
import store  # noqa: E402
from blackjax.vi import meanfield_vi  # noqa: E402
from jax.flatten_util import ravel_pytree  # noqa: E402

SETTINGS = {
    "seed": 3005,
    "num_chains": 2,
    "theirs": {"vi_steps": 5000, "vi_samples": 1, "num_warmup": 5000, "num_samples": 500, "target": 0.9, "depth": 10},
    "ours": {
        "num_started": 4,
        "power": 0.6,  # of the likelihood in the tempered stage
        "num_tempered": 300,
        "num_warmup": 300,
        "num_samples": 3000,
        "target": 0.9,
        "depth": 7,
    },
}
NETWORK = networks.MLP()
LOG_DENSITY = hierarchical.log_density(NETWORK)


def steps_of(state, info, adaptation_state):
    """Keep of warm-up what it cost."""
    return {"steps": info.num_integration_steps}


def warm_up(key, start, density, adaptation, settings, num_steps):
    """Run one of BlackJAX's adaptations; return its state, parameters and number of gradients."""
    common = {"target_acceptance_rate": settings["target"], "max_num_doublings": settings["depth"]}
    if adaptation == "stan":
        run = blackjax.window_adaptation(blackjax.nuts, density, adaptation_info_fn=steps_of, **common).run
    else:
        run = blackjax.staged_adaptation(
            blackjax.nuts, density, "fisher_diag", adaptation_info_fn=steps_of, **common
        ).run
    (state, parameters), info = run(key, start, num_steps)
    return state, parameters, info["steps"].sum()


def draw(key, state, parameters, density, num_samples):
    """Sample; return positions and number of gradients."""
    step = blackjax.nuts(density, **parameters).step

    def one(state, key):
        state, info = step(key, state)
        return state, (state.position, info.num_integration_steps)

    positions, steps = jax.lax.scan(one, state, jax.random.split(key, num_samples))[1]
    return positions, steps.sum()


def theirs(key, start, density):
    """Variational start, long warm-up, short run."""
    settings = SETTINGS["theirs"]
    key_vi, key_start, key_warmup, key_draws = jax.random.split(key, 4)
    algorithm = meanfield_vi.as_top_level_api(density, optax.adam(1e-2), settings["vi_samples"])

    def one(state, key):
        return algorithm.step(key, state)[0], None

    state = jax.lax.scan(one, algorithm.init(start), jax.random.split(key_vi, settings["vi_steps"]))[0]
    start = algorithm.sample(key_start, state, 1)[0]
    state, parameters, warmup = warm_up(key_warmup, start, density, "stan", settings, settings["num_warmup"])
    positions, sampling = draw(key_draws, state, parameters, density, settings["num_samples"])
    return positions, warmup + settings["vi_steps"] * settings["vi_samples"], sampling


def ours(key, starts, density, tempered_density, log_sd):
    """Tempered stage from several starts, short warm-up, long run."""
    settings = SETTINGS["ours"]
    key_tempered, key_warmup, key_draws = jax.random.split(key, 3)

    def first_stage(pair):
        state, _, steps = warm_up(*pair, tempered_density, "fisher", settings, settings["num_tempered"])
        return state.position, steps

    ends, first = jax.lax.map(first_stage, (jax.random.split(key_tempered, len(starts)), starts))
    in_mode = jax.vmap(log_sd)(ends).argmax(axis=1) == 2
    start = ends[in_mode.argmax()]  # the first of all if none is there, which its own group sd would tell
    state, parameters, warmup = warm_up(key_warmup, start, density, "fisher", settings, settings["num_warmup"])
    positions, sampling = draw(key_draws, state, parameters, density, settings["num_samples"])
    return positions, first.sum() + warmup, sampling


def main():
    key_test, key_start, key_theirs, key_ours = jax.random.split(jax.random.key(SETTINGS["seed"]), 4)
    tasks = data.redraw_test(key_test, data.source_moons(), 1000)
    labelled = hierarchical.labelled(tasks.x_train, tasks.y_train)
    tempered = labelled._replace(weight=SETTINGS["ours"]["power"] * labelled.weight)
    batch = SETTINGS["num_chains"], SETTINGS["ours"]["num_started"]
    starts = mcmc.normal_starts(key_start, hierarchical.shapes(NETWORK, 18), batch)
    unravel = ravel_pytree(jax.tree.map(lambda a: a[0, 0], starts))[1]
    vectors = jax.vmap(jax.vmap(lambda p: ravel_pytree(p)[0]))(starts)

    def density(data, vector):
        return LOG_DENSITY(unravel(vector), data)

    def log_sd(vector):
        return jnp.stack([unravel(vector)["log_sd"][f"Dense_{layer}"] for layer in range(3)])

    at_one, below = partial(density, labelled), partial(density, tempered)
    logits = hierarchical.logits(NETWORK)
    rows = []
    for name, key, sampler in (
        ("settings of 003", key_theirs, lambda key, starts: theirs(key, starts[0], at_one)),
        ("settings of this book", key_ours, lambda key, starts: ours(key, starts, at_one, below, log_sd)),
    ):
        run = jax.pmap(sampler)  # one chain a core
        keys = jax.random.split(key, SETTINGS["num_chains"])
        compiled = run.lower(keys, vectors).compile()
        begin = time.perf_counter()
        positions, warmup, sampling = jax.block_until_ready(compiled(keys, vectors))
        seconds = time.perf_counter() - begin
        draws = jax.vmap(jax.vmap(unravel))(positions)
        p = jax.jit(
            lambda d: jax.lax.map(lambda c: jax.lax.map(lambda w: jax.nn.sigmoid(logits(w, tasks.x_test)), c), d)
        )
        p_all = p(jax.tree.map(lambda a: a[:, ::5], draws))
        p_some = p(draws)[:, :, :, :25].reshape(*positions.shape[:2], -1)
        of_p, of_sd = diagnostics.summarize(p_some), diagnostics.summarize(draws["log_sd"])
        rows.append(
            {
                "name": name,
                "gradients_warmup": np.asarray(warmup).tolist(),
                "gradients_sampling": np.asarray(sampling).tolist(),
                "seconds": seconds,
                "ess_predictions_p5": float(np.quantile(np.minimum(of_p.ess_bulk, of_p.ess_tail), 0.05)),
                "ess_log_sd_min": float(np.minimum(of_sd.ess_bulk, of_sd.ess_tail).min()),
                "rhat_log_sd_max": float(of_sd.rhat.max()),
                "sd_by_chain": {k: np.exp(np.median(v, axis=1)).tolist() for k, v in draws["log_sd"].items()},
                "scores": metrics.scores(p_all.mean(axis=(0, 1)), tasks.y_test),
            }
        )
        print(rows[-1], flush=True)
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
