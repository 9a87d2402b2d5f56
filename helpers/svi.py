"""Stochastic variational inference: NumPyro's guides and ELBO, fitted by one scan.

A guide is a function that makes NumPyro's guide of a model, such as ``AutoNormal`` or
``partial(AutoNormal, init_scale=1e-3)``. It is called anew inside every program, so that ``run``,
``draw`` and ``log_weights`` are pure and may be ``vmap``ped over keys, data and parameters.
"""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from IPython import get_ipython
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key
from numpyro import handlers
from numpyro.infer import SVI, Trace_ELBO, TraceMeanField_ELBO
from numpyro.infer.autoguide import AutoLaplaceApproximation

ELBO = TraceMeanField_ELBO(num_particles=10)  # the Kullback-Leibler divergence in closed form where there is one
CLIPPED_ADAM = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(1e-2))


class Fit(NamedTuple):
    """A fitted guide."""

    params: dict  # of the guide, by NumPyro's names
    losses: Float[Array, " step"]  # estimates of minus the ELBO, nats: each is of the parameters before its step


def fit(
    key: Key[Array, ""],
    model: Callable,
    guide: Callable,
    args: tuple,
    *,
    num_steps: int = 10_000,
    loss: Any = ELBO,
    optimizer: optax.GradientTransformation = CLIPPED_ADAM,
) -> Fit:
    """Fit a guide to the posterior of a NumPyro model by maximising the evidence lower bound.

    A second call with the same functions and shapes compiles nothing again. While a person
    watches, one line shows the progress; it is gone at the end.

    Args:
        model: a NumPyro model, called with ``*args``; data belong in ``args``. A ``plate`` with a
            ``subsample_size`` makes every step see a minibatch of its own.
        guide: makes the guide of the model.
        loss: NumPyro's objective. ``TraceMeanField_ELBO`` is for guides without correlations;
            others want ``Trace_ELBO``.

    Raises:
        ValueError: no steps, data that are not finite.
        FloatingPointError: an estimate of the ELBO that is not finite.
    """
    for leaf in jax.tree.leaves(args):
        if not np.isfinite(leaf).all():
            raise ValueError(f"args: given {np.count_nonzero(~np.isfinite(leaf))} values that are not finite")
    _check_count("num_steps", num_steps)
    watched = _watched()
    result = _jit_run(key, model, guide, args, num_steps, loss, optimizer, watched)
    if watched:
        jax.effects_barrier()
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    check_losses(result.losses)
    return result


def run(
    key: Key[Array, ""],
    model: Callable,
    guide: Callable,
    args: tuple,
    *,
    num_steps: int = 10_000,
    loss: Any = ELBO,
    optimizer: optax.GradientTransformation = CLIPPED_ADAM,
    watched: bool = False,
) -> Fit:
    """Do as ``fit`` does, as a pure function of arrays: to be mapped; ``check_losses`` comes after.

    Raises:
        ValueError: no steps.
    """
    _check_count("num_steps", num_steps)

    def one_step(state, index):
        state, value = svi.update(state, *args)
        if watched:
            every = max(num_steps // 20, 1)
            jax.lax.cond(index % every == 0, partial(jax.debug.callback, _show, num=num_steps), _quiet, index, value)
        return state, value

    with _standard():
        svi = SVI(model, guide(model), optimizer, loss)
        state, losses = jax.lax.scan(one_step, svi.init(key, *args), jnp.arange(num_steps))
        params = svi.get_params(state)
    # A random Flax module leaves a parameter without numbers, the place where its sites go.
    return Fit({name: value for name, value in params.items() if jax.tree.leaves(value)}, losses)


def check_losses(losses: Float[ArrayLike, "*run step"]) -> None:
    """Check that the ELBO stayed finite.

    Raises:
        FloatingPointError: it did not.
    """
    bad = np.argwhere(~np.isfinite(np.asarray(losses)))
    if len(bad):
        raise FloatingPointError(
            f"the ELBO is not finite from step {bad[:, -1].min()} on ({len(bad)} of {np.size(losses)} estimates); "
            "a smaller step size or init_scale may help"
        )


def draw(key: Key[Array, ""], model: Callable, guide: Callable, params: dict, args: tuple, num_draws: int) -> dict:
    """Draw from a fitted guide: every site of the model, leading axis [draw].

    Raises:
        ValueError: no draws.
    """
    _check_count("num_draws", num_draws)
    key_set_up, key_draw = jax.random.split(key)
    with _standard():
        ready = guide(model)
        with handlers.block(), handlers.seed(rng_seed=key_set_up):
            ready(*args)
        return ready.sample_posterior(key_draw, params, *args, sample_shape=(num_draws,))


def log_weights(
    key: Key[Array, ""], model: Callable, guide: Callable, params: dict, args: tuple, num_draws: int
) -> Float[Array, " draw"]:
    """Return log p(y, w) - log q(w) at draws w of a fitted guide: their mean is the ELBO, their tail gives k-hat.

    Raises:
        ValueError: no draws; NumPyro's Laplace guide, which is a point while it is fitted.
    """
    _check_count("num_draws", num_draws)
    key_set_up, key_draw = jax.random.split(key)
    with _standard():
        ready = guide(model)
        if isinstance(ready, AutoLaplaceApproximation):
            raise ValueError("guide: given AutoLaplaceApproximation, whose ELBO is that of a point; expected another")
        with handlers.block(), handlers.seed(rng_seed=key_set_up):
            ready(*args)
        elbo = Trace_ELBO()
        keys = jax.random.split(key_draw, num_draws)
        return -jax.lax.map(lambda k: elbo.loss(k, params, model, ready, *args), keys)


def network_position(draws: dict, prefix: str = "net/") -> dict:
    """Return the sites of a random Flax module as Flax's parameters, ``{"params": {"Dense_0": {"kernel": ...}}}``."""
    layers = {}
    for name, value in draws.items():
        if name.startswith(prefix):
            layer, leaf = name.removeprefix(prefix).rsplit(".", 1)
            layers.setdefault(layer, {})[leaf] = value
    return {"params": layers}


@partial(jax.jit, static_argnums=(1, 2, 4, 5, 6, 7))
def _jit_run(key, model, guide, args, num_steps, loss, optimizer, watched):
    return run(key, model, guide, args, num_steps=num_steps, loss=loss, optimizer=optimizer, watched=watched)


@contextmanager
def _standard():
    """Let NumPyro mix types and ranks."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _watched():
    """Whether a person sees what is printed: at a terminal, or in a notebook that could answer a question."""
    kernel = getattr(get_ipython(), "kernel", None)
    return sys.stderr.isatty() if kernel is None else bool(getattr(kernel, "_allow_stdin", False))


def _show(index, value, num):
    print(f"\rSVI: step {index} of {num}, minus ELBO {value:.1f}\033[K", end="", file=sys.stderr, flush=True)


def _quiet(index, value):
    """Show nothing."""


def _check_count(name, count):
    if count != int(count) or count < 1:
        raise ValueError(f"{name}: given {count}, expected an integer of 1 or more")
