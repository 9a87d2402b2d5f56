"""Log densities: priors by TFP, networks by Flax.

A log density is a function ``f(position, data)`` of one position (a pytree) and of what is
observed; ``mcmc.sample`` runs it on data that all chains share, or on one task after the other.
Positive numbers are sampled as their logarithm, with the Jacobian of that transform in the density.

    observed = densities.observe(x, y, prior_scales=[0.5, 1.0, 6.0])
    densities.flat_log_density(networks.MLP())(params, observed)
"""

from helpers import checks, networks
from helpers.common import float_shapes

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from tensorflow_probability.substrates.jax import bijectors as tfb
from tensorflow_probability.substrates.jax import distributions as tfd

POSITIVE = tfb.Exp()


@jax.tree_util.register_static
@dataclass(frozen=True)
class Classes:
    """How many classes labels have: part of a tree's structure, so that programs know it."""

    count: int


class Observed(NamedTuple):
    """Points with labels or measurements; with tasks, a leading axis [task] on everything."""

    x: Float[Array, "*task point feature"]  # features of the points
    y: Int[Array, "*task point"] | Float[Array, "*task point"]  # class by index, or measurement
    # power of the likelihood; 1: seen; 0: held out, or padding; between: tempered
    weight: Float[Array, "*task point"]
    # what the prior's draws of each layer are multiplied by
    prior_scales: Float[Array, "*task layer"] | None = None
    classes: Classes | None = None  # of labels, None where it is not known


def observe(
    x: Array,
    y: Array,
    prior_scales: Array | None = None,
    *,
    weight: Array | float = 1.0,
    num_classes: int | None = 2,
) -> Observed:
    """Check points and put them together with their weights and, where the prior is fixed, its
    scales.

    Args:
        x: points, [point, feature]; with tasks, [task, point, feature].
        y: labels or measurements, [point] or [task, point].
        prior_scales: what the prior's draws of each layer are multiplied by. A row [layer] serves
            all tasks. Rows [task, layer] with x [point, feature] repeat the points for each row, so
            that several priors are tasks of one program. None where the prior is learnt.
        weight: power of each point's likelihood, of the shape of y; one number serves all.
        num_classes: labels are 0, ..., ``num_classes - 1``; None: y are measurements.

    ValueError: no tasks or points, shapes that do not fit, values that are not finite, labels
        outside the classes, scales that are not positive, weights outside [0, 1].
    """
    x, y, weight = (checks.cast(given) for given in (x, y, weight))
    if x.ndim not in (2, 3) or x.shape[:-1] != y.shape or 0 in x.shape:
        raise ValueError(
            f"x, y: given shapes {x.shape} and {y.shape}, "
            "expected [(task,) point, feature] and [(task,) point], none 0"
        )
    checks.finite(x=x)
    if num_classes is None:
        checks.finite(y=y)
    else:
        checks.labels(y, num_classes)
    checks.array("weight", weight, y.shape if weight.shape else (), 0, 1)
    parts = [(x, 2, np.float32), (y, 1, np.float32 if num_classes is None else np.int32)]
    parts.append((np.broadcast_to(weight, y.shape), 1, np.float32))
    tasks = x.shape[:-2]
    if prior_scales is not None:
        scales = checks.cast(prior_scales)
        whole = scales.ndim in (1, 2) and scales.size and np.isfinite(scales).all()
        if not whole or not (scales > 0).all():
            raise ValueError(
                f"prior_scales: given {scales.tolist()}, expected one positive number a layer"
            )
        if x.ndim == 3 and scales.ndim == 2 and len(x) != len(scales):
            raise ValueError(
                f"prior_scales: given {len(scales)} rows, "
                f"expected one for each of the {len(x)} tasks"
            )
        tasks = tasks or scales.shape[:-1]
        parts.append((scales, 1, np.float32))
    whole = [np.broadcast_to(a, (*tasks, *a.shape[a.ndim - n :])) for a, n, _ in parts]
    found = Observed(*map(jnp.asarray, whole, [kind for _, _, kind in parts]))
    return found if num_classes is None else found._replace(classes=Classes(num_classes))


def bernoulli_log_likelihood(
    logits: Float[Array, "*point"], y: Int[Array, "*point"]
) -> Float[Array, "*point"]:
    """Return the log likelihood, in nats, of each label given its logit.

    ValueError: shapes that differ.
    """
    _check_logits(logits.shape, y)
    return y.astype(logits.dtype) * logits - jax.nn.softplus(logits)


def categorical_log_likelihood(
    logits: Float[Array, "*point class"], y: Int[Array, "*point"]
) -> Float[Array, "*point"]:
    """Return the log likelihood, in nats, of each label given the logits of its classes.

    ValueError: shapes that do not fit.
    """
    _check_logits(logits.shape[:-1], y)
    # TFP's categorical broadcasts against the strict rules of the tests
    log_p = jax.nn.log_softmax(logits, axis=-1)
    return jnp.take_along_axis(log_p, y[..., None], axis=-1)[..., 0]


def _check_logits(points, y):
    if points != np.shape(y):
        raise ValueError(f"logits: given those of points {points}, expected one for y {y.shape}")


def label_log_likelihood(network: nn.Module) -> Callable[[dict, Observed], Float[Array, "*point"]]:
    """Return ``f(params, observed)``, the log likelihood of each label times its weight.

    A network of one output gives logits of class 1, one of several outputs those of as many
    classes.

    ValueError: in ``f``, measurements in place of labels, or labels of more or fewer classes.
    """
    of_labels = bernoulli_log_likelihood if network.num_outputs == 1 else categorical_log_likelihood

    def log_likelihood(params, observed):
        expected = max(2, network.num_outputs)
        if not jnp.issubdtype(observed.y.dtype, jnp.integer):
            raise ValueError(f"observed: given y of {observed.y.dtype}, expected labels, integers")
        if observed.classes is not None and observed.classes.count != expected:
            raise ValueError(
                f"observed: given labels of {observed.classes.count} classes, expected those of "
                f"{expected}, since the network has num_outputs={network.num_outputs}"
            )
        return observed.weight * of_labels(network.apply(params, observed.x), observed.y)

    return log_likelihood


def log_prior(params: dict, scales: Float[Array, " layer"], prior: Any = None) -> Float[Array, ""]:
    """Return the log density of weights and biases that are independent draws of a prior times
    their layer's scale.

    Args:
        params: of an ``MLP``, ``{"params": {"Dense_0": {"kernel": ...}, ...}}``.
        scales: positive, in the order of the layers.
        prior: a distribution of one number, with ``log_prob`` (TFP's or NumPyro's); or one a layer,
            ``{"Dense_0": ...}``; N(0, 1) by default.

    ValueError: another number of scales than of layers.
    """
    layers = params["params"]
    if jnp.shape(scales) != (len(layers),):
        raise ValueError(
            f"scales: given shape {jnp.shape(scales)}, "
            f"expected one for each of the {len(layers)} layers"
        )
    terms = []
    for i in range(len(layers)):
        of_layer = prior[f"Dense_{i}"] if isinstance(prior, dict) else prior
        for leaf in jax.tree.leaves(layers[f"Dense_{i}"]):
            if of_layer is None:
                terms.append(tfd.Normal(0.0, scales[i]).log_prob(leaf).sum())
            else:
                terms.append(
                    of_layer.log_prob(leaf / scales[i]).sum() - leaf.size * jnp.log(scales[i])
                )
    return jnp.sum(jnp.stack(terms))


def flat_log_density(network: nn.Module) -> Callable[[dict, Observed], Float[Array, ""]]:
    """Return ``f(params, observed)``, the log posterior, up to a constant, of one network on one
    task; several outputs are as many classes.

    Each layer has the prior N(0, its scale squared), scales from ``observed.prior_scales``.
    """
    of_labels = label_log_likelihood(network)
    return lambda params, observed: (
        log_prior(params, observed.prior_scales) + of_labels(params, observed).sum()
    )


def informed_log_density(
    network: nn.Module, prior: Any, whiten: tfb.Bijector, num_features: int
) -> Callable[[Float[Array, " weight"], Observed], Float[Array, ""]]:
    """Return ``f(position, observed)``, the log posterior, up to a constant, of one network on one
    task under any prior of all its weights.

    Args:
        network: the weights are its parameters as one vector, in the order of ``ravel_pytree``.
        prior: distribution of that vector, with ``log_prob`` and ``event_shape``, TFP's or
            NumPyro's.
        whiten: gives the weights of a position, ``whiten.forward(position)``, so that a prior of
            strong correlations and unequal scales is near N(0, 1) in positions. Its Jacobian is in
            the density.
        num_features: how many numbers describe a point.

    ValueError: a prior of another number of weights than the network has.
    """
    unravel, size = networks.weights_of(network, num_features)
    if tuple(prior.event_shape) != (size,):
        raise ValueError(
            f"prior: given one of event shape {tuple(prior.event_shape)}, expected {(size,)}"
        )
    of_labels = label_log_likelihood(network)

    def log_density(position, observed):
        vector = whiten.forward(position)
        of_prior = prior.log_prob(vector) + whiten.forward_log_det_jacobian(position, 1)
        return of_prior + of_labels(unravel(vector), observed).sum()

    return log_density


def regression_log_prior(
    prior: Any, noise_scale: float = 0.5
) -> Callable[[dict, Observed], Float[Array, ""]]:
    """Return ``f(position, observed)``, the normalized log prior of the weights and of log noise.

    Arguments and position are those of ``regression_log_density``.

    ValueError: as ``regression_log_density``.
    """
    for part in prior.values() if isinstance(prior, dict) else [prior]:
        at = np.asarray(part.log_prob(jnp.array(0.5)))
        if at.shape or not np.isfinite(at):
            raise ValueError(f"prior: given log density {at} at 0.5, expected a finite number")
    checks.number(noise_scale=noise_scale)

    def density(position, observed):
        log_noise = position["log_noise"]
        of_noise = tfd.HalfCauchy(0.0, noise_scale).log_prob(POSITIVE.forward(log_noise))
        of_noise += POSITIVE.forward_log_det_jacobian(log_noise)
        return log_prior(position["params"], observed.prior_scales, prior) + of_noise

    return density


def regression_log_likelihood(
    network: nn.Module,
) -> Callable[[dict, Observed], Float[Array, " point"]]:
    """Return ``f(position, observed)``, the log likelihood of each measurement times its weight.

    The position is that of ``regression_log_density``.
    """

    def log_likelihood(position, observed):
        mean = network.apply(position["params"], observed.x)
        noise = POSITIVE.forward(position["log_noise"])
        return observed.weight * tfd.Normal(mean, noise).log_prob(observed.y)

    return log_likelihood


def regression_shapes(network: nn.Module, num_features: int = 1) -> dict:
    """Return the shapes of a position of ``regression_log_density``.

    ``num_features`` is how many numbers describe a point.
    """
    params = networks.parameter_shapes(network, num_features)
    return {"params": params, **float_shapes({"log_noise": ()})}


def regression_log_density(
    network: nn.Module, prior: Any, noise_scale: float = 0.5
) -> Callable[[dict, Observed], Float[Array, ""]]:
    """Return ``f(position, observed)``, log prior + log likelihood of a network that predicts the
    mean of normal measurements.

    A position is ``{"params": the network's, "log_noise": []}``. The noise's standard deviation is
    half-Cauchy, of median ``noise_scale``, in the unit of the measurements. The prior is as in
    ``log_prior``. To be called outside of ``jit``.

    ValueError: a prior whose log density is not finite (a negative sd, say), a noise scale that is
    not positive.
    """
    of_prior = regression_log_prior(prior, noise_scale)
    log_likelihood = regression_log_likelihood(network)
    return lambda position, observed: (
        of_prior(position, observed) + log_likelihood(position, observed).sum()
    )
