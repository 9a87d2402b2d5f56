"""Stochastic variational inference: NumPyro's guides and SVI, as pure functions.

A guide is a function that makes NumPyro's guide of a model, such as ``AutoNormal`` or
``partial(AutoNormal, init_scale=1e-3)``. It is called anew inside every program, so that ``run``
and ``draw`` are pure and may be ``vmap``ped over keys, data and parameters.

    fitted = svi.fit(key, model, AutoNormal, (observed,))
    draws = svi.draw(key_draw, model, AutoNormal, fitted.params, (observed,), 1000)
    weights = svi.network_position(draws)
"""

from helpers import chains, checks
from helpers import progress as lines
from helpers.common import mixed_types
from helpers.programs import bounded

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Key
from numpyro import handlers
from numpyro.infer import SVI, TraceMeanField_ELBO

# the Kullback-Leibler divergence in closed form where there is one
ELBO = TraceMeanField_ELBO(num_particles=10)
CLIPPED_ADAM = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(1e-2))


class Fit(NamedTuple):
    """A fitted guide."""

    params: dict  # of the guide, arrays by NumPyro's names
    # estimates of minus the ELBO, nats: each is of the parameters before its step
    losses: Float[Array, " step"]


def run(
    key: Key[Array, ""],
    model: Callable,
    guide: Callable,
    args: tuple,
    *,
    num_steps: int = 10_000,
    loss: Any = ELBO,
    optimizer: optax.GradientTransformation = CLIPPED_ADAM,
) -> Fit:
    """Fit a guide by NumPyro's ``SVI.run``, as a pure function of arrays: to be mapped;
    ``check_losses`` comes after.

    Args:
        model: NumPyro's, called with ``*args``. A ``plate`` with a ``subsample_size`` makes every
            step see a minibatch of its own.
        guide: function of the model, such as ``AutoNormal``.
        args: what the model is given, where data belong: a tuple of pytrees.
        num_steps: of the optimizer.
        loss: minus an estimate of the ELBO. ``TraceMeanField_ELBO`` is for guides without
            correlations, others want ``Trace_ELBO``.
        optimizer: of Optax.

    ValueError: no steps.
    """
    checks.count(num_steps=num_steps)
    with mixed_types():
        found = SVI(model, guide(model), optimizer, loss).run(
            key, num_steps, *args, progress_bar=False
        )
    # A random Flax module leaves a parameter without numbers, the place where its sites go.
    return Fit(
        {name: value for name, value in found.params.items() if jax.tree.leaves(value)},
        found.losses,
    )


@bounded(3)
def _compiled(model, guide, settings, key, args, number):
    settings = {"num_steps": 10_000, "optimizer": CLIPPED_ADAM, **dict(settings)}
    if number is not None:
        reporting = _reporting(number, -(-settings["num_steps"] // 100))
        settings["optimizer"] = optax.chain(settings["optimizer"], reporting)
    return run(key, model, guide, args, **settings)


def _reporting(number, every):
    """Change nothing, and report the steps."""

    def update(updates, count, params=None):
        lines.report(number, count + 1, every)
        return updates, count + 1

    return optax.GradientTransformation(lambda params: jnp.zeros((), int), update)


def fit(
    key: Key[Array, ""],
    model: Callable,
    guide: Callable,
    args: tuple,
    *,
    progress: bool | None = None,
    **settings: Any,
) -> Fit:
    """Do as ``run`` does, with checks, in one program: a second call with the same functions
    compiles nothing again.

    Args:
        model, guide, args: as of ``run``.
        progress: whether a line says how far it is; by default in the notebooks that readers run.
            The fit is the same.
        settings: ``num_steps``, ``loss`` and ``optimizer`` of ``run``.

    ValueError: no steps, data that are not finite.
    FloatingPointError: an estimate of the ELBO that is not finite.
    """
    checks.finite(args=args)
    with lines.line(progress) as shown:
        number = lines.number(shown)
        given = model, guide, tuple(sorted(settings.items())), key, args, number
        if shown is None:
            result = _compiled(*given)
        else:  # in a thread beside the one that draws the line
            program = _compiled.lower(*given)
            compiled, num_steps = program.compile(), program.out_info.losses.size
            with chains.threads(1) as pool:
                running = pool.submit(lambda: jax.block_until_ready(compiled(key, args, number)))
                (result,) = lines.follow(shown, "fit", num_steps, [running])
    check_losses(result.losses)
    return result


def check_losses(losses: Float[ArrayLike, "*run step"]) -> None:
    """Check that the ELBO stayed finite, in every run.

    FloatingPointError: it did not; the error says from which step on.
    """
    bad = np.argwhere(~np.isfinite(np.asarray(losses)))
    if len(bad):
        share = f"from step {bad[:, -1].min()} on ({len(bad)} of {np.size(losses)} estimates)"
        raise FloatingPointError(
            f"the ELBO is not finite {share}; a smaller step size or init_scale may help"
        )


def draw(
    key: Key[Array, ""], model: Callable, guide: Callable, params: dict, args: tuple, num_draws: int
) -> dict:
    """Return draws from a fitted guide by the names of the model's sites, leading axis [draw].

    Args:
        model, guide, args: as of ``run``.
        params: those of a ``Fit``.
        num_draws: how many.

    ValueError: no draws.
    """
    checks.count(num_draws=num_draws)
    return _drawn(model, guide, num_draws, key, params, args)


# In one program, as the fit is: NumPyro lays the sites of a guide with correlations end to end, in
# a program by their names, outside of one in the model's order, and params do not say in which.
@bounded(3)
def _drawn(model, guide, num_draws, key, params, args):
    key_set_up, key_draw = jax.random.split(key)
    with mixed_types():
        return made(key_set_up, model, guide, args).sample_posterior(
            key_draw, params, *args, sample_shape=(num_draws,)
        )


def made(key: Key[Array, ""], model: Callable, guide: Callable, args: tuple) -> Any:
    """Return NumPyro's guide of a model, set up for the arguments, within ``common.mixed_types``.

    Args:
        model, guide, args: as of ``run``.
    """
    ready = guide(model)
    with handlers.block(), handlers.seed(rng_seed=key):
        ready(*args)
    return ready


def network_position(draws: dict, prefix: str = "net/") -> dict:
    """Return the sites of a random Flax module as Flax's parameters, ``{"params": {"Dense_0":
    {"kernel": ...}}}``, with the leading axes of the draws.

    The names of the module's sites begin with ``prefix``; others are left out.
    """
    layers = {}
    for name, value in draws.items():
        if name.startswith(prefix):
            layer, leaf = name.removeprefix(prefix).rsplit(".", 1)
            layers.setdefault(layer, {})[leaf] = value
    return {"params": layers}
