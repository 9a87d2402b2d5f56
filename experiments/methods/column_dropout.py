"""Monte Carlo dropout of a network of columns, as Gal and Ghahramani's public experiments do it
(2016; github.com/yaringal/DropoutUncertaintyExps, experiment.py and net/net.py), all networks of a
grid in one compiled program.

One hidden layer of rectifiers; what goes into either layer is dropped, row by row, in training and
in prediction, and what is kept is divided by the share that is. Adam, batches of 128, squared error
of the standardized outcome plus a decay times the kernels' squares. The rate and the precision tau
of the noise are chosen by the log density of the last fifth of the rows that train; a network of
that choice then learns from all of them. Networks of the grid see the same batches and the same
random numbers behind their masks, from starts of their own.
"""

from helpers import common

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from experiments.problems import usual_tables

HIDDEN, BATCH, ADAM = 50, 128, {"learning_rate": 1e-3, "eps": 1e-7}  # the last two are Keras's
PART = 0.8  # of the rows that train, where they choose
LENGTH_SCALE = 1e-2  # of the published decay
LEVELS = 2**16  # of the random numbers behind a mask: a rate is a multiple of 1 / LEVELS
NUM_DRAWS, NUM_DRAWS_TO_CHOOSE = 2000, 1000  # masks; the published number is 10 000
# free precisions of the standardized outcome: noise from twice its deviation to 1 / 256 of it
FREE_TAUS = 2.0 ** np.arange(-2, 16.25, 0.25)
ARMS = ("MC dropout, published grid", "MC dropout, free precision")


class Grid(NamedTuple):
    """What is chosen from. The published grid is ``rates`` by ``taus``, whose decays follow from
    them; the free one is all rates by the same decays and ``decays``, and any precision.
    """

    rates: tuple[float, ...]  # of dropout
    taus: tuple[float, ...]  # precisions of the noise, in the outcome's unit
    more_rates: tuple[float, ...]
    decays: tuple[float, ...]


class Choice(NamedTuple):
    """What an arm chose: places in the grid, and numbers; ``tau`` is in the outcome's unit."""

    place: tuple[int, int]  # of the rate, of the decay
    rate: float
    decay: float  # of the networks that choose
    tau: float
    log_density: float  # of the rows that choose, in the outcome's unit


def decays_of(
    grid: Grid, rates: Float[np.ndarray, " rate"], num_rows: int
) -> Float[np.ndarray, "rate decay"]:
    """Return the decay of each network: the published ones, then ``grid.decays``."""
    kept = (1 - rates)[:, None]
    published = LENGTH_SCALE**2 * kept / (2 * num_rows * np.array(grid.taus))
    others = np.broadcast_to(np.array(grid.decays), (len(rates), len(grid.decays)))
    return np.concatenate([published, others], axis=1)


def fit(
    key: Key[Array, ""],
    x: Float[Array, "row column"],
    y: Float[Array, " row"],
    rates: Float[Array, " rate"],
    decays: Float[Array, "rate decay"],
    epochs: int,
) -> dict:
    """Train a network of every rate and decay on standardized rows; return their parameters.

    Raises:
        ValueError: rates outside [0, 1), negative decays, no epochs, shapes that do not fit.
    """
    rates, decays, x, y = (np.asarray(part, np.float32) for part in (rates, decays, x, y))
    if x.ndim != 2 or y.shape != x.shape[:1] or decays.shape[:1] != rates.shape or decays.ndim != 2:
        raise ValueError(
            f"x, y, rates, decays: given shapes {x.shape}, {y.shape}, {rates.shape}, "
            f"{decays.shape}, expected [row, column], [row], [rate], [rate, decay]"
        )
    if not ((rates >= 0) & (rates < 1)).all() or not (decays >= 0).all() or epochs < 1:
        raise ValueError(
            f"rates, decays, epochs: given {rates}, {decays}, {epochs}, expected rates of 0 or "
            "more and less than 1, decays of 0 or more, 1 epoch or more"
        )
    return _fit(key, x, y, rates, decays, epochs)


@partial(jax.jit, static_argnames="epochs")
def _fit(key, x, y, rates, decays, epochs):
    """Train as ``fit`` says."""
    (num_rows, _), num_batches = x.shape, -(-len(x) // BATCH)
    key_start, key = jax.random.split(key)
    params, optimizer = starts(key_start, x.shape[1], decays.shape), optax.adam(**ADAM)
    padding = num_batches * BATCH - num_rows
    weights = jnp.pad(jnp.ones(num_rows), (0, padding)).reshape(num_batches, BATCH)

    def loss(params, x, y, weight, bits):
        error = (outputs(params, x, rates, bits) - y[None, None]) ** 2
        squares = (params["kernel"] ** 2).sum((1, 3)) + (params["last_kernel"] ** 2).sum(2)
        return ((weight[None, None] * error).sum(-1) / weight.sum() + decays * squares).sum()

    def step(carry, batch):
        (params, state), (rows, weight, key) = carry, batch
        bits = random_bits(key, BATCH, x.shape[1])
        gradient = jax.grad(loss)(params, x[rows], y[rows], weight, bits)
        with common.mixed_types():
            updates, state = optimizer.update(gradient, state, params)
        return (optax.apply_updates(params, updates), state), None

    def epoch(carry, key):
        key_order, key_masks = jax.random.split(key)
        order = jnp.pad(jax.random.permutation(key_order, num_rows), (0, padding))
        batches = order.reshape(weights.shape), weights, jax.random.split(key_masks, num_batches)
        return jax.lax.scan(step, carry, batches)

    carry = params, optimizer.init(params)
    return jax.lax.scan(epoch, carry, jax.random.split(key, epochs))[0][0]


def starts(key: Key[Array, ""], num_columns: int, shape: tuple[int, int]) -> dict:
    """Draw kernels as Glorot and Bengio (2010) do, uniform, biases of 0; shape [rate, decay]."""
    rate, decay = shape
    key_first, key_last = jax.random.split(key)
    ends = [(6 / (num_columns + HIDDEN)) ** 0.5, (6 / (HIDDEN + 1)) ** 0.5]
    first = jax.random.uniform(key_first, (rate, num_columns, decay, HIDDEN), minval=-1, maxval=1)
    last = jax.random.uniform(key_last, (rate, decay, HIDDEN), minval=-1, maxval=1)
    return {
        "kernel": ends[0] * first,
        "bias": jnp.zeros((rate, decay, HIDDEN)),
        "last_kernel": ends[1] * last,
        "last_bias": jnp.zeros((rate, decay)),
    }


def random_bits(key: Key[Array, ""], num_rows: int, num_columns: int) -> Array:
    """Draw the integers behind masks of inputs and of hidden units, [row, column and unit]."""
    return jax.random.bits(key, (num_rows, num_columns + HIDDEN), jnp.uint16)


def outputs(
    params: dict, x: Float[Array, "row column"], rates: Float[Array, " rate"], bits: Array
) -> Float[Array, "rate decay row"]:
    """Return what networks say of rows under masks: one of a row and rate, of all its decays."""
    num_columns, (rate, decay) = x.shape[1], params["last_bias"].shape
    at_least = jnp.round(rates * LEVELS).astype(bits.dtype)[:, None, None]
    kept = jnp.where(bits[None] < at_least, 0.0, 1 / (1 - rates[:, None, None]))
    kernel = params["kernel"].reshape(rate, num_columns, decay * HIDDEN)
    hidden = jnp.einsum("rbc,rck->rbk", x[None] * kept[:, :, :num_columns], kernel)
    hidden = hidden.reshape(rate, -1, decay, HIDDEN) + params["bias"][:, None]
    hidden = jax.nn.relu(hidden) * kept[:, :, None, num_columns:]
    last = jnp.einsum("rbdh,rdh->rdb", hidden, params["last_kernel"])
    return last + params["last_bias"][..., None]


@partial(jax.jit, static_argnames="num_draws")
def predictions(
    key: Key[Array, ""],
    params: dict,
    x: Float[Array, "row column"],
    rates: Float[Array, " rate"],
    num_draws: int,
) -> Float[Array, "draw rate decay row"]:
    """Return what networks say under masks that are drawn for every row and draw."""

    def draw(key):
        return outputs(params, x, rates, random_bits(key, *x.shape))

    return jax.lax.map(draw, jax.random.split(key, num_draws))


@jax.jit
def log_density(
    means: Float[Array, "draw *net row"], y: Float[Array, " row"], tau: Float[Array, "*net"]
) -> Float[Array, "*net"]:
    """Return the mean over rows of the log density of a mixture over draws, noise of variance
    1 / tau around each.
    """
    distances = (means - y.reshape((1,) * (means.ndim - 1) + (-1,))) ** 2
    values = jax.nn.logsumexp(-0.5 * tau[None, ..., None] * distances, axis=0)
    return values.mean(axis=-1) - np.log(len(means)) + 0.5 * jnp.log(tau / (2 * np.pi))


def choose(
    key: Key[Array, ""], train: Float[np.ndarray, "row all"], grid: Grid, epochs: int
) -> tuple[tuple[Choice, Choice], dict]:
    """Choose by the last fifth of the rows that train, the outcome last, in its unit.

    Returns the published and the free choice, and the scores of the published grid, [rate, tau].
    """
    most = int(PART * len(train))
    rows = usual_tables.standardized(train[:most], train[most:])
    rates = np.array(grid.rates + grid.more_rates)
    decays = decays_of(grid, rates, most)
    key_fit, key_masks = jax.random.split(key)
    params = fit(key_fit, rows.x_train, rows.y_train, rates, decays, epochs)
    x, y = np.float32(rows.x_test), np.float32(rows.y_test)
    means = predictions(key_masks, params, x, np.float32(rates), NUM_DRAWS_TO_CHOOSE)
    taus = np.array(grid.taus) * rows.sd**2
    published = np.s_[: len(grid.rates), : len(grid.taus)]
    ours = means[(slice(None), *published)]
    fixed = np.asarray(log_density(ours, y, np.broadcast_to(np.float32(taus), ours.shape[1:3])))
    free = np.stack(
        [log_density(means, y, np.full(decays.shape, tau, np.float32)) for tau in FREE_TAUS]
    )
    i, j = (int(k) for k in np.unravel_index(fixed.argmax(), fixed.shape))
    t, k, m = (int(k) for k in np.unravel_index(free.argmax(), free.shape))
    log_sd, in_unit = np.log(rows.sd), rows.sd**-2
    first = Choice((i, j), rates[i], decays[i, j], grid.taus[j], fixed[i, j] - log_sd)
    second = Choice((k, m), rates[k], decays[k, m], FREE_TAUS[t] * in_unit, free[t, k, m] - log_sd)
    rmse = rows.sd * np.sqrt(((np.asarray(ours).mean(axis=0) - y) ** 2).mean(axis=-1))
    return (first, second), {"log_density": fixed - log_sd, "rmse": rmse}


def repeated(
    key: Key[Array, ""],
    train: Float[np.ndarray, "row all"],
    test: Float[np.ndarray, "row all"],
    grid: Grid,
    epochs: int,
    num_draws: int = NUM_DRAWS,
) -> tuple[Float[np.ndarray, "draw arm row"], tuple[Choice, Choice], dict]:
    """Choose, learn from all rows that train, predict those that test, standardized by the former;
    return predictions, choices, and the scores of `choose`.
    """
    key_choice, key_fit, key_masks = jax.random.split(key, 3)
    choices, scores = choose(key_choice, train, grid, epochs)
    rows = usual_tables.standardized(train, test)
    rates = np.array([choice.rate for choice in choices])
    at = np.array([choice.place for choice in choices])
    decays = decays_of(grid, rates, len(train))[np.arange(len(at)), at[:, 1]][:, None]
    params = fit(key_fit, rows.x_train, rows.y_train, rates, decays, epochs)
    x, rates = np.float32(rows.x_test), np.float32(rates)
    means = predictions(key_masks, params, x, rates, num_draws)
    return np.asarray(means)[:, :, 0], choices, scores
