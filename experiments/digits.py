"""Few-shot digits: a network trained on five of ten classes becomes a prior for tasks on the other five.

One redraw: a random split of the classes. The prior's hidden weights are N(trained weights, s^2), its output
weights N(0, t^2), since the classes are new. The scales s and t of every arm, and the steps of fine-tuning,
are chosen on base classes alone: a network trained on three of them, tasks on the other two.
"""

from helpers import densities, diagnostics, hierarchical, mcmc, metrics, networks, priors

import jax
import jax.numpy as jnp
import numpy as np
import optax
import store
from jax.flatten_util import ravel_pytree
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from tensorflow_probability.substrates.jax import bijectors as tfb
from tensorflow_probability.substrates.jax import distributions as tfd

SETTINGS = {
    "seed": 3021,
    "num_redraws": 10,
    "hidden": 20,
    "shots": [1, 2, 5, 10],  # labelled images a class
    "tuning_shots": 3,
    "tuning_tasks": 4,
    "hidden_scales": [0.03, 0.1, 0.3, 1.0],
    "narrow": 0.1,  # the hidden scale of a prior that trusts the trained features
    "inverse_penalties": [0.3, 3.0, 30.0, 300.0],
    "output_scales": [1.0, 3.0, 10.0, 30.0],
    "num_warmup": 150,
    "num_samples": 150,
    "pretraining_steps": 1000,
    "most_steps": 200,
}
NETWORK = networks.MLP(hidden=(SETTINGS["hidden"],), use_bias=True, num_outputs=5)
UNRAVEL, SIZE = densities.weights_of(NETWORK, 64)
LAYER = priors.layer_of_weight(UNRAVEL(jnp.zeros(SIZE))["params"])
MOST = 5 * max(SETTINGS["shots"])


def log_density(position, unit):
    """One program for all arms: independent normals, their locations and scales are data."""
    labelled, (location, scale) = unit
    prior = tfd.MultivariateNormalDiag(location, scale)
    whiten = tfb.Chain([tfb.Shift(location), tfb.Scale(scale)])
    return densities.informed_log_density(NETWORK, prior, whiten, num_features=64)(position, labelled)


def mean_loss(params, x, y, weight):
    each = densities.categorical_log_likelihood(NETWORK.apply(params, x), y)
    return -(weight * each).sum() / weight.sum()


@jax.jit
def pretrain(key, x, y, weight):
    """Train on base classes by Adam with weight decay; the weights as one vector."""
    optimizer = optax.adamw(0.01, weight_decay=0.01)
    params = NETWORK.init(key, x)

    def step(carry, _):
        params, state = carry
        updates, state = optimizer.update(jax.grad(mean_loss)(params, x, y, weight), state, params)
        return (optax.apply_updates(params, updates), state), None

    start = params, optimizer.init(params)
    return ravel_pytree(jax.lax.scan(step, start, length=SETTINGS["pretraining_steps"])[0][0])[0]


@jax.jit
def fine_tune(vectors, x, y, weight):
    """Every task's weights after each step of Adam, [task, step, weight]."""
    optimizer = optax.adam(0.01)

    def one_task(vector, x, y, weight):
        def step(carry, _):
            vector, state = carry
            slope = jax.grad(lambda v: mean_loss(UNRAVEL(v), x, y, weight))(vector)
            updates, state = optimizer.update(slope, state)
            vector = optax.apply_updates(vector, updates)
            return (vector, state), vector

        return jax.lax.scan(step, (vector, optimizer.init(vector)), length=SETTINGS["most_steps"])[1]

    return jax.lax.map(lambda unit: one_task(*unit), (vectors, x, y, weight))


def few_shot(rng, x, digit, classes, shots):
    """Draw a task: [50] padded labelled images, their marks, and all other images of the classes."""
    where = [rng.permutation(np.flatnonzero(digit == c)) for c in classes]
    support = np.concatenate([w[:shots] for w in where])
    rest = np.concatenate([w[shots:] for w in where])
    label = {c: i for i, c in enumerate(classes)}
    padded = np.concatenate([support, np.repeat(support[:1], MOST - len(support))])
    y = np.array([label[c] for c in digit[padded]])
    return x[padded], y, np.arange(MOST) < len(support), x[rest], np.array([label[c] for c in digit[rest]])


def stacked(tasks):
    """Put tasks together for the sampler."""
    x, y, seen = (np.stack(part) for part in list(zip(*tasks, strict=True))[:3])
    return hierarchical.labelled(x, y, seen.astype(np.float32), num_classes=5)


@jax.jit
def chain_means(draws, x):
    """Mean class probabilities of every chain, [chain, point, class]."""
    return jax.lax.map(
        lambda chain: jax.nn.softmax(jax.vmap(lambda v: NETWORK.apply(UNRAVEL(v), x))(chain)).mean(axis=0), draws
    )


def sample_tasks(key, tasks, location, scale):
    """Fit every task under its own prior; return probabilities [chain, point, class] by task, and a check."""
    key_start, key_chains = jax.random.split(key)
    starts = mcmc.normal_starts(key_start, jax.ShapeDtypeStruct((SIZE,), jnp.float32), (len(tasks), 2))
    unit_data = stacked(tasks), (jnp.asarray(location, jnp.float32), jnp.asarray(scale, jnp.float32))
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
    posterior = mcmc.sample(key_chains, log_density, starts, max_tree_depth=6, data=unit_data, **sizes)
    w = np.asarray(location)[:, None, None] + np.asarray(scale)[:, None, None] * np.asarray(posterior.draws)
    rhat = [float(diagnostics.summarize(d).rhat[0]) for d in posterior.stats.log_density]
    check = {"rhat_log_density": float(np.max(rhat)), "divergences": int(posterior.stats.diverging.sum())}
    return [chain_means(one, task[3]) for one, task in zip(w, tasks, strict=True)], check


def by_layer(hidden, output):
    return np.array([hidden, output], np.float32)[LAYER]


def nll(p, y):
    return -float(np.log(np.asarray(p, np.float64)[np.arange(len(y)), y]).mean())


def tuning_losses(key, tasks, location):
    """Mean NLL of the tuning tasks under every pair of scales, all in one call."""
    pairs = [(a, b) for a in SETTINGS["hidden_scales"] for b in SETTINGS["output_scales"]]
    units = [task for _ in pairs for task in tasks]
    scales = np.stack([by_layer(*pair) for pair in pairs for _ in tasks])
    p, _ = sample_tasks(key, units, np.tile(location, (len(units), 1)), scales)
    losses = np.array([nll(one.mean(axis=0), task[4]) for one, task in zip(p, units, strict=True)])
    return dict(zip(pairs, losses.reshape(len(pairs), -1).mean(axis=1).tolist(), strict=True))


def chosen_steps(tasks, start):
    """Choose the number of steps of fine-tuning by the NLL of tuning tasks."""
    labelled = stacked(tasks)
    path = fine_tune(np.tile(start, (len(tasks), 1)), labelled.x, labelled.y, labelled.weight)
    losses = [
        [nll(jax.nn.softmax(NETWORK.apply(UNRAVEL(v), task[3])), task[4]) for v in steps[::10]]
        for steps, task in zip(path, tasks, strict=True)
    ]
    return 10 * int(np.mean(losses, axis=0).argmin())


def logistic(tasks, inverse_penalty):
    """Predict by logistic regression on the pixels."""

    def one(x, y, seen, x_test, _):
        return LogisticRegression(C=inverse_penalty, max_iter=2000).fit(x[seen], y[seen]).predict_proba(x_test)

    return [one(*task) for task in tasks]


def scores(p, y):
    found = metrics.class_scores(jnp.asarray(p, jnp.float32), jnp.asarray(y))
    return {name: found[name] for name in ("accuracy %", "NLL", "Brier", "calibration error")}


def redraw(key, rng, x, digit):
    """All arms on one split of the classes: {arm: scores by shots}."""
    key_three, key_five, key_prior, key_plain, *keys = jax.random.split(key, 9)
    classes = rng.permutation(10)
    base, new = classes[:5], classes[5:]
    number = np.full(10, -1)
    number[base] = np.arange(5)
    y = np.maximum(number[digit], 0)
    of = [np.isin(digit, base[:3]), np.isin(digit, base)]
    three, five = (
        np.asarray(pretrain(k, x, y, m.astype(np.float32))) for k, m in zip((key_three, key_five), of, strict=True)
    )
    features = np.where(LAYER == 0, five, 0.0).astype(np.float32)

    tuning = [few_shot(rng, x, digit, base[3:], SETTINGS["tuning_shots"]) for _ in range(SETTINGS["tuning_tasks"])]
    tuning_start = np.where(LAYER == 0, three, 0.0).astype(np.float32)
    around, plain = tuning_losses(key_prior, tuning, tuning_start), tuning_losses(key_plain, tuning, 0 * tuning_start)
    narrow = {pair: loss for pair, loss in around.items() if pair[0] == SETTINGS["narrow"]}
    scales = {
        "pre-trained prior": min(around, key=around.get),
        "pre-trained prior, narrow": min(narrow, key=narrow.get),
        "scales only": min(plain, key=plain.get),
        "N(0, 1)": (1.0, 1.0),
    }
    steps = chosen_steps(tuning, tuning_start)
    print("chosen", scales, steps, flush=True)

    tasks = [few_shot(rng, x, digit, new, shots) for shots in SETTINGS["shots"]]
    found = {}
    for key, (name, pair) in zip(keys, scales.items(), strict=False):
        location = features if name.startswith("pre-trained") else np.zeros(SIZE, np.float32)
        tiled = np.tile(location, (len(tasks), 1)), np.tile(by_layer(*pair), (len(tasks), 1))
        p, check = sample_tasks(key, tasks, *tiled)
        found[name] = {
            "scores": [scores(one.mean(axis=0), task[4]) for one, task in zip(p, tasks, strict=True)],
            "nll_by_chain": [[nll(chain, task[4]) for chain in one] for one, task in zip(p, tasks, strict=True)],
            "check": {**check, "chosen": list(pair)},
        }
    labelled = stacked(tasks)
    tuned = fine_tune(np.tile(features, (len(tasks), 1)), labelled.x, labelled.y, labelled.weight)[:, steps]
    p = [jax.nn.softmax(NETWORK.apply(UNRAVEL(v), task[3])) for v, task in zip(tuned, tasks, strict=True)]
    penalties = {
        c: np.mean([nll(p, task[4]) for p, task in zip(logistic(tuning, c), tuning, strict=True)])
        for c in SETTINGS["inverse_penalties"]
    }
    penalty = min(penalties, key=penalties.get)
    points = {"fine-tuning": (p, steps + 1), "logistic regression": (logistic(tasks, penalty), penalty)}
    for name, (p, choice) in points.items():
        found[name] = {
            "scores": [scores(one, task[4]) for one, task in zip(p, tasks, strict=True)],
            "nll_by_chain": [[nll(one, task[4])] for one, task in zip(p, tasks, strict=True)],
            "check": {"chosen": [choice]},
        }
    for name, one in found.items():
        print(
            f"{name:18}",
            [(round(s["accuracy %"], 1), round(s["NLL"], 3)) for s in one["scores"]],
            one["check"],
            flush=True,
        )
    return found


def main():
    images = load_digits()
    x, digit = (images.data / 16.0 - 0.5).astype(np.float32), images.target
    rng = np.random.default_rng(SETTINGS["seed"])
    keys = jax.random.split(jax.random.key(SETTINGS["seed"]), SETTINGS["num_redraws"])
    found = [redraw(key, rng, x, digit) for key in keys]
    rows = [
        {"name": name, **{part: [one[name][part] for one in found] for part in ("scores", "nll_by_chain", "check")}}
        for name in found[0]
    ]
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
