"""Copies of networks brought together, so that the weights of a hierarchical network can be
averaged and learnt from.

A copy of a tanh network is the same function with its hidden units in another order and with other
signs; one of hidden layers of 5 and 5 units has (2^5 5!)^2 of them, about 15 million. Draws are
aligned, each as its copy that is nearest to a reference.

    aligned = copies.align(draws, copies.common_reference(take(draws, np.s_[:, ::10])))
"""

from helpers import checks, hierarchical

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy import optimize


def relabel(
    layers: dict, orders: list[Int[np.ndarray, " unit"]], signs: list[Float[np.ndarray, " unit"]]
) -> dict:
    """Return another copy of a tanh network: unit ``order[i]`` of a hidden layer becomes unit i,
    times ``sign[i]``.

    ``layers`` are ``{"Dense_0": {"kernel": [..., in, out]}, ...}``, with biases or without; leading
    axes are kept.
    """
    changed = {}
    for i, name in enumerate(sorted(layers)):
        parts = {k: np.asarray(a) for k, a in layers[name].items()}
        if i < len(orders):  # the units that this layer feeds
            parts = {k: a[..., orders[i]] * signs[i].astype(a.dtype) for k, a in parts.items()}
        if i > 0:  # the units that feed it
            kernel = parts["kernel"][..., orders[i - 1], :]
            parts["kernel"] = kernel * signs[i - 1].astype(kernel.dtype)[:, None]
        changed[name] = parts
    return changed


def nearest_copy(layers: dict, reference: dict) -> tuple[list, list]:
    """Find which copy of a tanh network is nearest to a reference: the orders and signs that
    ``relabel`` takes.

    Near is a small sum of squared differences over all leading axes (the tasks, say), every layer
    divided by its root mean square in the reference. One hidden layer after the other is assigned,
    the others held, until none changes (Ainsworth, Hayase and Srinivasa 2023, algorithm 1; with
    signs); once from the first layer up, once from the last one down, and the nearer result is
    returned.

    ValueError: shapes that differ from the reference's.
    """
    names = sorted(reference)
    shapes = [
        {name: np.shape(tree[name]["kernel"]) for name in names} for tree in (layers, reference)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"layers: given kernels {shapes[0]}, expected those of the reference, {shapes[1]}"
        )
    rms = {name: np.sqrt(np.mean(np.square(reference[name]["kernel"]))) for name in names}
    layers, reference = (
        {n: {k: np.asarray(a) / rms[n] for k, a in tree[n].items()} for n in names}
        for tree in (layers, reference)
    )
    sizes = [shapes[0][name][-1] for name in names[:-1]]
    hidden = list(range(len(sizes)))

    def likeness(current, i):
        """Inner products [unit of the reference, unit of the network]: of what feeds them, of what
        they feed.
        """
        here, above = names[i], names[i + 1]
        into = sum(_units(reference[here][k]).T @ _units(current[here][k]) for k in current[here])
        out = [_units(np.swapaxes(tree[above]["kernel"], -1, -2)) for tree in (reference, current)]
        return into, out[0].T @ out[1]

    def assign(orders, signs, i, parts):
        both = likeness(relabel(layers, orders, signs), i)
        gain = sum(both[part] for part in parts)
        order = optimize.linear_sum_assignment(np.abs(gain), maximize=True)[1]
        matched = gain[np.arange(len(order)), order]
        orders[i], signs[i] = orders[i][order], signs[i][order] * np.where(matched < 0, -1.0, 1.0)
        return np.abs(matched).sum() > gain.trace() + 1e-6 * np.abs(gain).sum()

    def distance(orders, signs):
        current = relabel(layers, orders, signs)
        return sum(
            ((current[n][k] - reference[n][k]) ** 2).sum() for n in names for k in current[n]
        )

    found = []
    for first, part in ((hidden, 0), (hidden[::-1], 1)):
        orders, signs = [np.arange(n) for n in sizes], [np.ones(n) for n in sizes]
        for i in first:
            assign(orders, signs, i, (part,))
        while any([assign(orders, signs, i, (0, 1)) for i in hidden]):
            pass
        found.append((orders, signs))
    return min(found, key=lambda copy: distance(*copy))


def _units(array):
    return array.reshape(-1, array.shape[-1])


def align(draws: dict, reference: dict) -> dict:
    """Return hierarchical draws, leading axes [chain, draw], each as its copy that is nearest to
    one reference draw.

    A draw is judged by the weights of all its tasks, and one relabelling acts on its means and on
    all its offsets together, which changes no prediction.

    ValueError: no draws, leading axes that differ, values that are not finite.
    """
    checks.leading("draws", draws, ("chain", "draw"))
    checks.finite(draws=jax.tree.map(checks.cast, draws))
    num_tasks = jax.tree.leaves(reference["offset"])[0].shape[0]
    batch = jax.tree.leaves(draws)[0].shape[:2]

    def one_after_the_other(tree):
        return jax.tree.map(lambda a: np.asarray(a).reshape(-1, *a.shape[2:]), tree)

    flat, every = one_after_the_other(draws), one_after_the_other(task_weights(draws, num_tasks))
    target = jax.tree.map(np.asarray, hierarchical.task_weights(reference, num_tasks)["params"])
    found = [
        nearest_copy(jax.tree.map(lambda a, i=i: a[i], every), target)
        for i in range(batch[0] * batch[1])
    ]

    def relabelled(part):
        parts = [
            relabel(jax.tree.map(lambda a, i=i: a[i], part), *copy) for i, copy in enumerate(found)
        ]
        return jax.tree.map(
            lambda *leaves: jnp.asarray(np.stack(leaves).reshape(*batch, *leaves[0].shape)), *parts
        )

    return {**draws, "mean": relabelled(flat["mean"]), "offset": relabelled(flat["offset"])}


def common_reference(draws: dict, num_starts: int = 6, num_rounds: int = 12) -> dict:
    """Return a reference for ``align`` that no single draw decides: the mean of draws that were
    aligned to it.

    From several draws in turn, all are aligned to the reference, which becomes their mean, until
    their spread no longer falls (generalised Procrustes analysis, Gower 1975, over copies). The
    start with the least spread wins: the tasks' weights' mean squared distance to their mean, every
    layer divided by its mean square. Some hundred draws will do.

    ValueError: no starts or rounds; as ``align``.
    """
    checks.count(num_starts=num_starts, num_rounds=num_rounds)
    checks.leading("draws", draws, ("chain", "draw"))
    num_chains, num_draws = jax.tree.leaves(draws)[0].shape[:2]
    num_tasks = jax.tree.leaves(draws["offset"])[0].shape[2]

    def spread(aligned):
        leaves = [np.asarray(a) for a in jax.tree.leaves(task_weights(aligned, num_tasks))]
        return sum(a.var(axis=(0, 1)).mean() / np.mean(a**2) for a in leaves)

    found = []
    for place in np.linspace(0, num_chains * num_draws - 1, num_starts).round().astype(int):
        chain, draw = divmod(int(place), num_draws)
        reference, least = jax.tree.map(lambda a, c=chain, d=draw: a[c, d], draws), np.inf
        for _ in range(num_rounds):
            aligned = align(draws, reference)
            now = spread(aligned)
            if now > 0.999 * least:
                break
            least, reference = now, jax.tree.map(lambda a: a.mean(axis=(0, 1)), aligned)
        found.append((least, reference))
    return min(found, key=lambda pair: pair[0])[1]


@partial(jax.jit, static_argnums=1)
def task_weights(draws, num_tasks):
    """Return all tasks' weights, leading axes [chain, draw, task]."""
    return jax.vmap(
        jax.vmap(lambda position: hierarchical.task_weights(position, num_tasks)["params"])
    )(draws)
