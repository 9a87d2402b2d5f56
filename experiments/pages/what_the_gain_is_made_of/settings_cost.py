"""What the settings of Wiecki (2018) cost, against this book's, in gradients and in seconds of one
core.

Both sample the same hierarchical posterior of the sources' data by BlackJAX's NUTS, four chains in
turn on one core. His: start from mean-field variational inference, 5000 steps of Stan's warm-up at
acceptance 0.9, 500 draws. Ours: four dispersed starts a chain through a tempered stage, of which
the first in the mode where the output layer is the widest goes on (as in ``long_runs``); all four
are paid for. Gradients do not depend on the machine.
"""

from helpers import (
    common,
    data,
    densities,
    diagnostics,
    hierarchical,
    mcmc,
    metrics,
    networks,
    predict,
)
from helpers.common import mixed_types

import time
from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from blackjax.vi import meanfield_vi
from jax.flatten_util import ravel_pytree

from experiments.methods import runs

SETTINGS = {
    "seed": 3005,
    "num_chains": 4,
    "settings of 003": {
        "vi_steps": 5000,
        "num_warmup": 5000,
        "num_samples": 500,
        "target": 0.9,
        "depth": 10,
    },
    "settings of this book": {
        "num_started": 4,
        "power": 0.6,  # of the likelihood in the tempered stage
        "num_tempered": 300,
        "num_warmup": 300,
        "num_samples": 3000,
        "target": 0.9,
        "depth": 10,
    },
}
NETWORK = networks.MLP()
LOG_DENSITY, LOGITS = hierarchical.log_density(NETWORK), hierarchical.logits(NETWORK)


def units():
    """Settings each."""
    names = ("settings of 003", "settings of this book")
    return {
        name: {"name": name, "num_chains": SETTINGS["num_chains"], "sizes": SETTINGS[name]}
        for name in names
    }


SMALL = {
    "name": "settings of this book",
    "num_chains": 4,
    "sizes": {**SETTINGS["settings of this book"], "num_started": 2, "num_samples": 600},
}


def warm_up(key, start, density, sizes, num_steps, stan=False):
    """Run an adaptation of BlackJAX; return state, parameters and number of gradients."""
    common = {"target_acceptance_rate": sizes["target"], "max_num_doublings": sizes["depth"]}
    common["adaptation_info_fn"] = lambda state, info, adaptation: info.num_integration_steps
    if stan:
        warmup = blackjax.window_adaptation(blackjax.nuts, density, **common)
    else:
        warmup = blackjax.staged_adaptation(blackjax.nuts, density, "fisher_diag", **common)
    (state, parameters), steps = warmup.run(key, start, num_steps)
    return state, parameters, steps.sum()


def draw(key, state, parameters, density, num_samples):
    """Sample; return positions and statistics."""
    step = blackjax.nuts(density, **parameters).step

    def one(state, key):
        state, info = step(key, state)
        steps = info.num_integration_steps
        stats = mcmc.Stats(
            state.logdensity, info.is_divergent, info.acceptance_rate, info.energy, steps
        )
        return state, (state.position, stats)

    return jax.lax.scan(one, state, jax.random.split(key, num_samples))[1]


def theirs(sizes, density_of, key, starts, observed):
    """Variational start, one gradient a step; long warm-up, short run."""
    density = density_of(observed)
    key_vi, key_start, key_warmup, key_draws = jax.random.split(key, 4)
    algorithm = meanfield_vi.as_top_level_api(density, optax.adam(1e-2), 1)

    def one(state, key):
        return algorithm.step(key, state)[0], None

    state = jax.lax.scan(
        one, algorithm.init(starts[0]), jax.random.split(key_vi, sizes["vi_steps"])
    )[0]
    start = algorithm.sample(key_start, state, 1)[0]
    state, parameters, warmup = warm_up(
        key_warmup, start, density, sizes, sizes["num_warmup"], stan=True
    )
    return *draw(key_draws, state, parameters, density, sizes["num_samples"]), sizes[
        "vi_steps"
    ] + warmup


def ours(sizes, density_of, log_sd, key, starts, observed):
    """Tempered stage from several starts, short warm-up, long run."""
    density, tempered = (
        density_of(observed),
        density_of(observed._replace(weight=sizes["power"] * observed.weight)),
    )
    key_tempered, key_warmup, key_draws = jax.random.split(key, 3)

    def first_stage(pair):
        state, _, gradients = warm_up(*pair, tempered, sizes, sizes["num_tempered"])
        return state.position, gradients

    ends, first = jax.lax.map(first_stage, (jax.random.split(key_tempered, len(starts)), starts))
    in_mode = jax.vmap(log_sd)(ends).argmax(axis=1) == 2
    # the first of all if none is there, which its own group sd would tell
    start = ends[in_mode.argmax()]
    state, parameters, warmup = warm_up(key_warmup, start, density, sizes, sizes["num_warmup"])
    return *draw(key_draws, state, parameters, density, sizes["num_samples"]), first.sum() + warmup


def unit(name, num_chains, sizes):
    """Sample chain after chain; seconds leave compiling out."""
    tasks = data.source_moons()
    observed = densities.observe(tasks.x_train, tasks.y_train)
    shapes = hierarchical.shapes(NETWORK, 18, 2)
    keys = (common.key(SETTINGS["seed"], part, name) for part in ("starts", "chains"))
    starts = mcmc.normal_starts(next(keys), shapes, (num_chains, sizes.get("num_started", 1)))
    keys = jax.random.split(next(keys), num_chains)
    unravel = ravel_pytree(jax.tree.map(lambda a: a[0, 0], starts))[1]
    vectors = jax.vmap(jax.vmap(lambda position: ravel_pytree(position)[0]))(starts)

    def density_of(observed):
        return lambda vector: LOG_DENSITY(unravel(vector), observed)

    def log_sd(vector):
        return jnp.stack([unravel(vector)["log_sd"][f"Dense_{layer}"] for layer in range(3)])

    arm = (
        partial(theirs, sizes, density_of)
        if "vi_steps" in sizes
        else partial(ours, sizes, density_of, log_sd)
    )
    with mixed_types():
        chain = jax.jit(arm).lower(keys[0], vectors[0], observed).compile()
    kept, seconds = [], []
    for of_chain in zip(keys, vectors, strict=True):
        begin = time.process_time()
        kept.append(jax.block_until_ready(chain(*of_chain, observed)))
        seconds.append(time.process_time() - begin)
    positions, stats, warmup = jax.tree.map(lambda *leaves: jnp.stack(leaves), *kept)
    draws = jax.vmap(jax.vmap(unravel))(positions)
    return {
        "draws": draws,
        "stats": stats._asdict(),
        "warmup": warmup,
        "seconds": np.array(seconds),
    }


def with_error(name, by_chain):
    """The mean over chains, which know nothing of each other, and its error."""
    by_chain = np.asarray(by_chain, float)
    error = by_chain.std(ddof=1) / np.sqrt(len(by_chain))
    return {name: float(by_chain.mean()), f"{name}_error": float(error)}


def ess(values, quantile):
    """A low quantile of the smaller of bulk and tail ESS; [chain, draw, *quantity]."""
    found = diagnostics.summarize(values)
    return float(np.quantile(np.minimum(found.ess_bulk, found.ess_tail), quantile))


def score(drawn, name, num_chains, sizes):
    """Gradients and seconds of every chain, and what they bought."""
    draws, log_sd = drawn["draws"], drawn["draws"]["log_sd"]
    tasks = data.fresh_moons()

    def probabilities(draws, x):
        return np.asarray(predict.of_draws(lambda w: jax.nn.sigmoid(LOGITS(w, x)), draws))

    p = probabilities(jax.tree.map(lambda a: a[:, ::5], draws), tasks.x_test)
    predictions = probabilities(draws, tasks.x_test[:, :25]).reshape(
        num_chains, sizes["num_samples"], -1
    )
    stats = mcmc.Stats(**drawn["stats"])
    sampling = stats.integration_steps.sum(axis=1)
    scores = metrics.scores(p.mean(axis=(0, 1)), tasks.y_test)
    of_log_sd = diagnostics.summarize(log_sd)
    worst = [ess(np.stack(np.array_split(chain[:, ::9], 2)), 0.05) for chain in predictions]
    at_limit = float((stats.integration_steps >= 2 ** sizes["depth"] - 1).mean())
    check = runs.diagnosis(mcmc.Posterior(None, stats), predictions[..., ::9], log_sd=log_sd)
    return {
        "gradients_warmup": drawn["warmup"].tolist(),
        "gradients_sampling": sampling.tolist(),
        **with_error("gradients", drawn["warmup"] + sampling),
        "seconds": float(drawn["seconds"].sum()),
        "seconds_by_chain": drawn["seconds"].tolist(),
        "ess_predictions_p5": ess(predictions, 0.05),
        # Of every chain by itself, which is what another machine's chains can be held to.
        **with_error(
            "ess_by_million_gradients", 1e6 * np.array(worst) / (drawn["warmup"] + sampling)
        ),
        "ess_log_sd_min": ess(log_sd, 0.0),
        "rhat_log_sd_max": float(of_log_sd.rhat.max()),
        "sd_by_chain": {
            layer: np.exp(np.median(values, axis=1)).tolist() for layer, values in log_sd.items()
        },
        "log_sd": {layer: float(values.mean()) for layer, values in log_sd.items()},
        "log_sd_error": {
            layer: float(diagnostics.standard_error(values)) for layer, values in log_sd.items()
        },
        "scores": scores,
        "nll": scores["NLL"],
        "nll_error": diagnostics.nll_error(p, tasks.y_test),
        # of the draws, which are no-U-turn trajectories here
        "check": {**check, "at_limit": at_limit},
    }
