"""Rivals of the hierarchical network, on the data sets of ``attribution``.

One network whose inputs are turned by a latent angle per task; a Gaussian process classifier per task; one network
fine-tuned through the tasks in turn, from four starts, where forgetting is measured on the first task.
"""

from helpers import densities, networks

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tensorflow_probability.substrates.jax import distributions as tfd

from experiments import shared
from experiments.what_the_gain_is_made_of import redraws

SETTINGS = {
    "seed": 3003,
    "num_redraws": 20,
    "scales": [0.5, 1.0, 6.0],
    "num_warmup": 300,
    "num_samples": 400,
    "learning_rate": 0.02,
    "steps_per_task": 600,
    "num_starts": 4,  # of fine-tuning
}
SCALES = jnp.array(SETTINGS["scales"])
OF_LABELS = densities.label_log_likelihood(redraws.NETWORK)
OPTIMUM, TUNED, ANGLE, PROCESS = "Bayes optimum", "fine-tuned in turn", "latent angle", "Gaussian process a task"
ARMS = (OPTIMUM, TUNED, ANGLE, PROCESS)
SMALL = {"arm": ANGLE, "redraw": 0, "num_tasks": 6}


def units():
    """An arm on a data set each."""
    return {name: {"arm": arm, "redraw": i, "num_tasks": 18} for arm in ARMS for i, name in enumerate(names_of(arm))}


def names_of(arm):
    """Return the names of an arm's units."""
    return [f"{arm}, {i}" for i in range(SETTINGS["num_redraws"])]


def angles_of(direction):
    """Return the latent angles, [..., task], of pairs [..., task - 1, 2]: the first task's is 0.

    Weights N(0, s^2) look the same from everywhere, so only differences between angles are identified. With one of
    them fixed the predictions are the same, and chains are spared a turn of everything at once.
    """
    found = jnp.arctan2(direction[..., 1], direction[..., 0])
    return jnp.concatenate([jnp.zeros((*found.shape[:-1], 1)), found], axis=-1)


def turned(position, x):
    """Turn the points of every task back by its latent angle, [task, point, 2]."""
    angle = angles_of(position["direction"])[:, None]
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([cos * x[..., 0] + sin * x[..., 1], cos * x[..., 1] - sin * x[..., 0]], axis=-1)


def turned_logits(position, x):
    """One network for all tasks, on turned inputs."""
    return redraws.NETWORK.apply(position["network"], turned(position, x))


def turned_log_density(position, observed):
    """Normal weights, a uniform angle per task: that of a pair on a ring, whose width is of no consequence."""
    log_prior = densities.log_prior(position["network"], SCALES)
    log_prior += tfd.Normal(1.0, 0.2).log_prob(jnp.linalg.norm(position["direction"], axis=-1)).sum()
    return log_prior + OF_LABELS(position["network"], observed._replace(x=turned(position, observed.x))).sum()


def unit(arm, redraw, num_tasks):
    """Fit one rival to one data set."""
    tasks, key = redraws.drawn(redraw, num_tasks=num_tasks), shared.key(SETTINGS["seed"], arm, redraw)
    if arm == OPTIMUM:
        return {"p": redraws.optimum(tasks)}
    if arm == PROCESS:
        return {"p": np.stack([gaussian_process(*(np.asarray(a[i]) for a in tasks[:3])) for i in range(num_tasks)])}
    if arm == TUNED:
        return {"p": fine_tuned(jax.random.split(key, SETTINGS["num_starts"]), *tasks[:3])}
    direction = jax.ShapeDtypeStruct((num_tasks - 1, 2), jnp.float32)
    shapes = {"network": networks.parameter_shapes(redraws.NETWORK, 2), "direction": direction}
    observed = densities.observe(tasks.x_train, tasks.y_train)
    sizes = {name: SETTINGS[name] for name in ("num_warmup", "num_samples")}
    return redraws.kept(redraws.fit_hierarchical(key, turned_log_density, shapes, observed, {}, **sizes))


def gaussian_process(x, y, x_test):
    """Predict by a classifier whose length scale and variance have the largest marginal likelihood (Laplace)."""
    kernel = ConstantKernel(10.0, (1e-1, 1e4)) * RBF(1.0, (1e-1, 1e2))
    return GaussianProcessClassifier(kernel).fit(x, y).predict_proba(x_test)[:, 1]


@jax.jit
def fine_tuned(keys, x, y, x_test):
    """Move the most probable network of task 1 on to task 2, and so on: p [start, stage, task, point]."""
    optimizer = optax.adam(SETTINGS["learning_rate"])

    def stage(weights, task):
        def loss(weights):
            observed = densities.Observed(*task, jnp.ones(task[1].shape), SCALES)
            return -redraws.FLAT(weights, observed) / task[1].size

        weights, _ = shared.train(loss, weights, optimizer, SETTINGS["steps_per_task"])
        return weights, jax.nn.sigmoid(redraws.NETWORK.apply(weights, x_test))

    return jax.lax.map(lambda key: jax.lax.scan(stage, redraws.NETWORK.init(key, x[0]), (x, y))[1], keys)


def score(drawn, arm, redraw, num_tasks):
    """Scores on the test points; what fine-tuning forgets, and how well the angles are found."""
    tasks = redraws.drawn(redraw, num_tasks=num_tasks)
    y = np.asarray(tasks.y_test)
    if arm in (OPTIMUM, PROCESS):
        return redraws.scored_parts(drawn["p"][None], y)
    if arm == TUNED:
        right = 100 * ((drawn["p"] > 0.5) == (y == 1)).mean(axis=-1)  # [start, stage, task]
        seen = {"first_task": right[:, :, 0], "current_task": np.diagonal(right, axis1=1, axis2=2)}
        return redraws.scored_starts(drawn["p"][:, -1], y) | {"more": over_starts(seen)}
    p = np.asarray(redraws.probabilities(turned_logits, drawn["draws"], tasks.x_test))
    more = angle_error(drawn["draws"]["direction"], np.asarray(tasks.angles))
    return redraws.scored(p, y) | {"check": redraws.checked(drawn, p), "more": more}


def over_starts(accuracy):
    """Return mean accuracies over starts, by stage, and their standard errors."""
    means = {f"{name}_accuracy": values.mean(axis=0).tolist() for name, values in accuracy.items()}
    count = SETTINGS["num_starts"]
    errors = {name: values.std(axis=0, ddof=1) / np.sqrt(count) for name, values in accuracy.items()}
    return means | {f"{name}_accuracy_error": values.tolist() for name, values in errors.items()}


def angle_error(direction, angles):
    """Return the root mean square error of chains' mean angles, in degrees; the mean error is the network's own."""
    turn = np.exp(1j * (np.asarray(angles_of(direction)) - angles))
    own = turn.mean(axis=-1, keepdims=True)
    squares = np.angle((turn * np.abs(own) / own).mean(axis=1)) ** 2
    of_chains = np.degrees(np.sqrt(squares.mean(axis=-1)))
    spread = of_chains.std(ddof=1) / np.sqrt(len(of_chains))
    whole = float(np.degrees(np.sqrt(squares.mean())))
    return {"angle_error_degrees": whole, "angle_error_degrees_error": float(spread)}


def rows(scored):
    """A row for each rival, with entries over data sets."""
    return [redraws.row(arm, [scored[name] for name in names_of(arm)]) for arm in ARMS]
