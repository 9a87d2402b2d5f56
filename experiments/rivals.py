"""Rivals of the hierarchical network, on the data sets of ``attribution.py``.

One network whose inputs are turned by a latent angle per task; a Gaussian process classifier
per task; one network fine-tuned through the tasks in turn, where forgetting is measured on the first.
"""

from helpers import data, densities

import fits
import jax
import jax.numpy as jnp
import numpy as np
import optax
import store
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tensorflow_probability.substrates.jax import distributions as tfd

SETTINGS = {
    "seed": 3003,
    "data_seed": 3001,  # of attribution.py
    "num_redraws": 20,
    "num_tasks": 18,
    "num_train": 50,
    "scales": [0.5, 1.0, 6.0],
    "learning_rate": 0.02,
    "steps_per_task": 600,
}
SCALES = jnp.array(SETTINGS["scales"])


def turned(position, x):
    """Turn the points of every task by its latent angle, [task, point, 2]."""
    unit = position["direction"] / jnp.linalg.norm(position["direction"], axis=-1, keepdims=True)
    cos, sin = unit[:, :1], unit[:, 1:]
    return jnp.stack([cos * x[..., 0] + sin * x[..., 1], cos * x[..., 1] - sin * x[..., 0]], axis=-1)


def turned_logits(position, x):
    """One network for all tasks, on turned inputs."""
    return jax.vmap(lambda points: fits.NETWORK.apply(position["network"], points))(turned(position, x))


def turned_log_density(position, labelled):
    """Normal weights, a uniform angle per task (the direction of a normal pair)."""
    log_prior = densities.normal_log_prior(position["network"], SCALES)
    log_prior += tfd.Normal(0.0, 1.0).log_prob(position["direction"]).sum()
    log_likelihood = densities.bernoulli_log_likelihood(turned_logits(position, labelled.x), labelled.y)
    return log_prior + (labelled.weight * log_likelihood).sum()


def latent_angle(key, tasks):
    """Sample network and angles; store the angles' error against the known ones."""
    network = jax.eval_shape(fits.NETWORK.init, key, tasks.x_train[0, 0])
    num_tasks = SETTINGS["num_tasks"]
    shapes = {"network": network, "direction": jax.ShapeDtypeStruct((num_tasks, 2), jnp.float32)}
    labelled = fits.stack_labelled(tasks.x_train, tasks.y_train)
    posterior = fits.fit_hierarchical(key, turned_log_density, shapes, labelled)
    p = fits.hierarchical_means(posterior, tasks.x_test, turned_logits)
    direction = posterior.draws["direction"]
    angle = jnp.arctan2(direction[..., 1], direction[..., 0]) - tasks.angles[:, None, None, :]
    # Only differences between tasks are identified: the mean direction is the network's own.
    turn = jnp.exp(1j * angle)
    turn = turn / (turn.mean(axis=-1, keepdims=True) / jnp.abs(turn.mean(axis=-1, keepdims=True)))
    error = jnp.degrees(jnp.sqrt((jnp.angle(turn.mean(axis=2)) ** 2).mean(axis=(1, 2))))
    return fits.row("latent angle", p, tasks.y_test, angle_error_degrees=error.tolist())


def gaussian_processes(tasks):
    """A classifier a task, length scale and variance by its own marginal likelihood (Laplace)."""
    p = np.zeros(tasks.y_test.shape)
    for i, j in np.ndindex(*p.shape[:2]):
        kernel = ConstantKernel(10.0, (1e-1, 1e4)) * RBF(1.0, (1e-1, 1e2))
        process = GaussianProcessClassifier(kernel).fit(
            np.asarray(tasks.x_train[i, j]), np.asarray(tasks.y_train[i, j])
        )
        p[i, j] = process.predict_proba(np.asarray(tasks.x_test[i, j]))[:, 1]
    return fits.row("Gaussian process a task", p[:, None], tasks.y_test)


def fine_tuning(key, tasks):
    """The most probable network of task 1, moved on to task 2, and so on; scored after every stage."""
    optimizer = optax.adam(SETTINGS["learning_rate"])

    def loss(weights, x, y):
        return -fits.FLAT(weights, densities.Observed(x, y, SCALES)) / y.shape[0]

    def one_redraw(key, x, y, x_test):
        def stage(weights, task):
            def step(carry, _):
                weights, state = carry
                updates, state = optimizer.update(jax.grad(loss)(weights, *task), state)
                return (optax.apply_updates(weights, updates), state), None

            carry = (weights, optimizer.init(weights))
            (weights, _), _ = jax.lax.scan(step, carry, length=SETTINGS["steps_per_task"])
            return weights, jax.vmap(lambda points: jax.nn.sigmoid(fits.NETWORK.apply(weights, points)))(x_test)

        return jax.lax.scan(stage, fits.NETWORK.init(key, x[0]), (x, y))[1]

    keys = jax.random.split(key, SETTINGS["num_redraws"])
    p = jax.jit(jax.vmap(one_redraw))(keys, tasks.x_train, tasks.y_train, tasks.x_test)  # [redraw, stage, task, point]
    right = np.asarray((p > 0.5) == (tasks.y_test[:, None] == 1)).mean(axis=-1)
    first, current = 100 * right[:, :, 0], 100 * np.diagonal(right, axis1=1, axis2=2)
    seen = {"first_task_accuracy": first.tolist(), "current_task_accuracy": current.tolist()}
    final = np.clip(np.asarray(p[:, -1], dtype=np.float64), 1e-7, 1 - 1e-7)
    return fits.row("fine-tuned in turn", final[:, None], tasks.y_test, **seen)


def main():
    key_data = jax.random.split(jax.random.key(SETTINGS["data_seed"]), 15)[0]  # as attribution.py splits it
    tasks = fits.redraws(key_data, SETTINGS["num_redraws"], num_train=SETTINGS["num_train"])
    key_angle, key_tuning = jax.random.split(jax.random.key(SETTINGS["seed"]))
    one_by_one = [jax.tree.map(lambda a, i=i: a[i], tasks) for i in range(SETTINGS["num_redraws"])]
    optimum = np.stack([data.bayes_optimum(one, one.x_test) for one in one_by_one])
    rows = [fits.row("Bayes optimum", optimum[:, None], tasks.y_test)]
    rows.append(fine_tuning(key_tuning, tasks))
    rows.append(latent_angle(key_angle, tasks))
    rows.append(gaussian_processes(tasks))
    store.write(__file__, SETTINGS, rows)


if __name__ == "__main__":
    main()
