"""Long runs of the two hierarchical networks on the sources' data, which a page has no time for.

Within the mode where the output layer specialises the shared features come in two kinds between which
chains pass every few hundred draws; with the output layer shared, the hidden layer's group standard
deviation moves as slowly. Eight chains each start from N(0, 1) and a tempered stage; those that a stage at
this power leaves outside the mode are counted and not continued.
"""

from helpers import data, densities, diagnostics, hierarchical, mcmc, metrics, networks

import jax
import numpy as np
import store

LAYERS = ("Dense_0", "Dense_1", "Dense_2")
SETTINGS = {
    "seed": 3006,
    "models": {"every layer": 3, "output layer shared": 2},  # the number of layers with a group level
    "num_started": 8,
    "num_chains": {"every layer": 4, "output layer shared": 8},
    "power": 0.6,  # of the likelihood in the tempered stage
    "num_tempered": 300,
    "num_warmup": 300,
    "num_samples": 6000,
    "target_acceptance": 0.9,
    "max_tree_depth": 7,
}
NETWORK = networks.MLP()
LOG_DENSITY, LOGITS = hierarchical.log_density(NETWORK), hierarchical.logits(NETWORK)


def run(key, tasks, num_special, num_chains):
    """Sample one model; return its posterior and how many of the started chains reached the mode."""
    key_start, key_tempered, key_chains = jax.random.split(key, 3)
    shapes = hierarchical.shapes(NETWORK, 18, special=LAYERS[:num_special])
    starts = mcmc.normal_starts(key_start, shapes, (SETTINGS["num_started"],))
    common = {name: SETTINGS[name] for name in ("num_warmup", "max_tree_depth", "target_acceptance")}
    seen = hierarchical.labelled(tasks.x_train, tasks.y_train)
    below = hierarchical.labelled(tasks.x_train, tasks.y_train, SETTINGS["power"])
    tempered = mcmc.sample(
        key_tempered, lambda p: LOG_DENSITY(p, below), starts, num_samples=SETTINGS["num_tempered"], **common
    )
    ends = jax.tree.map(lambda a: a[:, -1], tempered.draws)
    log_sd = np.stack([ends["log_sd"][name] for name in LAYERS[:num_special]], axis=1)
    # Where the output layer is special, the mode is the one in which it is the widest.
    reached = np.flatnonzero(log_sd.argmax(axis=1) == 2) if num_special == 3 else np.arange(len(log_sd))
    print(np.exp(log_sd).round(2).tolist(), flush=True)
    starts = jax.tree.map(lambda a: a[reached[:num_chains]], ends)
    posterior = mcmc.sample(
        key_chains, lambda p: LOG_DENSITY(p, seen), starts, num_samples=SETTINGS["num_samples"], **common
    )
    return posterior, len(reached)


def of_draws(posterior, function, thin):
    """Evaluate a function of every ``thin``-th draw, [chain, draw, ...]."""
    part = jax.tree.map(lambda a: a[:, ::thin], posterior.draws)
    return jax.jit(lambda d: jax.lax.map(lambda chain: jax.lax.map(function, chain, batch_size=16), d))(part)


def row(name, posterior, reached, source, tasks):
    """What the page needs of a run."""

    def at(x, thin):
        return of_draws(posterior, lambda position: jax.nn.sigmoid(LOGITS(position, x)), thin)

    def labels(position):
        return densities.bernoulli_log_likelihood(LOGITS(position, tasks.x_train), tasks.y_train).ravel()

    def by_task(p):
        return [float(metrics.negative_log_likelihood(*pair)) for pair in zip(p, tasks.y_test, strict=True)]

    p_source, p_train, p_test = at(source.x_test, 4), at(tasks.x_train, 20), at(tasks.x_test, 30)
    log_likelihood = of_draws(posterior, labels, 8)
    left_out = diagnostics.leave_one_out(log_likelihood)
    flat = np.asarray(log_likelihood, dtype=np.float64).reshape(-1, log_likelihood.shape[-1])
    full = np.log(np.exp(flat).mean(axis=0))
    predictions = np.asarray(p_source).reshape(*p_source.shape[:2], -1)[..., ::9]
    check = diagnostics.check(posterior, predictions, log_sd=posterior.draws["log_sd"])
    log_sd = diagnostics.summarize(posterior.draws["log_sd"])
    kept = {
        "name": name,
        "reached_of_started": [reached, SETTINGS["num_started"]],
        "check": store.diagnosed(check),
        "rhat_log_sd": np.asarray(log_sd.rhat).tolist(),
        "ess_log_sd": np.minimum(log_sd.ess_bulk, log_sd.ess_tail).tolist(),
        "sd_by_chain": {k: np.exp(np.median(v, axis=1)).tolist() for k, v in posterior.draws["log_sd"].items()},
        "nll_error": diagnostics.nll_error(p_test, tasks.y_test),
        "p_source_error": diagnostics.standard_error(p_source).round(6).tolist(),
        "scores": metrics.scores(p_test.mean(axis=(0, 1)), tasks.y_test),
        "task_nll": by_task(p_test.mean(axis=(0, 1))),
        "task_nll_by_chain": [by_task(p) for p in p_test.mean(axis=1)],
        "accuracy_train": 100 * float(metrics.accuracy(p_train.mean(axis=(0, 1)), tasks.y_train)),
        "accuracy_test": 100 * float(metrics.accuracy(p_source.mean(axis=(0, 1)), source.y_test)),
        "p_source": np.asarray(p_source.mean(axis=(0, 1))).round(5).tolist(),
        "p_loo": float((full - left_out.log_density).sum()),
        "leave_one_out_nll": -float(left_out.log_density.mean()),
        "bad_pareto_k": int((left_out.pareto_k > 0.7).sum()),
    }
    print(name, diagnostics.describe(check), flush=True)
    long = ("p_source", "p_source_error", "task_nll", "task_nll_by_chain")
    print({k: v for k, v in kept.items() if k not in long}, flush=True)
    return kept


def main():
    source = data.source_moons()
    tasks = data.fresh_moons()
    keys = jax.random.split(jax.random.key(SETTINGS["seed"]), len(SETTINGS["models"]))
    rows = []
    for key, (name, num_special) in zip(keys, SETTINGS["models"].items(), strict=True):
        posterior, reached = run(key, tasks, num_special, SETTINGS["num_chains"][name])
        rows.append(row(name, posterior, reached, source, tasks))
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
