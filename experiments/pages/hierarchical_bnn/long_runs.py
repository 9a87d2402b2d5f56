"""Long runs of the two hierarchical networks on the sources' data, which a page has no time for.

Within the mode where the output layer specialises the shared features come in two kinds between
which chains pass every few hundred draws; with the output layer shared, the hidden layer's group
standard deviation moves as slowly. Eight chains each start from N(0, 1) and a tempered stage, from
which the first go on, wherever they are.
"""

from helpers import (
    common,
    data,
    densities,
    diagnostics,
    hierarchical,
    mcmc,
    metrics,
    monte_carlo,
    networks,
    plots,
    predict,
    tempering,
)
from helpers.common import take

import jax
import numpy as np

from experiments.methods import runs

LAYERS = ("Dense_0", "Dense_1", "Dense_2")
SETTINGS = {
    "seed": 3006,
    # How many layers have a group level, and how many chains go on.
    "models": {
        "every layer": {"num_special": 3, "num_chains": 4},
        "output layer shared": {"num_special": 2, "num_chains": 8},
    },
    "num_started": 8,
    "power": 0.6,  # of the likelihood in the tempered stage
    "num_tempered": 300,
    "num_warmup": 300,
    "num_samples": 6000,
    "target_acceptance": 0.9,
}
THIN = 5  # every fifth draw is kept whole: neighbours are alike
SHOWN, CORNERS = (0, 2, 8, 10, 12, 17), plots.grid(31)  # tasks whose surfaces are kept, and where
NETWORK = networks.MLP()
LOG_DENSITY, LOGITS = hierarchical.log_density(NETWORK), hierarchical.logits(NETWORK)
OF_LABELS = densities.label_log_likelihood(NETWORK)


def units():
    """A model each."""
    sizes = {"num_started": SETTINGS["num_started"], "num_samples": SETTINGS["num_samples"]}
    return {name: {"name": name, **model, **sizes} for name, model in SETTINGS["models"].items()}


SMALL = {**units()["every layer"], "num_started": 4, "num_samples": 1500}


def unit(name, num_special, num_chains, num_started, num_samples):
    """Sample one model from where a tempered stage ends."""
    tasks = data.source_moons()
    key_tempered, key_chains = (
        common.key(SETTINGS["seed"], part, name) for part in ("tempered", "chains")
    )
    shapes = hierarchical.shapes(NETWORK, 18, 2, special=LAYERS[:num_special])
    observed = densities.observe(tasks.x_train, tasks.y_train)
    sizes = {
        "num_warmup": SETTINGS["num_warmup"],
        "target_acceptance": SETTINGS["target_acceptance"],
    }
    first_stage = {
        "power": SETTINGS["power"],
        "num_started": num_started,
        "num_samples": SETTINGS["num_tempered"],
    }
    ends = tempering.tempered_starts(
        key_tempered, LOG_DENSITY, shapes, observed, **first_stage, **sizes
    )
    ends_log_sd = np.stack([ends["log_sd"][layer] for layer in LAYERS[:num_special]], axis=1)
    # To be told, not to be chosen by: where the output layer is special, it is the widest in nearly
    # all of the mass.
    reached = ends_log_sd.argmax(axis=1) == 2 if num_special == 3 else np.full(num_started, True)
    starts = take(ends, np.s_[:num_chains])
    posterior = mcmc.sample(
        key_chains, LOG_DENSITY, starts, data=observed, num_samples=num_samples, **sizes
    )
    return {
        "reached": reached,
        "log_sd": posterior.draws["log_sd"],
        "draws": take(posterior.draws, np.s_[:, ::THIN]),
        **runs.kept_run(posterior),
    }


def with_nll_by_task(p, y):
    """NLL of tasks, of all chains and of each, with errors; p [chain, draw, task, point]."""

    def of_tasks(function, p):
        return [function(p[:, :, task], y[task]) for task in range(len(y))]

    def nll(p, y):
        return metrics.negative_log_likelihood(p.mean(axis=(0, 1)), y)

    chains = [p[[chain]] for chain in range(len(p))]
    return {
        "task_nll": of_tasks(nll, p),
        "task_nll_error": of_tasks(diagnostics.nll_error, p),
        "task_nll_by_chain": [of_tasks(nll, chain) for chain in chains],
        "task_nll_by_chain_error": [of_tasks(diagnostics.nll_error, chain) for chain in chains],
    }


def leave_one_out(log_likelihood):
    """Effective parameters, NLL left out, untrusted points, of [chain, draw, point]."""
    found = diagnostics.leave_one_out(log_likelihood)
    flat = np.asarray(log_likelihood, np.float64).reshape(-1, log_likelihood.shape[-1])
    full = np.log(np.exp(flat).mean(axis=0))
    left_out = np.asarray(found.log_density, np.float64)
    return {
        "p_loo": float((full - left_out).sum()),
        "leave_one_out_nll": -float(left_out.mean()),
        "bad_pareto_k": int((found.pareto_k > 0.7).sum()),
    }


def with_loo_errors(log_likelihood):
    """Leave-one-out of all draws; errors of a mean over half chains, each by itself."""
    found = leave_one_out(log_likelihood)
    half = log_likelihood.shape[1] // 2
    parts = [
        leave_one_out(chain[None, at : at + half]) for chain in log_likelihood for at in (0, half)
    ]
    for name in ("p_loo", "leave_one_out_nll"):
        found[f"{name}_error"] = float(
            np.std([part[name] for part in parts], ddof=1) / np.sqrt(len(parts))
        )
    return found


def score(drawn, num_started, **_):
    """Return what pages need of a run."""
    source, tasks = data.source_moons(), data.fresh_moons()
    observed = densities.observe(tasks.x_train, tasks.y_train)
    draws, log_sd = drawn["draws"], drawn["log_sd"]

    def at(x, thin):
        p = predict.of_draws(lambda w: jax.nn.sigmoid(LOGITS(w, x)), take(draws, np.s_[:, ::thin]))
        return np.asarray(p)

    def labels(position):
        return jax.vmap(OF_LABELS)(hierarchical.task_weights(position, 18), observed).ravel()

    p_source, p_train, p_test = at(source.x_test, 1), at(tasks.x_train, 4), at(tasks.x_test, 6)
    p_corners = at(np.broadcast_to(CORNERS, (18, *CORNERS.shape)), 12).mean(axis=(0, 1))[
        list(SHOWN)
    ]
    log_likelihood = np.asarray(predict.of_draws(labels, take(draws, np.s_[:, ::2])))
    posterior = runs.run_from(drawn)
    predictions = p_source.reshape(*p_source.shape[:2], -1)[..., ::9]
    of_log_sd = diagnostics.summarize(log_sd)
    accuracy_train, accuracy_train_error = monte_carlo.percent_right(p_train, tasks.y_train)
    accuracy_test, accuracy_test_error = monte_carlo.percent_right(p_source, source.y_test)
    scores = metrics.scores(p_test.mean(axis=(0, 1)), tasks.y_test)
    return {
        "reached_of_started": [int(drawn["reached"].sum()), num_started],
        "check": runs.diagnosis(posterior, predictions, log_sd=log_sd),
        "rhat_log_sd": of_log_sd.rhat.tolist(),
        "ess_log_sd": np.minimum(of_log_sd.ess_bulk, of_log_sd.ess_tail).tolist(),
        "sd_by_chain": {
            layer: np.exp(np.median(values, axis=1)).tolist() for layer, values in log_sd.items()
        },
        "log_sd": {layer: float(values.mean()) for layer, values in log_sd.items()},
        "path_of_log_sd": {
            layer: np.round(values[:, ::60], 3).tolist() for layer, values in log_sd.items()
        },
        "shown": list(SHOWN),
        "p_corners": np.round(p_corners.astype(np.float64), 3).tolist(),
        "log_sd_error": {
            layer: float(diagnostics.standard_error(values)) for layer, values in log_sd.items()
        },
        "scores": scores,
        "nll": scores["NLL"],
        "nll_error": diagnostics.nll_error(p_test, tasks.y_test),
        **with_nll_by_task(p_test, np.asarray(tasks.y_test)),
        "accuracy_train": accuracy_train,
        "accuracy_train_error": accuracy_train_error,
        "accuracy_test": accuracy_test,
        "accuracy_test_error": accuracy_test_error,
        "p_source": p_source.mean(axis=(0, 1)).tolist(),
        "p_source_error": diagnostics.standard_error(p_source).tolist(),
        **with_loo_errors(log_likelihood),
    }
