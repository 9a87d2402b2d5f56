"""What a layer's weights tell of the angles by which tasks were turned: for the pages of the gain and of rotation."""

import jax.numpy as jnp
import numpy as np


def layer_draws(draws, layer):
    """Return the weights of a layer that differs between tasks, [..., task, in, out]."""
    sd = jnp.exp(draws["log_sd"][layer])[..., None, None, None]
    return np.asarray(draws["mean"][layer]["kernel"][..., None, :, :] + sd * draws["offset"][layer]["kernel"])


def harmonics(angles, orders=(1, 3)):
    """Return cosines and sines of the angles, [angle, 2 * order]."""
    return np.stack([wave(k * angles) for k in orders for wave in (np.cos, np.sin)], axis=-1)


def explained(design, target):
    """Return R squared of each task predicted by least squares from the others; both [task, row, column]."""
    error = 0.0
    for task in range(len(target)):
        rest = np.arange(len(target)) != task
        columns = np.concatenate(design[rest]), np.concatenate(target[rest])
        fitted = np.linalg.lstsq(*columns, rcond=None)[0]
        error += ((target[task] - design[task] @ fitted) ** 2).sum()
    return 1 - error / ((target - target.mean(axis=0)) ** 2).sum()
