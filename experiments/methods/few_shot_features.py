"""What is learnt of the base classes of digits, and what is done with that without a posterior."""

from helpers import common, densities, networks, training

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from sklearn.linear_model import LogisticRegression

from experiments.methods import fitted_priors, scoring
from experiments.problems import few_shot_digits
from experiments.problems.few_shot_digits import SETTINGS

UNRAVEL, SIZE = networks.weights_of(few_shot_digits.NETWORK, 64)
UNRAVEL_SOURCE, SIZE_SOURCE = networks.weights_of(few_shot_digits.SOURCE, 64)
# they come first
HIDDEN = int((fitted_priors.layer_of_weight(UNRAVEL(jnp.zeros(SIZE))["params"]) == 0).sum())
FEATURES = SETTINGS["hidden"] + 1  # with the constant that the output layer's biases multiply
OF_LABELS, OF_SOURCE = (
    densities.label_log_likelihood(few_shot_digits.NETWORK),
    densities.label_log_likelihood(few_shot_digits.SOURCE),
)


class Moments(NamedTuple):
    """Mean and covariance of the hidden layer's weights, covariance of a class's output weights.

    Both covariances are scaled to a mean variance of 1.
    """

    mean: np.ndarray  # [weight]
    sd: np.ndarray  # [weight]: the diagonal part
    factors: np.ndarray  # [factor, weight]: the low-rank part, the sum of their outer products
    root: np.ndarray  # [feature, feature]: its product with its transpose
    # root mean square of the hidden weights' standard deviations, before they were scaled to 1
    size: np.ndarray


def mean_loss(of_labels, params, seen):
    """Mean negative log likelihood of labels of weight 1."""
    return -of_labels(params, seen).sum() / seen.weight.sum()


@lru_cache(maxsize=1)
def source_path(redraw):
    """Train one network on the base classes; return snapshots of it, [snapshot, weight].

    After Adam, stochastic gradient descent at a constant rate moves about; its snapshots make the
    normal distribution of Maddox et al. (2019), which Shwartz-Ziv et al. (2022) take as a prior.
    """
    images, *_ = few_shot_digits.problem(redraw)
    y = np.repeat(np.arange(len(images)), images.shape[1])
    key = common.key(SETTINGS["seed"], "source", redraw)
    return np.asarray(_source_path(key, images.reshape(len(y), -1), y))


@jax.jit
def _source_path(key, x, y):
    key_start, key_path = jax.random.split(key)
    path, every = SETTINGS["path"], jnp.ones(len(y))
    data = densities.Observed(x, y, every)
    adam = optax.adamw(0.01, weight_decay=0.01)
    start = few_shot_digits.SOURCE.init(key_start, x)
    trained = training.train(
        lambda p: mean_loss(OF_SOURCE, p, data), start, adam, SETTINGS["pretraining_steps"]
    )[0]
    descent = optax.chain(
        optax.add_decayed_weights(path["weight_decay"]),
        optax.sgd(path["learning_rate"], path["momentum"]),
    )

    def loss(vector, batch):
        return mean_loss(OF_SOURCE, UNRAVEL_SOURCE(vector), jax.tree.map(lambda a: a[batch], data))

    def step(carry, batch):
        vector, state = carry
        updates, state = descent.update(jax.grad(loss)(vector, batch), state, vector)
        return (vector + updates, state), None

    def epoch(carry, key):
        batches = jax.random.permutation(key, len(y)).reshape(-1, path["batch"])
        carry = jax.lax.scan(step, carry, batches)[0]
        return carry, carry[0]

    vector = ravel_pytree(trained)[0]
    keys = jax.random.split(key_path, path["burn_in"] + path["snapshots"])
    return jax.lax.scan(epoch, (vector, descent.init(vector)), keys)[1][path["burn_in"] :]


def mean_hidden(redraw):
    """Return the trained network's hidden weights, mean of snapshots, where learning starts."""
    return source_path(redraw)[:, :HIDDEN].mean(axis=0)


def of_one_network(redraw):
    """Return moments of one network's snapshots, of output weights over base classes, too."""
    path = source_path(redraw)
    return moments(path[:, :HIDDEN], path[:, HIDDEN:].reshape(len(path), FEATURES, -1))


@lru_cache(maxsize=1)
def of_many_tasks(redraw):
    """Return moments over networks of few-shot tasks on base classes, fine-tuned from one start.

    From one start they stay copies of one another unit by unit, so that their mean and covariance
    mean something.
    """
    images, *_ = few_shot_digits.problem(redraw)
    rng, many = few_shot_digits.generator("many", redraw), SETTINGS["many"]
    tasks = []
    for _ in range(many["tasks"]):
        classes = rng.permutation(len(images))[: few_shot_digits.CLASSES]
        tasks.append(
            {
                "observed": few_shot_digits.observed(
                    np.stack([rng.permutation(images[c])[: many["shots"]] for c in classes])
                )
            }
        )
    found = fine_tune(start_of(redraw), few_shot_digits.stacked(tasks), (many["steps"],))
    w = np.asarray(found)[:, 0]
    return moments(w[:, :HIDDEN], w[:, HIDDEN:].reshape(len(w), FEATURES, -1))


def moments(hidden, output):
    """Return half the diagonal and half the low-rank covariance of weights [network, weight].

    The covariance of output weights, [network, feature, class], is of what tells classes apart,
    since what all classes of a network share changes no probability; half of it is the diagonal,
    too.
    """
    mean = hidden.mean(axis=0)
    away = (hidden - mean) / np.sqrt(len(hidden) - 1)
    size = np.sqrt((away**2).sum(axis=0).mean())
    rows = np.moveaxis(output - output.mean(axis=2, keepdims=True), 1, 2).reshape(-1, FEATURES)
    covariance = rows.T @ rows
    covariance = (covariance + np.diag(np.diag(covariance))) / 2
    root = np.linalg.cholesky(covariance * FEATURES / np.trace(covariance))
    sd, factors = np.sqrt((away**2).sum(axis=0) / 2), away / np.sqrt(2)
    return Moments(*(np.float32(a) for a in (mean, sd / size, factors / size, root, size)))


def isotropic(mean):
    """Return moments of independent weights of variance 1."""
    none = np.zeros((1, HIDDEN))
    return Moments(*(np.float32(a) for a in (mean, np.ones(HIDDEN), none, np.eye(FEATURES), 1.0)))


def start_of(redraw):
    """Return the trained hidden weights with output weights of 0, since the classes are new."""
    return np.concatenate([mean_hidden(redraw), np.zeros(SIZE - HIDDEN, np.float32)])


@jax.jit
def features(vector, x):
    """Return what the hidden units give at images x [..., image, pixel]."""
    hidden = UNRAVEL(vector)["params"]["Dense_0"]
    return jnp.tanh(x @ hidden["kernel"] + hidden["bias"])


def fine_tune(vector, seen, steps):
    """Return weights after so many steps of Adam from one start, [task, number, weight]."""
    every = min(steps)  # which divides the others
    return _fine_tune(vector, seen, max(steps), every)[:, np.array(steps) // every - 1]


@partial(jax.jit, static_argnums=(2, 3))
def _fine_tune(vector, seen, num_steps, every):
    def one_task(task):
        def loss(vector):
            return mean_loss(OF_LABELS, UNRAVEL(vector), task)

        adam = optax.adam(0.01)
        return training.train(loss, vector, adam, num_steps, lambda vector: vector, every)[1]

    return jax.lax.map(one_task, seen)


@jax.jit
def probabilities(vectors, x):
    """Class probabilities [..., point, class] of weights [..., weight]."""
    flat = vectors.reshape(-1, SIZE)
    p = jax.lax.map(lambda v: jax.nn.softmax(few_shot_digits.NETWORK.apply(UNRAVEL(v), x)), flat)
    return p.reshape(*vectors.shape[:-1], *p.shape[1:])


def nll(p, y):
    """Return the NLL of class probabilities [point, class]."""
    of_label = np.asarray(p, np.float64)[np.arange(len(y)), y]
    return -float(np.log(np.clip(of_label, scoring.LEAST, 1.0)).mean())


def fine_tuning(redraw):
    """Fine-tune the trained network, by as many steps as are best on the tuning tasks."""
    _, tuning, tasks = few_shot_digits.problem(redraw)

    def predicted(of_kind, steps):
        found = np.asarray(fine_tune(start_of(redraw), few_shot_digits.stacked(of_kind), steps))
        pairs = zip(found, of_kind, strict=True)
        return [np.asarray(probabilities(w, task["x"])) for w, task in pairs]

    steps = SETTINGS["steps"]
    losses = [
        [nll(p, task["y"]) for p in of_task]
        for of_task, task in zip(predicted(tuning, steps), tuning, strict=True)
    ]
    best = int(np.mean(losses, axis=0).argmin())
    p = [of_task[best] for of_task in predicted(tasks, steps)]
    return point(p, steps[best], np.mean(losses, axis=0))


def ridge(redraw, arm):
    """Predict from pixels or features linearly, by the penalty that is best on tuning tasks."""
    _, tuning, tasks = few_shot_digits.problem(redraw)
    start = start_of(redraw)

    def seen_as(x):
        return np.asarray(features(start, x)) if arm.endswith("features") else np.asarray(x)

    def predict(task, inverse_penalty):
        x, y, weight, _ = task["observed"]
        seen = np.asarray(weight) > 0
        model = LogisticRegression(C=inverse_penalty, max_iter=5000)
        return model.fit(seen_as(x)[seen], np.asarray(y)[seen]).predict_proba(seen_as(task["x"]))

    penalties = SETTINGS["inverse_penalties"]
    losses = [np.mean([nll(predict(task, c), task["y"]) for task in tuning]) for c in penalties]
    best = penalties[int(np.argmin(losses))]
    return point([predict(task, best) for task in tasks], best, losses)


def point(p, chosen, losses):
    """Return what a unit keeps of an arm that is one prediction a task."""
    return {
        "p": {str(i): of_task for i, of_task in enumerate(p)},
        "chosen": np.array([chosen]),
        "nll": np.array(losses),
    }
