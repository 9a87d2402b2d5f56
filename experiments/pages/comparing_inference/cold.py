"""The posterior at other temperatures and under other prior scales, on the tasks of ``worth``, by
its measures.

At temperature T the log density, prior and likelihood, is divided by T: below 1 the posterior is
cold (Wenzel et al. 2020), and T = 1 is Bayes' rule. The prior is normal, with one standard
deviation for all weights or one for each layer. All cells are asked of the same tasks.
"""

from helpers import common, densities, mcmc

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from experiments.methods import network_fits, runs
from experiments.pages.comparing_inference import uses
from experiments.problems import moons_redrawn, six_tasks

CHOSEN = [0.125, 2.0, 24.0]  # by folds, on the eighteen tasks of `flat-bnn`, none of which is here
# Standard deviations of each layer's weights.
PRIORS = {"0.5": [0.5] * 3, "1": [1.0] * 3, "2": [2.0] * 3, "3": [3.0] * 3, "chosen": CHOSEN}
SETTINGS = {
    "temperatures": [0.1, 0.2, 0.5, 1.0, 2.0],
    "priors": PRIORS,
    "num_tasks": uses.NUM_TASKS,
}
RUN = {"num_warmup": 300, "num_samples": 1500}
SMALL = {"temperature": 2.0, "prior": "0.5"}


def units() -> dict[str, dict]:
    """Each temperature under each prior."""
    return {
        f"T {temperature:g}, sd {prior}": {"temperature": temperature, "prior": prior}
        for temperature in SETTINGS["temperatures"]
        for prior in SETTINGS["priors"]
    }


def tempered(position, data):
    """Log density of a task's network at a temperature."""
    observed, temperature = data
    return moons_redrawn.FLAT(position, observed) / temperature


def unit(temperature: float, prior: str) -> dict:
    """Return weights [task, chain, draw, 40] of all tasks, and what chains say."""
    tasks = uses.problem().tasks
    observed = densities.observe(tasks.x_train, tasks.y_train, PRIORS[prior])
    key = common.key(uses.SEED, "cold", f"{temperature:g}", prior)
    posterior = run(key, observed, temperature, **RUN)
    return {
        "vectors": np.asarray(six_tasks.vector_of(posterior.draws)),
        **runs.kept_run(posterior),
    }


def run(
    key: Key[Array, ""], observed: densities.Observed, temperature: float, **sizes: int
) -> mcmc.Posterior:
    """Run the book's sampler on tasks, four chains each from N(0, 1), at a temperature."""
    at = observed, jnp.full(len(observed.y), temperature)
    return network_fits.fit_flat(key, at, log_density=tempered, **sizes)


def score(drawn: dict, temperature: float, prior: str) -> dict:
    """Return measures by task, and whether chains have mixed."""
    found = uses.problem()
    mean, joint, some = [], [], []
    # [chain, draw, 40], [near or far, point, 2]
    for vectors, x in zip(drawn["vectors"], found.x, strict=True):
        p = np.asarray(
            six_tasks.probabilities(vectors.reshape(-1, six_tasks.SIZE), x.reshape(-1, 2))
        )
        each = [uses.of_draws(part) for part in np.split(p, 2, axis=1)]
        mean.append([one["mean"] for one in each])
        joint.append([one["joint"] for one in each])
        some.append(p[:, ::80].reshape(*vectors.shape[:2], -1))
    check = runs.diagnosis(runs.run_from(drawn), np.stack(some))
    return {
        "check": check,
        **uses.as_lists(uses.measured(np.array(mean), np.array(joint), found.q)),
    }


rows = uses.rows_of
