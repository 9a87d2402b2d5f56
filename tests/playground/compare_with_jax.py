"""The playground's densities, gradients and diagnostics equal the book's, by JAX in float64, and ArviZ's.

JAX_ENABLE_X64=1 PYTHONPATH=/work/main /work/main/.venv/bin/python compare_with_jax.py
"""

from helpers import densities, networks
from helpers.diagnostics import arviz

import json
import subprocess
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from tensorflow_probability.substrates.jax import distributions as tfd

RELATIVE = 1e-9  # of every number by itself
NUM_POSITIONS, NUM_POINTS = 100, 20
random = np.random.default_rng(0)


def specs():
    """Every architecture offered, with three triples of scales."""
    for width, biases, scales in product((1, 2, 5, 10), (False, True), ([1, 1, 1], [0.5, 1, 24], [2.5, 0.3, 4])):
        shared = {"biases": biases, "scales": scales}
        yield {"widths": [2, width, width, 1], "likelihood": "bernoulli", **shared}
        yield {"widths": [1, width, width, 1], "likelihood": "normal", "noise": 0.3, **shared}
        yield {"widths": [1, width, width, 1], "likelihood": "normal", "noise": None, "noiseScale": 0.7, **shared}


def book(spec, network, observed, unravel):
    """Return log density and log likelihood of a standardised position, by the book's functions, and its parameters."""
    is_normal = spec["likelihood"] == "normal"
    learnt = is_normal and spec["noise"] is None
    of_points = (densities.regression_log_likelihood if is_normal else densities.label_log_likelihood)(network)
    one, scale = np.float64(1), np.float64(spec.get("noiseScale", 1))  # of Python's floats TFP makes float32 constants
    of_regression = densities.regression_log_density(network, tfd.Normal(0 * one, one), scale)
    of_labels = densities.flat_log_density(network)

    def position(vector):
        entries = unravel(vector)
        layers = {
            f"Dense_{i}": jax.tree.map(lambda leaf, s=s: s * leaf, entries["params"]["params"][f"Dense_{i}"])
            for i, s in enumerate(spec["scales"])
        }
        return {**entries, "params": {"params": layers}}

    def arguments(vector):
        if not is_normal:
            return position(vector)["params"]
        return {"log_noise": jnp.log(spec["noise"] or 1), **position(vector)}

    def log_likelihood(vector):
        return of_points(arguments(vector), observed).sum()

    def log_density(vector):
        counts = [sum(leaf.size for leaf in jax.tree.leaves(layer)) for layer in layers_of(unravel(vector))]
        jacobian = np.dot(counts, np.log(spec["scales"]))
        if learnt:
            return of_regression(arguments(vector), observed) + jacobian
        if is_normal:
            prior = densities.log_prior(position(vector)["params"], observed.prior_scales)
            return prior + log_likelihood(vector) + jacobian
        return of_labels(arguments(vector), observed) + jacobian

    return log_density, log_likelihood, lambda vector: position(vector)["params"]


def layers_of(entries):
    """Parameters of each layer."""
    return entries["params"]["params"].values()


def case(spec):
    """Return one architecture with data and positions for the runner, and what the book gives for it."""
    widths, is_normal = spec["widths"], spec["likelihood"] == "normal"
    network = networks.MLP(hidden=widths[1:-1], use_bias=spec["biases"])
    x, y = random.normal(size=(NUM_POINTS, widths[0])), random.normal(size=NUM_POINTS)
    y, weight = y if is_normal else (y > 0).astype(int), random.uniform(size=NUM_POINTS)
    scales = np.array(spec["scales"], np.float64)
    observed = densities.Observed(*map(jnp.asarray, (x, y, weight, scales)))  # observe() would make float32 of it
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape), networks.parameter_shapes(network, widths[0]))
    log_noise = {"log_noise": np.zeros(())} if is_normal and spec["noise"] is None else {}
    vector, unravel = ravel_pytree({"params": zeros, **log_noise})
    log_density, log_likelihood, parameters = book(spec, network, observed, unravel)
    positions, grid = random.normal(size=(NUM_POSITIONS, vector.size)), random.normal(size=(7, widths[0]))

    @jax.jit
    @jax.vmap
    def of_book(position):
        value, gradient = jax.value_and_grad(log_density)(position)
        return value, gradient, log_likelihood(position), network.apply(parameters(position), grid)

    names = "value", "gradient", "logLikelihood", "predictions"
    expected = {name: np.asarray(found) for name, found in zip(names, of_book(positions), strict=True)}
    assert all(found.dtype == np.float64 for found in expected.values()), "JAX_ENABLE_X64=1 is not set"
    data = {"x": x.ravel().tolist(), "y": y.tolist(), "weights": weight.tolist()}
    return {"spec": spec | data, "positions": positions.tolist(), "grid": grid.ravel().tolist()}, expected


def autoregressions():
    """Return chains that mix well and badly, agree and do not, long and short, and some with ties."""
    found = []
    for shape, memory, shift in product(((4, 250), (4, 251), (2, 8), (3, 1000)), (0, 0.9, -0.5), (0, 0.4)):
        values = random.normal(size=shape)
        for i in range(1, shape[1]):
            values[:, i] += memory * values[:, i - 1]
        found.append(values + shift * np.arange(shape[0])[:, None])
    return [*found, np.round(found[0])]


def main():
    """Compare, print the largest relative differences, and assert that they are small."""
    sent, expected = zip(*map(case, specs()), strict=True)
    series = autoregressions()
    question = json.dumps({"cases": sent, "chains": [chains.tolist() for chains in series]})
    runner = ["node", str(Path(__file__).with_suffix(".js"))]
    answer = json.loads(subprocess.run(runner, input=question, capture_output=True, text=True, check=True).stdout)
    worst = {}

    def compare(name, found, right):
        found = np.array(found)
        assert found.shape == right.shape, (name, found.shape, right.shape)
        worst[name] = max(worst.get(name, 0.0), float(np.max(np.abs(found - right) / np.abs(right))))

    for found, right in zip(answer["found"], expected, strict=True):
        for name in right:
            compare(name, [row[name] for row in found], right[name])
    for name, found, function in zip(
        ("R-hat of ranks", "split R-hat", "effective sample size"),
        np.transpose(answer["diagnosed"]),
        (arviz.rhat, lambda c: arviz.rhat(c, method="split"), lambda c: arviz.ess(c, method="mean")),
        strict=True,
    ):
        compare(name, found, np.array([function(chains) for chains in series]))
    print(f"{len(sent)} targets, {NUM_POSITIONS} positions each, {len(series)} series: largest relative differences")
    print("\n".join(f"  {name}: {difference:.1e}" for name, difference in worst.items()))
    assert max(worst.values()) <= RELATIVE, worst


if __name__ == "__main__":
    main()
