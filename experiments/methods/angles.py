"""What a layer's weights tell of the angles by which tasks were turned: for the pages of the gain
and of rotation.
"""

import jax.numpy as jnp
import numpy as np


def layer_draws(draws, layer):
    """Return the weights of a layer that differs between tasks, [..., task, in, out]."""
    sd = jnp.exp(draws["log_sd"][layer])[..., None, None, None]
    own = sd * draws["offset"][layer]["kernel"]
    return np.asarray(draws["mean"][layer]["kernel"][..., None, :, :] + own)


def harmonics(angles, orders=(1, 3)):
    """Return cosines and sines of the angles, [angle, 2 * order]."""
    return np.stack([wave(k * angles) for k in orders for wave in (np.cos, np.sin)], axis=-1)


def explained(design, target):
    """R squared of each task predicted by least squares from the others; [task, row, column]."""
    error = 0.0
    for task in range(len(target)):
        rest = np.arange(len(target)) != task
        columns = np.concatenate(design[rest]), np.concatenate(target[rest])
        fitted = np.linalg.lstsq(*columns, rcond=None)[0]
        error += ((target[task] - design[task] @ fitted) ** 2).sum()
    return 1 - error / ((target - target.mean(axis=0)) ** 2).sum()


def rotations(angles):
    """Return matrices that turn row vectors of the plane by the angles, [angle, 2, 2]."""
    cos, sin = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)


def best_angles(weights, with_fixed_part=False, rounds=300):
    """Return the angles by which first layers [task, 2, unit] are best one layer, turned.

    Alternating least squares; given the other parts each angle is the solution of a problem of
    Schonemann (1966). ``with_fixed_part``: the layer is a part that is the same for all tasks and
    one that turns. True angles are not used, and a common angle is arbitrary.
    """
    fixed = weights.mean(axis=0) * with_fixed_part
    turning = weights[0] - fixed
    for _ in range(rounds):
        rest = weights - fixed
        along = (rest * turning).sum(axis=(1, 2))
        across = (rest[:, 1] * turning[0] - rest[:, 0] * turning[1]).sum(axis=1)
        turned = rotations(np.arctan2(across, along))
        turning = np.einsum("tji,tjk->ik", turned, rest) / len(weights)
        fixed = (weights - turned @ turning).mean(axis=0) * with_fixed_part
    return np.arctan2(across, along)


def error_degrees(found, true):
    """Root mean square distance of angles from the true ones, degrees, up to a common angle."""
    off = np.exp(1j * (found - true))
    return float(np.degrees(np.sqrt((np.angle(off / off.mean()) ** 2).mean())))


def to_common_axes(layers, rounds=10):
    """Turn the units' axes of first layers [draw, task, 2, unit] so that draws lie close.

    Where a first layer is nearly linear, units may be mixed by any orthogonal matrix that the next
    layer undoes, and a chain wanders among these mixtures. Orthogonal Procrustes, towards the mean
    of the draws so far; from the first one.
    """
    reference = layers[0]
    for _ in range(rounds):
        left, _, right = np.linalg.svd(np.einsum("dtiu,tiv->duv", layers, reference))
        turned = layers @ (left @ right)[:, None]
        reference = turned.mean(axis=0)
    return turned
