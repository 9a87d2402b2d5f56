"""Log densities: priors by TFP, networks by Flax; and the same models in NumPyro.

A log density is a function of one position (a pytree) and one task's data, so that
``mcmc.sample`` can run it over tasks. Positive numbers are sampled as their logarithm,
with the Jacobian of that transform in the density.
"""

from helpers import networks

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int
from numpyro.contrib.module import random_flax_module
from tensorflow_probability.substrates.jax import bijectors as tfb
from tensorflow_probability.substrates.jax import distributions as tfd

POSITIVE = tfb.Exp()


class Observed(NamedTuple):
    """What the flat network's density is conditioned on; with tasks, a leading axis [task]."""

    x: Float[Array, "*task point feature"]
    y: Int[Array, "*task point"]
    prior_scales: Float[Array, "*task layer"]  # prior standard deviation of each layer's weights


def observe(x: Array, y: Array, prior_scales: Array, num_classes: int = 2) -> Observed:
    """Check data and prior scales and put them together; one row of scales serves all tasks.

    Raises:
        ValueError: no tasks or points, shapes that do not fit, values that are not finite,
            labels outside the classes, scales that are not positive.
    """
    x, y, scales = (np.asarray(a) for a in (x, y, prior_scales))
    _check_points(x, y)
    if not np.isin(y, range(num_classes)).all():
        raise ValueError(
            f"y: given labels {np.unique(y).tolist()}, expected {' and '.join(map(str, range(num_classes)))}"
        )
    if scales.ndim != 1 or not scales.size or not (np.isfinite(scales) & (scales > 0)).all():
        raise ValueError(f"prior_scales: given {scales.tolist()}, expected one positive number a layer")
    scales = np.broadcast_to(scales, (*x.shape[:-2], *scales.shape))
    return Observed(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.int32), jnp.asarray(scales, jnp.float32))


def _check_points(x, y):
    if x.ndim not in (2, 3) or x.shape[:-1] != y.shape or 0 in x.shape:
        raise ValueError(
            f"x, y: given shapes {x.shape} and {y.shape}, expected [(task,) point, feature] and [(task,) point], none 0"
        )
    if not np.isfinite(x).all():
        raise ValueError(f"x: given {np.count_nonzero(~np.isfinite(x))} values that are not finite, expected none")


class Measured(NamedTuple):
    """What a regression's density is conditioned on; with tasks, a leading axis [task]."""

    x: Float[Array, "*task point feature"]
    y: Float[Array, "*task point"]
    prior_scales: Float[Array, "*task layer"]  # what the prior's draws of each layer are multiplied by


def measure(x: Array, y: Array, prior_scales: Array) -> Measured:
    """Check data and prior scales and put them together.

    Scales [layer] serve all tasks; scales [task, layer] with x [point, feature] repeat the
    data for each row, so that several priors are tasks of one program.

    Raises:
        ValueError: no tasks or points, shapes that do not fit, values that are not finite, scales
            that are not positive.
    """
    x, y, scales = (np.asarray(a, np.float32) for a in (x, y, prior_scales))
    _check_points(x, y)
    if not np.isfinite(y).all():
        raise ValueError(f"y: given {np.count_nonzero(~np.isfinite(y))} values that are not finite, expected none")
    if scales.ndim not in (1, 2) or not scales.size or not (np.isfinite(scales) & (scales > 0)).all():
        raise ValueError(f"prior_scales: given {scales.tolist()}, expected one positive number a layer")
    if x.ndim == 3 and scales.ndim == 2 and len(x) != len(scales):
        raise ValueError(f"prior_scales: given {len(scales)} rows, expected one for each of the {len(x)} tasks")
    tasks = (x if x.ndim == 3 else scales).shape[: max(x.ndim - 2, scales.ndim - 1)]
    parts = ((x, 2), (y, 1), (scales, 1))
    return Measured(*(jnp.asarray(np.broadcast_to(a, (*tasks, *a.shape[a.ndim - n :]))) for a, n in parts))


def normal_log_prior(params: dict, scales: Float[Array, " layer"]) -> Float[Array, ""]:
    """Return the log density of independent N(0, scale) weights and biases, a scale per layer."""
    layers = params["params"]
    if len(layers) != scales.shape[0]:
        raise ValueError(f"scales: given {scales.shape[0]}, expected one for each of the {len(layers)} layers")
    terms = [
        tfd.Normal(0.0, scales[i]).log_prob(leaf).sum()
        for i in range(len(layers))
        for leaf in jax.tree.leaves(layers[f"Dense_{i}"])
    ]
    return jnp.sum(jnp.stack(terms))


def bernoulli_log_likelihood(logits: Float[Array, "*point"], y: Int[Array, "*point"]) -> Float[Array, "*point"]:
    """Return the log likelihood of each label given its logit."""
    return y.astype(logits.dtype) * logits - jax.nn.softplus(logits)


def categorical_log_likelihood(logits: Float[Array, "*point class"], y: Int[Array, "*point"]) -> Float[Array, "*point"]:
    """Return the log likelihood of each label given the logits of its classes."""
    log_p = jax.nn.log_softmax(logits, axis=-1)  # TFP's categorical broadcasts against the strict rules of the tests
    return jnp.take_along_axis(log_p, y[..., None], axis=-1)[..., 0]


def _log_likelihood_of(network):
    return bernoulli_log_likelihood if network.num_outputs == 1 else categorical_log_likelihood


def flat_log_density(network: nn.Module) -> Callable[[dict, Observed], Float[Array, ""]]:
    """Return the log posterior, up to a constant, of one network on one task; several outputs are as many classes."""
    of_labels = _log_likelihood_of(network)

    def log_density(params, observed):
        log_likelihood = of_labels(network.apply(params, observed.x), observed.y)
        return normal_log_prior(params, observed.prior_scales) + log_likelihood.sum()

    return log_density


def weights_of(network: nn.Module, num_features: int = 2) -> tuple[Callable[[Array], dict], int]:
    """Return the function that makes parameters of one vector, in the order of ``ravel_pytree``, and its length."""
    shapes = networks.parameter_shapes(network, num_features)
    vector, unravel = ravel_pytree(jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes))
    return unravel, vector.size


def informed_log_density(
    network: nn.Module, prior: Any, whiten: tfb.Bijector, num_features: int = 2
) -> Callable[[Float[Array, " weight"], Any], Float[Array, ""]]:
    """Return the log posterior, up to a constant, of one network on one task under any prior of all its weights.

    It is a function of a position and of labelled points ``x`` [point, feature], ``y`` and ``weight`` [point]
    (``hierarchical.labelled``). The position is in the coordinates of ``whiten``, in which a prior of strong
    correlations and unequal scales is near N(0, 1); the Jacobian is in the density.

    Args:
        prior: of the weights as one vector: a distribution with ``log_prob`` and ``event_shape``, TFP's or NumPyro's.
        whiten: ``weights = whiten.forward(position)``.

    Raises:
        ValueError: a prior of another number of weights than the network has.
    """
    unravel, size = weights_of(network, num_features)
    if tuple(prior.event_shape) != (size,):
        raise ValueError(f"prior: given one of event shape {tuple(prior.event_shape)}, expected {(size,)}")
    of_labels = _log_likelihood_of(network)

    def log_density(position, task):
        vector = whiten.forward(position)
        log_likelihood = of_labels(network.apply(unravel(vector), task.x), task.y)
        log_prior = prior.log_prob(vector) + whiten.forward_log_det_jacobian(position, 1)
        return log_prior + (task.weight * log_likelihood).sum()

    return log_density


def _numpyro_network(network, x, scales):
    """A network whose weights and biases are sites, normal with a scale per layer."""
    shapes = networks.parameter_shapes(network, x.shape[-1])["params"]
    prior = {
        f"Dense_{i}.{name}": dist.Normal(0.0, scales[i]) for i in range(len(shapes)) for name in shapes[f"Dense_{i}"]
    }
    return random_flax_module("net", network, prior=prior, input_shape=x.shape)


def flat_numpyro(network: nn.Module, observed: Observed, batch_size: int | None = None) -> None:
    """State the model of ``flat_log_density`` in NumPyro, for one task.

    With a batch size its log density is an unbiased estimate: that of some points, drawn without
    replacement, with their log likelihood multiplied by all points over theirs.
    """
    net = _numpyro_network(network, observed.x, observed.prior_scales)
    of_label = dist.BernoulliLogits if network.num_outputs == 1 else dist.CategoricalLogits
    size = observed.y.shape[0]
    with numpyro.plate("point", size, subsample_size=batch_size) as index:
        x, y = (observed.x, observed.y) if batch_size in (None, size) else (observed.x[index], observed.y[index])
        numpyro.sample("y", of_label(net(x)), obs=y)


def normal_log_likelihood(
    mean: Float[Array, "*point"], y: Float[Array, "*point"], sd: Float[Array, ""]
) -> Float[Array, "*point"]:
    """Return the log likelihood of each measurement given its mean and the noise's standard deviation."""
    return tfd.Normal(mean, sd).log_prob(y)


def scaled_log_prior(params: dict, prior: Any, scales: Float[Array, " layer"]) -> Float[Array, ""]:
    """Return the log density of weights and biases that are independent draws of a prior times their layer's scale.

    Args:
        prior: a distribution of one number, with ``log_prob``; or one a layer, ``{"Dense_0": ...}``.
    """
    layers = params["params"]
    if len(layers) != scales.shape[0]:
        raise ValueError(f"scales: given {scales.shape[0]}, expected one for each of the {len(layers)} layers")
    total = jnp.zeros(())
    for i in range(len(layers)):
        of_layer = prior[f"Dense_{i}"] if isinstance(prior, dict) else prior
        for leaf in jax.tree.leaves(layers[f"Dense_{i}"]):
            total += of_layer.log_prob(leaf / scales[i]).sum() - leaf.size * jnp.log(scales[i])
    return total


def regression_log_prior(prior: Any, noise_scale: float = 0.5) -> Callable[[dict, Measured], Float[Array, ""]]:
    """Return the normalized log prior of the weights and of log noise; see ``regression_log_density``."""
    for part in prior.values() if isinstance(prior, dict) else [prior]:
        at = np.asarray(part.log_prob(jnp.array(0.5)))
        if at.shape or not np.isfinite(at):
            raise ValueError(f"prior: given one with log density {at} at 0.5, expected a finite number")
    if not (np.isfinite(noise_scale) and noise_scale > 0):
        raise ValueError(f"noise_scale: given {noise_scale}, expected a positive number")

    def log_prior(position, data):
        log_noise = position["log_noise"]
        of_noise = tfd.HalfCauchy(0.0, noise_scale).log_prob(POSITIVE.forward(log_noise))
        of_noise += POSITIVE.forward_log_det_jacobian(log_noise)
        return scaled_log_prior(position["params"], prior, data.prior_scales) + of_noise

    return log_prior


def regression_log_likelihood(network: nn.Module) -> Callable[[dict, Measured], Float[Array, " point"]]:
    """Return the log likelihood of each measurement as a function of the position and the data."""

    def log_likelihood(position, data):
        noise = POSITIVE.forward(position["log_noise"])
        return normal_log_likelihood(network.apply(position["params"], data.x), data.y, noise)

    return log_likelihood


def regression_log_density(
    network: nn.Module, prior: Any, noise_scale: float = 0.5
) -> Callable[[dict, Measured], Float[Array, ""]]:
    """Return log prior + log likelihood of a network that predicts the mean of normal measurements.

    A position is ``{"params": the network's, "log_noise": []}``; the noise's standard deviation is
    half-Cauchy, with the Jacobian of its logarithm in the density. To be called outside of ``jit``;
    what it returns may be compiled.

    Args:
        prior: of weights and biases before they are multiplied by the scales in the data; a distribution
            of one number with ``log_prob`` (TFP's or NumPyro's), or one a layer, ``{"Dense_0": ...}``.
        noise_scale: scale of the half-Cauchy prior, the median of the noise.

    Raises:
        ValueError: a prior whose log density is not finite (a negative standard deviation, say), a noise
            scale that is not positive.
    """
    log_prior, log_likelihood = regression_log_prior(prior, noise_scale), regression_log_likelihood(network)
    return lambda position, data: log_prior(position, data) + log_likelihood(position, data).sum()


def regression_numpyro(network: nn.Module, data: Measured, noise_scale: float = 0.5) -> None:
    """State the model of ``regression_log_density`` with a normal prior in NumPyro, for one task.

    Its sites are ``net/Dense_0.kernel`` and so on, and ``noise``, whose unconstrained value is ``log_noise``.
    """
    net = _numpyro_network(network, data.x, data.prior_scales)
    noise = numpyro.sample("noise", dist.HalfCauchy(noise_scale))
    with numpyro.plate("point", data.y.shape[0]):
        numpyro.sample("y", dist.Normal(net(data.x), noise), obs=data.y)


def hierarchical_linear_shapes(num_tasks: int) -> dict:
    """Return the shapes of one position of the hierarchical logistic regression."""
    shapes = {"mean": (3,), "log_sd": (), "offsets": (num_tasks, 3)}
    return {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}


def linear_logits(position: dict, x: Float[Array, "task point 2"]) -> Float[Array, "task point"]:
    """Return the logits of one line per task: weights ``mean + sd * offsets``, biases included."""
    sd = POSITIVE.forward(position["log_sd"])
    weights = position["mean"][None, :] + sd * position["offsets"]
    return jnp.einsum("tpi,ti->tp", x, weights[:, :2]) + weights[:, 2:]


def hierarchical_linear_log_density(position: dict, x: Array, y: Array) -> Float[Array, ""]:
    """Return the log posterior of a hierarchical logistic regression, non-centred.

    ``mean`` [3] ~ N(0, 1), ``offsets`` [task, 3] ~ N(0, 1), ``sd`` ~ N+(0, 1) sampled as ``log_sd`` [].
    """
    log_sd = position["log_sd"]
    log_prior = tfd.Normal(0.0, 1.0).log_prob(position["mean"]).sum()
    log_prior += tfd.Normal(0.0, 1.0).log_prob(position["offsets"]).sum()
    log_prior += tfd.HalfNormal(1.0).log_prob(POSITIVE.forward(log_sd)) + POSITIVE.forward_log_det_jacobian(log_sd)
    return log_prior + bernoulli_log_likelihood(linear_logits(position, x), y).sum()


def hierarchical_linear_numpyro(x: Array, y: Array) -> None:
    """State the model of ``hierarchical_linear_log_density`` in NumPyro."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    sd = numpyro.sample("sd", dist.HalfNormal(1.0))
    with numpyro.plate("task", x.shape[0]):
        offsets = numpyro.sample("offsets", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    position = {"mean": mean, "log_sd": jnp.log(sd), "offsets": offsets}
    numpyro.sample("y", dist.Bernoulli(logits=linear_logits(position, x)).to_event(2), obs=y)
