"""The evidence of the nine priors once more, by no chain: an average over the prior of the hidden
weights.

Given the hidden weights a network is linear in its output weights, whose normal prior is integrated
exactly, and the noise on a grid. What is left is an average over draws of the hidden weights (and
of scales, where the prior has some) from their prior. It shares nothing with the bridges of
``regression/variants`` but the model and the data. A few draws may carry the average: the row says
how much the largest has, and its error is that of twenty batches.
"""

from helpers import common

import jax
import numpy as np
from jaxtyping import Float
from scipy import special, stats

from experiments.pages.regression import variants
from experiments.problems import wave_networks

SETTINGS = {
    "seed": 5013,
    "num_redraws": 16,  # of regression/variants, by the same keys
    # of the first redraw, on which there are bridges too; of each other
    "num_draws": [500_000, 50_000],
    "num_draws_wide": [100_000, 10_000],  # of networks with more units than measurements
    "num_batches": 20,
    "noise": [0.02, 1.5],  # ends of the noise's grid, in equal steps of its logarithm
    "num_noise": 60,
    # Hidden weights are drawn from their normal prior, so much wider, and weighted: chosen with
    # other draws by how many then count, where few did.
    "widened": {"N(0, 1), 10 tanh units": 1.4, "100 units, scaled": 1.1},
    "tolerance": 1.0,  # nats within which two estimates count as one
    "least_effective": 100,  # draws below which an average does not count
}
NOISE_SCALE = 0.5  # of the half-Cauchy prior, as in densities.regression_log_prior
AT_ONCE = 2000  # draws in memory
LARGEST = 1e6  # of an eigenvalue: beyond, rounding would hide what is as small as the noise
SMALL = {"variant": "sd 0.1", "redraw": 0, "num_draws": 4000}


def units() -> dict[str, dict]:
    """Return every prior on every redraw."""
    settings = {}
    for redraw in range(SETTINGS["num_redraws"]):
        for variant in variants.SETTINGS["variants"]:
            draws = SETTINGS[
                "num_draws_wide" if options_of(variant)["hidden"] > 40 else "num_draws"
            ]
            settings[unit_name(variant, redraw)] = {
                "variant": variant,
                "redraw": redraw,
                "num_draws": draws[min(redraw, 1)],
            }
    return settings


def unit_name(variant, redraw):
    """By what `rows` finds it."""
    return f"{variant}; redraw {redraw}"


def options_of(variant):
    """A variant's options, those that are the same for all included."""
    return wave_networks.DEFAULTS | variants.SETTINGS["variants"][variant]


def unit(variant: str, redraw: int, num_draws: int) -> dict:
    """Return the log evidence given each draw of the hidden weights, [batch, draw]."""
    wave, options = wave_networks.wave(redraw), options_of(variant)
    x, y = np.asarray(wave.x_train[:, 0], np.float64), np.asarray(wave.y_train, np.float64)
    random = np.random.default_rng(
        np.asarray(jax.random.key_data(common.key(SETTINGS["seed"], "hidden", variant, redraw)))
    )

    def drawn(sizes):
        return (
            features(random, size, x, options, SETTINGS["widened"].get(variant, 1.0))
            for size in sizes
        )

    def batch():
        sizes = np.diff(
            [
                *range(0, num_draws // SETTINGS["num_batches"], AT_ONCE),
                num_draws // SETTINGS["num_batches"],
            ]
        )
        return np.concatenate(
            [given_hidden(terms, y) + log_ratio for terms, log_ratio in drawn(sizes)]
        )

    return {"log_evidence": np.stack([batch() for _ in range(SETTINGS["num_batches"])])}


def features(
    random, size: int, x: Float[np.ndarray, " point"], options: dict, widened: float
) -> tuple:
    """Draw the hidden layer; a curve is a sum of terms [draw, point, term] times N(0, 1).

    The output bias has the first term. Returns the terms and the log ratio of the prior's density
    to that of the draws, [draw]: 0 unless they are widened.
    """

    def unscaled(*shape):
        return (
            random.standard_t(3, shape)
            if options["prior"] == "student"
            else random.normal(size=shape)
        )

    scales = np.full((size, 2), options["scale"])
    if options["prior"] == "learnt":
        scales = np.abs(random.standard_cauchy((size, 2)))
    first, last = scales[:, 0, None, None], scales[:, 1, None, None]
    hidden = widened * unscaled(size, 2, options["hidden"])
    log_ratio = hidden[0].size * np.log(widened) - 0.5 * (1 - widened**-2) * (hidden**2).sum(
        axis=(1, 2)
    )
    z = first * (x[:, None] * hidden[:, :1] + hidden[:, 1:])
    h = options["factor"] ** 0.5 * (
        np.tanh(z) if options["activation"] == "tanh" else np.maximum(z, 0)
    )
    terms = last * np.concatenate([np.ones((size, len(x), 1)), h], axis=-1)
    if options["prior"] == "student":  # normal, given a precision that is drawn
        terms /= np.sqrt(random.chisquare(3, (size, 1, terms.shape[-1])) / 3)
    return terms, log_ratio if widened != 1 else np.zeros(size)


def given_hidden(
    terms: Float[np.ndarray, "draw point term"], y: Float[np.ndarray, " point"]
) -> np.ndarray:
    """Return log p(y) given each draw of terms, [draw]; the noise on its grid."""
    log_noise = np.linspace(*np.log(SETTINGS["noise"]), SETTINGS["num_noise"])
    variance = np.exp(2 * log_noise)
    weight = stats.halfcauchy(scale=NOISE_SCALE).logpdf(np.exp(log_noise)) + log_noise
    weight += np.log(log_noise[1] - log_noise[0])
    rank = min(terms.shape[1:])

    def of_spectrum(values, squares):
        """Given the eigenvalues of the curve's covariance, and y squared along their vectors."""
        spectrum = np.maximum(values, 0)[:, None] + variance[:, None]
        rest = np.maximum(y @ y - squares.sum(axis=-1), 0)[:, None] if rank < y.size else 0.0
        fit = (squares[:, None] / spectrum).sum(axis=-1) + rest / variance
        log_det = np.log(spectrum).sum(axis=-1) + (y.size - rank) * np.log(variance)
        return special.logsumexp(
            weight - 0.5 * (fit + log_det + y.size * np.log(2 * np.pi)), axis=1
        )

    turned = np.swapaxes(terms, 1, 2)
    if rank == y.size:
        values, vectors = np.linalg.eigh(terms @ turned)
        return of_spectrum(values, (np.swapaxes(vectors, 1, 2) @ y) ** 2)
    # Fewer terms than points: the matrix of the terms is the smaller one.
    values, vectors = np.linalg.eigh(turned @ terms)
    spectrum = np.maximum(values, 0)[:, None] + variance[:, None]
    squares = (np.swapaxes(vectors, 1, 2) @ (turned @ y)[..., None])[..., 0] ** 2
    fit = (y @ y - (squares[:, None] / spectrum).sum(axis=-1)) / variance
    log_det = np.log(spectrum).sum(axis=-1) + (y.size - rank) * np.log(variance)
    found = special.logsumexp(weight - 0.5 * (fit + log_det + y.size * np.log(2 * np.pi)), axis=1)
    large = values[:, -1] > LARGEST
    if large.any():
        left, singular, _ = np.linalg.svd(terms[large], full_matrices=False)
        found[large] = of_spectrum(singular**2, (np.swapaxes(left, 1, 2) @ y) ** 2)
    return found


def score(drawn: dict, variant: str, redraw: int, num_draws: int) -> dict:
    """Return the log of the average, its error, and how evenly the draws share in it."""
    each = drawn["log_evidence"]
    level = special.logsumexp(each) - np.log(each.size)
    batches = np.exp(special.logsumexp(each, axis=1) - np.log(each.shape[1]) - level)
    shares = np.exp(each.ravel() - special.logsumexp(each))
    return {
        "log_evidence": float(level),
        # of a mean near 1, so of its log
        "log_evidence_error": float(batches.std(ddof=1) / np.sqrt(len(batches))),
        "largest_share": float(shares.max()),
        "effective_draws": float(1 / (shares**2).sum()),
    }


def rows(scored: dict[str, dict]) -> list[dict]:
    """Return a row for each prior, lists over redraws."""

    def row(variant):
        found = [scored[unit_name(variant, redraw)] for redraw in range(SETTINGS["num_redraws"])]
        return {"name": variant, **{entry: [one[entry] for one in found] for entry in found[0]}}

    return [row(variant) for variant in variants.SETTINGS["variants"]]
