"""Few-shot tasks on digits, networks trained on their base classes, and what is done with those without a posterior."""

from helpers import densities, networks

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from experiments import shared
from experiments.informative_priors import fits

SETTINGS = {
    "seed": 3021,
    "hidden": 20,
    "shots": [1, 2, 5, 10],  # labelled images a class
    "tuning_shots": 3,
    "tuning_tasks": 4,
    "inverse_penalties": [0.3, 3.0, 30.0, 300.0],
    "pretraining_steps": 1000,
    "most_steps": 200,
    "every_step": 10,  # of fine-tuning, among which is chosen
    "num_starts": 4,  # of the network that is trained for fine-tuning
}
NETWORK = networks.MLP(hidden=(SETTINGS["hidden"],), use_bias=True, num_outputs=5)
UNRAVEL, SIZE = networks.weights_of(NETWORK, 64)
LAYER = fits.layer_of_weight(UNRAVEL(jnp.zeros(SIZE))["params"])
OF_LABELS = densities.label_log_likelihood(NETWORK)
MOST = 5 * max(SETTINGS["shots"])


@lru_cache(maxsize=1)
def digits():
    """Images as 64 numbers from -1/2 to 1/2, and what they show."""
    images = load_digits()
    return (images.data / 16.0 - 0.5).astype(np.float32), images.target


def problem(redraw, shots):
    """Return the classes, base first; tasks on base classes to choose by; tasks on new classes, by number of images."""
    rng = np.random.default_rng(np.asarray(jax.random.key_data(shared.key(SETTINGS["seed"], "tasks", redraw))))
    classes = rng.permutation(10)
    tuning = [few_shot(rng, classes[3:5], SETTINGS["tuning_shots"]) for _ in range(SETTINGS["tuning_tasks"])]
    by_shots = {n: few_shot(rng, classes[5:], n) for n in SETTINGS["shots"]}
    return classes, tuning, [by_shots[n] for n in shots]


def few_shot(rng, classes, shots):
    """Draw a task: padded labelled images with their marks, and all other images of the classes."""
    x, digit = digits()
    where = [rng.permutation(np.flatnonzero(digit == c)) for c in classes]
    support, rest = (np.concatenate([w[part] for w in where]) for part in (np.s_[:shots], np.s_[shots:]))
    padded = np.concatenate([support, np.repeat(support[:1], MOST - len(support))])
    label = np.zeros(10, int)
    label[classes] = np.arange(len(classes))
    weight = np.float32(np.arange(MOST) < len(support))
    observed = densities.observe(x[padded], label[digit[padded]], weight=weight, num_classes=5)
    return {"observed": observed, "x": x[rest], "y": label[digit[rest]]}


def stacked(tasks):
    """Put tasks together for the sampler."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[task["observed"] for task in tasks])


def mean_loss(params, x, y, weight):
    """Mean negative log likelihood of labels of weight 1."""
    observed = densities.Observed(x, y, weight)
    return -OF_LABELS(params, observed).sum() / weight.sum()


def features(key, classes):
    """Train on classes by Adam with weight decay; the weights as one vector, those of the output layer at 0."""
    x, digit = digits()
    number = np.zeros(10, int)
    number[classes] = np.arange(len(classes))
    trained = _pretrain(key, x, number[digit], np.float32(np.isin(digit, classes)))
    return np.where(LAYER == 0, np.asarray(trained), 0.0).astype(np.float32)


@jax.jit
def _pretrain(key, x, y, weight):
    start = NETWORK.init(key, x)
    optimizer = optax.adamw(0.01, weight_decay=0.01)
    trained = shared.train(lambda p: mean_loss(p, x, y, weight), start, optimizer, SETTINGS["pretraining_steps"])[0]
    return ravel_pytree(trained)[0]


@jax.jit
def fine_tune(vector, observed):
    """Every task's weights after each step of Adam from one start, [task, step, weight]."""

    def one_task(task):
        def loss(vector):
            return mean_loss(UNRAVEL(vector), task.x, task.y, task.weight)

        return shared.train(loss, vector, optax.adam(0.01), SETTINGS["most_steps"], keep=lambda vector: vector)[1]

    return jax.lax.map(one_task, observed)


@jax.jit
def probabilities(vectors, x):
    """Class probabilities [..., point, class] of weights [..., weight]."""
    flat = vectors.reshape(-1, SIZE)
    p = jax.lax.map(lambda v: jax.nn.softmax(NETWORK.apply(UNRAVEL(v), x)), flat)
    return p.reshape(*vectors.shape[:-1], *p.shape[1:])


def nll(p, y):
    """Return the NLL of class probabilities [point, class]."""
    return -float(np.log(np.asarray(p, np.float64)[np.arange(len(y)), y]).mean())


def fine_tuning(redraw, classes, tuning, tasks):
    """Train on base classes from several keys; fine-tune each network by the steps that are best on tuning tasks."""
    found, steps = [], []
    for start in range(SETTINGS["num_starts"]):
        three, five = (
            features(shared.key(SETTINGS["seed"], name, redraw, start), classes[:count])
            for name, count in (("three", 3), ("five", 5))
        )
        paths = fine_tune(three, stacked(tuning))[:, :: SETTINGS["every_step"]]
        losses = [
            [nll(p, task["y"]) for p in probabilities(path, task["x"])]
            for path, task in zip(paths, tuning, strict=True)
        ]
        steps.append(SETTINGS["every_step"] * int(np.mean(losses, axis=0).argmin()))
        tuned = fine_tune(five, stacked(tasks))[:, steps[-1]]
        found.append([np.asarray(probabilities(v, task["x"])) for v, task in zip(tuned, tasks, strict=True)])
    by_shots = {str(i): np.stack(parts) for i, parts in enumerate(zip(*found, strict=True))}
    return {"p": by_shots, "chosen": np.array(steps) + 1}


def logistic_regression(tuning, tasks):
    """Predict from the pixels, with the ridge penalty that is best on tuning tasks."""

    def predict(task, inverse_penalty):
        x, y, weight, _ = task["observed"]
        seen = np.asarray(weight) > 0
        model = LogisticRegression(C=inverse_penalty, max_iter=2000)
        return model.fit(np.asarray(x)[seen], np.asarray(y)[seen]).predict_proba(task["x"])

    losses = {c: np.mean([nll(predict(task, c), task["y"]) for task in tuning]) for c in SETTINGS["inverse_penalties"]}
    best = min(losses, key=losses.get)
    return {"p": {str(i): predict(task, best)[None] for i, task in enumerate(tasks)}, "chosen": np.array([best])}
