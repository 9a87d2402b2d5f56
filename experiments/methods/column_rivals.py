"""Networks of columns by other means than chains: the best fit, an ensemble, Laplace's method, a
mean field; all of one split.

Scales of the two layers, where training stops and the noise are chosen by five folds of the rows
that train, for Laplace's method by its evidence; the mean field learns them.
"""

from helpers import common, networks, svi, training

from functools import cache, partial
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoNormal

from experiments.methods import column_networks, column_scores
from experiments.methods.column_scores import Predicted
from experiments.problems import usual_tables

SEED, FOLDS, MEMBERS, DRAWS = 3303, 5, 5, 1000
GRID = [(a, b) for a in (1.0, 2.0, 4.0, 8.0) for b in (0.25, 0.5, 1.0, 2.0)]  # scales by layer
STEPS, EVERY, RATE = 3000, 500, 1e-2
NOISES = np.exp(np.linspace(np.log(0.01), np.log(2.0), 54))  # candidates, standardized
ROUNDS = 3  # of Laplace's method: fit, then choose the noise by the evidence
MEAN_FIELD = {"num_steps": 8000, "rate": 1e-2}
HIDDEN = (50,)


class Network(NamedTuple):
    """A network and its numbers as one vector, N(0, 1) a priori."""

    network: nn.Module
    unravel: callable
    size: int


@cache
def network_of(table):
    """Return the network of a table's columns."""
    network = networks.MLP(HIDDEN, nn.tanh, use_bias=True)
    return Network(network, *networks.weights_of(network, usual_tables.read(table).shape[1] - 1))


def outputs(of, vector, scales, x):
    """Return the network's output at rows, [row]."""
    return of.network.apply(column_networks.scaled(of.unravel(vector), scales), x)


def folds(num_rows):
    """Return weights [fold, row]: 0 for the rows of the fold. The order of rows is random."""
    return np.float32([np.arange(num_rows) % FOLDS != k for k in range(FOLDS)])


@partial(jax.jit, static_argnums=0)
def paths(table, starts, scales, weight, rows, noise=None):
    """Train from starts [fit, number], each with its scales and the weights of its rows.

    Return the vectors after every `EVERY` steps, [fit, stop, number]. The noise is trained too,
    unless it is given, [fit].
    """
    of, (x, y) = network_of(table), rows

    def loss(position, scales, weight, noise):
        vector, log_noise = position
        log_noise = jnp.log(noise) if noise is not None else log_noise
        z = (y - outputs(of, vector, scales, x)) * jnp.exp(-log_noise)
        prior = 0.5 * (vector**2).sum() - column_networks.half_normal(log_noise, 1.0)
        return (weight * (0.5 * z**2 + log_noise)).sum() + prior

    def fit(start, scales, weight, noise):
        return training.train(
            lambda position: loss(position, scales, weight, noise),
            (start, jnp.float32(-1.0)),
            training.decaying_adam(RATE, STEPS),
            STEPS,
            keep=lambda position: position[0],
            every=EVERY,
        )[1]

    return jax.vmap(fit)(starts, scales, weight, noise)


@partial(jax.jit, static_argnums=0)
def at_rows(table, vectors, scales, x):
    """Return outputs [fit, stop, row] of what `paths` returned."""
    of = network_of(table)
    each = jax.vmap(outputs, (None, 0, None, None))
    return jax.vmap(lambda vector, scale: each(of, vector, scale, x))(vectors, scales)


def chosen(key, table, rows):
    """Return the scales and the stop whose left-out rows are nearest, by five folds."""
    weight, num = folds(len(rows.y_train)), len(GRID)
    starts = jax.random.normal(key, (FOLDS, network_of(table).size))
    given = np.float32(rows.x_train), np.float32(rows.y_train)
    scales = np.repeat(np.float32(GRID), FOLDS, axis=0)
    found = paths(table, jnp.tile(starts, (num, 1)), scales, np.tile(weight, (num, 1)), given)
    out = np.asarray(at_rows(table, found, scales, given[0])).reshape(
        num, FOLDS, -1, weight.shape[1]
    )
    squares = (out - rows.y_train) ** 2 * (1 - weight)[:, None]
    by_setting = squares.sum(axis=(1, 3)) / weight.shape[1]
    best, stop = np.unravel_index(np.argmin(by_setting), by_setting.shape)
    return {"scales": np.float32(GRID[best]), "stop": int(stop)}


def ensemble(key, table, rows, setting, members):
    """Train networks from starts of their own; their noise is what left-out rows like best."""
    weight, size = folds(len(rows.y_train)), network_of(table).size
    weight = np.concatenate([weight, np.ones_like(weight[:1])])
    starts = jax.random.normal(key, ((FOLDS + 1) * members, size))
    given = np.float32(rows.x_train), np.float32(rows.y_train)
    scales = np.tile(setting["scales"], (len(starts), 1))
    found = paths(table, starts, scales, np.repeat(weight, members, axis=0), given)
    found = found[:, setting["stop"]][:, None]
    left = np.asarray(at_rows(table, found, scales, given[0]))
    left = left.reshape(FOLDS + 1, members, -1)[:FOLDS]
    out = (weight[:FOLDS] == 0)[:, None]
    mean = np.where(out, left, 0).sum(axis=0)  # of each row, by the nets that have not seen it
    noise = best_noise(mean, rows.y_train)
    said = np.asarray(at_rows(table, found, scales, np.float32(rows.x_test)))
    said = said.reshape(FOLDS + 1, members, -1)[FOLDS]
    return predicted(said[:, None], noise), noise


def best_noise(mean, y):
    """Return the noise, one number, under which a mixture [member, row] says most of y."""
    values = [
        column_scores.averaged(
            column_scores.log_densities(predicted(mean[:, None], noise), y)
        ).mean()
        for noise in NOISES
    ]
    return float(NOISES[np.argmax(values)])


def predicted(mean, noise):
    """Return normals of one noise, mean [chain, draw, row]."""
    return Predicted(mean, np.broadcast_to(np.log(noise), mean.shape))


def repeated(mean, sd):
    """Return one normal a row as draws that are all the same, [1, draw, row]; ``sd`` is of a row
    or of all.
    """
    shape = (1, DRAWS, len(mean))
    return Predicted(np.broadcast_to(mean, shape), np.broadcast_to(np.log(sd), shape))


def laplace(key, table, rows):
    """Laplace's method, linear round the best fit, generalised Gauss-Newton, all weights; scales
    and noise by its evidence (Immer et al. 2021).
    """
    of, num = network_of(table), len(GRID)
    given = np.float32(rows.x_train), np.float32(rows.y_train)
    scales, noise = np.float32(GRID), np.full(num, 0.3, np.float32)
    vectors = jax.random.normal(key, (num, of.size))
    slopes = jax.jit(jax.jacrev(lambda vector, scale, x: outputs(of, vector, scale, x)))
    for _ in range(ROUNDS):
        vectors = paths(
            table, vectors, scales, np.ones((num, len(given[1])), np.float32), given, noise
        )
        vectors = vectors[:, -1]
        found = [evidence(of, slopes, *one, given) for one in zip(vectors, scales, strict=True)]
        noise = np.float32([one[1] for one in found])
    best = int(np.argmax([one[0] for one in found]))
    vector, scale, sd = vectors[best], scales[best], float(noise[best])
    jacobian = np.float64(slopes(vector, scale, given[0])) / sd
    at = np.float64(slopes(vector, scale, np.float32(rows.x_test)))
    precision = jacobian.T @ jacobian + np.eye(of.size)
    variance = (at * np.linalg.solve(precision, at.T).T).sum(axis=1)
    mean = np.asarray(outputs(of, vector, scale, np.float32(rows.x_test)))
    return repeated(mean, np.sqrt(variance + sd**2)), {"scales": scale, "noise": sd}


def evidence(of, slopes, vector, scale, given):
    """Return the log evidence at its best noise, and that noise."""
    x, y = given
    squares = np.linalg.eigvalsh(gram(np.float64(slopes(vector, scale, x))))
    error = ((np.float64(outputs(of, vector, scale, x)) - y) ** 2).sum()
    values = [
        -0.5 * error / noise**2
        - len(y) * np.log(noise)
        - 0.5 * np.log1p(np.maximum(squares, 0) / noise**2).sum()
        for noise in NOISES
    ]
    best = int(np.argmax(values))
    return values[best] - 0.5 * float((np.float64(vector) ** 2).sum()), NOISES[best]


def gram(jacobian):
    """Return the smaller of the two products of a matrix with itself: the same eigenvalues but for
    zeros.
    """
    rows, columns = jacobian.shape
    return jacobian @ jacobian.T if rows < columns else jacobian.T @ jacobian


def mean_field_model(of, x, y):
    """State the network with learnt scales and noise in NumPyro."""
    vector = numpyro.sample("vector", dist.Normal(0.0, 1.0).expand([of.size]).to_event(1))
    scales = numpyro.sample(
        "scales", dist.HalfNormal(column_networks.SCALE).expand([len(HIDDEN) + 1]).to_event(1)
    )
    noise = numpyro.sample("noise", dist.HalfNormal(column_networks.NOISE))
    numpyro.sample("y", dist.Normal(outputs(of, vector, scales, x), noise), obs=y)


def mean_field(key, table, rows):
    """Independent normals for all numbers, by stochastic variational inference."""
    key_fit, key_draw = jax.random.split(key)
    of, num_steps = network_of(table), MEAN_FIELD["num_steps"]
    given = jnp.float32(rows.x_train), jnp.float32(rows.y_train)
    model = model_of(table)
    fitted = svi.fit(
        key_fit, model, GUIDE, given, num_steps=num_steps, loss=TraceMeanField_ELBO(),
        optimizer=training.clipped_adam(MEAN_FIELD["rate"], num_steps),
    )  # fmt: skip
    draws = svi.draw(key_draw, model, GUIDE, fitted.params, given, DRAWS)
    said = jax.jit(jax.vmap(lambda v, s: outputs(of, v, s, jnp.float32(rows.x_test))))
    mean = np.asarray(said(draws["vector"], draws["scales"])).reshape(4, DRAWS // 4, -1)
    noise = np.asarray(draws["noise"]).reshape(4, -1, 1)
    return Predicted(mean, np.broadcast_to(np.log(noise), mean.shape)), np.asarray(noise)


@cache
def model_of(table):
    """Return a table's model: the same function for all splits, so that it compiles once."""
    return partial(mean_field_model, network_of(table))


GUIDE = partial(AutoNormal, init_scale=0.01)


def settings(table):
    """Return what a table's result is told to be."""
    grid = {"scales": [list(pair) for pair in GRID], "steps": STEPS, "every": EVERY, "rate": RATE}
    return {
        "seed": SEED, "table": table, "folds": FOLDS, "members": MEMBERS, "grid": grid,
        "noises": [float(NOISES[0]), float(NOISES[-1])], "mean_field": MEAN_FIELD,
    }  # fmt: skip


def units(table):
    """Return every split; ValueError for a name that is no table."""
    usual_tables.read(table)
    splits = range(usual_tables.NUM_SPLITS)
    return {f"split {split}": {"table": table, "split": split} for split in splits}


def unit(table: str, split: int) -> dict:
    """Fit all arms on a split; keep what they say of the rows that test, and what was chosen."""
    rows, key = usual_tables.split(table, split), partial(common.key, SEED)
    setting = chosen(key("folds", table, split), table, rows)
    found = {}
    for arm, members in (("best fit", 1), ("ensemble of 5", MEMBERS)):
        said, noise = ensemble(key(arm, table, split), table, rows, setting, members)
        found[arm] = {**said._asdict(), "noise": noise, "scales": setting["scales"]}
    fit = found["best fit"]
    fit |= repeated(fit["mean"][0, 0], fit["noise"])._asdict()
    said, about = laplace(key("laplace", table, split), table, rows)
    found["Laplace"] = {**said._asdict(), **about}
    said, noise = mean_field(key("mean field", table, split), table, rows)
    found["mean field"] = {**said._asdict(), "noise": float(noise.mean())}
    return found | {"stop": setting["stop"]}


def score(drawn: dict, table: str, split: int) -> dict:
    """Return the scores of each arm, and what was chosen."""
    rows, found = usual_tables.split(table, split), {}
    for arm in ("best fit", "ensemble of 5", "Laplace", "mean field"):
        of = drawn[arm]
        found[arm] = column_scores.scored(
            Predicted(of["mean"], of["log_noise"]), rows.y_test, rows.sd, split
        )
        found[arm]["noise"] = float(rows.sd * of["noise"])
        if "scales" in of:
            found[arm]["scales"] = np.asarray(of["scales"]).tolist()
    return found | {"stop": int(drawn["stop"])}


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row an arm, whose entries are lists over splits."""
    each = list(scored.values())
    stops = {"name": "stops", "steps": [EVERY * (one["stop"] + 1) for one in each]}
    arms = [arm for arm in each[0] if arm != "stop"]
    return [column_scores.row(arm, [one[arm] for one in each]) for arm in arms] + [stops]
