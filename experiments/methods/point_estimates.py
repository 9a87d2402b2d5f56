"""Point estimates that learn from training tasks: fine-tuning, and first-order MAML. Both from
several starts.
"""

from helpers import densities, training
from helpers.common import take

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.methods.learnt_group import NETWORK
from experiments.problems.new_tasks import NUM_LABELS

STEPS = 200  # of fine-tuning, at most
RATES = (0.1, 0.3, 1.0)  # of MAML's inner steps, tried in training
INNER = {"labels": 10, "steps": 5}
OUTER = {"rate": 3e-3, "steps": 3000}
SPARE = 14  # training tasks from the 15th on choose MAML's rate


def mean_loss(params, x, y, weight):
    """Mean negative log likelihood of labels of weight 1."""
    each = densities.bernoulli_log_likelihood(NETWORK.apply(params, x), y)
    return -(weight * each).sum() / jnp.maximum(weight.sum(), 1)


def first(size, y):
    """Return weights of labels: 1 for the first of each task, 0 for the others."""
    return jnp.broadcast_to((jnp.arange(NUM_LABELS) < size).astype(jnp.float32), y.shape)


@partial(jax.jit, static_argnums=(4, 6))
def tuned(params, x, y, weight, optimizer, rate, num_steps):
    """Every task's parameters after each step of training on its seen labels, [step, task]."""

    def one_task(x, y, weight):
        loss = partial(mean_loss, x=x, y=y, weight=weight)
        adam = optimizer(rate)
        return training.train(loss, params, adam, num_steps, keep=lambda params: params)[1]

    return jax.tree.map(lambda a: jnp.moveaxis(a, 0, 1), jax.vmap(one_task)(x, y, weight))


def choose_steps(params, old, size, optimizer, rate, num_steps):
    """Return how many steps do best on the training tasks' other labels, and the loss there."""
    seen = first(size, old.y_train)
    path = tuned(params, old.x_train, old.y_train, seen, optimizer, rate, num_steps)
    losses = _losses(path, old.x_train, old.y_train, 1 - seen)
    return int(losses.argmin()) + 1, float(losses.min())


@jax.jit
def _losses(path, x, y, weight):
    return jax.vmap(lambda params: jax.vmap(mean_loss)(params, x, y, weight).mean())(path)


def transferred(params, old, new, sizes, optimizer, rate):
    """Fine-tune one start on each new task's first labels: p [size, task, point], steps."""
    p, steps = [], []
    for size in sizes:
        # All labels leave none to choose by: the choice at half as many serves.
        half = min(size, NUM_LABELS // 2)
        steps.append(choose_steps(params, old, half, optimizer, rate, STEPS)[0] if size else 0)
        at = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(new.y_train), *a.shape)), params)
        if size:
            seen = first(size, new.y_train)
            way = tuned(params, new.x_train, new.y_train, seen, optimizer, rate, STEPS)
            at = take(way, steps[-1] - 1)
        p.append(jax.nn.sigmoid(jax.vmap(NETWORK.apply)(at, new.x_test)))
    return np.array(p), steps


def fine_tuning(starts, old, new, sizes):
    """Fine-tune several starts by Adam: p [size, start, task, point], steps [start, size]."""
    found = [transferred(start, old, new, sizes, optax.adam, 0.03) for start in starts]
    p, steps = zip(*found, strict=True)
    return {"p": np.stack(p, axis=1), "steps": np.array(steps)}


@jax.jit
def meta_train(key, x, y, rate):
    """Train a start by first-order MAML (Finn, Abbeel and Levine 2017), Adam outside."""
    key_init, key_steps = jax.random.split(key)
    outer = optax.adam(OUTER["rate"])

    def of_task(params, x, y, key):
        support = jax.random.permutation(key, NUM_LABELS) < INNER["labels"]
        loss = partial(mean_loss, x=x, y=y, weight=support.astype(jnp.float32))
        adapted = training.train(loss, params, optax.sgd(rate), INNER["steps"])[0]
        return jax.grad(mean_loss)(adapted, x, y, 1 - support.astype(jnp.float32))

    def step(carry, key):
        params, state = carry
        slopes = jax.vmap(of_task, (None, 0, 0, 0))(params, x, y, jax.random.split(key, len(x)))
        updates, state = outer.update(jax.tree.map(lambda a: a.mean(axis=0), slopes), state)
        return (optax.apply_updates(params, updates), state), None

    params = NETWORK.init(key_init, x[0])
    begin, keys = (params, outer.init(params)), jax.random.split(key_steps, OUTER["steps"])
    return jax.lax.scan(step, begin, keys)[0][0]


def maml(keys, old, new, sizes):
    """Train a start from each key, its rate chosen on spare training tasks, and fine-tune it."""
    p, steps, rates = [], [], []
    for key in keys:
        losses = {}
        for rate in RATES:
            params = meta_train(key, old.x_train[:SPARE], old.y_train[:SPARE], rate)
            spare = take(old, np.s_[SPARE:])
            losses[rate] = choose_steps(params, spare, INNER["labels"], optax.sgd, rate, 50)[1]
        rates.append(min(losses, key=losses.get))
        params = meta_train(key, old.x_train, old.y_train, rates[-1])
        found = transferred(params, old, new, sizes, optax.sgd, rates[-1])
        p.append(found[0])
        steps.append(found[1])
    return {"p": np.stack(p, axis=1), "steps": np.array(steps), "rate": np.array(rates)}
